"""The images, built once, and a Docker daemon that has them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.building import Builder, copy_tree
from tests.images.compose import Compose
from tests.images.daemon import Daemon

TOOLS = ("buildah", "docker", "dockerd", "git", "ip", "mmdebstrap", "openssl", "setpriv", "unshare")
IMAGES = ("touchstone", "touchstone-gpu")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(
            f"Building and running images needs root and {', '.join(TOOLS)}; missing: {', '.join(missing) or 'root'}. "
            "On Debian: apt install buildah docker.io docker-compose mmdebstrap"
        )
    made = tmp_path_factory.mktemp("images")
    yield made
    # The images take gigabytes.
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def tree(folder: Path) -> Path:
    return copy_tree(folder)


@pytest.fixture(scope="session")
def archives(folder: Path, tree: Path) -> dict[str, Path]:
    builder = Builder(folder)
    builder.make_base()
    return {image: builder.build(image, tree) for image in IMAGES}


@pytest.fixture(scope="session")
def daemon(folder: Path, archives: dict[str, Path]) -> Iterator[Daemon]:
    with Daemon(folder / "docker") as made:
        for archive in archives.values():
            made.docker("load", "--input", str(archive))
            archive.unlink()
        yield made


@pytest.fixture
def compose(daemon: Daemon, tree: Path) -> Iterator[Compose]:
    made = Compose(daemon, tree / "deploy/compose")
    made.make_env()
    yield made
    # A test that failed leaves nothing to the next one.
    made("down", "--volumes")
