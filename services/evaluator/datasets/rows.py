"""Rows of an uploaded dataset: which of them a job runs, and each as an item: right answers, parameters, hash. Pure."""

from __future__ import annotations

import hashlib
import heapq
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Any

from services import further_fields, json_values
from services.evaluator.answers.scorers import json_fields
from services.evaluator.answers.scorers.scorer import Scorer
from services.evaluator.items.task import Item, Message
from services.words import chat, references
from touchstone.v1.dataset_pb2 import DatasetManifest, DatasetRow, Shard
from touchstone.v1.job_pb2 import Sampling
from touchstone.v1.scoring_pb2 import Scoring

METADATA_BYTES = 32 * 1024
_OWN = "reference"
_HASH_DIGITS = 16
_ROLES = {"developer": "system"}
"""OpenAI's newer name for it, which means the same there and which others do not know."""
_MOST_ANSWERS = 100
_REMEMBERED = 32
"""Samplings. Most rows of a dataset have the same one, and its tools take longer to read than all else in the row."""
_MERGED = tuple(field.name for field in Sampling.DESCRIPTOR.fields if field.name not in further_fields.FIELDS)


def right_answers(row: DatasetRow, field: str, scorer: Scorer) -> tuple[str, ...]:
    """The row's right answers in the scorer's form; empty for a row without a reference. `field` is a dotted path in
    the metadata, or empty for the row's reference. Raises ValueError, with a clause that continues after the row's
    name, for a value that the scorer cannot compare with."""
    value, what = json_values.NOTHING if scorer.own is None else scorer.own(row), "schema"
    if value is json_values.NOTHING:
        value, what = _reference(row, field), "reference"
    if _is_absent(value):
        return ()
    values = _several(scorer, value)
    answers = tuple(dict.fromkeys(_right(scorer, each, what) for each in values if not _is_absent(each)))
    if len(answers) > _MOST_ANSWERS:
        raise ValueError(f"has {len(answers)} right answers; at most {_MOST_ANSWERS} are allowed")
    return answers


def field_of(scoring: Scoring, own: Scoring) -> str:
    """Where a job's references are: empty for the references that the dataset was uploaded with."""
    wanted = scoring.reference_field or _OWN
    return "" if wanted == (own.reference_field or _OWN) else wanted


def group(row: DatasetRow, field: str) -> str:
    """The name of the row's group by its metadata; empty for a row by itself, and without a field."""
    if not field or not row.metadata:
        return ""
    return references.group(json_fields.at(json.loads(row.metadata), field))


def asked_with(row: DatasetRow, sampling: Sampling) -> Sampling | None:
    """The row's own parameters before the job's, field by field; None where it has none, so that the job's apply. Rows
    with the same parameters share the result: do not change it."""
    own = row.sampling.SerializeToString(deterministic=True)
    return _merged(own, sampling.SerializeToString(deterministic=True)) if own else None


def asked_names(row: DatasetRow) -> Iterator[str]:
    """Parameters that the row itself sets."""
    for field, _ in row.sampling.ListFields():
        if field.name not in further_fields.FIELDS:
            yield field.name
        else:
            yield from _further_names(row.sampling.SerializeToString(deterministic=True))
    if row.stop:
        yield "stop"


def messages(row: DatasetRow) -> tuple[Message, ...]:
    """As they are sent."""
    if row.has_parts:
        return tuple(
            Message(_ROLES.get(one.role, one.role), one.content, None if chat.is_plain(one) else one)
            for one in row.messages
        )
    return tuple(Message(_ROLES.get(message.role, message.role), message.content) for message in row.messages)


def item(number: int, row: DatasetRow, answers: tuple[str, ...], sampling: Sampling | None, group: str = "") -> Item:
    """The row as an item; `answers` and `sampling` as above, `group` as in `Scorer`."""
    prompt = tuple(_prompt(row))
    return Item(
        index=number,
        messages=messages(row),
        reference=answers[0] if answers else "",
        hash=_hash((*_content(row), *prompt)),
        prompt_hash=_hash(prompt),
        stop=tuple(row.stop),
        answers=answers,
        custom_id=row.custom_id,
        metadata=kept_metadata(row.metadata),
        sampling=sampling,
        group=group,
    )


def kept_metadata(metadata: str) -> str:
    """A JSON object cut to what is stored with an answer: whole fields, preferring short ones, in their order."""
    if len(metadata.encode()) <= METADATA_BYTES:
        return metadata
    parts = {name: _json({name: value})[1:-1].encode() for name, value in json.loads(metadata).items()}
    left, kept = METADATA_BYTES - 1, set()
    for name, part in sorted(parts.items(), key=lambda each: len(each[1])):
        left -= len(part) + 1
        if left < 0:
            break
        kept.add(name)
    return (b"{" + b",".join(part for name, part in parts.items() if name in kept) + b"}").decode()


@lru_cache(maxsize=_REMEMBERED)
def _merged(of_row: bytes, of_job: bytes) -> Sampling:
    own, merged = Sampling.FromString(of_row), Sampling.FromString(of_job)
    for name in _MERGED:
        if own.HasField(name):
            setattr(merged, name, getattr(own, name))
    if own.extra_json or merged.extra_json:
        further_fields.write(merged, {**further_fields.fields(merged), **further_fields.fields(own)})
    else:
        # Rows of an earlier version may have both; their answers are found by the parameters that were sent.
        for name, value in own.extra.fields.items():
            merged.extra.fields[name].CopyFrom(value)
    return merged


@lru_cache(maxsize=_REMEMBERED)
def _further_names(sampling: bytes) -> tuple[str, ...]:
    return tuple(further_fields.fields(Sampling.FromString(sampling)))


def _reference(row: DatasetRow, field: str) -> Any:
    if not field:
        return json.loads(row.reference) if row.reference else None
    return json_fields.at(json.loads(row.metadata), field) if row.metadata else None


def _is_absent(value: Any) -> bool:
    return value is None or value is json_values.NOTHING or value == ""


def _several(scorer: Scorer, value: Any) -> Sequence[Any]:
    if scorer.several is None:
        return value if isinstance(value, list) else [value]
    try:
        return scorer.several(value)
    except ValueError as error:
        raise _unusable(value, error) from error


def _right(scorer: Scorer, value: Any, what: str) -> str:
    try:
        return scorer.right(value)
    except ValueError as error:
        raise _unusable(value, error, what) from error


def _unusable(value: Any, error: ValueError, what: str = "reference") -> ValueError:
    shown = _json(value)
    return ValueError(f"has a {what} that {error}: {shown[:80]}{'…' if len(shown) > 80 else ''}")


def _prompt(row: DatasetRow) -> Iterator[str]:
    for message in row.messages:
        yield message.role
        yield message.content
        if row.has_parts:
            yield from chat.marks(message)


def _content(row: DatasetRow) -> Iterator[str]:
    """What the hash of a row holds before its prompt, so that a stored answer is found again whatever its scoring."""
    yield row.custom_id
    yield row.reference
    yield row.metadata
    yield row.sampling.SerializeToString(deterministic=True).hex()
    yield str(len(row.stop))
    yield from row.stop


def _hash(texts: Iterable[str]) -> str:
    # Lengths are part of the hash, so that no two rows read the same.
    whole = "".join([f"{len(text)}:{text}" for text in texts])
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:_HASH_DIGITS]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def sample(name: str, size: int, limit: int, seed: int) -> Sequence[int]:
    """Numbers below `size` in increasing order: all where `limit` is 0, else a sample of at most `limit`.

    The sample is fixed by seed, name and number, and nested: 100 are among the 200 of the same seed.
    """
    if not 0 < limit < size:
        return range(size)
    begun = hashlib.sha256(f"{seed}:{name}:".encode())

    def rank(number: int) -> bytes:
        digest = begun.copy()
        digest.update(b"%d" % number)
        return digest.digest()

    return sorted(heapq.nsmallest(limit, range(size), rank))


def item_set(digest: str, size: int, chosen: Sequence[int], scoring: str) -> str:
    """SHA-256 over Dataset.digest, the numbers of the chosen rows unless all are, and the scoring as one text: runs
    with another scoring get another hash."""
    numbers = "" if len(chosen) == size else ",".join(map(str, chosen))
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in (digest, numbers, scoring)).encode()).hexdigest()


class Questions:
    """What rows ask for, without how: their ids and right answers, and the scoring as one text. Datasets that were made
    of one file with two templates have the same."""

    def __init__(self, scoring: str) -> None:
        self._digest = hashlib.sha256()
        self._add((scoring,))

    def add(self, row: DatasetRow, answers: Sequence[str]) -> None:
        """The next row, with its right answers."""
        self._add((row.custom_id, str(len(answers)), *answers))

    def hash(self) -> str:
        """SHA-256 of what was added."""
        return self._digest.hexdigest()

    def _add(self, texts: Iterable[str]) -> None:
        # Lengths are part of the hash, so that no two rows read the same.
        self._digest.update("".join([f"{len(text)}:{text}" for text in texts]).encode("utf-8", "replace"))


class Places:
    """Where rows are among a manifest's shards."""

    def __init__(self, manifest: DatasetManifest) -> None:
        self._shards = list(manifest.shards)
        self._starts = [0, *accumulate(shard.rows for shard in self._shards)]

    @property
    def rows(self) -> int:
        return self._starts[-1]

    def of(self, numbers: Sequence[int]) -> Iterator[tuple[Shard, int, list[int]]]:
        """Shards, each with the number of its first row and with those of `numbers`, which increase, that lie in it."""
        for place, run in groupby(numbers, lambda number: bisect_right(self._starts, number) - 1):
            yield self._shards[place], self._starts[place], list(run)
