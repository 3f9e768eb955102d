"""Specs made of other jobs' specs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.client.fakes import JOB, OTHER, Fakes, dataset_job, job
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import item_result_pb2, job_pb2, scheduler_service_pb2
from touchstone_client import Client, InvalidError, Scoring, judge_spec, sampling_parameters
from touchstone_client.specs import RERUN, changed_scoring, dataset_spec, rerun_spec, rescore_spec, suite_spec


def test_a_rescore_may_score_rows_in_another_way_and_costs_nothing(fakes: Fakes) -> None:
    source = dataset_job()
    source.spec.budget_usd, source.spec.provider_batch, source.spec.dataset.scorer = 2.0, True, "json"
    source.spec.time_limit_s, source.spec.webhook_url = 90_000, "https://ci.example/hook"
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=source)
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER))
    with Client() as client:
        client.rescore(JOB, Scoring(scorer="contains"))
    (request,) = fakes.requests("CreateJob")
    assert (request.spec.dataset.scoring, request.spec.dataset.scorer) == (Scoring(scorer="contains"), "")
    assert (request.spec.budget_usd, request.spec.provider_batch, request.spec.reuse.job_id) == (0, False, JOB)
    assert (request.spec.time_limit_s, request.spec.webhook_url) == (0, "")


def test_a_rescore_keeps_replaces_or_leaves_out_further_scorers() -> None:
    source = dataset_job()
    kept, other = Scoring(scorer="contains"), Scoring(scorer="json")
    source.spec.dataset.further.append(kept)
    for further, made in ((None, [kept]), ([other], [other]), ([], [])):
        assert list(rescore_spec(source, further=further).dataset.further) == made
    for further in ([other], []):
        with pytest.raises(InvalidError, match="ran glue"):
            rescore_spec(job(), further=further)


def test_a_suite_keeps_its_scorers(fakes: Fakes) -> None:
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=job())
    with Client() as client, pytest.raises(InvalidError, match="ran glue"):
        client.rescore(JOB, Scoring(scorer="contains"))


def test_a_rerun_goes_on_with_a_higher_budget(fakes: Fakes) -> None:
    source = dataset_job()
    source.spec.budget_usd = 2.0
    fakes.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=source)
    fakes.answers["CreateJob"] = scheduler_service_pb2.CreateJobResponse(job=dataset_job(OTHER))
    error = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
    with Client() as client:
        client.rerun(JOB, [error], budget_usd=10.0)
        client.rerun(JOB, [error])
    assert [request.spec.budget_usd for request in fakes.requests("CreateJob")] == [10.0, 2.0]


@pytest.mark.parametrize(
    ("known", "given", "made"),
    [
        ({}, {"scorer": "json"}, {"scorer": "json"}),
        (
            {"scorer": "numeric", "tolerance": 0.1, "reference_field": "y", "answer_pattern": "(.)"},
            {"scorer": "contains"},
            {"scorer": "contains", "reference_field": "y", "answer_pattern": "(.)"},
        ),
        (
            {"scorer": "numeric", "tolerance": 0.1, "tolerance_is_relative": True},
            {"tolerance": 0.5, "tolerance_is_relative": False},
            {"scorer": "numeric", "tolerance": 0.5},
        ),
        ({"scorer": "choice", "choices": ["a", "b"]}, {"choices": ["c"]}, {"scorer": "choice", "choices": ["c"]}),
        ({"reference_field": "y"}, {"reference_field": ""}, {}),
        ({"scorer": "json", "group_field": "p"}, {"scorer": "contains"}, {"scorer": "contains", "group_field": "p"}),
        (
            {"answer_pattern": "(.)", "answer_match": 2},
            {"scorer": "choice"},
            {"scorer": "choice", "answer_pattern": "(.)", "answer_match": 2},
        ),
        ({"answer_pattern": "(.)", "answer_match": 2}, {"answer_pattern": ""}, {}),
        ({"scorer": "json", "fields": ["a"]}, {"scorer": None}, {"scorer": "json", "fields": ["a"]}),
    ],
)
def test_another_scoring_keeps_the_reference_and_drops_the_old_scorers_options(
    known: dict[str, Any], given: dict[str, Any], made: dict[str, Any]
) -> None:
    assert changed_scoring(Scoring(**known), **given) == Scoring(**made)


def source() -> job_pb2.Job:
    sampling = job_pb2.Sampling(temperature=0.5, max_tokens=64)
    spec = suite_spec("glue", endpoint="e", model="m", tasks=["rte"], repeats=3, sampling=sampling)
    return job_pb2.Job(job_id="source", spec=spec)


def test_a_rescore_copies_everything() -> None:
    spec = rescore_spec(source())
    assert (spec.reuse.job_id, list(spec.reuse.rerun)) == ("source", [])
    spec.ClearField("reuse")
    assert spec == source().spec


def test_a_rerun_changes_limits_only() -> None:
    spec = rerun_spec(source(), [RERUN["truncated"]], max_tokens=512)
    assert list(spec.reuse.rerun) == [item_result_pb2.OUTCOME_OUTPUT_TRUNCATED]
    assert (spec.sampling.max_tokens, spec.sampling.HasField("context_length")) == (512, False)
    spec.ClearField("reuse")
    spec.sampling.max_tokens = 64
    assert spec == source().spec


def test_options_that_no_job_has_are_refused() -> None:
    misspelt: dict[str, Any] = {"limt": 100}
    with pytest.raises(TypeError, match="unknown options: limt"):
        suite_spec("glue", endpoint="e", model="m", **misspelt)
    with pytest.raises(TypeError, match="unknown options: limt"):
        dataset_spec("ds_1", endpoint="e", model="m", **misspelt)


def test_a_budget_is_above_zero_and_none_means_none() -> None:
    assert suite_spec("glue", endpoint="e", model="m", budget_usd=None).budget_usd == 0
    with pytest.raises(InvalidError, match=r"^budget_usd must be above 0"):
        suite_spec("glue", endpoint="e", model="m", budget_usd=0)
    with pytest.raises(InvalidError, match=r"^budget_usd must be above 0"):
        dataset_spec("ds_1", endpoint="e", model="m", budget_usd=0)
    with pytest.raises(InvalidError, match=r"^budget_usd must be above 0"):
        rerun_spec(job_pb2.Job(), [], budget_usd=0)


def test_options_of_other_work_are_refused_by_name() -> None:
    with pytest.raises(InvalidError, match=r"^Runs over a dataset do not take shots, repeats"):
        dataset_spec("ds_1", endpoint="e", model="m", shots=2, repeats=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidError, match=r"^Runs over a suite do not take provider_batch"):
        suite_spec("glue", endpoint="e", model="m", provider_batch=True)  # type: ignore[call-arg]


def test_a_judges_rubric_is_an_object_or_its_json() -> None:
    sampling = sampling_parameters(temperature=0)
    made = judge_spec(endpoint="e", model="judge", rubric=TIPS, sampling=sampling, repeats=2, budget_usd=1.5)
    assert (made.endpoint, made.model, made.sampling, made.repeats, made.budget_usd) == ("e", "judge", sampling, 2, 1.5)
    assert made.rubric == judge_spec(endpoint="e", model="judge", rubric=json.dumps(TIPS, indent=2)).rubric
    for spec in (
        suite_spec("glue", endpoint="e", model="m", judges=[made]),
        dataset_spec("ds_1", endpoint="e", model="m", judges=[made]),
    ):
        assert list(spec.judges) == [made]


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        ({}, "needs a version"),
        ("[]", "is not a JSON object"),
        ({**TIPS, "criterion": []}, 'has an unknown field "criterion"'),
        ({**CORRECT, "criteria": CORRECT["criteria"] * 2}, "has two criteria correct"),
    ],
)
def test_a_rubric_with_a_mistake_makes_no_judge(rubric: Any, said: str) -> None:
    with pytest.raises(InvalidError, match=f"^The rubric {said}"):
        judge_spec(endpoint="e", model="judge", rubric=rubric)
    with pytest.raises(InvalidError, match="budget_usd must be"):
        judge_spec(endpoint="e", model="judge", rubric=TIPS, budget_usd=0)


def test_scores_made_again_are_not_judged_again() -> None:
    source = dataset_job()
    source.spec.judges.add(endpoint="e", model="judge")
    assert not rescore_spec(source).judges
    assert rerun_spec(source, [item_result_pb2.OUTCOME_REFUSED]).judges
    source.spec.judging.job_id = OTHER
    assert not rescore_spec(source).HasField("judging")
