"""Which stored answers spare a call, and which do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from services.errors import InvalidRequestError, UnavailableError
from services.evaluator import item_result
from services.evaluator.items.task import Continuation, Item, Response, Scored, Task
from services.evaluator.stored.responses import KnownAnswers
from services.evaluator.units.unit_loader import Loaded
from services.evaluator.units.units_in_hand import FaultError, Held
from tests.unit.evaluator.stored.answered import (
    ANSWERED,
    ITEMS,
    NEWEST,
    REFUSED,
    TASK,
    TRUNCATED,
    Echo,
    held,
    newest,
)
from touchstone.v1 import endpoint_pb2, item_result_pb2, job_pb2, unit_pb2
from touchstone.v1.item_result_pb2 import ItemResult

ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
LOADED = Loaded(TASK, [(place, 0, item) for place, item in enumerate(ITEMS)])


def identify(item: Item, repeat: int) -> str:
    return f"{item.hash}/{repeat}"


def stored(place: int, text: str = "yes", outcome: item_result_pb2.Outcome = ANSWERED, **changes: Any) -> ItemResult:
    item = ITEMS[place]
    made = ItemResult(
        item=item.index,
        position=place,
        item_hash=item.hash,
        prompt_hash=item.prompt_hash,
        response=text,
        outcome=outcome,
        prediction=text[:1],
        scorer_version="1",
        latency_ms=12.5,
        output_tokens=3,
        calls=2,
        identity=identify(item, 0),
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


class FakeStore:
    """Answers by job and by identity; raises `trouble` first, one a call."""

    def __init__(self, *results: ItemResult, trouble: Sequence[Exception] = ()) -> None:
        self.results = results
        self.trouble = list(trouble)
        self.asked: list[tuple[str, list[Any]]] = []
        self.reached: list[int] = []

    async def of_job(self, job_id: str, task: str, positions: Sequence[int], reached: int = 0) -> list[ItemResult]:
        self.reached.append(reached)
        return self._find(job_id, list(positions), lambda found: found.position in positions)

    async def by_identity(self, identities: Sequence[str], owner: str) -> list[ItemResult]:
        return self._find("", list(identities), lambda found: found.identity in identities)

    def _find(self, job_id: str, wanted: list[Any], fits: Any) -> list[ItemResult]:
        self.asked.append((job_id, wanted))
        if self.trouble:
            raise self.trouble.pop(0)
        return [ItemResult.FromString(found.SerializeToString()) for found in self.results if fits(found)]


def held_again() -> Held:
    return held(delivery=2)


def given_back() -> Held:
    return held(begun=True)


async def known(store: FakeStore | None, wanted: Held) -> dict[int, ItemResult]:
    return (await KnownAnswers(store, {}, newest).of(wanted, LOADED, identify)).results


async def test_a_first_delivery_of_a_plain_job_asks_the_store_nothing() -> None:
    store = FakeStore(stored(0))
    assert await known(store, held()) == {}
    assert store.asked == []


@pytest.mark.parametrize("again", [held_again, given_back])
async def test_a_unit_that_was_begun_before_takes_its_own_jobs_answers_as_they_are(again: Callable[[], Held]) -> None:
    store = FakeStore(stored(1), stored(2, outcome=TRUNCATED))
    found = await known(store, again())
    assert (store.asked, store.reached) == ([("this", [0, 1, 2, 3])], [NEWEST])
    assert sorted(found) == [1, 2]
    assert (found[1].scorer_version, found[1].reused, found[1].calls) == ("1", False, 2)
    assert found[1].prompt == "user:\nquestion 1"


@pytest.mark.parametrize("trouble", [UnavailableError("away"), InvalidRequestError("no")])
async def test_a_plain_job_goes_on_without_a_store_that_is_silent(trouble: Exception) -> None:
    assert await known(FakeStore(stored(1), trouble=[trouble]), held(delivery=2)) == {}
    assert await known(None, held(delivery=2)) == {}


@pytest.mark.parametrize(
    ("spec", "prices"),
    [
        (job_pb2.JobSpec(judging=job_pb2.Judging(job_id="judged")), None),
        (job_pb2.JobSpec(), endpoint_pb2.Prices(output=2.0)),
    ],
)
async def test_a_judge_and_a_job_that_pays_wait_for_a_silent_store(
    spec: job_pb2.JobSpec, prices: endpoint_pb2.Prices | None
) -> None:
    wanted = held(delivery=2)
    wanted.unit.spec.MergeFrom(spec)
    wanted.unit.MergeFrom(unit_pb2.Unit(prices=prices))
    store = FakeStore(stored(1), trouble=[UnavailableError("away")])
    assert sorted(await asyncio.wait_for(known(store, wanted), 60)) == [1]
    assert store.reached == [NEWEST, NEWEST]
    assert await known(None, wanted) == {}


async def test_answers_of_another_job_are_scored_by_the_present_scorer() -> None:
    found = await known(FakeStore(stored(0), stored(3, "no")), held(job_pb2.Reuse(job_id="source")))
    assert sorted(found) == [0, 3]
    assert [(found[p].prediction, found[p].statistics["correct"]) for p in (0, 3)] == [("yes", 1.0), ("no", 0.0)]
    one = found[0]
    assert (one.reused, one.calls, one.scorer_version) == (True, 0, "2")
    assert (one.latency_ms, one.output_tokens, one.identity) == (12.5, 3, "hash-0/0")
    assert one.prompt == "user:\nquestion 0"


async def test_of_a_rerun_the_named_outcomes_are_asked_again() -> None:
    store = FakeStore(stored(0), stored(1, finish_reason="length", outcome=TRUNCATED), stored(2, "", REFUSED))
    reuse = job_pb2.Reuse(job_id="source", rerun=[TRUNCATED])
    assert sorted(await known(store, held(reuse))) == [0, 2], "3 has no final answer"


async def test_a_provider_that_refused_has_refused_under_every_scorer() -> None:
    found = await known(FakeStore(stored(0, "", REFUSED)), held(job_pb2.Reuse(job_id="source")))
    assert found[0].outcome == REFUSED


async def test_a_cut_answer_and_one_to_another_prompt_stand_for_none() -> None:
    cut = stored(0, "x" * item_result.RESPONSE_BYTES)
    long = stored(1, "x" * (item_result.RESPONSE_BYTES - 4))
    other = stored(2, prompt_hash="another")
    looked = await KnownAnswers(FakeStore(cut, long, other), {}, newest).of(
        held(job_pb2.Reuse(job_id="source")), LOADED, identify
    )
    assert sorted(looked.results) == [1]
    assert "was truncated" in looked.unusable[0]
    assert "a different prompt" in looked.unusable[2]


async def test_answers_of_any_job_are_found_by_identity_where_the_digest_is_known() -> None:
    store = FakeStore(stored(2, position=77, source_job="other"))
    found = await known(store, held(job_pb2.Reuse(any_job=True)))
    assert found[2].source_job == "other"
    assert sorted(found) == [2]
    assert (found[2].position, found[2].item, found[2].reused) == (2, 12, True)


async def test_without_a_digest_answers_are_found_only_if_the_job_accepts_it() -> None:
    store = FakeStore(stored(2, position=77, source_job="other"))
    assert await known(store, held(job_pb2.Reuse(any_job=True), digest="")) == {}
    assert await known(store, held(job_pb2.Reuse(without_digest=True), digest="")) == {}
    assert store.asked == []
    accepted = await known(store, held(job_pb2.Reuse(any_job=True, without_digest=True), digest=""))
    assert sorted(accepted) == [2]


async def test_a_rerun_that_is_delivered_again_asks_its_own_job_first() -> None:
    store = FakeStore(stored(0))
    found = await known(store, held(job_pb2.Reuse(job_id="source", rerun=[TRUNCATED]), delivery=2))
    assert [job for job, _ in store.asked] == ["this", "source"]
    assert store.asked[1][1] == [1, 2, 3]
    assert found[0].reused is False


async def test_a_job_that_takes_answers_waits_for_a_silent_store() -> None:
    store = FakeStore(stored(0), trouble=[UnavailableError("away")])
    waiting = asyncio.create_task(known(store, held(job_pb2.Reuse(job_id="source"))))
    assert sorted(await asyncio.wait_for(waiting, 60)) == [0]
    assert len(store.asked) == 2


@pytest.mark.parametrize("reuse", [job_pb2.Reuse(any_job=True), job_pb2.Reuse(job_id="source", rerun=[TRUNCATED])])
async def test_a_job_that_takes_answers_waits_for_its_own_ones_too_and_never_counts_them_as_taken(
    reuse: job_pb2.Reuse,
) -> None:
    store = FakeStore(stored(0), trouble=[UnavailableError("away")])
    found = await asyncio.wait_for(known(store, held(reuse, delivery=2)), 60)
    assert [job for job, _ in store.asked][:2] == ["this", "this"]
    assert found[0].reused is False


async def test_a_job_that_takes_answers_fails_where_there_is_no_store_or_it_refuses() -> None:
    with pytest.raises(FaultError, match="TOUCHSTONE_RESULTS"):
        await known(None, held(job_pb2.Reuse(job_id="source")))
    store = FakeStore(trouble=[InvalidRequestError("no such job")])
    with pytest.raises(FaultError, match="cannot return stored answers: no such job"):
        await known(store, held(job_pb2.Reuse(job_id="source")))


def test_everything_that_a_scorer_may_read_survives_the_store() -> None:
    response = Response(
        text="a",
        reasoning="because",
        finish_reason="stop",
        input_tokens=5,
        output_tokens=2,
        latency_ms=1.5,
        served_model="m-1",
        continuations=(Continuation(" a", -1.5, 2, True), Continuation(" b", -3.0, 1)),
        parameters="{}",
        ttft_ms=0.5,
        reasoning_tokens=1,
        cost_usd=0.25,
    )
    seen: list[Response] = []

    class Noting(Echo):
        def score(self, item: Item, response: Response) -> Scored:
            seen.append(response)
            return super().score(item, response)

    task = cast(Task, Noting())
    first = item_result.answered(task, ITEMS[0], 0, 0, response, 1, "identity")
    again = item_result.reused(task, ITEMS[0], 0, 0, first)
    assert seen == [response, response]
    again.reused, again.calls = False, 1
    assert again == first
