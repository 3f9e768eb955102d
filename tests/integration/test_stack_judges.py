"""A judge's way through every process: it starts once the judged job has completed, judges each answer once, and its
failures move no score."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import grpc
import httpx
import pytest

from services.evaluator.units.packer import MOST_ITEMS
from services.words import rubrics
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, running, touchstone, until
from tests.stub_thread import stub_thread
from tests.unit.words.test_rubrics import TIPS
from touchstone.v1 import (
    dataset_pb2,
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    job_pb2,
    results_service_pb2,
    scheduler_service_pb2,
)

pytestmark = pytest.mark.stack

ROWS, FAILING = 240, 10
RUBRIC = json.dumps(TIPS)
_ANSWER = re.compile(r"<answer-[0-9a-f]{12}>\ntip (\d+)\n</answer-")
_PAIR = re.compile(r"<(first|second)-answer-[0-9a-f]{12}>\n(tip|hint) (\d+)\n</")
_asked: Counter[int] = Counter()
"""How often the judge was asked about the answer to each row."""
_compared: Counter[tuple[int, str]] = Counter()
"""How often it was asked to compare the answers to each row, by the word that the first of them begins with."""


def _scores(number: int) -> dict[str, int]:
    return {"relevance": 1 + number % 5, "actionability": 1 + number % 3, "tone": 5}


def _candidate(prompt: str) -> str:
    return f"tip {prompt.rsplit(' ', 1)[1]}"


def _other(prompt: str) -> str:
    """Every fourth answer is that of `_candidate`."""
    number = int(prompt.rsplit(" ", 1)[1])
    return f"hint {number}" if number % 4 else f"tip {number}"


def _preferred(number: int, first: str) -> str:
    """A tip, or every third time whatever stands first."""
    return "first" if number % 3 == 0 or first == "tip" else "second"


def _judge(prompt: str) -> str:
    if pair := _PAIR.findall(prompt):
        ((_, first, number), (_, _, _)) = pair
        _compared[int(number), first] += 1
        return json.dumps({"reason": "fine", "better": _preferred(int(number), first)})
    found = _ANSWER.search(prompt)
    assert found is not None, prompt
    number = int(found[1])
    _asked[number] += 1
    return "I would rather not." if number % FAILING == 0 else json.dumps({"reason": "fine", **_scores(number)})


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with stub_thread() as stubs:
        candidates = stubs.start(OpenAIServer(Behaviour(models=("small",), answer=_candidate)))
        judges = stubs.start(OpenAIServer(Behaviour(models=("judge",), answer=_judge, latency_s=0.1)))
        others = stubs.start(OpenAIServer(Behaviour(models=("other",), answer=_other)))
        endpoints: list[Endpoint] = [
            {"name": "others", "kind": "openai", "base_url": others.url, "concurrency": 8},
            {"name": "local", "kind": "openai", "base_url": candidates.url, "concurrency": 8},
            {"name": "judges", "kind": "openai", "base_url": judges.url, "concurrency": 8},
        ]
        with running(Stack(tmp_path_factory.mktemp("judges"), endpoints), request) as started:
            started.know_models("local", "others", "judges")
            yield started


def _judge_of(stack: Stack, job_id: str) -> job_pb2.Job:
    """The job that judges this one, once there is one."""
    found: list[job_pb2.Job] = []

    def started() -> bool:
        listed = stack.scheduler.ListJobs(scheduler_service_pb2.ListJobsRequest(), timeout=10).jobs
        found[:] = [job for job in listed if job.spec.judging.job_id == job_id]
        return bool(found)

    until(started, 30)
    assert len(found) == 1
    return found[0]


def _upload(stack: Stack) -> str:
    stub = dataset_service_pb2_grpc.DatasetServiceStub(stack.channel(stack.results_port))
    data = "\n".join(json.dumps({"custom_id": f"r{n}", "prompt": f"A tip for {n}"}) for n in range(ROWS)).encode()
    options = dataset_pb2.DatasetOptions(name="tips.jsonl")
    requests = iter([dataset_service_pb2.UploadDatasetRequest(options=options, data=data)])
    return str(stub.UploadDataset(requests, timeout=30).dataset.dataset_id)


def _run(stack: Stack, **more: object) -> str:
    spec = job_pb2.JobSpec(**{"endpoint": "local", "model": "small", **more})  # type: ignore[arg-type]
    return str(stack.scheduler.CreateJob(scheduler_service_pb2.CreateJobRequest(spec=spec), timeout=20).job.job_id)


def test_a_judge_judges_each_answer_once_whatever_is_killed(stack: Stack) -> None:
    _asked.clear()
    judge = job_pb2.Judge(endpoint="judges", model="judge", rubric=RUBRIC)
    work = job_pb2.DatasetWork(dataset_id=_upload(stack))
    job_id = _run(stack, dataset=work, judges=[judge])
    stack.wait(job_id)
    judging = _judge_of(stack, job_id)
    assert not _asked or sum(_asked.values()) < ROWS
    until(lambda: sum(_asked.values()) > ROWS // 4, 60)
    stack.kill("scheduler")
    stack.kill("evaluator-1")
    until(lambda: sum(_asked.values()) > ROWS // 2, 90)
    stack.kill("results")
    done = stack.wait(judging.job_id)
    assert done.state == job_pb2.Job.STATE_COMPLETED, done.reason
    assert _judge_of(stack, job_id).job_id == judging.job_id

    rubric = rubrics.of_value(TIPS)
    items = [item.result for item in stack.items(judging.job_id)]
    assert sorted(item.custom_id for item in items) == sorted(f"rows/{n}/0" for n in range(ROWS))
    judged = [n for n in range(ROWS) if n % FAILING]
    for item in items:
        number = int(item.custom_id.split("/")[1])
        if number % FAILING:
            assert json.loads(item.prediction) == _scores(number)
            assert dict(item.statistics) == pytest.approx(rubrics.shares(rubric, _scores(number)))
        else:
            assert (item.prediction, dict(item.statistics)) == ("", {})
    # What was in flight at a kill may be asked again, within the evaluator's concurrency; nothing else is.
    assert set(_asked) == set(range(ROWS))
    assert sum(_asked.values()) <= ROWS + 3 * 8

    results = stack.get(f"/results/{judging.job_id}")
    (metrics,) = [task["rows"] for task in results["performance_data"].values()]
    for name in rubrics.names(rubric):
        mean = sum(rubrics.shares(rubric, _scores(n))[name] for n in judged) / len(judged)
        assert metrics[name]["mean"] == pytest.approx(mean), name
        assert metrics[name]["n"] == len(judged)

    told = results_service_pb2.ListJudgesRequest(job_id=job_id, task="rows", item=11)
    (run,) = stack.results.ListJudges(told, timeout=20).judges
    assert (run.job.job_id, rubrics.written(run.rubric)) == (judging.job_id, rubrics.written(rubric))
    assert [metric.metric for metric in run.result.metrics] == rubrics.names(rubric)
    assert run.result.metrics[0].mean == metrics["composite"]["mean"]
    assert run.result.outcomes.unparsed == ROWS - len(judged)
    assert [(one.number, json.loads(one.scores)) for one in run.judgements] == [(1, _scores(11))]


def test_a_biased_judge_does_not_move_what_people_say(stack: Stack) -> None:
    job_id = _run(stack, dataset=job_pb2.DatasetWork(dataset_id=_upload(stack)))
    stack.wait(job_id)
    made = _run(stack, judging=job_pb2.Judging(job_id=job_id, rubric=RUBRIC), endpoint="judges", model="judge")
    asked = results_service_pb2.ListUnratedRequest(job_id=job_id, rubric=rubrics.of_value(TIPS), page_size=60)
    page = stack.results.ListUnrated(asked, timeout=20)
    assert (page.rated, page.unrated) == (0, ROWS)
    # People always give one point less for relevance than the judge, where they can.
    wanted = {n: _scores(n) | {"relevance": max(1, _scores(n)["relevance"] - 1)} for n in range(ROWS)}
    given = [
        results_service_pb2.Rating(task=one.task, item=one.item, scores=json.dumps(wanted[one.item]))
        for one in page.answers
    ]
    rate = results_service_pb2.RateAnswersRequest(job_id=job_id, rubric=asked.rubric, ratings=given)
    assert stack.results.RateAnswers(rate, timeout=20).stored == 60
    stack.wait(made)
    stack.kill("results")
    (run,) = stack.results.ListJudges(
        results_service_pb2.ListJudgesRequest(job_id=job_id), timeout=60, wait_for_ready=True
    ).judges
    (relevance,) = [one for one in run.agreement if one.metric == "relevance"]
    truth = sum((scores["relevance"] - 1) / 4 for scores in wanted.values()) / ROWS
    assert relevance.bias.low > 0
    assert relevance.people.n == 60
    assert relevance.combined.low <= truth <= relevance.combined.high
    assert relevance.combined.high - relevance.combined.low < relevance.people.high - relevance.people.low
    assert stack.results.RateAnswers(rate, timeout=20).unchanged == 60
    _rate_on_the_page(stack, job_id, wanted)


def _rate_on_the_page(stack: Stack, job_id: str, wanted: Mapping[int, Mapping[str, int]]) -> None:
    """The next answer of the queue is open there; the job's page then has the figures of REST."""
    address = f"/jobs/{job_id}/rate?rubric={rubrics.digest(rubrics.of_value(TIPS))}"
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as browser:
        text = browser.get(address).text
        assert "<b>60</b> rated" in text
        opened = re.search(r'name="answer" value="rows:(\d+)"', text)
        assert opened is not None
        scores = {f"score.{name}": str(score) for name, score in wanted[int(opened[1])].items()}
        sent = {"answer": f"rows:{opened[1]}", **scores}
        assert browser.post(address, data=sent, headers={"Origin": stack.url}).status_code == 303
        assert "<b>61</b> rated" in browser.get(address).text
        page = browser.get(f"/jobs/{job_id}").text
        told = stack.get(f"/results/{job_id}/judges")
    assert [one["answers"] for one in told["people"]] == [61]
    figures = told["judges"][0]["agreement"]["relevance"]
    assert (figures["people"]["n"], figures["answers"]) == (61, sum(n % FAILING > 0 for n in _rated(stack, job_id)))
    row = page[page.index('<th scope="row">relevance') :].split("</tr>")[0]
    for name in ("people", "combined"):
        low, high = figures[name]["ci95"]
        assert f"<b>{1 + 4 * figures[name]['value']:.2f}</b> <small>{1 + 4 * low:.2f}–{1 + 4 * high:.2f}</small>" in row
    assert f"<b>{100 * figures['accuracy']['value']:.1f} %</b>" in row


def _rated(stack: Stack, job_id: str) -> list[int]:
    request = results_service_pb2.ListRatingsRequest(job_id=job_id)
    return [one.item for one in stack.results.ListRatings(request, timeout=20).ratings]


def _read_pages(stack: Stack, job_id: str, judging: str, item: int, rubric: str) -> None:
    """The judged job's pages show what REST gives, lead to the judge's and back, and start another judge."""
    (found,) = stack.get(f"/results/{job_id}/judges")["judges"]
    with httpx.Client(base_url=stack.url, trust_env=False, timeout=30) as browser:
        page = browser.get(f"/jobs/{job_id}").text
        section = page[page.index('<section id="job-judges"') :]
        assert f'<a href="/jobs/{judging}">judge</a>' in section
        for name in ("relevance", "actionability", "tone"):
            assert f"<b>{found['criteria'][name]['mean_on_scale']:.1f}</b>" in section.split(f"<dt>{name}</dt>")[1][:40]
        assert "judgement 2" in browser.get(f"/jobs/{job_id}/items/rows/{item}").text
        (row,) = [one.result for one in stack.items(judging) if one.result.custom_id == f"rows/{item}/0"]
        back = browser.get(f"/jobs/{judging}/items/rows/{row.item}").text
        assert f'<a href="/jobs/{job_id}/items/rows/{item}">this answer</a>' in back
        assert f'<a href="/jobs/{job_id}">job <code>' in browser.get(f"/jobs/{judging}").text
        sent = {"model": "judges|judge", "by": "rubric", "rubric": rubric.replace("tip-v1", "tip-v2")}
        made = browser.post(f"/jobs/{job_id}/judge", data=sent, headers={"Origin": stack.url})
        assert made.status_code == 303, made.text
    another = stack.wait(made.headers["location"].removeprefix("/jobs/"))
    assert another.state == job_pb2.Job.STATE_COMPLETED, another.reason
    assert another.spec.judging == job_pb2.Judging(job_id=job_id, repeats=1, attempt=1)


def test_stored_answers_are_judged_without_a_call_to_their_model(stack: Stack) -> None:
    job_id = _run(stack, dataset=job_pb2.DatasetWork(dataset_id=_upload(stack), limit=20))
    assert stack.wait(job_id).state == job_pb2.Job.STATE_COMPLETED
    judging = job_pb2.Judging(job_id=job_id, rubric=RUBRIC, repeats=2)
    made = _run(stack, judging=judging, endpoint="judges", model="judge")
    job = stack.wait(made)
    assert job.state == job_pb2.Job.STATE_COMPLETED, job.reason
    assert job.spec.judging == job_pb2.Judging(job_id=job_id, repeats=2, attempt=1)
    assert "json_schema" in job.spec.sampling.extra_json
    judged = {item.result.custom_id for item in stack.items(made)}
    places = {f"rows/{item.result.item}/0" for item in stack.items(job_id)}
    assert len(places) == 20
    assert judged == places | {f"{place}#2" for place in places}
    first = stack.items(job_id)[0].result
    told = results_service_pb2.ListJudgesRequest(job_id=job_id, task="rows", item=first.item)
    (run,) = stack.results.ListJudges(told, timeout=20).judges
    assert [one.number for one in run.judgements] == [1, 2]
    _read_pages(stack, job_id, made, first.item, RUBRIC)
    # The rows are not among the datasets of users.
    stub = dataset_service_pb2_grpc.DatasetServiceStub(stack.channel(stack.results_port))
    listed = [
        one.dataset_id for one in stub.ListDatasets(dataset_service_pb2.ListDatasetsRequest(), timeout=10).datasets
    ]
    assert listed
    assert job.spec.dataset.dataset_id not in listed


def test_a_judge_compares_each_pair_in_both_orders_whatever_is_killed(stack: Stack) -> None:
    work = job_pb2.DatasetWork(dataset_id=_upload(stack))
    job_id, other = _run(stack, dataset=work), _run(stack, dataset=work, endpoint="others", model="other")
    for one in (job_id, other):
        stack.wait(one)
    asking = job_pb2.Judging(job_id=job_id, against_job_id=other)
    made = _run(stack, judging=asking, endpoint="judges", model="judge")
    different = [n for n in range(ROWS) if n % 4]
    until(lambda: sum(_compared.values()) > len(different) // 2, 60)
    stack.kill("evaluator-1")
    stack.kill("scheduler")
    until(lambda: sum(_compared.values()) > len(different), 90)
    stack.kill("results")
    done = stack.wait(made)
    assert done.state == job_pb2.Job.STATE_COMPLETED, done.reason
    assert done.spec.judging.equal_pairs == ROWS - len(different)
    assert set(_compared) == {(n, first) for n in different for first in ("tip", "hint")}
    # What is in flight at a kill is asked again, and what has been answered and is not in a message yet.
    assert sum(_compared.values()) <= 2 * len(different) + 3 * 8 + MOST_ITEMS

    (found,) = stack.get(f"/results/{job_id}/judges")["judges"]
    pairs, (better,) = found["pairs"], found["pairs"]["preferences"].values()
    sure = sum(n % 3 > 0 for n in different)
    assert (pairs["against"], pairs["pairs"], pairs["equal_pairs"]) == (other, len(different), ROWS - len(different))
    assert (better["better"], better["equal"], better["worse"]) == (sure, len(different) - sure, 0)
    assert better["preferred"]["value"] == pytest.approx((1 + sure / len(different)) / 2)
    assert better["same_in_both_orders"]["value"] == pytest.approx(sure / len(different))
    first = (sure + 2 * (len(different) - sure)) / (2 * len(different))
    assert better["first_preferred"]["value"] == pytest.approx(first)
    # The judge's own score is the same, and its interval is over pairs, not over single judgements.
    (metrics,) = [task["rows"] for task in stack.get(f"/results/{made}")["performance_data"].values()]
    assert metrics["better"]["mean"] == pytest.approx(better["preferred"]["value"])
    low, high = better["preferred"]["ci95"]
    assert metrics["better"]["ci95"][1] - metrics["better"]["ci95"][0] == pytest.approx(high - low, rel=0.1)


def test_the_command_line_starts_judges_and_shows_what_they_found(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "tips.json"
    file.write_text(json.dumps(TIPS, indent=2))
    run = ("run", "--dataset", _upload(stack), "--limit", "20", "--model", "small")
    made = touchstone(stack, *run, "--judge-model", "judge", "--judge-provider", "judges", "--judge-rubric", str(file))
    assert made.returncode == 0, made.stderr
    job_id = made.stdout.split()[0]
    stack.wait(_judge_of(stack, job_id).job_id)
    made = touchstone(stack, "judge", job_id, "--model", "judge", "--rubric", str(file), "--format", "json")
    assert made.returncode == 0, made.stderr
    document = json.loads(made.stdout)
    answers = [item.result.response for item in stack.items(job_id)]
    judged = [n for n in (int(answer.removeprefix("tip ")) for answer in answers) if n % FAILING]
    assert [document[name] for name in ("asked", "judged", "failed")] == [20, len(judged), 20 - len(judged)]
    means = {one["criterion"]: one["mean_on_scale"] for one in document["criteria"]}
    for name in ("relevance", "actionability", "tone"):
        assert means[name] == pytest.approx(sum(_scores(n)[name] for n in judged) / len(judged))
    listed = json.loads(touchstone(stack, "judges", job_id, "--format", "json").stdout)
    for judge in listed["judges"]:
        for one, other in zip(judge["criteria"], document["criteria"], strict=True):
            assert one["criterion"] == other["criterion"]
            # The last digit depends on the order in which judgements came in.
            assert one["mean_on_scale"] == pytest.approx(other["mean_on_scale"])
    # Its judgements are read again without a call.
    asked = sum(_asked.values())
    again = touchstone(stack, "rescore", document["job_id"])
    assert again.returncode == 0, again.stderr
    assert sum(_asked.values()) == asked


def test_what_cannot_be_judged_is_refused_with_a_reason(stack: Stack) -> None:
    job_id = _run(stack, dataset=job_pb2.DatasetWork(dataset_id=_upload(stack), limit=5))
    stack.wait(job_id)
    made = _run(stack, judging=job_pb2.Judging(job_id=job_id, rubric=RUBRIC), endpoint="judges", model="judge")
    stack.wait(made)
    for judging, said in (
        (job_pb2.Judging(job_id=job_id), "needs a rubric"),
        (job_pb2.Judging(job_id=job_id, rubric="{}"), "needs a version"),
        (job_pb2.Judging(job_id=job_id, rubric=RUBRIC, repeats=11), "between 1 and 10"),
        (job_pb2.Judging(job_id=made, rubric=RUBRIC), "judges answers itself"),
        (job_pb2.Judging(job_id="0" * 8 + "-0000-7000-8000-" + "0" * 12, rubric=RUBRIC), "not found"),
    ):
        with pytest.raises(grpc.RpcError, match=said):
            _run(stack, judging=judging, endpoint="judges", model="judge")
    work = job_pb2.DatasetWork(dataset_id=_upload(stack), limit=5)
    for judge, said in (
        (job_pb2.Judge(endpoint="judges", model="judge"), "needs a rubric"),
        (job_pb2.Judge(endpoint="nowhere", model="judge", rubric=RUBRIC), "nowhere"),
        (job_pb2.Judge(endpoint="judges", model="other", rubric=RUBRIC), "other"),
    ):
        with pytest.raises(grpc.RpcError, match=said):
            _run(stack, dataset=work, judges=[judge])
