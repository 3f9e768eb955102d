"""What a decision is about and says, in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from services import further_fields
from services.words.jobs import work_of
from services.words.refusals import counted
from services.words.sampling import PARAMETERS
from touchstone.v1 import decision_pb2, job_pb2

MOST_MODELS = 20
DEFAULT_ERROR = 0.05
LEAST_ERROR, MOST_ERROR = 0.0001, 0.5
MOST_MARGIN = 0.999
_LONGEST = 60
_Racer = decision_pb2.Racer
_UNLIKELY = ", and all items are unlikely to show it"
_SAID = {
    job_pb2.DECISION_VERDICT_BETTER: "{candidate} is better than {baseline}",
    job_pb2.DECISION_VERDICT_WORSE: "{candidate} is worse than {baseline}",
    job_pb2.DECISION_VERDICT_EQUIVALENT: "{candidate} and {baseline} differ by less than {margin:g}",
    job_pb2.DECISION_VERDICT_NO_DIFFERENCE: f"{{candidate}} and {{baseline}} are not shown to differ{_UNLIKELY}",
}
_OPEN = "It is not decided whether {candidate} is better than {baseline}"


def said(verdict: job_pb2.DecisionVerdict, candidate: str, baseline: str, margin: float) -> str:
    """What was found of the two, which are called that, as a sentence without its end."""
    return _SAID.get(verdict, _OPEN).format(candidate=candidate, baseline=baseline, margin=margin)


def said_of_race(found: decision_pb2.Decision, called: Sequence[str], margin: float) -> str:
    """What was found of the models of a race, which are called that, as a sentence without its end."""
    left = [name for name, racer in zip(called, found.racers, strict=True) if is_left(racer)]
    models = sum(racer.state != _Racer.STATE_WITHDRAWN for racer in found.racers)
    deleted = max(0, len(found.baseline.spec.deciding.race_job_ids) - len(found.racers))
    if not found.verdict:
        return f"It is not decided which of {counted(models, 'model')} is the best"
    if not left:
        return f"The best of {counted(models + deleted, 'model')} is one that was deleted"
    if found.verdict == job_pb2.DECISION_VERDICT_BEST:
        return f"{left[0]} is the best of {counted(models, 'model')}"
    if len(left) == 1:
        return f"The best of {counted(models + deleted, 'model')} is {left[0]} or one that was deleted"
    together = f"{', '.join(left[:-1])} and {left[-1]}"
    if found.verdict == job_pb2.DECISION_VERDICT_EQUIVALENT:
        said = f"{together} differ by less than {margin:g}"
    else:
        said = f"{together} are not shown to differ{'' if _asked_all(found) else _UNLIKELY}"
    if deleted:
        return f"{said}. The best is one of them or one that was deleted"
    return said if len(left) == models else f"{said}. The best is one of them"


def specs_of(found: decision_pb2.Decision) -> list[job_pb2.JobSpec]:
    """Those of its models, the baseline's first."""
    return [racer.job.spec for racer in found.racers] or [found.baseline.spec, found.candidate.spec]


def said_of(found: decision_pb2.Decision, called: Sequence[str]) -> str:
    """What was found of its models, which are called that, as a sentence without its end."""
    margin = found.baseline.spec.deciding.margin
    if found.racers:
        return said_of_race(found, called, margin)
    baseline, candidate = called
    words = said(found.verdict, candidate, baseline, margin)
    return words.removesuffix(_UNLIKELY) if _asked_all(found) else words


def _asked_all(found: decision_pb2.Decision) -> bool:
    """Whether no item was left when the verdict was known."""
    return 0 < found.items_total <= found.decided_at + found.failed


def is_left(racer: decision_pb2.Racer) -> bool:
    """Whether it is still in the race, or was at the end."""
    return racer.state in (_Racer.STATE_RACING, _Racer.STATE_BEST, _Racer.STATE_LEFT)


def job_ids(job: job_pb2.Job) -> list[str]:
    """The jobs of its decision, the baseline's first."""
    side = job.spec.deciding
    pair = [side.against_job_id, job.job_id] if side.candidate else [job.job_id, side.against_job_id]
    return [*side.race_job_ids] or pair


def decision_id(job: job_pb2.Job) -> str:
    """The id of the decision that the job belongs to."""
    return job_ids(job)[0]


def models_of(side: job_pb2.Deciding) -> int:
    """How many models the decision is about."""
    return len(side.race_job_ids) or 2


def names(specs: Sequence[job_pb2.JobSpec]) -> list[str]:
    """What the models of a decision are called together: the model at its endpoint, with what is set otherwise for it
    where several are the same, else with its place."""
    plain = [f"{spec.model}@{spec.endpoint}" for spec in specs]
    settings = [_settings(spec) for spec in specs]
    made = []
    for name, own in zip(plain, settings, strict=True):
        alike = [of for known, of in zip(plain, settings, strict=True) if known == name]
        differs = [one for one in own if not all(one in of for of in alike)]
        made.append(f"{name} ({', '.join(differs)})" if differs else name)
    again = Counter(made)
    return [f"{name} ({place})" if again[name] > 1 else name for place, name in enumerate(made, 1)]


def _settings(spec: job_pb2.JobSpec) -> list[str]:
    sampling = spec.sampling
    known = {one.label.lower(): getattr(sampling, name) for name, one in PARAMETERS.items() if sampling.HasField(name)}
    own = [f"{name} {value}"[:_LONGEST] for name, value in (known | further_fields.fields(sampling)).items()]
    if spec.HasField("suite"):
        own.append(counted(spec.suite.shots, "shot"))
    else:
        own.append(work_of(spec))
    return own
