"""What a decision says, in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from services import further_fields
from services.words.jobs import work_of
from services.words.refusals import counted
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2

DEFAULT_ERROR = 0.05
LEAST_ERROR, MOST_ERROR = 0.0001, 0.5
MOST_MARGIN = 0.999
_LONGEST = 60
_SAID = {
    job_pb2.DECISION_VERDICT_BETTER: "{candidate} is better than {baseline}",
    job_pb2.DECISION_VERDICT_WORSE: "{candidate} is worse than {baseline}",
    job_pb2.DECISION_VERDICT_EQUIVALENT: "{candidate} and {baseline} differ by less than {margin:g}",
    job_pb2.DECISION_VERDICT_NO_DIFFERENCE: (
        "{candidate} and {baseline} are not shown to differ, and all items are unlikely to show it"
    ),
}
_OPEN = "It is not decided whether {candidate} is better than {baseline}"


def said(verdict: job_pb2.DecisionVerdict, candidate: str, baseline: str, margin: float) -> str:
    """What was found of the two, which are called that, as a sentence without its end."""
    return _SAID.get(verdict, _OPEN).format(candidate=candidate, baseline=baseline, margin=margin)


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
