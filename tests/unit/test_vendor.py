"""The scripts that pages load are those whose hashes are checked in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from web import vendor


def test_the_lock_pins_versions_and_names_no_host() -> None:
    lock = (vendor.ROOT / "package-lock.json").read_text()
    assert "http" not in lock
    wanted = json.loads((vendor.ROOT / "package.json").read_text())["dependencies"]
    locked = json.loads(lock)["packages"]
    for name, version in wanted.items():
        assert locked[f"node_modules/{name}"]["version"] == version
        assert locked[f"node_modules/{name}"]["integrity"].startswith("sha512-")


def test_a_changed_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not vendor.is_current():
        pytest.skip("The pages' scripts are not there: run `python -m web.vendor`.")
    copied = tmp_path / "vendor"
    shutil.copytree(vendor.VENDOR, copied)
    monkeypatch.setattr(vendor, "VENDOR", copied)
    assert vendor.is_current()
    with (copied / "htmx.min.js").open("a") as script:
        script.write("//")
    assert not vendor.is_current()


def test_every_file_comes_with_a_licence() -> None:
    packages = {source.split("/")[0] for source, _, _ in vendor.FILES}
    assert {source.split("/")[0] for source, _, _ in vendor.FILES if source.endswith("LICENSE")} == packages
