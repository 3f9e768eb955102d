"""What an experiment asked, page by page, and the list of experiments."""

from __future__ import annotations

from typing import Any

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.experiments import answers
from services.results.experiments.runs import list_runs
from services.results.experiments.stored import list_experiments
from services.results.storage.database import Connection
from tests.unit.results.experiments.made import Made, all_of
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.item_result_pb2 import OUTCOME_ANSWERED, OUTCOME_INFRASTRUCTURE_ERROR, OUTCOME_UNSPECIFIED


def runs(connection: Connection, **fields: Any) -> list[pb.ExperimentRun]:
    """Of every page."""
    request = pb.ListExperimentRunsRequest(name="greetings", **fields)
    found: list[pb.ExperimentRun] = []
    while True:
        page = list_runs(connection, request)
        found += page.runs
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


@pytest.fixture
def made(connection: Connection) -> Made:
    made = Made(connection, repeats=2)
    made.job("b", {0: "1. walk\n2. rest", 1: "", 3: "late"}, failed={1}, minute=1)
    made.job("a", dict.fromkeys(range(8), "x"), minute=2)
    made.judge("j", "a", {0: [all_of(5), all_of(3)], 1: None, 2: all_of(1)})
    made.judge("k", "a", {0: all_of(1)}, minute=3)
    made.rate("a", {4: all_of(4)})
    made.rate("a", {4: all_of(2)}, rater="bob")
    return made


@pytest.mark.parametrize("size", [1, 3, 500])
def test_all_questions_are_listed_by_job_in_the_order_of_rows(made: Made, size: int) -> None:
    found = runs(made.connection, page_size=size)
    assert [(run.job_id, run.item) for run in found] == [(job, row) for job in ("b", "a") for row in range(8)]
    assert [(run.prompt, run.scenario, run.number) for run in found[:8]] == [
        (prompt, scenario, number) for prompt in "pq" for scenario in ("s-0001", "s-0002") for number in (1, 2)
    ]
    answered, failed, waiting = found[:3]
    assert (answered.outcome, answered.answer, list(answered.candidates)) == (
        OUTCOME_ANSWERED,
        "1. walk\n2. rest",
        ["walk", "rest"],
    )
    assert (answered.latency_s, answered.input_tokens, answered.output_tokens) == (0.01, 20, 3)
    assert (failed.outcome, failed.judge_pending) == (OUTCOME_INFRASTRUCTURE_ERROR, False)
    assert (waiting.outcome, waiting.judge_pending, waiting.answer) == (OUTCOME_UNSPECIFIED, False, "")
    assert {run.task for run in found} == {"rows"}


def test_a_page_reads_only_the_scores_of_its_own_rows(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in range(8):
        made.rate("a", {row: all_of(3)}, rater="cleo")
    whole = runs(made.connection, page_size=500)
    read: list[int] = []

    def counted(*asked: Any) -> Any:
        found = ratings(*asked)
        read.extend(found["item"])
        return found

    ratings = answers.ratings
    monkeypatch.setattr(answers, "ratings", counted)
    assert runs(made.connection, page_size=2) == whole
    # A page also looks at the row after it.
    assert len(read) <= 10 + 4 * 2
    read.clear()
    assert [run.item for run in runs(made.connection, page_size=2, judge_pending=True)] == [0, 3]


def test_scores_are_means_over_judges_and_over_people(made: Made) -> None:
    found = runs(made.connection, job_id="a")
    shares = {one.criterion: one.share for one in found[0].judged}
    assert list(shares) == ["composite", "relevance", "actionability", "tone"]
    assert shares == pytest.approx(dict.fromkeys(shares, 0.375))
    assert found[2].judged[0].share == 0
    assert (found[4].rated[0].criterion, found[4].rated[0].share) == ("composite", 0.5)
    assert [run.item for run in found if not run.judged] == [1, 3, 4, 5, 6, 7]


def test_filters_choose(made: Made) -> None:
    pending = runs(made.connection, judge_pending=True, page_size=2)
    assert [(run.job_id, run.item) for run in pending] == [
        *(("b", row) for row in (0, 3)),
        *(("a", row) for row in (1, 3, 5, 6, 7)),
    ]
    assert [run.item for run in runs(made.connection, job_id="a", prompt="q")] == [4, 5, 6, 7]
    with pytest.raises(InvalidRequestError, match="is not a valid prompt"):
        runs(made.connection, prompt="r")
    with pytest.raises(NotFoundError, match="Experiment greetings has no job c"):
        runs(made.connection, job_id="c")
    with pytest.raises(NotFoundError, match="Experiment other not found"):
        list_runs(made.connection, pb.ListExperimentRunsRequest(name="other"))


def test_ids_of_scenarios_of_ones_own_are_known_before_any_answer(connection: Connection) -> None:
    made = Made(connection, prompts=["p"], scenarios=[{"id": "rome", "persona": "x"}, {"persona": "y"}])
    made.job("a", {})
    assert [run.scenario for run in runs(connection)] == ["rome", "s-0002"]


def test_experiments_are_listed_newest_first_with_their_jobs_alone(connection: Connection) -> None:
    first, second = Made(connection, name="first"), Made(connection, name="second", minute=1)
    first.job("old", model="m", minute=1)
    first.job("other", minute=2)
    first.job("new", model="m", minute=3)
    # Not the experiment's, though over its rows.
    first.started("own", first.dataset.dataset_id, 4)
    request = pb.ListExperimentsRequest(page_size=1)
    page = list_experiments(connection, request)
    assert [one.name for one in page.experiments] == ["second"]
    request.page_token = page.next_page_token
    (listed,) = list_experiments(connection, request).experiments
    assert (listed.name, listed.owner, listed.dataset_id) == ("first", "root", first.dataset.dataset_id)
    assert (list(listed.prompts), listed.scenarios, listed.repeats, listed.rubric.version) == (
        ["p", "q"],
        2,
        1,
        "tip-v1",
    )
    assert (listed.definition, listed.created_at) == ("", first.dataset.uploaded_at)
    assert [(job.job_id, len(job.plan), job.HasField("receipt")) for job in listed.jobs] == [
        ("other", 0, False),
        ("new", 0, False),
    ]
    assert second.dataset.uploaded_at.ToDatetime() > first.dataset.uploaded_at.ToDatetime()
