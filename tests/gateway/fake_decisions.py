"""Decisions over the fake world: started by the real scheduler's rules, with evidence as the results service finds
it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from services import rpc
from services.errors import NotFoundError
from services.results.sequential.draws import Pair
from services.results.sequential.evidence import Evidence, evidence
from services.scheduler.admission import decision_rules
from services.scheduler.jobs.job import Job
from services.words import refusals
from services.words.decisions import job_ids
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
        specs = decision_rules.specs(request)
        for one, side in zip(specs, decision_rules.sides(request), strict=True):
            one.deciding.CopyFrom(side)
        baseline, candidate, *further = fake_admission.created(self.world, request.request_id, specs)
        linked(self.world, [baseline, candidate, *further])
        return scheduler_service_pb2.StartDecisionResponse(
            decision_id=baseline.job_id, baseline=baseline, candidate=candidate, further_candidates=further
        )


class Found:
    """The results service's part."""

    world: World

    async def ListDecisions(self, request: Any, context: Any) -> Any:
        found = sorted(
            (
                current(self.world, one)
                for one in self.world.decisions.values()
                if _has_jobs(self.world, one)
                and request.schedule_id in ("", self.world.jobs[one.decision_id].spec.schedule_id)
            ),
            key=lambda one: -one.baseline.created_at.ToNanoseconds(),
        )
        for one in found:
            del one.path[:]
        page, token = fake_pages.page(request, found, 20)
        return results_service_pb2.ListDecisionsResponse(decisions=page, next_page_token=token)

    async def GetDecision(self, request: Any, context: Any) -> Any:
        job = self.world.jobs.get(request.decision_id, job_pb2.Job())
        known = self.world.decisions.get(job_ids(job)[0]) if job.spec.HasField("deciding") else None
        if known is None or job.job_id in self.world.unstored or not _has_jobs(self.world, known):
            raise NotFoundError(refusals.not_found("Decision", request.decision_id))
        return results_service_pb2.GetDecisionResponse(decision=current(self.world, known))


def linked(world: World, jobs: Sequence[job_pb2.Job]) -> decision_pb2.Decision:
    """Makes jobs name each other, if they do not yet. Their decision, which the world knows."""
    if not jobs[0].spec.deciding.against_job_id:
        decision_rules.link([Job(job) for job in jobs])
    made = decision_pb2.Decision(decision_id=jobs[0].job_id, threshold=math.log(80), unlikely=0.1)
    if len(jobs) > 2:
        made.racers.extend(decision_pb2.Racer(state=decision_pb2.Racer.STATE_RACING) for _ in jobs)
    return world.decisions.setdefault(jobs[0].job_id, made)


def _has_jobs(world: World, known: decision_pb2.Decision) -> bool:
    """Without one of its jobs there is no decision."""
    baseline = world.jobs.get(known.decision_id)
    return baseline is not None and {*job_ids(baseline)} <= {*world.jobs}


def current(world: World, known: decision_pb2.Decision) -> decision_pb2.Decision:
    """The decision with its jobs as they are now."""
    found = decision_pb2.Decision()
    found.CopyFrom(known)
    jobs = [world.jobs[one] for one in job_ids(world.jobs[known.decision_id])]
    found.baseline.CopyFrom(jobs[0])
    for racer, job in zip(found.racers, jobs, strict=False):
        racer.job.CopyFrom(job)
    if not found.racers:
        found.candidate.CopyFrom(jobs[1])
    found.items_total = found.items_total or jobs[0].progress.items_total
    if not all(map(is_finished, jobs)):
        found.ClearField("saved")
    return found


def begun(
    world: World,
    models: Sequence[str] = ("llama3.2:3b", "qwen2.5:7b"),
    *,
    margin: float = 0.0,
    suite: str = "glue",
    endpoint: str = "ollama",
) -> decision_pb2.Decision:
    """A decision whose jobs run, and of which nothing is known."""
    first, second, *further = (spec(model, suite, endpoint=endpoint) for model in models)
    asked = scheduler_service_pb2.StartDecisionRequest(
        baseline=first, candidate=second, further_candidates=further, margin=margin, seed=1
    )
    jobs = []
    for one, deciding in zip(decision_rules.specs(asked), decision_rules.sides(asked), strict=True):
        one.deciding.CopyFrom(deciding)
        jobs.append(world.start(world.add(one, "m.keller", age_s=600).job_id, ago_s=540))
    return linked(world, jobs)


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
    jobs = [world.jobs[one] for one in job_ids(world.jobs[known.decision_id])]
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
    _draw(known.path, found)
    for job in jobs:
        world.advance(job.job_id, found.seen)
        job.progress.items_total = items
        if not upto:
            stop(world, job.job_id, f"Stopped: decided after {found.seen:,} of {items:,} items.")
    if not upto:
        left = 2 * (items - found.seen)
        known.saved.MergeFrom(decision_pb2.DecisionSavings(items=left, tokens=64 * left, cost_usd=0.0004 * left))
        known.saved.seconds = left * 0.21
    return known


def _draw(path: Any, found: Evidence) -> None:
    for look in found.path:
        path.add(
            pairs=look.items,
            better=look.better,
            worse=look.worse,
            equivalent=max(look.equivalent, NOTHING),
            chance=look.chance,
            difference=look.difference,
            low=look.interval[0],
            high=look.interval[1],
        )


def add_race(world: World, right: Mapping[str, float], *, items: int = 600, upto: int = 0) -> decision_pb2.Decision:
    """A race of models that are right in these shares of the items, the best of which is compared with the others.
    With `upto`, all have answered no more than these so far, and run."""
    known, models = begun(world, [*right]), len(right)
    known.items_total = items
    drawn = random.Random(2)
    scores = {name: [float(drawn.random() < share) for _ in range(items)] for name, share in right.items()}
    best = max(right, key=lambda name: right[name])
    jobs = dict(zip(right, (world.jobs[one] for one in job_ids(world.jobs[known.decision_id])), strict=True))
    error = 0.05 * 2 / models / (models - 1)
    for (name, job), racer in zip(jobs.items(), known.racers, strict=True):
        if name == best:
            world.advance(job.job_id, upto or items)
            continue
        pairs = [Pair(a, b) for a, b in zip(scores[best], scores[name], strict=True)][: upto or items]
        found = evidence(pairs, error=error, margin=0.0, total=items)
        beaten = found.decided_at if found.verdict == "worse" else 0
        if beaten:
            found = evidence(pairs[:beaten], error=error, margin=0.0, total=items)
            racer.state, racer.beaten_at = decision_pb2.Racer.STATE_BEATEN, found.seen
        world.advance(job.job_id, found.seen)
        job.progress.items_total = items
        if beaten:
            stop(world, job.job_id, f"Stopped: beaten after {beaten} items.")
        racer.against_job_id, racer.pairs = jobs[best].job_id, found.seen
        racer.difference, (racer.low, racer.high) = found.difference or 0.0, found.interval
        known.threshold, known.unlikely = found.threshold, found.unlikely
        known.pairs = max(known.pairs, found.seen)
        _draw(racer.path, found)
    lost = [racer for racer in known.racers if racer.state == decision_pb2.Racer.STATE_BEATEN]
    if len(lost) == models - 1:
        known.verdict = job_pb2.DECISION_VERDICT_BEST
        known.decided_at = max(racer.beaten_at for racer in lost)
        next(racer for racer in known.racers if racer not in lost).state = decision_pb2.Racer.STATE_BEST
        stop(world, jobs[best].job_id, "Stopped: the best.")
        left = sum(items - racer.pairs for racer in lost) + items - known.decided_at
        known.saved.MergeFrom(decision_pb2.DecisionSavings(items=left, tokens=64 * left, seconds=0.2 * left))
    return known


def stop(world: World, job_id: str, reason: str) -> None:
    """Cancels a job where it is."""
    job = world.jobs[job_id]
    job.state, job.reason = job_pb2.Job.STATE_CANCELLED, reason
    job.finished_at.GetCurrentTime()
    job.progress.current_step = ""
    world.touch()
