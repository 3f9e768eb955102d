"""Believable figures for the fake services: endpoints, suites, a GLUE leaderboard, items with hostile answers."""

from __future__ import annotations

import functools
import hashlib
import math
import random
import time
import uuid
from collections.abc import Sequence

from services.evaluator.providers.baseline import BAG_OF_WORDS, RANDOM
from services.evaluator.suites import shipped
from services.words.suites import ECHO
from services.words.suites import MAJORITY as MAJORITY_MODEL
from touchstone.v1 import endpoint_pb2, evaluator_pb2, item_result_pb2, job_pb2, metric_pb2, suite_pb2

GB = 1024**3

SUITES = ("demo", "glue")
MAJORITY = {"cola": 0.69, "sst2": 0.51, "mrpc": 0.68, "qqp": 0.63, "mnli": 0.355, "mnli_mismatched": 0.35}
MAJORITY |= {"qnli": 0.505, "rte": 0.527, "wnli": 0.563}

# model, endpoint, suite score × 100, primary metrics × 100 in GLUE's order without mnli_mismatched, runs, tokens/s
SCORES: tuple[tuple[str, str, float, tuple[float, ...], int, float], ...] = (
    ("gemini-2.5-flash", "gemini", 86.5, (66.1, 95.8, 86.9, 83.1, 89.6, 87.8, 92.3, 89.9, 87.3), 6, 181),
    ("grok-4-fast", "grok", 85.6, (64.7, 95.5, 86.2, 82.4, 89.9, 86.3, 91.8, 89.2, 84.5), 4, 148),
    ("llama3.3:70b", "vllm-a", 85.2, (63.0, 96.0, 87.4, 83.9, 88.8, 85.5, 91.0, 87.7, 83.1), 5, 64),
    ("qwen2.5:32b", "vllm-a", 84.2, (60.2, 95.3, 87.1, 83.0, 88.4, 85.8, 90.3, 87.0, 80.3), 7, 92),
    ("qwen2.5:14b", "vllm-a", 82.4, (57.1, 94.8, 86.0, 82.2, 87.1, 83.5, 88.8, 84.8, 77.5), 5, 138),
    ("gemma3:12b", "ollama", 80.8, (54.9, 94.3, 85.6, 80.9, 86.0, 81.3, 87.3, 83.4, 73.2), 4, 41),
    ("qwen2.5:7b", "ollama", 79.5, (52.4, 93.8, 84.1, 80.6, 84.9, 80.3, 86.0, 81.6, 71.8), 11, 78),
    ("phi4-mini", "ollama", 78.5, (50.6, 92.0, 84.9, 80.2, 83.8, 78.0, 84.3, 81.2, 71.8), 3, 96),
    ("llama3.2:3b", "ollama", 76.4, (44.4, 89.5, 85.2, 82.0, 82.8, 73.8, 81.2, 76.5, 71.8), 9, 121),
    ("mistral:7b", "ollama", 75.3, (46.0, 91.3, 83.3, 78.8, 80.4, 74.5, 80.0, 77.3, 66.2), 4, 80),
    ("gemma3:4b", "ollama", 73.4, (42.2, 90.8, 82.9, 78.3, 80.7, 70.3, 79.0, 72.9, 63.4), 6, 104),
    ("bag-of-words", "baseline", 44.5, (8.1, 62.5, 79.4, 48.0, 14.2, 38.8, 57.0, 53.4, 38.0), 2, 0),
    ("majority", "baseline", 38.4, (0.0, 51.0, 81.2, 0.0, 0.0, 35.5, 50.5, 52.7, 56.3), 2, 0),
)
FLOORS = {model: score for model, endpoint, score, *_ in SCORES if endpoint == "baseline"} | {RANDOM: 35.1}
LIMIT = 400


def suites(names: Sequence[str] = SUITES) -> list[suite_pb2.Suite]:
    """As evaluators announce them."""
    return [shipped()[name].announced() for name in names]


def endpoints() -> list[endpoint_pb2.Endpoint]:
    state = endpoint_pb2.Endpoint
    found = [
        state(endpoint="ollama", kind="ollama", state=state.STATE_REACHABLE, server="Ollama 0.33.1", listing_ms=12),
        state(endpoint="vllm-a", kind="openai", state=state.STATE_REACHABLE, server="vLLM 0.32", listing_ms=9),
        state(endpoint="gemini", kind="openai", state=state.STATE_LIMITED, detail="rate limit, next call in 26 s"),
        state(endpoint="grok", kind="openai", state=state.STATE_NOT_CONFIGURED, detail="set XAI_API_KEY"),
        state(endpoint="baselines", kind="baseline", state=state.STATE_REACHABLE, baseline=True),
    ]
    for endpoint, slots, busy in zip(found, (1, 16, 4, 4, 8), (1, 2, 0, 0, 0), strict=True):
        endpoint.slots_total, endpoint.slots_busy, endpoint.concurrency = slots, busy, slots
    for endpoint in found:
        endpoint.models.extend(models()[endpoint.endpoint])
    found[0].exclusive = True
    found[0].max_model_b = 40
    return found


def evaluator() -> evaluator_pb2.Evaluator:
    one = evaluator_pb2.Evaluator(
        evaluator="evaluator-1", host="gpu-1", software="1.4.0", endpoints=endpoints(), suites=suites(), live=True
    )
    one.announced_at.GetCurrentTime()
    plugin = one.plugins.add(package="touchstone-example", version="1.0")
    plugin.parts.add(part="scorer", name="same_words", title="same words", version="same_words-1")
    plugin.parts.add(part="suite", name="sums", left_out="RuntimeError: no luck.")
    return one


LISTED = endpoint_pb2.Prices(
    input=0.3, output=2.5, batch_share=0.5, source="SOURCE_LIST", as_of="2026-10-03", table_digest="0fab" * 16
)


def models() -> dict[str, list[endpoint_pb2.Model]]:
    def local(name: str, billions: float, weights: str, disk: float, memory: float, context: int) -> endpoint_pb2.Model:
        return endpoint_pb2.Model(
            model=name,
            digest=hashlib.sha256(name.encode()).hexdigest(),
            parameters_b=billions,
            quantization=weights,
            disk_bytes=int(disk * GB),
            memory_bytes=int(memory * GB),
            context_length=context * 1024,
        )

    priced = local("qwen2.5:7b", 7.6, "Q4_K_M", 4.7, 6.1, 32)
    priced.input_price, priced.output_price = 0.01, 0.02
    hosted = [endpoint_pb2.Model(model=name) for name in ("llama3.3:70b", "qwen2.5:32b", "qwen2.5:14b")]
    return {
        "ollama": [
            priced,
            local("llama3.2:3b", 3.2, "Q4_K_M", 2.0, 3.4, 128),
            local("gemma3:12b", 12.2, "Q4_K_M", 8.1, 10.9, 128),
            local("gemma3:4b", 4.3, "Q4_K_M", 3.3, 4.9, 128),
            local("mistral:7b", 7.2, "Q4_0", 4.1, 5.6, 32),
            local("phi4-mini", 3.8, "Q4_K_M", 2.5, 4.3, 128),
            local("deepseek-r1:8b", 8.0, "Q4_K_M", 4.9, 7.4, 128),
            local("llama3.3:70b", 70.6, "Q4_K_M", 43, 47, 128),
        ],
        "vllm-a": hosted,
        "gemini": [endpoint_pb2.Model(model="gemini-2.5-flash", input_price=0.3, output_price=2.5, prices=LISTED)],
        "grok": [endpoint_pb2.Model(model="grok-4-fast")],
        "baselines": [
            endpoint_pb2.Model(model=model, description="Baseline, not a language model.", baseline=True)
            for model in (MAJORITY_MODEL, RANDOM, BAG_OF_WORDS, ECHO)
        ],
    }


def metric(name: str, mean: float, n: int) -> metric_pb2.Metric:
    """A metric with a Wilson interval, as wide as n makes it."""
    p = min(max(mean, 0), 1)
    z = 1.96
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    stderr = math.sqrt(max(p * (1 - p), 0.01) / n)
    return metric_pb2.Metric(
        metric=name,
        mean=mean,
        stderr=stderr,
        ci95_low=centre - half,
        ci95_high=centre + half,
        n=n,
        method="wilson",
        bound_low=mean,
        bound_high=mean,
    )


def bounded_metric(name: str, mean: float, low: float, high: float, n: int) -> metric_pb2.Metric:
    """A metric that unanswered items leave open."""
    measured = metric(name, mean, n)
    measured.bound_low, measured.bound_high = low, high
    return measured


def task_result(
    task: str, title: str, first: str, second: str, mean: float, n: int, planned: int
) -> metric_pb2.TaskResult:
    unparsed = n // 100
    result = metric_pb2.TaskResult(
        task=task,
        title=title,
        metrics=[metric(first, mean, n), *([metric(second, min(mean + 0.03, 1), n)] if second else [])],
        items=n,
        items_planned=planned,
        outcomes=metric_pb2.OutcomeCounts(answered=n - unparsed, unparsed=unparsed),
        correct=int(mean * n),
        score_group="mnli" if task.startswith("mnli") else "",
    )
    if task in MAJORITY:
        result.majority_share = MAJORITY[task]
    return result


def glue_tasks(values: Sequence[float]) -> list[metric_pb2.TaskResult]:
    """Task results from the primary metrics × 100; mnli_mismatched repeats mnli."""
    (glue,) = (suite for suite in suites() if suite.suite == "glue")
    by_task = dict(zip([task.task for task in glue.tasks if task.task != "mnli_mismatched"], values, strict=True))
    by_task["mnli_mismatched"] = by_task["mnli"] - 0.4
    built = []
    for task in glue.tasks:
        n = min(task.published_items, LIMIT)
        first, second, *_ = (*(spec.metric for spec in task.metrics), "")
        built.append(task_result(task.task, task.title, first, second, by_task[task.task] / 100, n, n))
    return built


def suite_score(score: float) -> metric_pb2.Metric:
    half = 0.018
    return metric_pb2.Metric(
        metric="score",
        mean=score / 100,
        stderr=half / 1.96,
        ci95_low=score / 100 - half,
        ci95_high=score / 100 + half,
        n=3333,
        method="stratified",
        bound_low=score / 100,
        bound_high=score / 100,
    )


def averages(result: metric_pb2.JobResult) -> list[metric_pb2.Metric]:
    """Over the tasks of a sealed run."""
    score = metric_pb2.Metric()
    score.CopyFrom(result.suite_score)
    score.metric = "score"
    return [score, metric("accuracy", round(score.mean + 0.015, 4), 100)]


def leaderboard(job_ids: dict[str, str]) -> list[metric_pb2.LeaderboardEntry]:
    """Ranked rows, baselines, then two that are not ranked. `job_ids` by model."""
    entries = []
    now = int(time.time())
    for rank, (model, endpoint, score, values, runs, tokens) in enumerate(SCORES, 1):
        baseline = endpoint == "baseline"
        entry = metric_pb2.LeaderboardEntry(
            rank=0 if baseline else rank,
            model=model,
            endpoint="baselines" if baseline else endpoint,
            endpoint_kind="baseline" if baseline else "openai",
            configuration=hashlib.sha256(f"{endpoint}/{model}".encode()).hexdigest(),
            job_id=job_ids.get(model, str(uuid.uuid4())),
            score=suite_score(score),
            task_count=9,
            run_count=runs,
            baseline=baseline,
            tasks=glue_tasks(values),
            tokens_per_second=tokens,
            mode=suite_pb2.MODE_GENERATE,
            state=job_pb2.Job.STATE_COMPLETED,
        )
        entry.completed_at.FromSeconds(now - rank * 5000)
        entries.append(entry)
    for model, endpoint, low, high, reason, state in (
        ("deepseek-r1:8b", "ollama", 70.3, 75.9, "No answer on 182 of 2,933 items.", job_pb2.Job.STATE_COMPLETED),
        ("olmo2:13b", "vllm-a", 78.9, 79.6, "No answer on 18 of 2,933 items.", job_pb2.Job.STATE_COMPLETED),
    ):
        counts = metric_pb2.OutcomeCounts(answered=2751, infrastructure_error=182)
        if model == "olmo2:13b":
            counts = metric_pb2.OutcomeCounts(answered=2915, infrastructure_error=18)
        part = metric_pb2.TaskResult(task="sst2", items=2933, items_planned=2933, outcomes=counts)
        bounded = metric_pb2.Metric(metric="score", bound_low=low / 100, bound_high=high / 100, n=2933)
        entries.append(
            metric_pb2.LeaderboardEntry(
                model=model,
                endpoint=endpoint,
                configuration=hashlib.sha256(f"{endpoint}/{model}".encode()).hexdigest(),
                job_id=job_ids.get(model, str(uuid.uuid4())),
                score=bounded,
                tasks=[part],
                task_count=9,
                run_count=1,
                not_ranked_reason=reason,
                tokens_per_second=52,
                mode=suite_pb2.MODE_GENERATE,
                state=state,
            )
        )
    return entries


HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script></pre><hx-partial hx-target="#job-head">x'
QUESTIONS = (
    "A particle of mass m moves in a circular orbit. What is its angular momentum?",
    "Sentence: the sailors rode the breeze clear of the rocks. Is it acceptable English?",
    "Premise: every dog barked. Hypothesis: some dog made a sound. Does it follow?",
    "Review: a gorgeous, witty, seductive movie. Is it positive or negative?",
)


def item(task: job_pb2.TaskPlan, index: int) -> item_result_pb2.ItemResult:
    """An item's result: mostly right, some wrong, unparsed or failed; item 3 answers with markup."""
    made = item_result_pb2.ItemResult()
    made.CopyFrom(_item(task.task, index))
    return made


@functools.lru_cache(maxsize=20_000)
def _item(task: str, index: int) -> item_result_pb2.ItemResult:
    chance = random.Random(f"{task}/{index}")
    roll = chance.random()
    reference = chance.choice(("acceptable", "unacceptable"))
    other = "unacceptable" if reference == "acceptable" else "acceptable"
    result = item_result_pb2.ItemResult(
        item=index,
        position=index,
        prompt=f"user: {QUESTIONS[index % len(QUESTIONS)]} (item {index})",
        reference=reference,
        latency_ms=chance.uniform(400, 1400),
        input_tokens=chance.randint(40, 90),
        output_tokens=4,
        finish_reason="stop",
        calls=1,
        scorer_version="2",
        item_hash=hashlib.sha256(f"{task}{index}".encode()).hexdigest(),
    )
    if index == 3:
        result.response, result.outcome = HOSTILE, item_result_pb2.OUTCOME_UNPARSED
        result.extraction = "none: no “answer: …” in the response"
        result.statistics["correct"] = 0
    elif roll < 0.02:
        result.outcome, result.error = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR, "timed out after 30 s"
        result.latency_ms, result.output_tokens, result.calls = 30_000, 0, 3
        result.input_tokens, result.input_untold, result.output_untold = 0, True, True
    elif roll < 0.05:
        result.outcome, result.output_tokens, result.finish_reason = item_result_pb2.OUTCOME_UNPARSED, 256, "length"
        result.response = "To find the trace of T we need its action on the basis 1, x, x². Since Tp(x) = p′(x)"
        result.extraction = "none: no “answer: …” in the response"
        result.statistics["correct"] = 0
    else:
        right = roll < 0.8
        result.outcome = item_result_pb2.OUTCOME_ANSWERED
        result.prediction = reference if right else other
        result.response = f"answer: {result.prediction}"
        result.extraction = "last match of “answer: …”"
        result.statistics["correct"] = float(right)
    return result
