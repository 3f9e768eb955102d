"""The DuckDB file: opening it, hardened, and bringing it to the newest schema."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import duckdb

from services.errors import UnavailableError
from services.results.storage.backfill import BACKFILLS
from services.results.storage.database import Connection, damage, damaged, not_a_database

log = logging.getLogger(__name__)

# Only our own SQL runs here, so nothing outside the file is ever needed.
_HARDENED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    # A page of a thousand jobs is found by narrow columns, then read by row; a page of ids by their index.
    "late_materialization_max_rows": "1001",
    "dynamic_or_filter_threshold": "1001",
}
MEMORY = "600MB"
"""What DuckDB may hold; Python, gRPC and what is being packed come on top."""


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration in schema.sql, in order."""
    text = (resources.files(__package__) / "schema.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- migration (\d+):.*$", text, flags=re.MULTILINE)
    return [(int(number), sql) for number, sql in zip(parts[1::2], parts[2::2], strict=True)]


def open_file(path: Path, *folders: Path) -> Connection:
    """Opens or creates the database and brings it to the newest schema. Apart from it, DuckDB can reach only files in
    `folders`.

    Raises DamagedFilesError when its files are damaged, and UnavailableError when another process has it open, the disk
    refuses, or a newer Touchstone wrote it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if why := not_a_database(path):
            raise damaged(path, why)
        connection = duckdb.connect(str(path), config={**_HARDENED, "memory_limit": MEMORY})
        _lock_in(connection, folders)
        _migrate(connection)
        connection.checkpoint()
    except (duckdb.Error, OSError) as error:
        if (found := damage(error, path)) is not None:
            raise found from error
        raise UnavailableError(
            f"The results database {path} cannot be opened: {error}. Check that no other results service uses it "
            "and that its disk has space."
        ) from error
    return connection


def _lock_in(connection: Connection, folders: Sequence[Path]) -> None:
    # Not by the configuration above, which takes no folders.
    allowed = ", ".join("'" + str(folder.absolute()).replace("'", "''") + "/'" for folder in folders)
    connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _migrate(connection: Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, applied_at TIMESTAMP)")
    done = {number for (number,) in connection.execute("SELECT number FROM migrations").fetchall()}
    known = migrations()
    if done and max(done) > max(number for number, _ in known):
        raise UnavailableError(
            f"A newer Touchstone wrote the results database (schema {max(done)}). Start that version or a later one."
        )
    for number, sql in known:
        if number not in done:
            connection.begin()
            connection.execute(sql)
            if number in BACKFILLS:
                BACKFILLS[number](connection)
            connection.execute("INSERT INTO migrations VALUES ($number, now() AT TIME ZONE 'UTC')", {"number": number})
            connection.commit()
            log.info("applied migration %d", number)
