"""What must hold after any crash: nothing lost, nothing doubled, nothing repeated beyond what was in flight."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.chaos import mirror
from tests.chaos.launched import ACK_WAIT_S, EVALUATORS, LAUNCHER
from tests.chaos.shooting import ON_ITS_WAY_S, Kill, Run
from tests.chaos.world import World
from touchstone.v1 import item_result_pb2, job_pb2

ACTIONS = ["created", "planning", "running", "finalizing", "completed"]
SETTLING_S = float(ACK_WAIT_S)
"""So long after NATS is back, evaluators have found it and units have been delivered again."""
_LOSES_UNITS = (LAUNCHER, *EVALUATORS, "nats")
"""Only where units are held, or their deliveries remembered, can a kill repeat model calls."""


async def violations(world: World, run: Run) -> list[str]:
    """Every broken promise as a sentence; empty when all is well."""
    found = _state(run.job)
    found += await _items(world, run)
    found += await _reported(world, run)
    found += _events(await world.events(run.job_id), run.job)
    found += _calls(world, run)
    return found


def _state(job: job_pb2.Job) -> list[str]:
    if job.state != job_pb2.Job.STATE_COMPLETED:
        return [f"the job ended as {job_pb2.Job.State.Name(job.state)}: {job.reason}"]
    return ["the job is incomplete"] if job.incomplete else []


async def _items(world: World, run: Run) -> list[str]:
    items = await world.items(run.job_id)
    keys = Counter((item.task, item.result.item) for item in items)
    planned = {(question.task, question.item): question.answer for question in world.questions}
    found = []
    if len(items) != len(planned):
        found.append(f"{len(items)} items are stored, {len(planned)} were planned")
    if doubled := [key for key, count in keys.items() if count > 1]:
        found.append(f"{len(doubled)} items are stored twice, e.g. {doubled[:3]}")
    if missing := sorted(planned.keys() - keys.keys()):
        found.append(f"{len(missing)} items are missing, e.g. {missing[:3]}")
    if wrong := [i for i in items if i.result.response != planned.get((i.task, i.result.item))]:
        found.append(f"{len(wrong)} items have another item's answer")
    if bad := [i for i in items if i.result.outcome != item_result_pb2.OUTCOME_ANSWERED]:
        found.append(f"{len(bad)} items were not answered, e.g. {bad[0].result.error!r}")
    return found


async def _reported(world: World, run: Run) -> list[str]:
    result = await world.result(run.job_id)
    counts = {task: metrics["accuracy"]["n"] for task, metrics in result["performance_data"].get("glue", {}).items()}
    return [] if counts == mirror.TASKS else [f"REST counts {counts}"]


def _events(events: Sequence[job_pb2.JobEvent], job: job_pb2.Job) -> list[str]:
    found = []
    if [event.action for event in events] != ACTIONS:
        found.append(f"the audit trail is {[event.action for event in events]}")
    ids = [event.event_id for event in events]
    if ids != sorted(set(ids)):
        found.append(f"the audit trail's ids do not increase: {ids}")
    times = [event.occurred_at.ToNanoseconds() for event in events]
    if times != sorted(times):
        found.append("the audit trail's times go back")
    if events and events[-1].job.state != job.state:
        found.append("the audit trail does not end with the job's last state")
    return found


def repeated(world: World, run: Run) -> tuple[dict[int, int], int]:
    """Model calls repeated by kill (its place in `run.kills`), and those that no kill explains."""
    return attributed(world.calls(run.model).values(), run.kills)


def attributed(calls: Iterable[Sequence[float]], kills: Sequence[Kill]) -> tuple[dict[int, int], int]:
    """The same of any calls: one sequence of times, oldest first, for each that should have been made once."""
    by_kill: Counter[int] = Counter()
    unexplained = 0
    for times in calls:
        for first, second in itertools.pairwise(times):
            causes = [i for i, kill in enumerate(kills) if _explains(kill, first, second)]
            if causes:
                by_kill[min(causes, key=lambda i: _likelihood(kills[i]))] += 1
            else:
                unexplained += 1
    return dict(by_kill), unexplained


def most_repeated(run: Run, kill: Kill) -> int:
    """The items of a job's units that were with evaluators when something was killed that loses them."""
    size = max((task.unit_size for task in run.job.plan), default=0)
    return run.units_released(kill) * size if kill.shot.target in _LOSES_UNITS else 0


def _explains(kill: Kill, first: float, second: float) -> bool:
    """Whether two calls with the same prompt may be due to the kill.

    An evaluator takes along what it was asking. NATS forgets what it had just delivered, and delivers again what was
    not heard of while it was away; evaluators go on with their units meanwhile.
    """
    last = kill.at + (kill.back_s + SETTLING_S if kill.shot.target == "nats" else ON_ITS_WAY_S)
    return first <= last and kill.at <= second


def _likelihood(kill: Kill) -> int:
    return _LOSES_UNITS.index(kill.shot.target) if kill.shot.target in _LOSES_UNITS else len(_LOSES_UNITS)


def _calls(world: World, run: Run) -> list[str]:
    by_kill, unexplained = repeated(world, run)
    found = [f"{unexplained} model calls were repeated without a kill"] if unexplained else []
    if never := {q.prompt for q in world.questions} - world.calls(run.model).keys():
        found.append(f"{len(never)} prompts were never sent")
    for i, calls in by_kill.items():
        kill = run.kills[i]
        most = most_repeated(run, kill)
        if calls > most:
            found.append(
                f"killing {kill.shot.target} at {kill.shot.share:.1%} repeated {calls} model calls; "
                f"at most {most} were in flight"
            )
    return found
