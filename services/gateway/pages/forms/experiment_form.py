"""The form that starts an experiment: what was sent, what is wrong with it, and the definition that it comes to."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from starlette.datastructures import FormData, QueryParams

from services.chat_requests.faults import RefusedError
from services.experiments import files
from services.experiments.definition import MAX_MODEL_B, N_TIPS
from services.experiments.fields import DefinitionError
from services.experiments.prompts import SHIPPED, Prompt
from services.experiments.scenarios import TIPS, tips
from services.gateway.uploads.page_form import File
from services.words import refusals, rubrics
from services.words.fields import decimal
from services.words.sampling import PARAMETERS
from touchstone.v1 import job_pb2

FIELDS, TEXT = "fields", "text"
"""What the definition comes from: the form's fields, or a pasted text."""
SET, OWN = "set", "own"
"""The scenarios: the first ones of the set that ships, or pasted lines."""
MOST_OWN = 20
"""Prompts of one's own that the form has room for."""
FILES = ("definition_file", "lines_file", "prompt_file", "rubric_file")
"""Fields whose files become texts of the form."""
_PARAMETERS = {one.rest: one for one in PARAMETERS.values()}
_NUMBERS = ("repeats", "n_tips", "max_model_b", "max_judge_b", "budget_usd", *_PARAMETERS)
_PLACES = ("name", "models", "prompts", "scenarios", "diversity", "rubric", *_NUMBERS)
_TEXTS = ("definition", "rubric")
"""Fields that hold YAML or JSON."""
_SCENARIO = re.compile(r"\bscenarios\[(\d+)\](?:\.(\w+(?:\[\d+\])*))?")
_SAID = 20
"""Problems of one field that are said."""


@dataclass(frozen=True, slots=True)
class JudgeFields:
    """A judge as sent: an endpoint and a model with a bar between them, repeats, US dollars, and its sampling
    parameters by their names in REST."""

    model: str = ""
    repeats: str = ""
    budget: str = ""
    texts: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(_PARAMETERS, ""))

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> list[JudgeFields]:
        """The judges that are chosen."""
        lists = [
            [str(text).strip()[:400] for text in sent.getlist(name)]
            for name in ("judge", "judge_repeats", "judge_budget", *(f"judge_{name}" for name in _PARAMETERS))
        ]
        found = [
            cls(model, repeats, budget, dict(zip(_PARAMETERS, texts, strict=True)))
            for model, repeats, budget, *texts in zip_longest(*lists, fillvalue="")
        ]
        return [judge for judge in found if judge.model][: rubrics.MOST_JUDGES]


@dataclass(slots=True)
class ExperimentForm:
    """As sent, with a sentence for each field that is wrong. `models` are an endpoint and a model with a bar between
    them; `rubric` is one in YAML or JSON, empty for the one that ships; `own` are pairs of id and template. `checked`
    names what was checked last."""

    by: str = FIELDS
    name: str = ""
    definition: str = ""
    models: list[str] = field(default_factory=list)
    shipped: list[str] = field(default_factory=lambda: list(SHIPPED))
    own: list[tuple[str, str]] = field(default_factory=list)
    of: str = SET
    count: str = "20"
    lines: str = ""
    diversity: bool = False
    texts: dict[str, str] = field(
        default_factory=lambda: (
            dict.fromkeys(_NUMBERS, "") | {"repeats": "1", "n_tips": str(N_TIPS), "max_model_b": f"{MAX_MODEL_B:g}"}
        )
    )
    rubric: str = ""
    judges: list[JudgeFields] = field(default_factory=list)
    checked: str = ""
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    errors: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    filled: set[str] = field(default_factory=set)
    """The names of texts that a file was put into."""
    _parsed: tuple[str, dict[str, Any]] | None = None
    """The text of a definition's file, and what it holds: YAML takes seconds."""

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> ExperimentForm:
        """Fields that were not sent are as in an empty form."""
        if "request_id" not in sent:
            return cls(models=[str(value)[:400] for value in sent.getlist("model")])

        def one(name: str, most: int = 400) -> str:
            return str(sent.get(name, "")).strip()[:most]

        def long(text: object) -> str:
            return str(text).replace("\r\n", "\n")

        ids = [str(text).strip()[:200] for text in sent.getlist("prompt_id")]
        own = list(zip(ids, map(long, sent.getlist("template")), strict=False))[:MOST_OWN]
        return cls(
            by=TEXT if one("by") == TEXT else FIELDS,
            name=one("name"),
            definition=long(sent.get("definition", "")),
            models=list(dict.fromkeys(str(value)[:400] for value in sent.getlist("model"))),
            shipped=[name for name in SHIPPED if name in sent.getlist("prompt")],
            own=[(name, text) for name, text in own if name or text.strip()],
            of=OWN if one("of") == OWN else SET,
            count=one("count"),
            lines=long(sent.get("lines", "")),
            diversity=bool(one("diversity")),
            texts={name: one(name) for name in _NUMBERS},
            rubric=long(sent.get("rubric", "")),
            judges=JudgeFields.read(sent),
            checked=one("checked"),
            request_id=one("request_id"),
        )

    def take(self, sent: Mapping[str, Sequence[File]], most: int) -> None:
        """Puts the texts of files into the form, those of the part that is chosen. Texts of a file that cannot be read
        stay as they are, with a sentence in `errors` for each of its problems. Files have `most` bytes together."""
        if self.by == TEXT:
            self._fill("definition", "definition", sent.get("definition_file", ()), most, self._parse)
            return
        if self.of == OWN:
            lines = sent.get("lines_file", ())
            self._fill("lines", "scenarios", lines, most, lambda text: files.scenarios(text.encode()))
        self._fill("rubric", "rubric", sent.get("rubric_file", ()), most, _rubric)
        for file in sent.get("prompt_file", ()):
            text = self._text_of("prompts", file, most, lambda text: Prompt.parse("own", text))
            if text is not None:
                self._add_prompt(file.name, text.rstrip("\n"))

    def asked(self) -> dict[str, Any] | None:
        """The definition, as far as it can be read; the scheduler says what is wrong with it. None for a text that
        cannot be read, with a sentence in `errors`."""
        try:
            self.asked_judges()
            return self._of_text() if self.by == TEXT else self._of_fields()
        except DefinitionError as error:
            self.refuse(error.problems)
            return None

    def asked_judges(self) -> list[job_pb2.Judge]:
        """Raises DefinitionError for what is not a number, and for a budget without a bound of a judgement."""
        found: list[job_pb2.Judge] = []
        wrong: list[tuple[str, str]] = []
        for place, judge in enumerate(self.judges):
            endpoint, _, model = judge.model.partition("|")
            repeats, budget = _number(judge.repeats or "0"), _number(judge.budget or "0")
            sampling = {_PARAMETERS[name].name: _number(text) for name, text in judge.texts.items() if text}
            problems = [PARAMETERS[name].problem(value, PARAMETERS[name].label) for name, value in sampling.items()]
            if not isinstance(repeats, int) or not 0 <= repeats <= rubrics.MOST_REPEATS:
                problems.append(refusals.between("repeats", 1, rubrics.MOST_REPEATS))
            if isinstance(budget, str) or budget < 0:
                problems.append("The budget must be a number of US dollars from 0.")
            elif budget and "max_tokens" not in sampling:
                problems.append(f"A budget needs {PARAMETERS['max_tokens'].label}.")
            if said := " ".join(filter(None, problems)):
                wrong.append((f"judges[{place}]", said))
            else:
                asked = job_pb2.Sampling(**sampling) if sampling else None
                known = {"repeats": repeats, "budget_usd": budget, "sampling": asked}
                found.append(job_pb2.Judge(endpoint=endpoint, model=model, **known))
        if wrong:
            raise DefinitionError(wrong)
        return found

    def digest(self) -> str:
        """Names what was sent, without the id of the request."""
        fields = (self.name, self.models, self.shipped, self.own, self.of, self.count, self.lines, self.diversity)
        said = (self.definition,) if self.by == TEXT else (*fields, self.texts, self.rubric)
        return hashlib.sha256(repr((self.by, self.judges, *said)).encode()).hexdigest()[:16]

    def refuse(self, problems: Sequence[tuple[str, str]]) -> None:
        """Puts each sentence to its field, with the line of a text that it is about. Takes seconds for a long text."""
        by_place: dict[str, list[str]] = {}
        lines: dict[str, dict[str, int]] = {}
        for path, sentence in problems:
            place = self._place(path)
            inner = path if place == "definition" else path.removeprefix("rubric.")
            line = 0
            if place in _TEXTS and inner not in ("", *_TEXTS):
                # Something within the text is wrong, so it could be read.
                if place not in lines:
                    text = self.rubric if place == "rubric" else self.definition
                    lines[place] = files.lines(text, is_json=_is_json(text))
                line = files.line_of(lines[place], inner)
            by_place.setdefault(place, []).append(f"Line {line:,}: {sentence}" if line else self._by_line(sentence))
        for place, sentences in by_place.items():
            more = [f"{len(sentences) - _SAID} more."] if len(sentences) > _SAID else []
            text = "\n".join([*sentences[:_SAID], *more])
            if place:
                self.errors[place] = "\n".join(filter(None, (self.errors.get(place), text)))
            else:
                self.failure = text

    def _by_line(self, sentence: str) -> str:
        """With the lines of pasted scenarios in place of their numbers in the definition."""
        if self.by == TEXT or self.of != OWN:
            return sentence
        lines = [number for number, line in enumerate(self.lines.split("\n"), start=1) if line.strip()]

        def called(found: re.Match[str]) -> str:
            place, field = int(found[1]), found[2]
            if place >= len(lines):
                return found[0]
            return f"{field} in line {lines[place]:,}" if field else f"Line {lines[place]:,}"

        return _SCENARIO.sub(called, sentence)

    def _place(self, path: str) -> str:
        """The form's field of a definition's path. Empty for what the form has no field for."""
        root, _, rest = path.partition("[")
        root = root.partition(".")[0]
        if root == "judges":
            place = re.match(r"\d+", rest)
            return f"judge-{place[0] if place else 0}"
        if self.by == TEXT:
            return "definition"
        if root == "prompts" and (number := re.match(r"\d+", rest)):
            own = int(number[0]) - len(self.shipped)
            return f"own-{own}" if 0 <= own < len(self.own) else "prompts"
        return root if root in _PLACES else ""

    def _fill(self, name: str, place: str, sent: Sequence[File], most: int, reads: Callable[[str], object]) -> None:
        for file in sent:
            text = self._text_of(place, file, most, reads)
            if text is not None:
                setattr(self, name, text)
                self.filled.add(name)

    def _text_of(self, place: str, file: File, most: int, reads: Callable[[str], object]) -> str | None:
        """A file's text, if `reads` can read it."""
        try:
            if file.data is None:
                raise RefusedError(f"The files have more than {refusals.counted(most, 'byte')} together.")
            text = files.text(file.data)
            if not text.strip():
                raise RefusedError("The file is empty.")
            reads(text)
        except RefusedError as error:
            self.refuse([(place, f"{file.name}: {error.reason}")])
        except DefinitionError as error:
            self.refuse([(place, f"{file.name}: {sentence}") for _, sentence in error.problems])
        else:
            return text
        return None

    def _add_prompt(self, file_name: str, text: str) -> None:
        """A prompt of one's own, whose id is the file's name. One that is there already is not replaced."""
        stem = file_name.rpartition(".")[0] or file_name
        prompt_id = re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-.")[:64] or "prompt"
        known = dict(self.own)
        if prompt_id not in known and len(self.own) < MOST_OWN:
            self.own.append((prompt_id, text))
        elif prompt_id not in known:
            why = f"The form has room for {MOST_OWN} prompts of your own. Write a definition for more."
            self.refuse([("prompts", f"{file_name}: {why}")])
        elif known[prompt_id] != text:
            why = f"Another prompt has the id {prompt_id}. Change or empty that one, or rename the file."
            self.refuse([("prompts", f"{file_name}: {why}")])

    def _parse(self, text: str) -> None:
        self._parsed = text, _object(text)

    def _of_text(self) -> dict[str, Any]:
        if not self.definition.strip():
            raise DefinitionError([("definition", "Paste a definition in YAML or JSON, or choose its file.")])
        if self._parsed and self._parsed[0] == self.definition:
            return self._parsed[1]
        return _object(self.definition)

    def _of_fields(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "name": self.name or None,
            "models": [_model(one) for one in self.models] or None,
            "prompts": [*self.shipped, *({"id": name, "template": text} for name, text in self.own)] or None,
            "scenarios": self._scenarios(),
            "diversity": self.diversity,
            "rubric": _rubric(self.rubric) if self.rubric.strip() else None,
            **{name: _number(text) for name, text in self.texts.items() if text},
        }
        return {name: value for name, value in made.items() if value is not None}

    def _scenarios(self) -> Any:
        if self.of == OWN:
            return files.scenarios(self.lines.encode(errors="replace"))
        return {"set": TIPS, "count": _number(self.count) if self.count else len(tips())}


def _object(text: str) -> dict[str, Any]:
    """Of a definition in YAML or JSON. Raises DefinitionError."""
    return files.definition(text.encode(errors="replace"), is_json=_is_json(text))


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _rubric(text: str) -> dict[str, Any]:
    """Raises DefinitionError."""
    try:
        return _object(text)
    except DefinitionError as error:
        raise DefinitionError([("rubric", sentence) for _, sentence in error.problems]) from error


def _model(chosen: str) -> Mapping[str, str]:
    # An endpoint's name has no bar; a model's may have one.
    endpoint, _, model = chosen.partition("|")
    return {"provider": endpoint, "model": model}


def _number(text: str) -> Any:
    """A whole number or a decimal one. Other texts stay as they are: the scheduler says what is wrong with them."""
    value = decimal(text)
    if value is None:
        return text
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else value
