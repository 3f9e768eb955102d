"""Places of archives, and which sentences refuse them."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.results.settings import Settings
from services.results.stores.folder import Folder
from services.results.stores.store import check_bucket, open_store


@pytest.mark.parametrize(
    "place", ["s3://", "s3:///x", "s3://KEY:hunter2@bucket/x", "s3://bucket?secret=hunter2", "s3://b//x"]
)
def test_a_place_that_is_not_a_bucket_is_refused_without_showing_it(place: str) -> None:
    with pytest.raises(InvalidRequestError, match="must be a bucket such as s3://bucket/prefix") as refused:
        check_bucket("TOUCHSTONE_ARCHIVE", place)
    assert "hunter2" not in refused.value.message


def test_a_slash_at_the_end_makes_no_other_place() -> None:
    assert check_bucket("The place", "s3://bucket/a/b/") == "s3://bucket/a/b"


def test_a_path_is_a_folder(tmp_path: Path) -> None:
    store = open_store(str(tmp_path), "")
    assert isinstance(store, Folder)
    assert store.place == str(tmp_path)


def test_an_archive_and_backups_are_in_a_folder_or_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_STATE_DIR", str(tmp_path))
    assert Settings.from_env().archive == ""
    monkeypatch.setenv("TOUCHSTONE_ARCHIVE", "s3://bucket/prefix/")
    monkeypatch.setenv("TOUCHSTONE_S3_URL", "http://127.0.0.1:9000")
    settings = Settings.from_env()
    assert (settings.archive, settings.s3_url) == ("s3://bucket/prefix", "http://127.0.0.1:9000")
    assert settings.backups == str(tmp_path / "backups")
    monkeypatch.setenv("TOUCHSTONE_BACKUP_DIR", "s3://bucket/backups")
    settings = Settings.from_env()
    assert settings.backups == "s3://bucket/backups"
    assert settings.backup_scratch in settings.written
    monkeypatch.setenv("TOUCHSTONE_ARCHIVE", str(tmp_path / "archive"))
    assert Settings.from_env().archive == str(tmp_path / "archive")
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOUCHSTONE_ARCHIVE", str(tmp_path / "file"))
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_ARCHIVE must name a folder"):
        Settings.from_env()
