"""What the judges of an experiment are called. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from services import further_fields
from services.words import rubrics
from touchstone.v1 import job_pb2

_FORMAT = "response_format"


class JudgeNames:
    """Those of one experiment. A judge is "endpoint/model". With other sampling parameters it is another judge, whose
    scores are its own: its parameters follow the name. Which of them is called by the bare name is said by the order of
    the calls."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    def of(self, judge: job_pb2.Judge | job_pb2.JobSpec) -> str:
        """Of a judge as an experiment names it, or of the job in which it judges."""
        name, asked = f"{judge.endpoint}/{judge.model}", ", ".join(_parameters(judge.sampling))
        known = self._known.setdefault(name, [asked])
        if asked not in known:
            known.append(asked)
        return name if asked == known[0] else f"{name} ({asked or 'no parameters'})"


def _parameters(sampling: job_pb2.Sampling) -> Iterator[str]:
    for field, value in sampling.ListFields():
        if field.name not in further_fields.FIELDS:
            yield f"{field.name}={value}"
    own = {name: value for name, value in further_fields.fields(sampling).items() if not _is_ours(name, value)}
    if own:
        yield f"custom_config={sha256(repr(own).encode()).hexdigest()[:8]}"


def _is_ours(name: str, value: object) -> bool:
    """Whether the field is what the scheduler adds, so that the answer has a judgement's form."""
    form = value.get("json_schema") if name == _FORMAT and isinstance(value, dict) else None
    return isinstance(form, dict) and form.get("name") == rubrics.FORM
