"""The images, and the default profile of compose: from nothing to a completed demo, and down."""

from __future__ import annotations

import json

import pytest

from tests.images.compose import Compose
from tests.images.conftest import IMAGES
from tests.images.daemon import Daemon

pytestmark = pytest.mark.images


def test_images_are_made_for_a_user_without_rights(daemon: Daemon) -> None:
    for image in IMAGES:
        (found,) = json.loads(daemon.docker("image", "inspect", image))
        assert found["Config"]["User"] == "10001:10001"
        assert not found["Config"]["Entrypoint"]
    started = ("run", "--rm", "--read-only", "--cap-drop=ALL", "touchstone-gpu", "touchstone", "--version")
    assert daemon.docker(*started).startswith("touchstone ")


def test_the_demo_completes_and_down_leaves_nothing(compose: Compose) -> None:
    compose.up()
    compose.log_in()
    compose.run_demo()
    board = compose.board()
    compose.check_rights()

    backup = compose("exec", "-T", "results", "touchstone", "backup").strip()
    compose("down")
    compose("run", "--rm", "--no-deps", "-T", "results", "touchstone", "restore", backup)
    compose.up()
    assert compose.board() == board
    compose.down()
