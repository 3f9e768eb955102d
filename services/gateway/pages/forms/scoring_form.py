"""The part of forms that says how answers are scored: the scorer and the options that it takes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import FormData, QueryParams

from services.gateway.fields.query import values_of
from services.gateway.fields.scoring import FURTHER, OPTIONS, scoring_body, scoring_of
from services.gateway.http.responses import FieldErrors
from services.words import scorers
from services.words.enums import READINGS
from services.words.fields import Field, Number, Switch, TextList
from services.words.scorers import USUAL, USUAL_READINGS
from touchstone.v1 import scoring_pb2

_LISTS = tuple(name for name, option in scorers.OPTIONS.items() if isinstance(option, TextList))
_MOST_TEXT = 64 * 1024
_ALSO = "further_scorers"
_EXAMPLE = 'Write them as [{"scorer": "numeric", "tolerance": 0.1}].'


@dataclass(slots=True)
class ScoringForm:
    """As sent, with a sentence for each field that is wrong. `texts` are by the names of the API's single fields,
    except that lists may be separated by commas; `own` is the scorer that counts unless another is chosen, if there is
    one. `reading` names the layers by which answers are read; empty for the scorer's own.

    `also` names further scorers without options; `also_options` has others as the API takes them: a JSON object, or a
    list of them. `offers_also` says whether the form that was sent has them."""

    texts: dict[str, str] = field(default_factory=dict)
    own: str = ""
    reading: str = ""
    also: list[str] = field(default_factory=list)
    also_options: str = ""
    offers_also: bool = False
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, scoring: scoring_pb2.Scoring, further: Iterable[scoring_pb2.Scoring] = ()) -> ScoringForm:
        """The unchanged form."""
        known = scoring_body(scoring)
        texts = {name: _text(option, known[name]) for name, option in scorers.OPTIONS.items()}
        also = [_options(one, scoring.reference_field) for one in further]
        plain, others = [one for one in also if len(one) == 1], [one for one in also if len(one) > 1]
        shown = json.dumps(others, ensure_ascii=False) if others else ""
        return cls(texts, texts["scorer"], also=[one["scorer"] for one in plain], also_options=shown)

    @classmethod
    def read(cls, sent: QueryParams | FormData) -> ScoringForm:
        texts = {one.name: str(sent.get(one.name, "")).strip()[:_MOST_TEXT] for one in OPTIONS}
        reading = str(sent.get("reading", ""))
        return cls(
            texts,
            reading=reading if reading in READINGS else "",
            also=list(dict.fromkeys(map(str, sent.getlist("also")))),
            also_options=str(sent.get("also_options", "")).strip()[:_MOST_TEXT],
            offers_also="also_options" in sent,
        )

    @property
    def scorer(self) -> str:
        return self.texts.get("scorer", "") or self.own or USUAL

    def layers(self) -> scoring_pb2.Reading:
        """The requested reading, if the scorer takes one."""
        taken = self.scorer in USUAL_READINGS and not self.texts.get("answer_pattern") and self.reading
        return READINGS[self.reading] if taken else scoring_pb2.READING_UNSPECIFIED

    def scoring(self) -> scoring_pb2.Scoring | None:
        """The requested scoring, without options of other scorers; None without a scorer, or if something is wrong."""
        if not self.texts.get("scorer"):
            return None
        taken = {name: text for name, text in self.texts.items() if text and scorers.takes(self.scorer, name)}
        if "answer_pattern" not in taken:
            taken.pop("answer_match", None)
        taken |= {name: _as_json(taken[name]) for name in _LISTS if name in taken}
        try:
            return scoring_of(values_of(taken, OPTIONS))
        except FieldErrors as error:
            for path, sentence in error.problems:
                name = path.partition("[")[0]
                self.errors.setdefault(name, sentence.replace(name, scorers.OPTIONS[name].label, 1))
        return None

    def further(self) -> list[scoring_pb2.Scoring]:
        """The further scorers: those without options, then the others; none if something is wrong."""
        asked: Any = []
        if self.also_options:
            try:
                asked = json.loads(self.also_options)
            except (ValueError, RecursionError):
                asked = None
        given = [*({"scorer": name} for name in self.also), *(asked if isinstance(asked, list) else [asked])]
        for path, sentence in FURTHER.judge(given, _ALSO):
            self.errors.setdefault("also_options", sentence if path == _ALSO else f"{sentence} {_EXAMPLE}")
        return [] if "also_options" in self.errors else [scoring_of(one) for one in given]


def _options(scoring: scoring_pb2.Scoring, reference_field: str) -> dict[str, Any]:
    """The scorer and what else is set. A further scorer without a reference field takes that of the first one."""
    set_ = {name: value for name, value in scoring_body(scoring).items() if getattr(scoring, name) or name == "scorer"}
    if set_.get("reference_field") == reference_field:
        del set_["reference_field"]
    return set_


def _text(option: Field, value: Any) -> str:
    """An option's value as its field of the form shows it: empty without one."""
    match option:
        case TextList():
            return _written(value)
        case Number():
            return repr(value).removesuffix(".0") if value else ""
        case Switch():
            return "true" if value else ""
    return str(value)


def _written(names: Iterable[str]) -> str:
    """Separated by commas, or as JSON if that would be ambiguous."""
    listed = list(names)
    text = ", ".join(listed)
    alike = not text.startswith("[") and [name.strip() for name in text.split(",")] == (listed or [""])
    return text if alike else json.dumps(listed, ensure_ascii=False)


def _as_json(text: str) -> str:
    if text.startswith("["):
        return text
    return json.dumps([name.strip() for name in text.split(",") if name.strip()])
