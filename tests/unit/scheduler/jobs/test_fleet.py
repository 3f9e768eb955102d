"""What is known of the models in memory at an endpoint."""

from __future__ import annotations

import pytest

from services.bus import STORED_ENDPOINT, batches_endpoint
from services.errors import InvalidRequestError
from services.scheduler.jobs.fleet import Fleet, route
from touchstone.v1 import endpoint_pb2, evaluator_pb2, item_result_pb2, job_pb2, scoring_pb2


def evaluator(name: str = "e", resident: str = "", draining: bool = False) -> evaluator_pb2.Evaluator:
    endpoint = endpoint_pb2.Endpoint(endpoint="gpu", concurrency=4, exclusive=True, resident_model=resident)
    return evaluator_pb2.Evaluator(evaluator=name, endpoints=[endpoint], draining=draining)


def fleet(*evaluators: evaluator_pb2.Evaluator) -> Fleet:
    made = Fleet(absent_after_s=10)
    for one in evaluators:
        made.hear(one, 0)
    return made


def test_every_live_evaluators_resident_model_counts() -> None:
    known = fleet(evaluator("one", "a"), evaluator("two", "b"), evaluator("leaving", "c", draining=True))
    assert known.capacity("gpu", 5).resident == {"a", "b"}
    assert known.capacity("gpu", 11).resident == frozenset()


def test_where_nobody_tells_the_model_that_was_sent_work_last_counts() -> None:
    known = fleet(evaluator())
    assert known.capacity("gpu", 0).resident == frozenset()
    known.sent("gpu", "a")
    known.sent("gpu", "b")
    assert known.capacity("gpu", 0).resident == {"b"}


def test_what_an_evaluator_tells_counts_before_what_was_sent() -> None:
    known = fleet(evaluator(resident="a"))
    known.sent("gpu", "b")
    assert known.capacity("gpu", 0).resident == {"a"}


def test_another_resident_model_is_news_for_the_release() -> None:
    known = fleet(evaluator(resident="a"))
    assert not known.hear(evaluator(resident="a"), 1)
    assert known.hear(evaluator(resident="b"), 2)


def test_units_go_to_the_endpoint_and_those_of_batches_beside_it() -> None:
    assert route(job_pb2.JobSpec(endpoint="e")) == "e"
    assert route(job_pb2.JobSpec(endpoint="e", provider_batch=True)) == batches_endpoint("e") != "e"


def test_what_calls_nobody_runs_wherever_an_evaluator_is() -> None:
    assert route(job_pb2.JobSpec(endpoint="e", reuse=job_pb2.Reuse(job_id="1"))) == STORED_ENDPOINT
    assert route(job_pb2.JobSpec(endpoint="e", reuse=job_pb2.Reuse(import_id="1"))) == STORED_ENDPOINT


def test_a_rerun_calls_its_endpoint() -> None:
    rerun = job_pb2.Reuse(job_id="1", rerun=[item_result_pb2.OUTCOME_OUTPUT_TRUNCATED])
    assert route(job_pb2.JobSpec(endpoint="e", reuse=rerun)) == "e"


def plugged(name: str = "e", left_out: str = "") -> evaluator_pb2.Evaluator:
    """An evaluator with a plug-in's suite `sums` and its scorer `same_words`."""
    one = evaluator(name)
    plugin = one.plugins.add(package="example", version="1.0")
    plugin.parts.add(part="scorer", name="same_words", title="same words", left_out=left_out)
    plugin.parts.add(part="suite", name="sums", title="Sums", left_out=left_out)
    if not left_out:
        one.suites.add(suite="sums", title="Sums", plugin="example 1.0")
    return one


def test_a_plugins_suite_and_scorer_need_an_evaluator_that_runs() -> None:
    known = fleet(plugged())
    assert known.suite("sums", 5).plugin == "example 1.0"
    assert set(known.scorers(5)) == {"same_words"}
    known.require_scorer("same_words", 5)

    known.hear(evaluator("other"), 20)  # The one with the plug-in has been silent.

    assert set(known.scorers(21)) == set()
    install = "Install it where an evaluator runs, and restart that evaluator."
    with pytest.raises(InvalidRequestError) as error:
        known.suite("sums", 21)
    assert error.value.message == f"No running evaluator has the suite sums of the plug-in example 1.0. {install}"
    with pytest.raises(InvalidRequestError) as error:
        known.require_scorer("same_words", 21)
    assert error.value.message == (
        f"No running evaluator has the scorer same_words of the plug-in example 1.0. {install}"
    )
    assert error.value.field == "spec.dataset.scorer"
    known.require_scorer("exact_match", 21)


def test_what_is_left_out_is_offered_by_nobody() -> None:
    known = fleet(plugged(left_out="It raised."))
    assert set(known.scorers(5)) == set()
    with pytest.raises(InvalidRequestError, match="Suite sums not found"):
        known.suite("sums", 5)


def _planned(plugin: str, spec: job_pb2.JobSpec) -> job_pb2.Job:
    return job_pb2.Job(state=job_pb2.Job.STATE_RUNNING, spec=spec, plan=[job_pb2.TaskPlan(plugin=plugin)])


def test_what_a_job_lacks_is_a_plugin_that_no_evaluator_of_its_endpoint_has() -> None:
    sums = job_pb2.JobSpec(endpoint="gpu", suite=job_pb2.SuiteWork(suite="sums"))
    words = job_pb2.JobSpec(endpoint="gpu", dataset=job_pb2.DatasetWork(scorer="same_words"))
    plain = job_pb2.JobSpec(endpoint="gpu", suite=job_pb2.SuiteWork(suite="demo"))
    pending = [job_pb2.Job(state=job_pb2.Job.STATE_PENDING, spec=spec) for spec in (sums, words, plain)]
    old, new = (_planned(f"example {version}", sums) for version in ("0.9", "1.0"))
    elsewhere = job_pb2.Job(spec=job_pb2.JobSpec(endpoint="other", suite=job_pb2.SuiteWork(suite="sums")))
    known = fleet(plugged("a"), evaluator("b"))
    assert [known.lacking(job, 5) for job in (*pending, new, _planned("", plain), elsewhere)] == [""] * 6
    assert known.lacking(old, 5) == "the plug-in example 0.9"
    # A re-score runs on any evaluator; the others need one that serves their endpoint.
    third = evaluator("c")
    third.endpoints[0].endpoint = "other"
    known.hear(third, 5)
    assert known.lacking(elsewhere, 5) == "the suite sums of a plug-in"
    elsewhere.spec.reuse.job_id = "1"
    assert known.lacking(elsewhere, 5) == ""

    known.hear(evaluator("b"), 20)  # The one with the plug-in has been silent.
    assert [known.lacking(job, 21) for job in pending] == [
        "the suite sums of a plug-in",
        "the scorer same_words of a plug-in",
        "",
    ]
    assert known.lacking(new, 21) == "the plug-in example 1.0"
    # With no evaluator at all, that is what the job waits for.
    assert known.lacking(new, 100) == ""


def test_the_scorers_of_a_job_belong_to_one_plugin() -> None:
    one, other = plugged("a"), evaluator("b")
    other.endpoints[0].endpoint = "b"
    one.plugins[0].parts.add(part="scorer", name="more", title="more")
    other.plugins.add(package="second", version="1.0").parts.add(part="scorer", name="far", title="far")
    known = fleet(one, other)

    def job(*names: str) -> job_pb2.JobSpec:
        first, *further = (scoring_pb2.Scoring(scorer=name) for name in names)
        return job_pb2.JobSpec(endpoint="b", dataset=job_pb2.DatasetWork(scoring=first, further=further))

    known.require_one_plugin(job("contains", "more", "same_words"), 5)
    known.require_one_plugin(job("far", "contains"), 5)
    with pytest.raises(InvalidRequestError, match="The scorers same_words and far belong to different plug-ins"):
        known.require_one_plugin(job("same_words", "far"), 5)
    # The evaluator of this endpoint has one of them.
    waits = job_pb2.Job(spec=job("far", "contains", "more"))
    assert known.lacking(waits, 5) == "the scorer far and more of a plug-in"
    assert known.lacking(job_pb2.Job(spec=job("far", "contains")), 5) == ""
    assert known.lacking(job_pb2.Job(spec=job("contains", "same_words")), 5) == "the scorer same_words of a plug-in"
