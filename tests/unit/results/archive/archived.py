"""A database of finished jobs of all kinds, and its archive."""

from __future__ import annotations

import shutil
from datetime import datetime, timedelta
from pathlib import Path

from services import bus
from services.results.archive.archiving import Archiving
from services.results.archive.leaving import Leaving
from services.results.archive.lending import Lending
from services.results.archive.returning import Returning
from services.results.boards.leaderboard import leaderboard
from services.results.export.exports import export
from services.results.intake import writes
from services.results.runs import job_reads
from services.results.storage import run_scores
from services.results.storage.database import Connection, Database
from services.results.storage.migrations import open_file
from services.results.stores.store import Store, open_store
from tests.unit.results.builders import ERROR, START, answer, batch, event, job, plan, run
from touchstone.v1 import job_pb2
from touchstone.v1 import results_service_pb2 as pb

LATER = (START + timedelta(days=400)).replace(tzinfo=None)
SAID = START.replace(tzinfo=None)
JOBS = ("done-1", "done-2", "failed", "cancelled")


def fill(connection: Connection, items: int = 40) -> None:
    """Two jobs that rank, one that failed with an error, one that was cancelled, one that runs; and what people say."""
    for number, name in enumerate(JOBS[:2]):
        run(connection, job(name, plan("t", items), model=f"m{number}", minute=number), items - 5 - number, 5 + number)
    for number, (name, state) in enumerate(
        [("failed", job_pb2.Job.STATE_FAILED), ("cancelled", job_pb2.Job.STATE_CANCELLED)], start=2
    ):
        begun = job(name, plan("t", items), model=name, minute=number)
        writes.store_events(connection, [event(f"{number}-1", begun)])
        writes.store_items(connection, [batch(name, "t", [answer(0), answer(1, outcome=ERROR, error="down")])])
        ended = job(name, plan("t", items), model=name, minute=number, state=state)
        writes.store_events(connection, [event(f"{number}-2", ended, "ended")])
    writes.store_events(connection, [event("9-1", job("live", plan("t", items), minute=9))])
    annotate(connection, 1, "done-1")
    connection.execute("INSERT INTO marks VALUES (1, 'done-2', 3, 'old', '', 'ann', $at)", {"at": SAID})
    run_scores.refresh(connection, "done-2")
    connection.execute(
        "INSERT INTO preferences VALUES (1, 'done-1,done-2', 't', 0, 0, '', 1, 'done-1', true, 'ann', $at)",
        {"at": SAID},
    )
    connection.execute("INSERT INTO rubrics VALUES (1, 'r1', '{}', $at), (2, 'r2', '{}', $at)", {"at": SAID})
    connection.execute(
        "INSERT INTO ratings VALUES (1, 'done-1', 't', 0, 0, 'r1', 'ann', '{}', '', $at, '')", {"at": SAID}
    )
    connection.execute("INSERT INTO configuration_names VALUES ('m0@local', 'Ours', 'ours', 'ann', $at)", {"at": SAID})


def annotate(connection: Connection, number: int, job_id: str, note: str = "note") -> None:
    connection.execute(
        "INSERT INTO annotations VALUES ($number, $job_id, 't', 0, 0, 1, '', $note, 'ann', $at)",
        {"number": number, "job_id": job_id, "note": note, "at": SAID},
    )


class Archived:
    """A database and its archive."""

    def __init__(self, folder: Path, place: str = "", url: str = "") -> None:
        self.folder = folder
        self.place = place or str(folder / "archive")
        self.root = Path(self.place)
        self.store: Store = open_store(self.place, url)
        self.path = folder / "touchstone.duckdb"
        self.scratch = folder / "scratch"
        self.moving = folder / "moving"
        self.connection = open_file(self.path, self.scratch, self.moving)
        self.database = Database(self.connection)
        self.archiving = Archiving(self.database, self.place, url, self.scratch, bus.Room())
        self.room = bus.Room()
        self.returning = Returning(self.database, self.place, url, self.moving, self.room)
        self.lending = Lending(self.database, self.returning)
        self.database.bring_back, self.database.lend = self.returning.bring_back, self.lending.lend
        self.leaving = Leaving(self.database, self.returning, self.place, url, 1, bus.Room())

    async def archive(self, before: datetime = LATER) -> None:
        while await self.archiving.look(self.store, before):
            pass

    async def leave(self, before: datetime = LATER) -> None:
        """Items that may leave do so."""
        while await self.leaving.look(self.store, before):
            pass

    def away(self) -> list[str]:
        """Jobs whose items are in the archive alone; of these, the database has none."""
        found = self.connection.execute("SELECT job_id FROM archived_items WHERE returned_at IS NULL ORDER BY job_id")
        away = [job_id for (job_id,) in found.fetchall()]
        here = {job_id for (job_id,) in self.connection.execute("SELECT DISTINCT job_id FROM items").fetchall()}
        assert not here & set(away)
        return away

    async def close(self) -> None:
        await self.returning.close()
        await self.database.close()

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def manifests(self, job_id: str) -> list[str]:
        return [name for name in self.store.names(f"jobs/{job_id}") if name.startswith("version-")]


async def keep_one(folder: Path, items: int = 40) -> Path:
    """A filled database with its archive, to be copied: filling one takes most of a test's time."""
    made = Archived(folder)
    fill(made.connection, items)
    await made.archive()
    await made.close()
    return folder


def copied(kept: Path, folder: Path) -> Archived:
    """A copy of what `keep_one` made."""
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    made = Archived(folder)
    for table in ("archived_jobs", "archived_items"):
        made.connection.execute(f"UPDATE {table} SET place = $place", {"place": made.place})
    return made


def items_of(connection: Connection) -> list[bytes]:
    return [exported(connection, kind="KIND_ITEMS", items=pb.ListItemsRequest(job_id=name)) for name in JOBS]


def seen(connection: Connection, jobs: tuple[str, ...] = JOBS) -> dict[str, object]:
    """What people see: results, leaderboard, lists, and exports byte for byte."""
    found: dict[str, object] = {
        name: (
            job_reads.get_job(connection, name).SerializeToString(deterministic=True),
            job_reads.get_job_result(connection, name).SerializeToString(deterministic=True),
            exported(connection, kind="KIND_ITEMS", items=pb.ListItemsRequest(job_id=name)),
        )
        for name in jobs
    }
    found["leaderboard"] = leaderboard(connection, pb.GetLeaderboardRequest(suite="glue"))
    everything = pb.ResultsServiceListJobsRequest()
    found["jobs"] = exported(connection, kind="KIND_JOBS", jobs=everything)
    found["metrics"] = exported(connection, kind="KIND_METRICS", jobs=everything)
    return found


def exported(connection: Connection, **asked: object) -> bytes:
    request = pb.ExportRequest(format="FORMAT_JSONL", **asked)  # type: ignore[arg-type]
    return b"".join(piece.data for piece in export(connection, request))
