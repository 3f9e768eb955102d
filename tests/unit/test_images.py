"""What the images hold: what the services need, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.test_structure import ROOT, imports, module_file, relative

DOCKERFILE = ROOT / "deploy/images/Dockerfile"
INSTALL = ROOT / "deploy/images/install.sh"
IMAGES = ("touchstone", "touchstone-gpu")
STARTED = (
    *(f"services.{name}" for name in ("gateway", "scheduler", "evaluator", "results", "bus")),
    *("deploy.command", "deploy.probe"),
)
"""What containers run."""


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments on one line."""
    text = re.sub(r"(?m)^#.*\n", "", DOCKERFILE.read_text()).replace("\\\n", " ")
    parts = [" ".join(line.split()).partition(" ") for line in text.splitlines() if line.strip()]
    return [(word, rest) for word, _, rest in parts]


def stage(name: str) -> list[tuple[str, str]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for word, rest in instructions():
        if word == "FROM":
            current = found.setdefault(rest.split()[-1], [])
        elif found:
            current.append((word, rest))
    return found[name]


def copied() -> set[str]:
    """Files and folders of the tree that a stage copies."""
    return {
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    }


def seen() -> list[str]:
    """What .dockerignore leaves to a build."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    return [line[1:] for line in lines if line.startswith("!")]


def holds(path: Path) -> bool:
    return any(path == ROOT / source or ROOT / source in path.parents for source in copied())


def test_everything_that_is_copied_is_in_the_tree() -> None:
    assert len(copied()) > 8
    assert [source for source in copied() if not (ROOT / source).exists()] == []


def test_a_build_sees_only_what_is_copied() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]

    assert lines[0] == "*"
    assert lines[-1] == "**/__pycache__"
    assert set(seen()) == copied()
    assert not {path.split("/")[0] for path in copied()} & {"var", "tests", ".git", "docs", "benchmarks", ".venv"}


def test_every_module_that_a_container_imports_is_in_its_image() -> None:
    todo, found = list(STARTED), set[str]()
    while todo:
        name = todo.pop()
        path = module_file(name)
        if path is None or name in found:
            continue
        found.add(name)
        assert holds(path), f"{relative(path)} is imported and not in the image"
        main = path.with_name("__main__.py")
        files = [path, main] if path.name == "__init__.py" and main.exists() else [path]
        todo += (imported for file in files for imported in imports(file))

    assert len(found) > 300
    assert "deploy.local.recovery.repair" in found
    assert "web" in found


def test_templates_and_generated_stubs_are_in_the_images() -> None:
    for path in ("web/templates", "web/static", "protos/gen/touchstone/v1", "services/evaluator/demo"):
        assert any((ROOT / path).iterdir())
        assert holds(ROOT / path)


def test_bases_are_named_by_digest() -> None:
    bases = {rest.split("=")[0]: rest.partition("=")[2] for word, rest in instructions() if word == "ARG"}
    froms = [rest.split() for word, rest in instructions() if word == "FROM"]

    assert set(bases) == {"BASE", "GPU_BASE"}
    assert all(re.fullmatch(r"[\w.-]+(/[\w.-]+)+@sha256:[0-9a-f]{64}", base) for base in bases.values())
    assert {base for base, *_ in froms} == {"${BASE}", "${GPU_BASE}"}


@pytest.mark.parametrize("image", IMAGES)
def test_nobody_in_an_image_is_root(image: str) -> None:
    steps = stage(image)
    users = [rest for word, rest in steps if word == "USER"]
    made = [rest for word, rest in steps if word == "RUN"]

    assert users == ["10001:10001"]
    assert "useradd --uid 10001" in made[0]
    # Nothing runs as root after it.
    assert [word for word, _ in steps[steps.index(("USER", users[0])) :] if word == "RUN"] == []


def test_images_have_the_packages_of_their_lock_and_no_others() -> None:
    installs = re.findall(r"pip install(.*?)(?<!\\)\n", INSTALL.read_text(), re.DOTALL)

    assert len(installs) == 1
    assert "--require-hashes" in installs[0]
    assert "--no-cache-dir" in installs[0]
    assert "--requirement /build/image.txt" in installs[0]
    for name in ("packages", "gpu-packages"):
        assert ("COPY", "requirements/image.txt deploy/images/install.sh /build/") in stage(name)
    assert "pip install" not in DOCKERFILE.read_text()


def test_the_pages_scripts_are_put_in_when_an_image_is_built() -> None:
    assert any("python3 -m web.vendor" in rest for word, rest in stage("application") if word == "RUN")


def test_hadolint_is_one_of_the_checks() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]

    assert "hadolint deploy/images/Dockerfile" in recipe
