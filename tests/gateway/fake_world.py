"""The jobs behind the fake services: what the real services would make of them, moved by hand."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from services import rpc
from services.evaluator.suites import shipped
from services.results.statistics.metric_values import METRICS as NAMED_METRICS
from tests.gateway import fake_data
from touchstone.v1 import (
    call_pb2,
    dataset_pb2,
    decision_pb2,
    digest_pb2,
    job_pb2,
    metric_pb2,
    results_service_pb2,
    schedule_pb2,
    scheduler_service_pb2,
    set_aside_pb2,
    suite_pb2,
    watch_pb2,
    webhook_pb2,
)

LIVE = (job_pb2.Job.STATE_PENDING, job_pb2.Job.STATE_PLANNING, job_pb2.Job.STATE_RUNNING, job_pb2.Job.STATE_FINALIZING)


NO_REFERENCE = "no row has a reference"
METRICS = {"choice": "accuracy", "contains": "contains", "token_f1": "token_f1", "rouge_l": "rouge_l"}
"""What the scorers of uploaded rows measure, where it is not exact_match."""


@dataclass
class World:
    """All jobs and results. `advance` moves a job as the real services would."""

    jobs: dict[str, job_pb2.Job] = field(default_factory=dict)
    results: dict[str, metric_pb2.JobResult] = field(default_factory=dict)
    requests: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    boards: dict[str, list[metric_pb2.LeaderboardEntry]] = field(default_factory=dict)
    item_sets: list[results_service_pb2.ItemSet] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)
    specs: list[job_pb2.JobSpec] = field(default_factory=list)
    callers: list[rpc.Identity] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    schedules: dict[str, schedule_pb2.Schedule] = field(default_factory=dict)
    webhooks: dict[str, webhook_pb2.Webhook] = field(default_factory=dict)
    dead: dict[str, webhook_pb2.Delivery] = field(default_factory=dict)
    set_aside: list[set_aside_pb2.SetAsideMessage] = field(default_factory=list)
    calls: list[call_pb2.Call] = field(default_factory=list)
    usage: list[call_pb2.CallUsage] = field(default_factory=list)
    recorded: dict[str, results_service_pb2.CloseRecordedRunResponse] = field(default_factory=dict)
    """Recorded runs by name, with what closing them gives."""
    ratings: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    """Rows of the tables of ratings and their rubrics."""
    judges: dict[str, results_service_pb2.ListJudgesResponse] = field(default_factory=dict)
    """What judges found, by the judged job."""
    decisions: dict[str, decision_pb2.Decision] = field(default_factory=dict)
    watches: dict[str, watch_pb2.Watch] = field(default_factory=dict)
    digest: digest_pb2.Digest = field(default_factory=digest_pb2.Digest)
    experiments: dict[str, results_service_pb2.GetExperimentResponse] = field(default_factory=dict)
    """Leaderboards of experiments by name, in place of what their jobs measured."""
    deleted_judges: list[scheduler_service_pb2.DeletedJudge] = field(default_factory=list)
    """What calls are told of judges."""
    experiment_runs: dict[str, list[results_service_pb2.ExperimentRun]] = field(default_factory=dict)
    """What experiments asked by name, in place of what their jobs did."""
    logs: dict[str, list[scheduler_service_pb2.LogLine]] = field(default_factory=dict)
    marks: dict[str, results_service_pb2.MarkRunRequest] = field(default_factory=dict)
    names: dict[str, results_service_pb2.Configuration] = field(default_factory=dict)
    datasets: dict[str, dataset_pb2.Dataset] = field(default_factory=dict)
    dataset_requests: dict[str, tuple[Any, str]] = field(default_factory=dict)
    stale: dict[str, job_pb2.Job] = field(default_factory=dict)
    """Jobs as the results service knows them, where that is not as they are."""
    unstored: set[str] = field(default_factory=set)
    """Jobs of which the results service does not know yet."""
    rows: dict[str, list[dataset_pb2.DatasetRow]] = field(default_factory=dict)
    options: list[dataset_pb2.DatasetOptions] = field(default_factory=list)
    upload_gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Uploads are read while it is set, as it is at first."""
    upload_bytes: int = 0
    uploads_cut: int = 0
    preferences: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of the table."""
    annotations: dict[tuple[str, str, int], results_service_pb2.Annotation] = field(default_factory=dict)
    queued: list[scheduler_service_pb2.GetQueueRequest] = field(default_factory=list)
    drained: bool = False
    """An admin drains the only evaluator."""
    notice: str = ""
    """Why there is no room for new jobs; empty while there is."""
    suites: tuple[str, ...] = fake_data.SUITES
    """What evaluators announce."""
    asked: list[Any] = field(default_factory=list)
    """Requests of reads, the newest last: what the gateway made of a query."""

    def __post_init__(self) -> None:
        self.upload_gate.set()

    def touch(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def add(
        self, spec: job_pb2.JobSpec, owner: str, *, age_s: float = 0, asked: job_pb2.JobSpec | None = None
    ) -> job_pb2.Job:
        """Queues a job without asking whether it may be. `asked` is its spec before defaults were filled in."""
        job = job_pb2.Job(job_id=str(uuid.uuid4()), owner=owner, spec=spec, attempt=1)
        job.state = job_pb2.Job.STATE_PENDING
        job.created_at.FromMilliseconds(int((time.time() - age_s) * 1000))
        job.baseline = spec.endpoint == "baselines"
        job.progress.current_step = "Waiting in the queue"
        job.progress.time_limit_s = 3 * 3600
        self.jobs[job.job_id] = job
        self.specs.append(asked or spec)
        self._positions()
        self.touch()
        return job

    def _positions(self) -> None:
        for place, job in enumerate(self.waiting(), 1):
            job.progress.queue_position = place

    def waiting(self, owner: str = "") -> list[job_pb2.Job]:
        found = [j for j in self.jobs.values() if j.state == job_pb2.Job.STATE_PENDING and owner in ("", j.owner)]
        return sorted(found, key=lambda j: (-j.spec.priority, j.created_at.ToNanoseconds()))

    def holding(self) -> list[job_pb2.Job]:
        return [j for j in self.jobs.values() if j.state in (job_pb2.Job.STATE_PLANNING, job_pb2.Job.STATE_RUNNING)]

    def start(self, job_id: str, *, ago_s: float = 0) -> job_pb2.Job:
        """Plans the job and sets it RUNNING."""
        job = self.jobs[job_id]
        if job.spec.HasField("dataset"):
            rows = self.rows[job.spec.dataset.dataset_id]
            work = job_pb2.SuiteWork(limit=job.spec.dataset.limit)
            metric = METRICS.get(job.spec.dataset.scoring.scorer, "exact_match")
            suite = suite_pb2.Suite()
            suite.tasks.add(
                task="rows",
                title=job.spec.dataset.name,
                metrics=[_metric(metric)],
                published_items=len(rows),
            )
        else:
            work = job.spec.suite
            suite = shipped()[work.suite].announced()
        # A later attempt, and a job with another's answers, have a plan already.
        del job.plan[:]
        del job.progress.tasks[:]
        for number, task in enumerate(suite.tasks):
            if work.tasks and task.task not in work.tasks:
                continue
            count = min(task.published_items, work.limit) if work.limit else task.published_items
            job.plan.add(
                task=task.task,
                title=task.title,
                version="3",
                scorer_version="2",
                items=count,
                published_items=task.published_items,
                data=suite_pb2.DataSource(dataset="nyu-mll/glue", config=task.task, revision="c30699e8d1" * 4),
                item_set=f"{number:02d}f3ac1",
                metrics=task.metrics,
                unit_size=40,
                score_group=task.score_group,
                prompt_hash="5d07aa91",
            )
            job.progress.tasks.add(task=task.task, items_total=count)
        job.published_items = sum(t.published_items for t in suite.tasks)
        job.progress.items_total = sum(t.items for t in job.plan)
        job.subset = job.progress.items_total < job.published_items
        job.item_set = "b91e04c7d2"
        job.receipt.CopyFrom(
            job_pb2.Receipt(
                endpoint_kind="ollama",
                server="Ollama 0.33.1",
                model_digest="845dbdba0ea48" + "0" * 51,
                software="1.4.0",
                concurrency=4,
                configuration=hashlib.sha256(f"{job.spec.endpoint}/{job.spec.model}".encode()).hexdigest(),
                source_job=job.spec.reuse.job_id,
            )
        )
        job.state = job_pb2.Job.STATE_RUNNING
        job.progress.queue_position = 0
        for stamp in (job.started_at, job.attempt_started_at):
            stamp.FromMilliseconds(int((time.time() - ago_s) * 1000))
        job.progress.elapsed_s = ago_s
        self._positions()
        self.touch()
        return job

    def advance(self, job_id: str, items: int) -> job_pb2.Job:
        """Finishes this many more items, in plan order, and says so in the live figures."""
        job = self.jobs[job_id]
        progress = job.progress
        progress.items_done = min(progress.items_done + items, progress.items_total)
        progress.units_total = -(-progress.items_total // 40)
        progress.units_done = progress.items_done // 40
        left = progress.items_done
        running = []
        for task in progress.tasks:
            task.items_done = min(left, task.items_total)
            left -= task.items_done
            task.running = 0 < task.items_done < task.items_total
            if task.running:
                running.append(task.task)
        progress.items_per_second, progress.tokens_per_second = 3.94, 47.3
        remaining = (progress.items_total - progress.items_done) / 3.94
        progress.eta_s, progress.eta_low_s, progress.eta_high_s = remaining, remaining * 0.82, remaining * 1.23
        progress.elapsed_s = time.time() - job.attempt_started_at.ToMilliseconds() / 1000
        rates = [3.7 + (n * 37 % 11) / 20 for n in range(60)]
        del progress.rate_history[:]
        progress.rate_history.extend(rates)
        progress.current_step = f"{' and '.join(running) or 'last units'}, unit {progress.units_done}"
        progress.items_failed = progress.items_done // 50
        self.results[job_id] = self.measure(job)
        self.touch()
        return job

    def measure(self, job: job_pb2.Job) -> metric_pb2.JobResult:
        result = metric_pb2.JobResult(job_id=job.job_id, latency_p50_ms=410, latency_p95_ms=1210)
        result.input_tokens, result.output_tokens = job.progress.items_done * 60, job.progress.items_done * 4
        for plan, live in zip(job.plan, job.progress.tasks, strict=True):
            if live.items_done:
                names = [spec.metric for spec in plan.metrics] + [""]
                mean = 0.55 + (len(plan.task) * 13 % 40) / 100
                result.tasks.append(
                    fake_data.task_result(plan.task, plan.title, names[0], names[1], mean, live.items_done, plan.items)
                )
        for task in result.tasks:
            for name in ("answered", "unparsed"):
                setattr(result.outcomes, name, getattr(result.outcomes, name) + getattr(task.outcomes, name))
        result.outcomes.infrastructure_error = job.progress.items_failed
        if job.spec.HasField("dataset"):
            self._measure_rows(job, result)
        elif job.progress.items_done:
            result.accuracy_so_far.CopyFrom(fake_data.metric("accuracy", 0.669, job.progress.items_done))
        return result

    def _measure_rows(self, job: job_pb2.Job, result: metric_pb2.JobResult) -> None:
        """The score so far is the scorer's own metric; rows without a reference have none."""
        rows = self.rows[job.spec.dataset.dataset_id]
        for task in result.tasks:
            if any(row.reference for row in rows):
                result.suite_score.CopyFrom(task.metrics[0])
                result.suite_score.metric = "score"
            else:
                del task.metrics[:]
                task.metrics.add(metric=job.plan[0].metrics[0].metric, undefined_reason=NO_REFERENCE)

    def finish(
        self, job_id: str, state: job_pb2.Job.State = job_pb2.Job.STATE_COMPLETED, reason: str = ""
    ) -> job_pb2.Job:
        """Ends the job; a completed one has all its items and a score."""
        job = self.jobs[job_id]
        if state == job_pb2.Job.STATE_COMPLETED:
            self.advance(job_id, job.progress.items_total)
            result = self.results[job_id]
            result.sealed = True
            job.progress.items_failed = result.outcomes.infrastructure_error = 0
            if job.spec.HasField("dataset") and not result.HasField("suite_score"):
                result.not_ranked_reason = NO_REFERENCE
            else:
                score = fake_data.FLOORS.get(job.spec.model, 79.5) if job.baseline else 79.5
                result.suite_score.CopyFrom(fake_data.suite_score(score))
        job.state, job.reason = state, reason
        job.finished_at.GetCurrentTime()
        job.progress.current_step = ""
        job.progress.ClearField("eta_s")
        self._positions()
        self.touch()
        return job

    async def play(self, job_id: str, items: int, every_s: float) -> None:
        """Runs the job to its end in steps, as an evaluator would."""
        if self.jobs[job_id].state == job_pb2.Job.STATE_PENDING:
            self.start(job_id)
        while self.jobs[job_id].state == job_pb2.Job.STATE_RUNNING:
            await asyncio.sleep(every_s)
            job = self.jobs[job_id]
            if job.state != job_pb2.Job.STATE_RUNNING:
                return
            if job.progress.items_done + items >= job.progress.items_total:
                self.finish(job_id)
            else:
                self.advance(job_id, items)


def spec(
    model: str = "qwen2.5:7b", suite: str = "glue", *, endpoint: str = "ollama", limit: int = 0
) -> job_pb2.JobSpec:
    """A job's specification with ordinary settings."""
    return job_pb2.JobSpec(
        endpoint=endpoint,
        model=model,
        mode=suite_pb2.MODE_GENERATE,
        priority=job_pb2.PRIORITY_HIGH,
        sampling=job_pb2.Sampling(temperature=0.0, seed=42, max_tokens=256),
        suite=job_pb2.SuiteWork(suite=suite, limit=limit),
    )


def busy_world() -> World:
    """Jobs in every state and a full GLUE leaderboard: what the pages are looked at with."""
    world = World()
    ids = {}
    for place, (model, endpoint, score, values, _, _) in enumerate(fake_data.SCORES):
        job = world.add(
            spec(model, endpoint="baselines" if endpoint == "baseline" else endpoint, limit=400), "m.keller"
        )
        job.created_at.FromSeconds(int(time.time()) - 90_000 + place * 3000)
        world.start(job.job_id, ago_s=84_000 - place * 3000)
        world.finish(job.job_id)
        job.finished_at.FromSeconds(int(time.time()) - 82_500 + place * 3000)
        world.results[job.job_id].suite_score.CopyFrom(fake_data.suite_score(score))
        del world.results[job.job_id].tasks[:]
        world.results[job.job_id].tasks.extend(fake_data.glue_tasks(values))
        ids[model] = job.job_id
    failed = world.add(spec("grok-4-fast", endpoint="grok", limit=400), "m.keller", age_s=3000)
    world.start(failed.job_id, ago_s=2900)
    world.advance(failed.job_id, 1700)
    reason = "grok refused the key (invalid API key). Set XAI_API_KEY where the evaluator runs and restart it."
    world.finish(failed.job_id, job_pb2.Job.STATE_FAILED, reason)
    incomplete = world.add(spec("olmo2:13b", endpoint="vllm-a", limit=400), "m.keller", age_s=2000)
    world.start(incomplete.job_id, ago_s=1900)
    world.finish(incomplete.job_id)
    incomplete.incomplete = True
    result = world.results[incomplete.job_id]
    result.suite_score.CopyFrom(fake_data.bounded_metric("score", 0.144, 0.019, 0.894, 2933))
    result.tasks[1].metrics[0].CopyFrom(fake_data.bounded_metric("accuracy", 0.6, 0.41, 0.92, 400))
    result.not_ranked_reason = "18 items have no answer"
    ids["olmo2:13b"] = incomplete.job_id
    cancelled = world.add(spec("mistral:7b", limit=100), "a.lind", age_s=1500)
    world.start(cancelled.job_id, ago_s=1400)
    world.advance(cancelled.job_id, 200)
    world.finish(cancelled.job_id, job_pb2.Job.STATE_CANCELLED, "Stopped by a.lind.")
    for model, done in (("qwen2.5:7b", 2100), ("qwen2.5:32b", 366)):
        running = world.add(spec(model, limit=400), "m.keller", age_s=2300)
        world.start(running.job_id, ago_s=2260)
        world.advance(running.job_id, done)
    for model in ("mistral:7b", "phi4-mini", "gemma3:12b", "gemma3:4b"):
        world.add(spec(model, limit=400), "m.keller", age_s=60)
    world.boards["glue"] = fake_data.leaderboard(ids)
    return world


def _metric(name: str) -> suite_pb2.MetricSpec:
    """One that can be computed from the items."""
    if name in NAMED_METRICS:
        return suite_pb2.MetricSpec(metric=name, positive_label="positive" if name == "f1" else "")
    return suite_pb2.MetricSpec(metric=name, rule=suite_pb2.MetricSpec.RULE_MEAN, statistic="correct")
