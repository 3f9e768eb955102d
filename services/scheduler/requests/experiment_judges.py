"""Which judges a further call of an experiment adds, and which of its judges continue. Pure.

A judge is the same if endpoint, model, rubric and sampling parameters are: it is never asked, or paid, twice for an
answer. Another budget, or limit of size, is for what it still has to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from services.errors import ConflictError
from services.scheduler.admission import judging_rules
from services.scheduler.jobs import budget
from services.scheduler.jobs.job import PENDING, Job
from services.words import rubrics
from touchstone.v1 import job_pb2


@dataclass(slots=True)
class NamedJudges:
    """What a call changes."""

    lists: dict[str, list[job_pb2.Judge]] = field(default_factory=dict)
    """By job, all of its judges, where they differ from what they were."""
    waiting: list[Job] = field(default_factory=list)
    """Jobs of judges that have not started and get other limits."""
    again: list[Job] = field(default_factory=list)
    """Jobs of judges that run again for what they miss."""
    asked: dict[str, job_pb2.Judge] = field(default_factory=dict)
    """By job of both kinds, the judge with its limits from now on."""
    deleted: dict[int, list[str]] = field(default_factory=dict)
    """By the place of a judge in the call, the jobs that it judges no more because its own job was deleted."""

    def limit(self, judging: Job) -> None:
        """Gives the job of a judge its new limits."""
        _limit(judging.message.spec, self.asked[judging.id])


def named(
    experiment: str,
    judges: Sequence[job_pb2.Judge],
    answered: Iterable[Job],
    known: Iterable[Job],
    replaced: Collection[str],
) -> NamedJudges:
    """What a call that names these judges changes at jobs that there are; those of `replaced` run again and get new
    judges. `known` has the judges' jobs, also deleted ones. Raises ConflictError."""
    found = NamedJudges()
    jobs = {one.request_id: one for one in known if one.message.spec.HasField("judging")}
    for job in answered:
        own = list(job.message.spec.judges)
        places = {judging_rules.identity(judge): place for place, judge in enumerate(own)}
        changed = list(own)
        for asked, judge in enumerate(judges):
            place = places.get(judging_rules.identity(judge))
            if place is None:
                changed.append(judge)
                continue
            _require_repeats(experiment, own[place], judge)
            changed[place] = job_pb2.Judge()
            changed[place].CopyFrom(own[place])
            _limit(changed[place], judge)
            judging = jobs.get(judging_rules.request_id(job.id, job.message.attempt, place))
            if judging is None or job.id in replaced:
                continue
            if judging.deleted:
                found.deleted.setdefault(asked, []).append(job.id)
            else:
                _continue(found, judging, judge)
        if changed == own:
            continue
        if len(changed) > rubrics.MOST_JUDGES:
            raise ConflictError(
                f"Job {job.id} of experiment {experiment} would have {len(changed)} judges, of which it has "
                f"{len(own)}; at most {rubrics.MOST_JUDGES} are allowed. Leave new ones out: those of earlier calls "
                "stay. A judge with other parameters is a new one."
            )
        found.lists[job.id] = changed
    return found


def _continue(found: NamedJudges, judging: Job, judge: job_pb2.Judge) -> None:
    """One that runs keeps its limits: the most that its units may cost is planned by its budget."""
    spec = judging.message.spec
    if judging.state == PENDING and (spec.budget_usd, spec.max_model_b) != (judge.budget_usd, judge.max_model_b):
        found.waiting.append(judging)
    elif judging.can_retry and budget.pays_a_call(judging.message, judge.budget_usd):
        found.again.append(judging)
    else:
        return
    found.asked[judging.id] = judge


def _limit(what: job_pb2.Judge | job_pb2.JobSpec, judge: job_pb2.Judge) -> None:
    what.budget_usd, what.max_model_b = judge.budget_usd, judge.max_model_b


def _require_repeats(experiment: str, own: job_pb2.Judge, judge: job_pb2.Judge) -> None:
    had, asked = max(1, own.repeats), max(1, judge.repeats)
    if had != asked:
        raise ConflictError(
            f"Judge {own.model} at {own.endpoint} judges each answer {_times(had)} in experiment {experiment}; this "
            f"call asks for {_times(asked)}. Ask for the same again, or leave the judge out. With another seed it is "
            "another judge, which judges, and costs, all answers once more."
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
