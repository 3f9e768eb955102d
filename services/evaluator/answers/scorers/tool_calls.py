"""The scorer `tool_calls`: the calls of an answer against the expected ones. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from services import expected_calls, json_values
from services.evaluator.answers.reading.layers import Extraction
from services.evaluator.answers.scorers.scorer import Read, Reply, Scorer, by_field, mean
from services.evaluator.items.metrics import beside
from services.words.refusals import counted
from touchstone.v1.content_pb2 import ToolCall

_MOST_PAIRED = 128
"""Calls of one function that are paired with expected ones: those that are expected as they are, then the first."""
_read = json.JSONDecoder().decode
_STATISTICS = ("correct", "call_names", "call_arguments")
_Call = dict[str, Any]


def tool_calls(read: Read | None) -> Scorer:
    """Whether all calls are right, and nothing else is called; next to it the share of right names and of right
    arguments.

    Calls match in any order, each one once. Arguments match in any order; their values are equal as JSON: numbers by
    value, so that 1 is 1.0 and not "1", texts exactly, lists in order. Arguments that are not a JSON object are wrong.
    An answer without a call is right where none is expected; one that was cut before a call is read as none.

    With `read`, the calls are in the text that it finds, as JSON in the form of references.
    """

    def found(reply: Reply) -> Extraction:
        if read is not None:
            return _in_text(read(reply))
        if not reply.calls and reply.cut:
            return Extraction("", "none: the response was cut before a tool call")
        made = [_written(call.name, _arguments(call.arguments)) for call in reply.calls]
        return Extraction(_listed(made), _how(len(made)))

    def right(value: Any) -> str:
        calls = expected_calls.expected(_parsed(value))
        return _listed([_written_expected(call) for call in calls])

    def judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
        if answer == answers[0]:
            # The same text, so that nothing has to be paired: as most answers of a good model are.
            return _Compared(True, 1.0, 1.0, [(name, 1.0) for name, _ in _missed(_read(answer))]).statistics()
        values = _Values()
        given = [_Given.of(call, values) for call in _read(answer)]
        return max((_compared(given, _read(right), values) for right in answers), key=_quality).statistics()

    def unread(answers: Sequence[str]) -> Mapping[str, float]:
        return by_field(_missed(_read(answers[0])))

    metrics = (
        mean("calls_exact", "correct"),
        beside(mean("call_names", "call_names")),
        beside(mean("call_arguments", "call_arguments")),
    )
    return Scorer(
        "tool_calls",
        "tool_calls-2",
        metrics,
        _STATISTICS,
        right,
        found,
        judge,
        several=lambda value: expected_calls.answers(_parsed(value)),
        unread=unread,
        calls=_calls,
    )


# Not frozen, as those that are made for each answer below: that takes several times as long to make.
@dataclass(slots=True)
class _Compared:
    exact: bool
    names: float
    arguments: float
    fields: Sequence[tuple[str, float]]

    def statistics(self) -> dict[str, float]:
        own = zip(_STATISTICS, (float(self.exact), self.names, self.arguments), strict=True)
        return {**dict(own), **by_field(self.fields)}


def _quality(compared: _Compared) -> tuple[bool, float, float]:
    return compared.exact, compared.arguments, compared.names


@dataclass(slots=True)
class _Graded:
    """A call that was given against an expected one of the same name: whether each expected argument is right, and how
    many others it has."""

    arguments: tuple[tuple[str, bool], ...]
    unexpected: int

    @property
    def right(self) -> int:
        return sum(fits for _, fits in self.arguments)

    @property
    def total(self) -> int:
        return len(self.arguments) + self.unexpected

    @property
    def share(self) -> float:
        """1 only for a right call."""
        return self.right / self.total if self.total else 1.0


class _Values:
    """Numbers of JSON values: the same one for those that are equal as `json_values.equal` says. So each value is
    looked at once, however many others it is compared with."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Any) -> int:
        return self._numbers.setdefault(_key(value), len(self._numbers))


def _key(value: Any) -> Hashable:
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((name, _key(inner)) for name, inner in value.items())
    return (list, *map(_key, value)) if isinstance(value, list) else value


@dataclass(slots=True)
class _Given:
    """A call of an answer. `values` has its arguments as of JSON, `numbers` the same as of `_Values`; `values` is None
    where its arguments are not an object."""

    name: str
    values: _Call | None
    numbers: Mapping[str, int]

    @classmethod
    def of(cls, call: _Call, values: _Values) -> _Given:
        arguments = call["arguments"]
        if not isinstance(arguments, dict):
            return cls(call["name"], None, {})
        return cls(call["name"], arguments, {name: values.number(value) for name, value in arguments.items()})

    @property
    def size(self) -> int:
        return 1 if self.values is None else len(self.values)


@dataclass(slots=True)
class _Expected:
    """An expected call. `allowed` has the numbers of the values of each argument, `open` those that are objects or
    lists with allowed values inside, and `optional` the arguments that may be left out. `known` remembers what
    fits an open one."""

    name: str
    allowed: Mapping[str, frozenset[int]]
    open: Mapping[str, Sequence[Any]]
    optional: frozenset[str]
    known: dict[tuple[str, int], bool]

    @classmethod
    def of(cls, call: _Call, values: _Values) -> _Expected:
        lists = call.get("allowed")
        if lists is None:
            exact = {name: frozenset((values.number(value),)) for name, value in call["arguments"].items()}
            return cls(call["name"], exact, {}, frozenset(), {})
        return cls(
            call["name"],
            {name: frozenset(values.number(one) for one in each if not _has_open(one)) for name, each in lists.items()},
            {name: [one for one in each if _has_open(one)] for name, each in lists.items()},
            frozenset(name for name, each in lists.items() if expected_calls.OPTIONAL in each),
            {},
        )

    def fits(self, name: str, given: _Given) -> bool:
        """Whether one expected argument is right."""
        number = given.numbers.get(name)
        if number is None or given.values is None:
            return name in self.optional
        if number in self.allowed[name]:
            return True
        if not self.open.get(name):
            return False
        if (name, number) not in self.known:
            self.known[name, number] = any(_fits(given.values[name], one) for one in self.open[name])
        return self.known[name, number]


def _compared(given: Sequence[_Given], calls: Sequence[_Call], values: _Values) -> _Compared:
    expected = [_Expected.of(call, values) for call in calls]
    named = _named(given, calls)
    pairs = _pairs(given, expected, named)
    fields: list[tuple[str, float]] = []
    right = total = 0
    for place, call in enumerate(calls):
        if place not in pairs:
            missed = list(_missed([call]))
            fields += missed
            total += len(missed) - 1
            continue
        _, graded = pairs[place]
        fields.append((call["name"], 1.0))
        fields += [(f"{call['name']}.{name}", float(fits)) for name, fits in graded.arguments]
        right += graded.right
        total += graded.total
    paired = {other for other, _ in pairs.values()}
    total += sum(call.size for place, call in enumerate(given) if place not in paired)
    most = max(len(given), len(expected))
    names = len(pairs) / most if most else 1.0
    exact = names == 1.0 and right == total
    return _Compared(exact, names, right / total if total else float(exact), fields)


def _calls(right: str) -> tuple[ToolCall, ...]:
    """With the first of the allowed values, and without arguments that may be left out."""
    made = []
    for place, call in enumerate(_read(right), start=1):
        arguments = call.get("arguments")
        if arguments is None:
            allowed = call["allowed"].items()
            arguments = {name: values[0] for name, values in allowed if expected_calls.OPTIONAL not in values}
        written = json_values.written(arguments)
        made.append(ToolCall(id=f"call_{place}", name=call["name"], arguments=written))
    return tuple(made)


def _missed(expected: Sequence[_Call]) -> Iterator[tuple[str, float]]:
    for call in expected:
        yield call["name"], 0.0
        for name in expected_calls.names(call):
            yield f"{call['name']}.{name}", 0.0


def _named(given: Sequence[_Given], calls: Sequence[_Call]) -> Mapping[str, Sequence[int]]:
    """The places of the calls that were given, by the name that each is expected by. Names of references with allowed
    values have underscores in place of dots, whatever the name of the tool has."""
    dotless = {call["name"] for call in calls if "allowed" in call}
    exact = {call["name"] for call in calls} - dotless
    named: defaultdict[str, list[int]] = defaultdict(list)
    for place, call in enumerate(given):
        plain = call.name.replace(".", "_")
        named[plain if call.name not in exact and plain in dotless else call.name].append(place)
    return named


def _pairs(
    given: Sequence[_Given], expected: Sequence[_Expected], named: Mapping[str, Sequence[int]]
) -> dict[int, tuple[int, _Graded]]:
    """The place of the call that was given for each expected one. As many as possible are right; of the rest with one
    name, each expected one in turn takes the call with the most right arguments."""
    wanted_names = [call.name for call in expected]
    if len(set(wanted_names)) == len(expected) and all(len(places) == 1 for places in named.values()):
        # Nothing to choose: most answers call each function once.
        alone = {place: named[name][0] for place, name in enumerate(wanted_names) if name in named}
        return {place: (other, _graded(given[other], expected[place])) for place, other in alone.items()}
    graded: dict[int, dict[int, _Graded]] = {}
    for name in {call.name for call in expected}:
        wanted = [place for place, call in enumerate(expected) if call.name == name]
        chosen = _chosen(given, named.get(name, ()), [expected[place] for place in wanted])
        if chosen:
            graded |= {place: {other: _graded(given[other], expected[place]) for other in chosen} for place in wanted}
    right = {place: [other for other, one in known.items() if one.share == 1.0] for place, known in graded.items()}
    taken: dict[int, int] = {}
    """Expected calls by the place of the one that was given."""

    def settle(place: int, tried: set[int]) -> bool:
        """Finds a right call for the expected one, moving others to another one if need be (Kuhn 1955)."""
        free = next((other for other in right[place] if other not in taken), None)
        if free is not None:
            taken[free] = place
            return True
        for other in right[place]:
            if other not in tried:
                tried.add(other)
                if settle(taken[other], tried):
                    taken[other] = place
                    return True
        return False

    left = [place for place in sorted(graded) if not settle(place, set())]
    for place in left:
        free = [other for other in graded[place] if other not in taken]
        if free:
            taken[max(free, key=lambda other: graded[place][other].share)] = place
    return {place: (other, graded[place][other]) for other, place in taken.items()}


def _chosen(given: Sequence[_Given], places: Sequence[int], expected: Sequence[_Expected]) -> Sequence[int]:
    """The calls of one name that can be paired, in order. Of more than that, those that are right come first."""
    if len(places) <= _MOST_PAIRED:
        return places
    right = [place for place in places if any(_graded(given[place], call).share == 1.0 for call in expected)]
    rest = [place for place in places if place not in set(right)]
    return sorted([*right, *rest][:_MOST_PAIRED])


def _graded(given: _Given, expected: _Expected) -> _Graded:
    if given.values is None:
        # A text that is not JSON is an argument that nothing expects.
        return _Graded(tuple((name, False) for name in expected.allowed), 1)
    judged = tuple((name, expected.fits(name, given)) for name in expected.allowed)
    return _Graded(judged, sum(name not in expected.allowed for name in given.values))


def _fits(value: Any, allowed: Any) -> bool:
    """An object whose values are all lists gives the allowed values of each of its names; so does each one in a list
    of objects."""
    if isinstance(value, dict) and _is_open(allowed):
        if any(name not in value and expected_calls.OPTIONAL not in allowed[name] for name in allowed):
            return False
        return all(any(json_values.equal(each, one) for one in allowed.get(name, ())) for name, each in value.items())
    if isinstance(value, list) and isinstance(allowed, list) and allowed and all(map(_is_open, allowed)):
        return len(value) == len(allowed) and all(map(_fits, value, allowed))
    return json_values.equal(value, allowed)


def _is_open(allowed: Any) -> bool:
    return isinstance(allowed, dict) and bool(allowed) and all(isinstance(one, list) for one in allowed.values())


def _has_open(allowed: Any) -> bool:
    """Whether `_fits` does more than compare."""
    return _is_open(allowed) or (isinstance(allowed, list) and bool(allowed) and all(map(_is_open, allowed)))


def _in_text(found: Extraction) -> Extraction:
    if not found.answer:
        return found
    try:
        calls = expected_calls.expected(_parsed(found.answer))
        written = [_written(call["name"], call["arguments"]) for call in calls]
    except (ValueError, KeyError):
        return Extraction("", "none: what the answer pattern finds is not a list of calls")
    return Extraction(_listed(written), found.how)


def _parsed(value: Any) -> Any:
    return json_values.parsed(value) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _how(calls: int) -> str:
    return counted(calls, "tool call") if calls else "no tool call"


def _arguments(text: str) -> dict[str, Any] | str:
    """Of a call; the text itself where it is not a JSON object."""
    if not text.strip():
        return {}
    try:
        found = json_values.parsed(text)
    except ValueError:
        return text
    if found is None:
        return {}
    return found if isinstance(found, dict) else text


def _written_expected(call: _Call) -> str:
    if "allowed" in call:
        return f'{{"name":{json_values.written(call["name"])},"allowed":{json_values.written(call["allowed"])}}}'
    return _written(call["name"], json_values.whole(call["arguments"]))


def _written(name: str, arguments: dict[str, Any] | str) -> str:
    return f'{{"name":{json_values.text_of(name)},"arguments":{json_values.text_of(arguments)}}}'


def _listed(calls: Sequence[str]) -> str:
    """One text for the same calls in any order."""
    return f"[{','.join(sorted(calls))}]"
