"""Builds the images on a base that mmdebstrap makes, with buildah, in a folder of the test's own. Needs root."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
BASE = "localhost/base"
APART = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""What stands before a command: it ends with this process, and all that it started and mounted ends with it."""
_PACKAGES = "ca-certificates,python3,python3-venv"
_PIP = ("index-url", "extra-index-url", "find-links", "no-index", "cert", "proxy", "trusted-host", "timeout")
_STEP_S = 1800


def copy_tree(folder: Path) -> Path:
    """The tree as a fresh clone has it, with changes that are not committed."""
    listed = run("git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    tree = folder / "tree"
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    return tree


class Builder:
    """buildah with its images in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._buildah = (*APART, "buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run"))

    def make_base(self) -> None:
        """Debian with Python and nothing else."""
        base = self.folder / "base"
        base.mkdir()
        run(*APART, "mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", str(base / "root.tar"))
        (base / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
        run(*self._buildah, "build", "--isolation=chroot", "--tag", BASE, str(base))
        shutil.rmtree(base)

    def build(self, image: str, tree: Path) -> Path:
        """Builds a target of the Dockerfile; returns an archive that `docker load` takes."""
        archive = self.folder / f"{image}.tar"
        arguments = [f"--build-arg={name}={BASE}" for name in ("BASE", "GPU_BASE")]
        arguments += ["--isolation=chroot", "--network=host", "--pull-never", "--layers", "--tag", image]
        arguments += [*machine_settings(self.folder), "--target", image, str(tree)]
        run(*self._buildah, "build", "--file", str(tree / "deploy/images/Dockerfile"), *arguments)
        run(*self._buildah, "push", "--quiet", image, f"docker-archive:{archive}:{image}:latest")
        return archive


def machine_settings(folder: Path) -> list[str]:
    """Arguments of a build with which pip and npm reach the registries as they do on this machine, by its own settings
    and certificates. Only empty folders, where they were mounted, stay in the image."""
    settings = pip_settings()
    config = folder / "pip.conf"
    config.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items()))
    npmrc = folder / "npmrc"
    certificates = os.environ.get("NODE_EXTRA_CA_CERTS") or os.environ.get("SSL_CERT_FILE") or settings.get("cert", "")
    npm = {"cafile": certificates, "registry": npm_registry()}
    npmrc.write_text("".join(f"{key}={value}\n" for key, value in npm.items() if value))
    mounts = {Path("/root/.npmrc"): npmrc}
    for value in (*settings.values(), certificates):
        for word in value.split():
            path = Path(urlsplit(word).path if word.startswith("file:") else word)
            if path.is_absolute() and path.exists():
                # The files of an index may be next to it.
                path = path.parent if word.startswith("file:") else path
                mounts[path] = path
    return [
        f"--secret=id=pip.conf,src={config}",
        *(f"--volume={source}:{target}:ro" for target, source in mounts.items()),
    ]


def pip_settings() -> dict[str, str]:
    """Where pip takes packages from on this machine; a variable of the environment goes before files."""
    for python in (sys.executable, f"{sys.base_prefix}/bin/python3", "/usr/bin/python3"):
        done = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            break
    else:
        return {}
    pairs = [line.partition("=") for line in done.stdout.splitlines() if "=" in line]
    found = {name: " ".join(str(ast.literal_eval(value)).split()) for name, _, value in pairs}
    order = sorted(found, key=lambda name: name.startswith(":env:"))
    keys = {name.rpartition(".")[2].replace("default-timeout", "timeout"): found[name] for name in order}
    return {key: value for key, value in keys.items() if key in _PIP}


def npm_registry() -> str:
    """Empty without npm."""
    npm = shutil.which("npm")
    return run(npm, "config", "get", "registry").strip() if npm else ""


def run(*command: str) -> str:
    """What it prints. Fails with the end of it."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=_STEP_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout
