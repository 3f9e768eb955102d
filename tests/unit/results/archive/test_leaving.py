"""Items of finished jobs leave the database only once the archive has them, and come back when something needs them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services import bus
from services.errors import ConflictError, NoRoomError, UnavailableError
from services.results.archive import leaving, returning, versions
from services.results.comparison.compare import compare
from services.results.digests.reads import get_digest
from services.results.intake import resealing, writes
from services.results.items import annotate as annotating
from services.results.items import reads as item_reads
from services.results.read_queue import Questions
from services.results.runs import job_reads
from services.results.storage import run_scores, stored_responses, text_retention, uses
from services.results.storage.database import READERS, Connection
from services.results.storage.job_files import JobFiles
from services.results.stores.store import fetch
from services.results.watches import canaries
from services.rpc import Identity
from tests.unit.results.archive.archived import (
    JOBS,
    LATER,
    SAID,
    Archived,
    annotate,
    copied,
    fill,
    items_of,
    seen,
)
from tests.unit.results.builders import START, answer, batch, event, job, plan, run
from touchstone.v1 import comparison_pb2, job_pb2, token_pb2
from touchstone.v1 import results_service_pb2 as pb

FAILED, CANCELLED = job_pb2.Job.STATE_FAILED, job_pb2.Job.STATE_CANCELLED
GONE = sorted(JOBS)


@pytest.fixture
async def made(kept: Path, tmp_path: Path) -> AsyncIterator[Archived]:
    archived = copied(kept, tmp_path)
    yield archived
    await archived.close()


async def test_items_that_left_come_back_byte_for_byte_when_they_are_read(made: Archived) -> None:
    whole = seen(made.connection)
    await made.leave()
    assert made.away() == GONE
    assert not list(made.moving.iterdir())
    assert await made.database.read(seen) == whole
    assert made.away() == []
    assert not list(made.moving.iterdir())


async def test_what_needs_no_items_is_read_while_they_are_away(made: Archived) -> None:
    everything = pb.ResultsServiceListJobsRequest(with_scores=True)

    def told(connection: Connection) -> object:
        return [
            job_reads.list_jobs(connection, everything),
            *(job_reads.get_job_result(connection, name) for name in JOBS[:2]),
        ]

    before = told(made.connection)
    await made.leave()
    assert await made.database.read(told) == before
    assert made.away() == GONE


async def test_items_stay_until_the_job_ended_so_long_ago(made: Archived) -> None:
    await made.leave(SAID - timedelta(seconds=1))
    assert made.away() == []


async def test_items_of_a_job_that_the_archive_lacks_stay(tmp_path: Path) -> None:
    archived = Archived(tmp_path)
    fill(archived.connection, 11)
    await archived.leave()
    assert archived.away() == []
    await archived.archive()
    annotate(archived.connection, 2, "done-1", "which the archive does not have yet")
    await archived.leave()
    assert archived.away() == [name for name in GONE if name != "done-1"]
    await archived.archive()
    await archived.leave()
    assert archived.away() == GONE
    await archived.close()


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


async def test_items_stay_if_any_file_of_the_job_is_damaged_or_missing(made: Archived) -> None:
    whole = items_of(made.connection)
    folder = made.root / "jobs" / "done-1"
    for number, path in enumerate(sorted(folder.iterdir())):
        good = path.read_bytes()
        damage(path) if number % 2 else path.unlink()
        made.leaving._refused.clear()
        await made.leave()
        assert "done-1" not in made.away(), path.name
        path.write_bytes(good)
    assert await made.database.read(items_of) == whole
    made.leaving._refused.clear()
    await made.leave()
    assert "done-1" in made.away()


async def test_items_stay_if_the_archive_has_those_of_another_job(made: Archived) -> None:
    whole = items_of(made.connection)
    mine, other = (made.root / "jobs" / name for name in ("done-1", "done-2"))
    version = versions.read(made.store, "done-1", *made.manifests("done-1"))
    theirs = versions.read(made.store, "done-2", *made.manifests("done-2")).of("items")
    assert theirs is not None
    # Whole files with right checksums, under a manifest that names them.
    shutil.copyfile(other / theirs.file, mine / theirs.file)
    files = [theirs if file.table == "items" else file for file in version.files]
    versions.write(made.store, replace(version, number=2, files=files))
    # The manifest of another job.
    for path in (made.root / "jobs" / "failed").iterdir():
        shutil.copyfile(path, made.root / "jobs" / "cancelled" / path.name)
    for path in (made.root / "jobs" / "cancelled").glob("version-*"):
        if versions.read(made.store, "cancelled", path.name).job_id == "cancelled":
            path.unlink()
    await made.leave()
    assert made.away() == ["done-2", "failed"]
    assert await made.database.read(items_of) == whole


async def test_a_file_that_is_damaged_just_before_the_items_leave_costs_nothing(
    made: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, leave = items_of(made.connection), leaving._leave
    items = next((made.root / "jobs" / "done-1").glob("items.*"))

    def damaged(connection: Connection, **given: Any) -> bool:
        if given["checked"].away.job_id == "done-1":
            damage(items)
        return leave(connection, **given)

    monkeypatch.setattr(leaving, "_leave", damaged)
    await made.leave()
    assert made.away() == [name for name in GONE if name != "done-1"]
    assert await made.database.read(items_of) == whole


async def test_a_store_that_is_away_keeps_items_where_they_are(made: Archived) -> None:
    hidden = made.root.with_name("hidden")
    made.root.rename(hidden)
    made.root.write_bytes(b"not a folder")
    with pytest.raises(OSError, match="Not a directory"):
        await made.leave()
    assert made.away() == []
    made.root.unlink()
    hidden.rename(made.root)
    await made.leave()
    made.root.rename(hidden)
    made.root.write_bytes(b"not a folder")
    with pytest.raises(UnavailableError, match=r"job done-1 are in the archive .* cannot be read now"):
        await made.database.read(partial(item_reads.list_stored_items, job_id="done-1"))
    assert made.away() == GONE


async def test_a_missing_or_damaged_file_is_named_and_no_empty_list_is_shown(made: Archived) -> None:
    whole = items_of(made.connection)
    await made.leave()
    good = {path: path.read_bytes() for path in made.root.rglob("items.*")}
    first, second = (next(path for path in good if path.parent.name == name) for name in ("done-1", "done-2"))
    first.unlink()
    damage(second)
    for name, what in (("done-1", "missing"), ("done-2", "damaged")):
        with pytest.raises(ConflictError, match=rf"items of job {name} .* is {what}. Put a good copy"):
            await made.database.read(partial(item_reads.list_items, request=pb.ListItemsRequest(job_id=name)))
    for path, content in good.items():
        path.write_bytes(content)
    assert await made.database.read(items_of) == whole


async def test_what_can_do_without_lost_items_leaves_them_out(made: Archived) -> None:
    asked_all = plan("t", 40)
    asked_all.item_set = "all"
    stored = [("old", "m5", 28), ("rival-old", "m6", 19), ("new", "m5", 30), ("rival", "m6", 20)]
    for minute, (name, model, right) in enumerate(stored, 5):
        run(made.connection, job(name, asked_all, model=model, minute=minute), right, 40 - right, minute=minute)
    questions, both = Questions(made.database), comparison_pb2.CompareRequest(subjects=["new", "rival"])
    assert any(
        one.HasField("total_low") for one in (await questions.read_long(partial(compare, request=both))).differences
    )
    await made.archive()
    await made.leave()
    assert "old" in made.away()
    next((made.root / "jobs" / "old").glob("items.*")).unlink()
    # It is read for the noise alone.
    found = await questions.read_long(partial(compare, request=both))
    assert not any(one.HasField("total_low") for one in found.differences)
    week = pb.GetDigestRequest(begin_at=START, end_at=START + timedelta(days=7))
    found_then = await questions.read_with_copies(lambda c, copies: get_digest(c, week, copies=copies))
    series = {one.model: one for one in found_then.digest.series}
    assert series["m5"].words == "The archive has lost the items of job old, so nothing is compared."
    assert (series["m5"].after.job_id, series["m5"].HasField("before")) == ("new", False)
    named = comparison_pb2.CompareRequest(subjects=["new", "old"])
    with pytest.raises(ConflictError, match=r"job old .* is missing"):
        await questions.read_long(partial(compare, request=named))


async def test_results_of_lost_items_are_not_computed_again_and_again(
    made: Archived, caplog: pytest.LogCaptureFixture
) -> None:
    await made.leave()
    made.connection.execute("UPDATE seals SET rules = 0")
    kept = next((made.root / "jobs" / "done-1").glob("items.*"))
    content = kept.read_bytes()
    kept.unlink()
    assert [await resealing.reseal(made.database) for _ in range(3)] == [1, 0, 0]
    assert len([line for line in caplog.messages if "done-1 cannot be computed" in line]) == 1
    kept.write_bytes(content)
    await made.database.read(partial(item_reads.list_stored_items, job_id="done-1"))
    assert await resealing.reseal(made.database) == 1


async def test_canaries_are_chosen_by_runs_that_are_here(made: Archived) -> None:
    for number in range(3):
        other = job(f"other-{number}", plan("t", 40), model=f"o{number}", minute=5 + number)
        run(made.connection, other, 30, 10, minute=5 + number)
    watching = job_pb2.Watching(reference_job_id="done-1", items=3)
    assert canaries.choose(made.connection, watching).known_runs == 3
    made.connection.execute(
        "INSERT INTO archived_items BY NAME SELECT 'other-1' AS job_id, '' AS place, '' AS file, '' AS sha256, "
        "40 AS items, '' AS answers, $at AS left_at",
        {"at": SAID},
    )
    assert canaries.choose(made.connection, watching).known_runs == 2


async def test_an_archive_that_moved_is_found_by_the_setting(made: Archived) -> None:
    whole = items_of(made.connection)
    await made.leave()
    made.returning._place = str(made.root.with_name("moved"))
    made.root.rename(made.returning._place)
    assert await made.database.read(items_of) == whole


async def test_another_archive_gets_the_items_from_the_first(made: Archived, tmp_path: Path) -> None:
    await made.leave()
    (tmp_path / "other").mkdir()
    other = Archived(tmp_path / "other")
    made.archiving._place = other.place
    while await made.archiving.look(other.store, LATER):
        pass
    version = versions.read(other.store, "done-1", *other.manifests("done-1"))
    assert version.answers == "1.40.0"
    assert version.of("items") is not None
    await other.close()


async def test_items_that_are_used_stay(made: Archived) -> None:
    rival = job("rival", plan("t", 40), model="m9", minute=4)
    run(made.connection, rival, 30, 10, minute=4)
    live = job("again", plan("t", 40), minute=9)
    live.spec.reuse.job_id = "failed"
    writes.store_events(made.connection, [event("9-2", live)])
    await made.archive()
    await made.leave()
    # A leaderboard tests done-1 and rival against each other; done-2 was superseded.
    assert made.away() == ["cancelled", "done-2"]
    writes.store_events(made.connection, [event("9-3", job("again", plan("t", 40), minute=9, state=CANCELLED))])
    made.connection.execute("INSERT INTO marks VALUES (2, 'rival', 3, 'old', '', 'ann', $at)", {"at": SAID})
    run_scores.refresh(made.connection, "rival")
    await made.archive()
    await made.leave()
    assert made.away() == sorted([*JOBS, "rival"])


async def test_items_of_experiments_their_judges_and_decisions_stay(made: Archived) -> None:
    def dataset(name: str, experiment: str = "", judged: str = "") -> None:
        made.connection.execute(
            "INSERT INTO datasets VALUES ($id, $id, '', 1, $at, $at, 'ann', 1, '', false, '', NULL, $judged, $made)",
            {"id": name, "at": SAID, "judged": judged, "made": experiment},
        )

    dataset("ds_asked", experiment="tips")
    dataset("ds_judged", judged="done-1")
    dataset("ds_other", judged="cancelled")
    for name, suite in (("done-1", "ds_asked"), ("done-2", "ds_judged"), ("failed", "ds_other")):
        made.connection.execute("UPDATE jobs SET suite = $suite WHERE job_id = $name", {"suite": suite, "name": name})
    await made.leave()
    assert made.away() == ["cancelled", "failed"]
    baseline, candidate = (job(name, plan("t", 40), minute=20, state=CANCELLED) for name in ("base", "cand"))
    baseline.spec.deciding.against_job_id = "cand"
    candidate.spec.deciding.candidate = True
    candidate.spec.deciding.against_job_id = "base"
    third = job("third", plan("t", 40), minute=20, state=CANCELLED)
    baseline.spec.deciding.race_job_ids[:] = ["base", "cand", "third"]
    for number, one in enumerate((baseline, candidate, third)):
        writes.store_items(made.connection, [batch(one.job_id, "t", [answer(0)])])
        writes.store_events(made.connection, [event(f"8-{number}", one, "ended")])
    await made.archive()
    await made.leave()
    assert made.away() == ["cancelled", "failed"]


async def test_items_of_watches_and_their_references_stay_while_it_runs(made: Archived) -> None:
    for number, (schedule, day) in enumerate([("watch", 0), ("watch", 3), ("nightly", 3)]):
        one = job(f"run-{number}", plan("t", 40), minute=day * 24 * 60, state=CANCELLED)
        one.spec.schedule_id = schedule
        if schedule == "watch":
            one.spec.watching.reference_job_id, one.spec.watching.again_job_id = "done-1", "done-2"
        writes.store_items(made.connection, [batch(one.job_id, "t", [answer(0)])])
        writes.store_events(made.connection, [event(f"8-{number}", one, "ended")])
    await made.archive()
    await made.leave(SAID + timedelta(days=2))
    assert made.away() == ["cancelled", "failed", "run-2"]
    # Nothing was asked for so long.
    await made.leave(SAID + timedelta(days=3))
    assert made.away() == sorted([*JOBS, "run-0", "run-1", "run-2"])


async def test_jobs_of_decisions_and_watches_are_unpacked_once(made: Archived, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = list[str]()
    unpack = uses._job

    def counted(connection: Connection, job_id: str) -> job_pb2.Job:
        unpacked.append(job_id)
        return unpack(connection, job_id)

    monkeypatch.setattr(uses, "_job", counted)
    for number in range(6):
        one = job(f"run-{number}", plan("t", 40), minute=number, state=CANCELLED)
        if number < 4:
            one.spec.schedule_id = f"schedule-{number % 2}"
        else:
            one.spec.deciding.against_job_id = "done-1"
        writes.store_events(made.connection, [event(f"8-{number}", one, "ended")])
    for _ in range(3):
        await made.leave(SAID)
    assert sorted(unpacked) == ["run-2", "run-3", "run-4", "run-5"]


async def test_the_result_of_a_job_without_a_seal_is_read_without_its_items(made: Archived) -> None:
    before = {name: job_reads.get_job_result(made.connection, name) for name in JOBS}
    await made.leave()
    found = {name: await made.database.read(partial(job_reads.get_job_result, job_id=name)) for name in JOBS}
    assert found == before
    assert made.away() == GONE
    assert found["failed"].outcomes.answered == 1


async def test_the_result_of_a_job_that_changed_since_needs_its_items(made: Archived) -> None:
    await made.leave()
    await made.database.write(lambda c: writes.store_items(c, [batch("cancelled", "t", [answer(2)])]))
    found = await made.database.read(partial(job_reads.get_job_result, job_id="cancelled"))
    assert (found.outcomes.answered, made.away()) == (2, [name for name in GONE if name != "cancelled"])
    made.connection.execute("UPDATE archived_items SET rules = 0 WHERE job_id = 'failed'")
    await made.database.read(partial(job_reads.get_job_result, job_id="failed"))
    assert made.away() == sorted(JOBS[:2])


async def test_items_that_came_back_stay_for_as_long_again(made: Archived) -> None:
    await made.leave()
    await made.database.read(partial(item_reads.list_stored_items, job_id="failed"))
    # The clock may go back as well.
    await made.leave(SAID + timedelta(days=2))
    assert made.away() == [name for name in GONE if name != "failed"]
    await made.leave()
    assert made.away() == GONE


async def test_a_job_is_retried_with_the_answers_that_it_had(made: Archived) -> None:
    await made.leave()
    stored = await made.database.read(partial(item_reads.list_stored_items, job_id="failed"))
    assert [list(task.positions) for task in stored.tasks] == [[0]]
    again = job("failed", plan("t", 40), model="failed", minute=2, attempt=2)
    run(made.connection, again, 38, minute=50)
    await made.leave()
    assert "failed" not in made.away(), "the archive has the first attempt"
    await made.archive()
    await made.leave()
    assert "failed" in made.away()
    newest = versions.manifests(made.manifests("failed"))[0]
    assert versions.read(made.store, "failed", newest).answers == "2.38.0"


async def test_a_job_that_begins_again_while_its_items_leave_keeps_them(
    made: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = leaving._leave

    def begun(connection: Connection, **given: Any) -> bool:
        again = job("failed", plan("t", 40), model="failed", minute=2, attempt=2)
        writes.store_events(connection, [event("7-7", again)])
        return leave(connection, **given)

    monkeypatch.setattr(leaving, "_leave", begun)
    await made.leave()
    assert made.away() == [name for name in GONE if name != "failed"]
    assert not list(made.moving.iterdir())


async def test_answers_that_come_late_are_added_to_those_in_the_archive(made: Archived) -> None:
    await made.leave()
    await made.database.write(lambda c: writes.store_items(c, [batch("cancelled", "t", [answer(2)])]))
    counts = job_reads.get_job(made.connection, "cancelled").progress
    assert (counts.items_done, counts.items_failed) == (2, 1), "known only once the others are back"
    await made.archive()
    newest = versions.manifests(made.manifests("cancelled"))[0]
    assert versions.read(made.store, "cancelled", newest).answers == "1.3.1"
    counts = job_reads.get_job(made.connection, "cancelled").progress
    assert (counts.items_done, counts.items_failed) == (3, 1)


async def test_an_event_that_is_sent_again_changes_no_count(made: Archived) -> None:
    before = job_reads.get_job(made.connection, "failed").progress
    assert before.items_done == 2
    await made.leave()
    ended = job("failed", plan("t", 40), model="failed", minute=2, state=FAILED)
    await made.database.write(lambda c: writes.store_events(c, [event("99-9", ended, "ended")]))
    assert job_reads.get_job(made.connection, "failed").progress.items_done == before.items_done
    assert "failed" in made.away()


async def test_what_people_say_later_makes_a_version_while_the_items_are_away(made: Archived) -> None:
    await made.leave()
    await made.database.write(
        lambda c: c.execute("INSERT INTO marks VALUES (2, 'failed', 2, 'wrong', '', 'ann', $at)", {"at": SAID})
    )
    await made.archive()
    newest, first = (versions.read(made.store, "failed", name) for name in versions.manifests(made.manifests("failed")))
    assert (newest.answers, newest.of("items")) == (first.answers, first.of("items"))
    assert made.away() == GONE


async def test_annotating_an_answer_brings_it_back(made: Archived) -> None:
    await made.leave()
    request = pb.AnnotateItemRequest(job_id="done-2", task="t", item=1, verdict="VERDICT_WRONG")
    caller = Identity("ann", token_pb2.ROLE_ADMIN)
    await made.database.write(lambda c: annotating.annotate(c, request, caller, SAID))
    assert made.connection.execute("SELECT count(*) FROM annotations WHERE job_id = 'done-2'").fetchall() == [(1,)]
    assert made.away() == [name for name in GONE if name != "done-2"]


async def test_texts_that_the_database_dropped_come_back_with_the_items(made: Archived) -> None:
    made.connection.execute("UPDATE answer_texts SET dropped_attempt = 1, dropped_at = now(), bytes = 0")
    made.connection.execute("UPDATE items SET response = '', prompt = '', identity = NULL")
    await made.leave()
    assert made.away() == GONE
    of_item = pb.GetItemRequest(job_id="done-1", task="t", item=1)
    found = await made.database.read(partial(item_reads.get_item, request=of_item))
    assert found.result.response == "answer: yes"
    assert job_reads.get_job_result(made.connection, "done-1").texts_dropped == ""
    assert made.connection.execute("SELECT bytes FROM answer_texts WHERE job_id = 'done-1'").fetchall() == [(None,)]


async def test_texts_that_came_back_are_the_last_to_be_dropped(made: Archived) -> None:
    await text_retention.make_room(made.database, 10**9)
    order = [kept.job_id for kept in text_retention._oldest(made.connection)]
    await made.leave()
    assert text_retention._oldest(made.connection) == []
    for name in reversed(order):
        await made.database.read(partial(item_reads.list_stored_items, job_id=name))
    await text_retention.make_room(made.database, 10**9)
    assert [kept.job_id for kept in text_retention._oldest(made.connection)] == order[::-1]


async def test_nothing_comes_back_to_a_full_disk(made: Archived) -> None:
    await made.leave()
    made.room.level = bus.Level.LOW
    with pytest.raises(NoRoomError):
        await made.database.read(partial(item_reads.list_stored_items, job_id="done-1"))
    assert made.away() == GONE


async def test_nothing_is_left_of_a_deleted_job(made: Archived) -> None:
    await made.leave()
    gone = job("done-1", state=job_pb2.Job.STATE_COMPLETED)
    gone.deleted_at.FromDatetime(START)
    await made.database.write(lambda c: writes.store_events(c, [event("99", gone, "deleted")]))
    await made.returning.bring_back(["done-1"])
    for table in ("items", "archived_items", "archived_identities"):
        assert made.connection.execute(f"SELECT count(*) FROM {table} WHERE job_id = 'done-1'").fetchall() == [(0,)]
    await made.archive()
    assert [name for name in made.files() if "done-1" in name] == ["deleted/done-1.json"]


def identity(number: int) -> str:
    return f"{number:032x}"


async def answered(archived: Archived, name: str, minute: int, *numbers: int) -> None:
    """A failed job with answers that can replace calls."""
    asked = job(name, plan("t", 40), minute=minute, model=name)
    writes.store_events(archived.connection, [event(f"{minute}-1", asked)])
    answers = [answer(n, identity=identity(n), response=f"of {name}") for n in numbers]
    writes.store_items(archived.connection, [batch(name, "t", answers)])
    ended = job(name, plan("t", 40), minute=minute, model=name, state=FAILED)
    writes.store_events(archived.connection, [event(f"{minute}-2", ended, "ended")])


async def taken(archived: Archived, *numbers: int) -> dict[int, str]:
    request = pb.FindResponsesRequest(identities=[identity(n) for n in numbers])
    found = await archived.database.read(lambda c: stored_responses.find_responses(c, request))
    return {one.item: one.source_job for one in found.results}


async def test_answers_replace_calls_wherever_they_are(made: Archived) -> None:
    await answered(made, "older", 30, 1, 2, 3)
    await answered(made, "newer", 31, 1, 2)
    await made.archive()
    await made.leave(SAID)
    assert {"older", "newer"} <= set(made.away())
    assert await taken(made, 9) == {}
    assert {"older", "newer"} <= set(made.away())
    assert await taken(made, 3) == {3: "older"}
    assert "newer" in made.away(), "nobody has asked for its answers"
    # The newest answer counts, not the one that came back last.
    assert await taken(made, 1, 2, 3) == {1: "older", 2: "older", 3: "older"}
    await made.database.read(partial(item_reads.list_stored_items, job_id="newer"))
    assert await taken(made, 1, 2, 3) == {1: "newer", 2: "newer", 3: "older"}


async def test_answers_of_a_damaged_file_replace_no_calls(made: Archived) -> None:
    await answered(made, "older", 30, 1)
    await made.archive()
    await made.leave()
    damage(next((made.root / "jobs" / "older").glob("items.*")))
    with pytest.raises(ConflictError):
        await taken(made, 1)
    assert await taken(made, 1) == {}


async def test_a_copy_for_reads_says_where_the_items_are(made: Archived) -> None:
    await made.leave()
    made.database.bring_back = None
    with pytest.raises(UnavailableError, match=r"job done-1 are in the archive\. They can be read once"):
        await made.database.read(partial(item_reads.list_stored_items, job_id="done-1"))


async def test_equal_reads_bring_items_back_once_even_if_their_readers_go_away(
    made: Archived, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made.leave()
    fetched = list[str]()

    def slowly(store: Any, name: str, target: Path) -> str:
        fetched.append(name)
        return fetch(store, name, target)

    monkeypatch.setattr(returning, "fetch", slowly)
    reads = [
        asyncio.create_task(made.database.read(partial(item_reads.list_stored_items, job_id="done-1")))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    reads[0].cancel()
    await asyncio.gather(*reads, return_exceptions=True)
    await made.returning.bring_back(["done-1"])
    assert "done-1" not in made.away()
    assert len(fetched) == 1


async def test_reads_that_wait_for_items_keep_no_others_waiting(made: Archived) -> None:
    await made.leave()
    answers, bring_back = asyncio.Event(), made.returning.bring_back

    async def slowly(job_ids: Sequence[str]) -> None:
        await answers.wait()
        await bring_back(job_ids)

    made.database.bring_back = slowly
    questions = Questions(made.database)

    def ask(connection: Connection) -> int:
        return len(item_reads.list_stored_items(connection, "done-1").tasks)

    reads = [questions.read(ask) for _ in range(2 * READERS)] + [questions.read_long(ask) for _ in range(2 * READERS)]
    waiting = [asyncio.create_task(read) for read in reads]
    await asyncio.sleep(0.1)
    job = partial(job_reads.get_job, job_id="done-1")
    assert (await asyncio.wait_for(questions.read(job), 10)).job_id == "done-1"
    assert (await asyncio.wait_for(questions.read_long(job), 10)).job_id == "done-1"
    assert not any(one.done() for one in waiting)
    answers.set()
    assert await asyncio.gather(*waiting) == [1] * len(waiting)


async def test_the_file_of_a_job_on_the_local_disk_goes_and_comes_with_its_items(
    made: Archived, tmp_path: Path
) -> None:
    (tmp_path / "jobs").mkdir()
    made.connection.execute("UPDATE answer_texts SET attempt = 1")
    files = JobFiles(made.database, made.moving, bus.Room())
    made.moving.mkdir()
    await files.bring_up_to_date(LATER)
    there = {path.name.split(".")[0] for path in made.moving.iterdir()}
    assert there == set(JOBS)
    made.leaving._folder = made.returning.folder = tmp_path / "scratch"
    await made.leave()
    await files.bring_up_to_date(LATER)
    assert not list(made.moving.iterdir())
    await made.database.read(partial(item_reads.list_stored_items, job_id="done-1"))
    await files.bring_up_to_date(LATER)
    assert [path.name.split(".")[0] for path in made.moving.iterdir()] == ["done-1"]
