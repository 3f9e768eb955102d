"""Decisions over the fake world: started by the real scheduler's rules, with evidence as the results service finds
it."""

from __future__ import annotations

import math
import random
from typing import Any

from services import rpc
from services.errors import NotFoundError
from services.results.sequential.draws import Pair
from services.results.sequential.evidence import evidence
from services.scheduler.admission import decision_rules
from services.scheduler.jobs.job import Job
from services.words import refusals
from services.words.enums import DECISION_VERDICTS
from services.words.jobs import is_finished
from tests.gateway import fake_admission, fake_pages
from tests.gateway.fake_world import World, spec
from touchstone.v1 import decision_pb2, job_pb2, results_service_pb2, scheduler_service_pb2

NOTHING = -1000.0


class Starts:
    """The scheduler's part."""

    world: World

    async def StartDecision(self, request: Any, context: Any) -> Any:
        self.world.callers.append(rpc.identity())
        specs = [request.baseline, request.candidate]
        for one, side in zip(specs, decision_rules.sides(request), strict=True):
            one.deciding.CopyFrom(side)
        baseline, candidate = fake_admission.created(self.world, request.request_id, specs)
        linked(self.world, baseline, candidate)
        return scheduler_service_pb2.StartDecisionResponse(
            decision_id=baseline.job_id, baseline=baseline, candidate=candidate
        )


class Found:
    """The results service's part."""

    world: World

    async def ListDecisions(self, request: Any, context: Any) -> Any:
        found = sorted(
            (current(self.world, one) for one in self.world.decisions.values() if _has_jobs(self.world, one)),
            key=lambda one: -one.baseline.created_at.ToNanoseconds(),
        )
        for one in found:
            del one.path[:]
        page, token = fake_pages.page(request, found, 20)
        return results_service_pb2.ListDecisionsResponse(decisions=page, next_page_token=token)

    async def GetDecision(self, request: Any, context: Any) -> Any:
        job = self.world.jobs.get(request.decision_id, job_pb2.Job())
        known = self.world.decisions.get(request.decision_id) or self.world.decisions.get(
            job.spec.deciding.against_job_id
        )
        if known is None or job.job_id in self.world.unstored or not _has_jobs(self.world, known):
            raise NotFoundError(refusals.not_found("Decision", request.decision_id))
        return results_service_pb2.GetDecisionResponse(decision=current(self.world, known))


def linked(world: World, baseline: job_pb2.Job, candidate: job_pb2.Job) -> decision_pb2.Decision:
    """Makes two jobs name each other. Their decision, which the world knows."""
    decision_rules.link([Job(baseline), Job(candidate)])
    made = decision_pb2.Decision(decision_id=baseline.job_id, threshold=math.log(80), unlikely=0.1)
    return world.decisions.setdefault(baseline.job_id, made)


def _has_jobs(world: World, known: decision_pb2.Decision) -> bool:
    """Without one of its jobs there is no decision."""
    baseline = world.jobs.get(known.decision_id)
    return baseline is not None and baseline.spec.deciding.against_job_id in world.jobs


def current(world: World, known: decision_pb2.Decision) -> decision_pb2.Decision:
    """The decision with its jobs as they are now."""
    found = decision_pb2.Decision()
    found.CopyFrom(known)
    baseline = world.jobs[known.decision_id]
    candidate = world.jobs[baseline.spec.deciding.against_job_id]
    found.baseline.CopyFrom(baseline)
    found.candidate.CopyFrom(candidate)
    found.items_total = found.items_total or baseline.progress.items_total
    if not (is_finished(baseline) and is_finished(candidate)):
        found.ClearField("saved")
    return found


def begun(
    world: World,
    models: tuple[str, str] = ("llama3.2:3b", "qwen2.5:7b"),
    *,
    margin: float = 0.0,
    suite: str = "glue",
    endpoint: str = "ollama",
) -> decision_pb2.Decision:
    """A decision whose jobs run, and of which nothing is known."""
    asked = scheduler_service_pb2.StartDecisionRequest(margin=margin, seed=1)
    specs = (asked.baseline, asked.candidate)
    for one, model in zip(specs, models, strict=True):
        one.CopyFrom(spec(model, suite, endpoint=endpoint))
    jobs = []
    for one, deciding in zip(specs, decision_rules.sides(asked), strict=True):
        one.deciding.CopyFrom(deciding)
        jobs.append(world.start(world.add(one, "m.keller", age_s=600).job_id, ago_s=540))
    return linked(world, *jobs)


def add(
    world: World,
    right: tuple[float, float] = (0.55, 0.75),
    *,
    models: tuple[str, str] = ("llama3.2:3b", "qwen2.5:7b"),
    items: int = 600,
    margin: float = 0.0,
    upto: int = 0,
    suite: str = "glue",
    endpoint: str = "ollama",
    seed: int = 1,
) -> decision_pb2.Decision:
    """A decision on the answers of two models that are right in these shares of the items. Its jobs stop at the
    verdict. With `upto`, both have answered no more than these so far, and run."""
    known = begun(world, models, margin=margin, suite=suite, endpoint=endpoint)
    baseline = world.jobs[known.decision_id]
    jobs = [baseline, world.jobs[baseline.spec.deciding.against_job_id]]
    drawn = random.Random(seed)
    pairs = [Pair(float(drawn.random() < right[0]), float(drawn.random() < right[1])) for _ in range(items)]
    found = evidence(pairs[: upto or items], error=0.05, margin=margin, total=items)
    if found.decided_at and not upto:
        found = evidence(pairs[: found.decided_at], error=0.05, margin=margin, total=items)
    known.MergeFrom(
        decision_pb2.Decision(
            verdict=DECISION_VERDICTS.get(found.verdict),
            decided_at=found.decided_at or 0,
            pairs=found.seen,
            items_total=items,
            difference=found.difference or 0.0,
            low=found.interval[0],
            high=found.interval[1],
            threshold=found.threshold,
            unlikely=found.unlikely,
        )
    )
    for look in found.path:
        known.path.add(
            pairs=look.items,
            better=look.better,
            worse=look.worse,
            equivalent=max(look.equivalent, NOTHING),
            chance=look.chance,
        )
    for job in jobs:
        job.progress.items_total, job.progress.items_done = items, found.seen
        if not upto:
            stop(world, job.job_id, f"Stopped: decided after {found.seen:,} of {items:,} items.")
    if not upto:
        left = 2 * (items - found.seen)
        known.saved.MergeFrom(decision_pb2.DecisionSavings(items=left, tokens=64 * left, cost_usd=0.0004 * left))
        known.saved.seconds = left * 0.21
    return known


def stop(world: World, job_id: str, reason: str) -> None:
    """Cancels a job where it is."""
    job = world.jobs[job_id]
    job.state, job.reason = job_pb2.Job.STATE_CANCELLED, reason
    job.finished_at.GetCurrentTime()
    job.progress.current_step = ""
    world.touch()
