"""Which rows become few-shot examples, and how they stand before an item."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.data.reader import DataError
from services.evaluator.tasks.kinds.few_shot import order
from services.evaluator.tasks.kinds.split_task import SplitTask
from touchstone.v1 import suite_pb2

GENERATE, LOGLIKELIHOOD = suite_pb2.MODE_GENERATE, suite_pb2.MODE_LOGLIKELIHOOD


@pytest.mark.parametrize(
    ("references", "count", "balanced", "places"),
    [
        ("aaabab", 3, False, [0, 1, 2, 3]),
        ("aaabab", 2, True, [0, 3, 1]),
        ("aaabab", 3, True, [0, 1, 3, 2]),
        ("aaabab", 4, True, [0, 1, 3, 5, 2]),
        ("aaac", 4, True, [0, 1, 2, 3]),
        ("aaaac", 4, True, [0, 1, 2, 4, 3]),
        ("abc", 1, True, [0, 1]),
        ("ab", 2, True, [0, 1]),
    ],
)
def test_first_rows_are_taken_with_equal_shares_where_asked(
    references: str, count: int, balanced: bool, places: list[int]
) -> None:
    """The last place is the spare one, where a row is left."""
    assert order(list(references), count, balanced) == places


def _write(root: Path, validation: list[tuple[str, int]], train: list[tuple[str, int]]) -> Catalogue:
    folder = root / "nyu-mll" / "glue" / "sst2"
    folder.mkdir(parents=True, exist_ok=True)
    for split, rows in (("validation", validation), ("train", train)):
        lines = (json.dumps({"sentence": text, "label": label}) + "\n" for text, label in rows)
        (folder / f"{split}.jsonl").write_text("".join(lines))
    return Catalogue(root)


TRAIN = [("good one", 1), ("better one", 1), ("", 0), ("bad one", 0), ("worse one", 0)]


def test_item_that_is_an_example_is_shown_the_spare_one_instead(tmp_path: Path) -> None:
    catalogue = _write(tmp_path, [("bad one", 0), ("new one", 1)], TRAIN)
    task = catalogue.task("glue", "sst2", LOGLIKELIHOOD, 2)
    itself, other = task.items([0, 1])
    asked = "\nQuestion: Is this sentence positive or negative?\nAnswer:"
    assert other.context == f"good one{asked} positive\n\nbad one{asked} negative\n\nnew one{asked}"
    assert itself.context == f"good one{asked} positive\n\nbetter one{asked} positive\n\nbad one{asked}"


def test_generate_mode_shows_examples_as_turns_with_the_whole_prompt(tmp_path: Path) -> None:
    catalogue = _write(tmp_path, [("new one", 1)], TRAIN)
    plain = next(catalogue.task("glue", "sst2").items([0]))
    shown = next(catalogue.task("glue", "sst2", GENERATE, 2).items([0]))
    first, said, second, replied, asked = shown.messages
    assert asked == plain.messages[0]
    assert (first.content, second.content) == tuple(
        plain.messages[0].content.replace("new one", text) for text in ("good one", "bad one")
    )
    assert (said.role, said.content) == ("assistant", "Answer: positive")
    assert (replied.role, replied.content) == ("assistant", "Answer: negative")


def test_rows_without_a_text_are_no_examples(tmp_path: Path) -> None:
    task = _write(tmp_path, [("new one", 1)], TRAIN).task("glue", "sst2", GENERATE, 4)
    assert isinstance(task, SplitTask)
    assert task.example_rows() == (0, 1, 3, 4)


def test_too_few_rows_for_the_examples_are_named(tmp_path: Path) -> None:
    task = _write(tmp_path, [("new one", 1)], TRAIN).task("glue", "sst2", GENERATE, 5)
    with pytest.raises(DataError) as error:
        task.prompt_hash()
    assert error.value.message == (
        "nyu-mll/glue (sst2, train) cannot be used: it has only 4 rows for 5 few-shot examples. "
        "Ask for fewer, or use a longer split."
    )


def test_prompt_hash_follows_the_examples(tmp_path: Path) -> None:
    first = _write(tmp_path / "a", [("new one", 1)], TRAIN)
    other = _write(tmp_path / "b", [("new one", 1)], [("nice one", 1), *TRAIN])
    hashes = [catalogue.task("glue", "sst2", GENERATE, 2).prompt_hash() for catalogue in (first, other)]
    assert hashes[0] != hashes[1]
    assert first.task("glue", "sst2").prompt_hash() == other.task("glue", "sst2").prompt_hash()
