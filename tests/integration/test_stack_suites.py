"""Every shipped suite, in each mode it allows, through every process: known models, and every figure computed again."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import grpc
import numpy as np
import pytest
from scipy import stats

from services.evaluator.answers import scoring
from services.evaluator.suites import shipped
from services.words.enums import WEIGHTINGS
from tests.recompute import Answers, score_over_items
from tests.stack import running, touchstone
from tests.stub_thread import stub_thread
from tests.suite_runs import (
    CARELESS,
    DEMO_LIMIT,
    GENERATE,
    INVERTED,
    KEYS,
    LOGLIKELIHOOD,
    MODEL,
    MODES,
    NOBODY,
    ORACLE,
    RUNS,
    SEED,
    SUBJECTS,
    WITH_DIGEST,
    SuiteRuns,
    definitions,
)
from touchstone.v1 import comparison_pb2, item_result_pb2, metric_pb2, results_service_pb2
from touchstone.v1.suite_pb2 import MetricSpec

pytestmark = pytest.mark.stack

EXACT = 1e-9
LOWEST = {"matthews_correlation": -1.0, "pearson": -1.0, "spearman": -1.0, "gender_parity": 1.0}
"""What an inverted oracle scores; 0 otherwise. Both sentences of a pair get one answer, if a wrong one."""
EACH_RUN = pytest.mark.parametrize(("suite", "mode"), RUNS, ids=["-".join(run) for run in RUNS])


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SuiteRuns]:
    with stub_thread() as stubs:
        made = SuiteRuns(tmp_path_factory.mktemp("suites"), stubs)
        with running(made.stack, request):
            made.start()
            yield made


# -- what is asked -------------------------------------------------------------------------------------------------


def test_every_shipped_suite_runs_in_each_mode_that_one_of_its_tasks_has() -> None:
    assert {suite for suite, _ in RUNS} == set(shipped()) >= {"glue", "superglue", "mmlu", "medical", "gsm8k", "bbh"}
    assert [suite for suite, mode in RUNS if mode == GENERATE] == [*shipped()]
    without = {suite for suite in shipped() if (suite, LOGLIKELIHOOD) not in RUNS}
    assert without == {"gsm8k", "bbh"}, "their answers are written"


@EACH_RUN
def test_every_row_is_asked_once_and_refers_to_the_datas_own_right_answer(
    runs: SuiteRuns, suite: str, mode: str
) -> None:
    found = runs.items(suite, mode, ORACLE)
    assert set(found) == {definition.task for definition in definitions(suite, mode)}
    for task, items in found.items():
        places = [item.result.item for item in items]
        if suite == "demo":
            assert len(set(places)) == len(places) == DEMO_LIMIT
            continue
        truths = runs.truths[suite, task]
        assert places == list(range(len(truths))), task
        for item, truth in zip(items, truths, strict=True):
            if task == "stsb":
                assert float(item.result.reference) == pytest.approx(float(truth.right), abs=1e-5)
            else:
                assert item.result.reference == truth.right, f"{task} {item.result.item}"
            if truth.option:
                assert f"\n{truth.right}. {truth.option}\n" in f"{item.result.prompt}\n" or mode == LOGLIKELIHOOD


def test_a_suite_leaves_out_what_has_no_log_likelihood_form_and_says_subset(runs: SuiteRuns) -> None:
    assert "stsb" in runs.measured("glue", GENERATE, ORACLE)
    body = runs.body("glue", LOGLIKELIHOOD, ORACLE)
    assert "stsb" not in body["performance_data"]["glue"]
    assert (body["status"], body["subset"], body["summary"]["total_evaluations"]) == ("completed", True, 8)


def test_log_likelihoods_were_asked_of_the_very_texts_that_items_are_made_of(runs: SuiteRuns) -> None:
    for provider, server in runs.servers.items():
        assert server.unknown == [], provider
    for suite, mode in RUNS:
        for items in runs.items(suite, mode, CARELESS).values():
            for item in items:
                assert bool(item.result.continuations) == (mode == LOGLIKELIHOOD)


# -- what known models score ---------------------------------------------------------------------------------------


@EACH_RUN
def test_a_perfect_oracle_scores_one_on_every_metric(runs: SuiteRuns, suite: str, mode: str) -> None:
    measured = runs.measured(suite, mode, ORACLE)
    assert set(measured) == {definition.task for definition in definitions(suite, mode)}
    for definition in definitions(suite, mode):
        metrics = measured[definition.task]
        assert [*metrics] == [spec.metric for spec in definition.metrics_in(MODES[mode])]
        for metric, figures in metrics.items():
            assert figures["mean"] == pytest.approx(1.0, abs=EXACT), f"{definition.task} {metric}"
            assert figures["unparsed"] == 0
    body = runs.body(suite, mode, ORACLE)
    assert body["score"]["mean"] == pytest.approx(1.0, abs=EXACT)
    assert all(average["mean"] == pytest.approx(1.0, abs=EXACT) for average in body["averages"])
    assert "not_ranked_reason" not in body


@EACH_RUN
def test_an_inverted_oracle_scores_the_lowest_that_each_metric_has(runs: SuiteRuns, suite: str, mode: str) -> None:
    for task, metrics in runs.measured(suite, mode, INVERTED).items():
        for metric, figures in metrics.items():
            assert figures["mean"] == pytest.approx(LOWEST.get(metric, 0.0), abs=EXACT), f"{task} {metric}"
            assert figures["unparsed"] == 0


@pytest.mark.parametrize("suite", [suite for suite, mode in RUNS if mode == GENERATE])
def test_nonsense_is_unparsed_to_the_last_item_and_ranks_with_a_caution(runs: SuiteRuns, suite: str) -> None:
    body = runs.body(suite, GENERATE, NOBODY)
    assert body["outcomes"]["unparsed"] == {"items": body["progress"]["items_total"], "share": 1.0}
    for metrics in body["performance_data"][suite].values():
        for figures in metrics.values():
            assert figures["unparsed"] == 1.0
            assert figures["mean"] in (0.0, None)
    for items in runs.items(suite, GENERATE, NOBODY).values():
        assert {(i.result.outcome, i.result.prediction) for i in items} == {(item_result_pb2.OUTCOME_UNPARSED, "")}
    assert "not_ranked_reason" not in body
    assert {one["unparsed"] for one in body["unread"]} == {1.0}
    assert len(body["unread"]) == len(body["performance_data"][suite])
    assert "could not be read" in body["caution"]
    board = runs.stack.get("/leaderboard", suite=suite, metric="score", limit=100)
    (row,) = (row for row in board["leaderboard"] if row["provider"] == NOBODY)
    assert row["caution"] == body["caution"]
    assert row["bounds"][1] == pytest.approx(1.0, abs=EXACT)
    assert not board["not_ranked"]


# -- every figure, computed again ----------------------------------------------------------------------------------


class Recomputed:
    """A job's figures from its stored items alone, by scikit-learn, scipy and numpy."""

    def __init__(self, runs: SuiteRuns, suite: str, mode: str) -> None:
        self.suite = suite
        job_id = runs.job_id(suite, mode, CARELESS)
        self.plans = {plan.task: plan for plan in runs.stack.job(job_id).plan}
        self.items = {task: [i.result for i in found] for task, found in runs.items(suite, mode, CARELESS).items()}
        self.results = [result for found in self.items.values() for result in found]
        request = results_service_pb2.GetJobResultRequest(job_id=job_id)
        self.methods = {
            (task.task, metric.metric): metric.method
            for task in runs.stack.results.GetJobResult(request, timeout=10).result.tasks
            for metric in task.metrics
        }

    @cache  # noqa: B019  Lives as long as one test.
    def answers(self, task: str, spec_label: str, *, repaired: bool = False) -> Answers:
        found = []
        for result in self.items[task]:
            stored = results_service_pb2.StoredItem(task=task, result=result)
            if repaired and result.outcome != item_result_pb2.OUTCOME_ANSWERED:
                stored.result.outcome = item_result_pb2.OUTCOME_ANSWERED
                stored.result.prediction = result.reference
                statistics = stored.result.statistics
                for name in statistics.keys() & {"correct", "f1"}:
                    statistics[name] = 1.0
                if "value" in statistics:
                    statistics["value"] = statistics["target"]
            found.append(stored)
        return Answers(found, spec_label)

    def mean(self, task: str, spec: MetricSpec) -> float:
        return self.answers(task, spec.positive_label).of(spec)

    def over_tasks(self, tasks: Sequence[str]) -> float:
        """Mean over tasks of the mean of their metrics, without those beside; MNLI once."""
        groups: dict[str, list[float]] = {}
        for task in tasks:
            plan = self.plans[task]
            if not plan.beside:
                values = [self.mean(task, spec) for spec in plan.metrics if not spec.beside]
                groups.setdefault(plan.score_group or task, []).append(float(np.mean(values)))
        return float(np.mean([np.mean(values) for values in groups.values()]))

    def over_items(self, tasks: Sequence[str]) -> float:
        """The same, each task counting by the units of its first metric."""
        scores, units = {}, {}
        for task in tasks:
            counted = [spec for spec in self.plans[task].metrics if not spec.beside]
            scores[task] = float(np.mean([self.mean(task, spec) for spec in counted]))
            first = counted[0]
            of_rule = self.answers(task, first.positive_label).units(first) if first.rule else self.items[task]
            units[task] = len(of_rule)
        return score_over_items(scores, units)


def spread(method: str, mean: float, spec: MetricSpec, answers: Answers) -> tuple[float, float, float]:
    """Standard error and 95 % interval by the methods that draw nothing at random."""
    units = answers.units(spec) if spec.rule else [(str(i), 0.0) for i in range(answers.items)]
    if method == "wilson":
        interval = stats.binomtest(round(mean * len(units)), len(units)).proportion_ci(0.95, method="wilson")
        return math.sqrt(mean * (1 - mean) / len(units)), float(interval.low), float(interval.high)
    assert method == "clustered", method
    stderr = answers.clustered_standard_error(spec)
    stderr = 0.0 if stderr < EXACT else stderr
    clusters = len({cluster for cluster, _ in units} if spec.rule else set(answers._clusters))
    start, width = (-1.0, 2.0) if spec.metric == "matthews_correlation" else (0.0, 1.0)
    p, quantile = (mean - start) / width, float(stats.t.ppf(0.975, clusters - 1))
    n = p * (1 - p) * (width / stderr) ** 2 if stderr else float(clusters)
    middle, half = p + quantile**2 / (2 * n), quantile * math.sqrt(p * (1 - p) / n + quantile**2 / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + quantile**2 / n) for sign in (-1, 1))
    return stderr, start + width * low, start + width * high


@EACH_RUN
def test_metrics_and_their_intervals_follow_from_the_stored_items(runs: SuiteRuns, suite: str, mode: str) -> None:
    again = Recomputed(runs, suite, mode)
    for task, metrics in runs.measured(suite, mode, CARELESS).items():
        for spec in again.plans[task].metrics:
            figures, where = metrics[spec.metric], f"{task} {spec.metric}"
            answers = again.answers(task, spec.positive_label)
            assert figures["mean"] == pytest.approx(again.mean(task, spec), abs=EXACT), where
            assert figures["unparsed"] == pytest.approx(answers.unparsed, abs=EXACT), where
            assert figures["n"] == (len(answers.units(spec)) if spec.rule else len(again.items[task])), where
            assert figures["std"] == figures["stderr"]
            assert figures.get("beside", False) == spec.beside
            low, high = figures["ci95"]
            assert low <= figures["mean"] <= high
            method = again.methods[task, spec.metric]
            if method == "chi-square":
                assert (low, high) == pytest.approx(answers.chi_square(spec.metric), abs=1e-3), where
            elif method != "bootstrap":
                found = figures["std"], low, high
                # The clustered error is found by small steps here, in closed form there.
                near = 1e-6 if method == "clustered" and not spec.rule else EXACT
                assert found == pytest.approx(spread(method, figures["mean"], spec, answers), abs=near), where
            if spec.rule != MetricSpec.RULE_EQUAL and spec.statistic not in ("correct_norm", "correct_bytes"):
                best = again.answers(task, spec.positive_label, repaired=True).of(spec)
                least, most = figures.get("bounds", [figures["mean"]] * 2)
                assert least - EXACT <= min(figures["mean"], best)
                assert most == pytest.approx(max(figures["mean"], best), abs=EXACT), where


@EACH_RUN
def test_averages_and_the_score_follow_from_the_stored_items(runs: SuiteRuns, suite: str, mode: str) -> None:
    again, body = Recomputed(runs, suite, mode), runs.body(suite, mode, CARELESS)
    counted = [task for task, plan in again.plans.items() if not plan.beside]
    both = {"items": again.over_items(counted), "tasks": again.over_tasks(counted)}
    if len(counted) > 1:
        assert body["weighting"] == ("items" if suite in ("mmlu", "mmlu_pro") else "tasks")
    assert body["score"]["mean"] == pytest.approx(both[body["weighting"] or "tasks"], abs=EXACT)
    assert {a["weighting"]: a["mean"] for a in body["averages"] if a["category"] is None} == pytest.approx(
        both if len(counted) > 1 else {}, abs=EXACT
    )
    groups = {plan.score_group or task for task, plan in again.plans.items()}
    assert body["summary"]["total_evaluations"] == len(groups)
    for average in body["averages"]:
        category = average["category"]
        members = [t for t, plan in again.plans.items() if category in (None, plan.category) and not plan.beside]
        once = {again.plans[task].score_group or task for task in members}
        over_items = average["weighting"] == "items"
        assert average["rule"] == ("micro" if over_items else "macro")
        assert average["tasks"] == len(members if over_items else once)
        expected = again.over_items(members) if over_items else again.over_tasks(members)
        assert average["mean"] == pytest.approx(expected, abs=EXACT)
    if suite == "mmlu":
        assert {a["category"] for a in body["averages"]} == {"STEM", "Humanities", "Social sciences", "Other", None}


def test_mmlu_ranks_over_items_as_its_authors_do_and_over_tasks_when_asked(runs: SuiteRuns) -> None:
    again, job_id = Recomputed(runs, "mmlu", GENERATE), runs.job_id("mmlu", GENERATE, CARELESS)
    expected = {"items": again.over_items([*again.plans]), "tasks": again.over_tasks([*again.plans])}
    assert expected["items"] != pytest.approx(expected["tasks"], abs=1e-4)
    job = runs.stack.get(f"/results/{job_id}")
    assert job["score"] == next(pick(a) for a in job["averages"] if (a["category"], a["weighting"]) == (None, "items"))
    with runs.stack.client() as client:
        (exported,) = (
            row
            for row in client.get("/export", params={"kind": "jobs", "format": "json", "suite": "mmlu"}).json()
            if row["job_id"] == job_id
        )
        page = words(client.get(f"{runs.stack.url}/jobs/{job_id}").text)
    assert exported["weighting"] == "items"
    assert exported["score"] == exported["score_over_items"]
    assert "Suite score over items" in page
    assert f"Score over tasks {100 * expected['tasks']:.1f}" in page
    other = runs.job_id("mmlu", GENERATE, INVERTED)
    for asked in ("", "items", "tasks"):
        found = {"weighting": asked} if asked else {}
        rule = asked or "items"
        board = runs.stack.get("/leaderboard", suite="mmlu", metric="score", **found)
        assert (board["weighting"], board["suite_weighting"]) == (rule, "items")
        request = results_service_pb2.GetLeaderboardRequest(suite="mmlu", weighting=WEIGHTINGS.get(asked))
        listed = runs.stack.results.GetLeaderboard(request, timeout=10)
        said = touchstone(runs.stack, "leaderboard", "--suite", "mmlu", "--metric", "score", *flags(asked))
        assert f"score over {rule}" in said.stdout, said.stderr
        written = touchstone(runs.stack, "leaderboard", "--suite", "mmlu", "--format", "json", *flags(asked))
        with runs.stack.client() as client:
            shown = words(client.get(f"{runs.stack.url}/leaderboard", params={"suite": "mmlu", **found}).text)
            answer = client.post("/compare", json={"model_ids": [job_id, other], **found}, timeout=60).json()
        compared = answer["comparison"]
        assert f"Score over {rule} ↓" in shown
        assert compared["weighting"] == rule
        scores = [
            *(row["score"] for row in board["leaderboard"] if row["job_id"] == job_id),
            *(entry.score.mean for entry in listed.entries if entry.job_id == job_id),
            *(e["score"]["mean"] for e in json.loads(written.stdout)["entries"] if e["job_id"] == job_id),
            *(run["scores"]["score"]["mean"] for run in compared["models"] if run["job_id"] == job_id),
            exported[f"score_over_{rule}"],
        ]
        assert scores == pytest.approx([expected[rule]] * 5, abs=EXACT)


def flags(weighting: str) -> list[str]:
    return ["--weighting", weighting] if weighting else []


def pick(average: Mapping[str, Any]) -> dict[str, Any]:
    """An average's figures alone."""
    return {k: v for k, v in average.items() if k not in ("category", "metric", "rule", "tasks", "weighting")}


def words(page: str) -> str:
    """What a page says, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


@EACH_RUN
def test_counts_tokens_and_times_follow_from_the_stored_items(runs: SuiteRuns, suite: str, mode: str) -> None:
    again, body = Recomputed(runs, suite, mode), runs.body(suite, mode, CARELESS)
    outcomes = {field.name: 0 for field in metric_pb2.OutcomeCounts.DESCRIPTOR.fields}
    for part, results in (
        (body, again.results),
        *((body["tasks"][task], found) for task, found in again.items.items()),
    ):
        counted = Counter(item_result_pb2.Outcome.Name(r.outcome).removeprefix("OUTCOME_").lower() for r in results)
        expected = {name: {"items": n, "share": n / len(results)} for name, n in (outcomes | counted).items()}
        assert {name: pytest.approx(found) for name, found in part["outcomes"].items()} == expected
    progress = body["progress"]
    total = len(again.results)
    assert (progress["items_total"], progress["items_done"], progress["items_failed"]) == (total, total, 0)
    assert progress["percent"] == 100
    assert body["tokens"] == {
        "input": sum(r.input_tokens for r in again.results),
        "output": sum(r.output_tokens for r in again.results),
        "reasoning": 0,
        "input_untold": 0,
        "output_untold": 0,
    }
    latencies = [r.latency_ms for r in again.results]
    assert body["latency_ms"] == pytest.approx({f"p{p}": float(np.percentile(latencies, p)) for p in (50, 95)})
    assert body["reused"] == {"items": 0, "share": 0.0, "without_digest": False}
    assert (body["ttft_ms"], body["cost_usd"], body["served_models"]) == (None, None, [MODEL])
    for task, plan in again.plans.items():
        figures = body["data"][task]
        assert (figures["items"], figures["published_items"]) == (len(again.items[task]), plan.published_items)


# -- what a score rests on -----------------------------------------------------------------------------------------


def test_every_job_has_a_whole_receipt(runs: SuiteRuns) -> None:
    prompt_hashes: dict[tuple[str, str], set[str]] = {}
    for suite, mode, provider in KEYS:
        body = runs.body(suite, mode, provider)
        receipt: Mapping[str, Any] = body["receipt"]
        kind = {NOBODY: "openai", WITH_DIGEST: "ollama"}.get(provider, "vllm")
        server = {"vllm": "vLLM 0.32.0", "ollama": "Ollama 0.33.1", "openai": None}[kind]
        digest = f"sha256:{MODEL}" if provider == WITH_DIGEST else None
        assert (receipt["endpoint_kind"], receipt["server"], receipt["model_digest"]) == (kind, server, digest)
        assert (body["provider"], body["model_name"], body["mode"], body["seed"]) == (provider, MODEL, mode, SEED)
        assert receipt["software"]
        assert receipt["concurrency"] == 32
        assert receipt["template"] == ("none" if mode == LOGLIKELIHOOD else "endpoint")
        greedy = {} if mode == LOGLIKELIHOOD else {"temperature": 0}
        assert receipt["parameters"] == greedy
        sent = {item.result.parameters for found in runs.items(suite, mode, provider).values() for item in found}
        assert len(sent) == 1
        carried = json.loads(sent.pop())
        carried = carried.get("options", carried)
        assert carried["temperature"] == 0
        assert carried.get("echo", False) == (mode == LOGLIKELIHOOD)
        for definition in definitions(suite, mode):
            data = body["data"][definition.task]
            assert data["dataset"] == definition.source.dataset
            assert (data["config"], data["split"]) == (definition.source.config, definition.split)
            assert len(data["revision"]) == 64, "a mirror's file by its SHA-256"
            assert (data["version"], data["scorer_version"]) == (definition.version, scoring.VERSION)
            prompt_hashes.setdefault((suite, definition.task), set()).add(f"{mode} {data['prompt_hash']}")
    for hashes in prompt_hashes.values():
        assert all(hashed.split()[1] for hashed in hashes)
        by_mode = Counter(hashed.split()[0] for hashed in hashes)
        assert set(by_mode.values()) == {1}, "one prompt a task and mode, whoever answers"
        assert len({hashed.split()[1] for hashed in hashes}) == len(hashes), "the modes' prompts differ"


@pytest.mark.parametrize("suite", [suite for suite, mode in RUNS if mode == LOGLIKELIHOOD])
def test_modes_never_share_a_leaderboard(runs: SuiteRuns, suite: str) -> None:
    own = {mode: {runs.job_id(suite, mode, p) for s, m, p in KEYS if (s, m) == (suite, mode)} for mode in MODES}
    configurations: dict[str, set[str]] = {}
    for mode, number in MODES.items():
        request = results_service_pb2.GetLeaderboardRequest(suite=suite, metric="score", mode=number, limit=100)
        board = runs.stack.results.GetLeaderboard(request, timeout=10)
        assert {entry.mode for entry in board.entries} == {number}
        assert {entry.job_id for entry in board.entries} == own[mode]
        configurations[mode] = {entry.configuration for entry in board.entries}
        listed = runs.stack.get("/leaderboard", suite=suite, metric="score", limit=100, mode=mode)
        rows = [*listed["leaderboard"], *listed["not_ranked"]]
        assert {(row["mode"], row["job_id"]) for row in rows} == {(mode, job_id) for job_id in own[mode]}
        assert listed["mode"] == mode
        assert listed["leaderboard"][0]["provider"] == ORACLE
    assert not configurations[GENERATE] & configurations[LOGLIKELIHOOD], "one model and endpoint, two configurations"


@EACH_RUN
def test_known_models_compare_by_the_figures_of_their_results(runs: SuiteRuns, suite: str, mode: str) -> None:
    jobs = {runs.job_id(suite, mode, provider): provider for provider in (ORACLE, INVERTED, CARELESS)}
    with runs.stack.client() as client:
        answer = client.post("/compare", json={"model_ids": list(jobs)}, timeout=60)
    assert answer.status_code == 200, answer.text
    found = answer.json()["comparison"]
    assert (found["suite"], found["mode"], jobs[found["best_performing"]]) == (suite, mode, ORACLE)
    bodies = {job_id: runs.body(suite, mode, provider) for job_id, provider in jobs.items()}
    scores = {job_id: body["score"]["mean"] for job_id, body in bodies.items()}
    assert found["performance_gap"] == pytest.approx(max(scores.values()) - min(scores.values()), abs=EXACT)
    for one in found["differences"]:
        assert one["difference"] == pytest.approx(scores[one["a"]] - scores[one["b"]], abs=EXACT)
    for task in found["tasks"]:
        means = {job: bodies[job]["performance_data"][suite][task["task"]][task["metric"]]["mean"] for job in jobs}
        assert {job: metric["mean"] for job, metric in task["values"].items()} == means
        for one in task["differences"]:
            expected = pytest.approx(means[one["a"]] - means[one["b"]], abs=EXACT)
            assert one["difference"] is None or one["difference"] == expected, task["task"]
            assert one["difference"] is not None or None in means.values() or one["reason"], task["task"]


@pytest.mark.parametrize(
    ("subjects", "suite", "code", "words"),
    [
        (["nobody", MODEL], "glue", grpc.StatusCode.NOT_FOUND, "'nobody' has no complete run of glue"),
        ([f"{MODEL}@{ORACLE}", MODEL], "glue", grpc.StatusCode.INVALID_ARGUMENT, "fits"),
        ([f"{MODEL}@{ORACLE}", "nobody"], "gleu", grpc.StatusCode.INVALID_ARGUMENT, "Invalid benchmark suite"),
        ([MODEL], "glue", grpc.StatusCode.INVALID_ARGUMENT, "at least two"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_reason(
    runs: SuiteRuns, subjects: list[str], suite: str, code: grpc.StatusCode, words: str
) -> None:
    request = comparison_pb2.CompareRequest(subjects=subjects, suite=suite)
    with pytest.raises(grpc.RpcError, match=words) as refused:
        runs.stack.results.Compare(request, timeout=10)
    assert refused.value.code() == code


def test_mmlu_ran_one_subject_of_each_category(runs: SuiteRuns) -> None:
    assert set(runs.measured("mmlu", LOGLIKELIHOOD, ORACLE)) == set(SUBJECTS)
