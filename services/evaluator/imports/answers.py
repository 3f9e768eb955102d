"""A unit's results out of imported answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from services.errors import TouchstoneError
from services.evaluator.datasets.task import AnyTask
from services.evaluator.imports import item_texts, matching
from services.evaluator.imports.store import ImportStore
from services.evaluator.tasks.base import Item
from services.evaluator.units import result
from services.evaluator.units.hand import FaultError
from services.evaluator.units.load import Loaded
from touchstone.v1.item_result_pb2 import ItemResult
from touchstone.v1.results_service_pb2 import ImportedAnswer

_ABSENT = "The log has no answer to it."


async def results(store: ImportStore, import_id: str, task: str, loaded: Loaded) -> dict[int, ItemResult]:
    """By position, one for every item: what is not there, or belongs to another row, is an error with the reason.

    Raises FaultError when the import is not there any more.
    """
    places: defaultdict[int, dict[int, tuple[int, Item]]] = defaultdict(dict)
    for place, repeat, item in loaded.items:
        places[repeat][item.index] = (place, item)
    found: dict[int, ItemResult] = {}
    for repeat, items in places.items():
        try:
            numbers = {loaded.found.answers[row] if loaded.found else row: row for row in items}
            answers = await store.answers(import_id, task, sorted(numbers), repeat)
        except TouchstoneError as error:
            raise FaultError(error.message) from error
        found.update(_scored(loaded, repeat, items, {numbers[answer.item]: answer for answer in answers}))
    return found


def _scored(
    loaded: Loaded, repeat: int, items: dict[int, tuple[int, Item]], given: dict[int, ImportedAnswer]
) -> Iterator[tuple[int, ItemResult]]:
    make = _found_result if loaded.found else _result
    for index, (place, item) in items.items():
        try:
            yield place, make(loaded.task, item, place, repeat, given.get(index))
        except ValueError as error:
            yield place, result.failed(loaded.task, item, place, repeat, str(error), 0)


def _result(task: AnyTask, item: Item, place: int, repeat: int, answer: ImportedAnswer | None) -> ItemResult:
    """Raises ValueError with the reason why there is none."""
    if answer is None:
        raise ValueError(_ABSENT)
    if why := answer.error or matching.disagreement(item, answer):
        raise ValueError(why)
    response = matching.response(item, answer)
    prompt_hash = item.prompt_hash if matching.asked_as_we_do(item, answer) else matching.prompt_hash(answer)
    return result.imported(task, item, place, repeat, response, answer.prompt, prompt_hash)


def _found_result(task: AnyTask, item: Item, place: int, repeat: int, answer: ImportedAnswer | None) -> ItemResult:
    """As `_result`, of an answer that was found by what it says of its item."""
    if answer is None:
        raise ValueError(_ABSENT)
    if why := answer.error or item_texts.contradiction(task, item, answer):
        raise ValueError(why)
    prompt = answer.prompt or item_texts.shown_prompt(item)
    prompt_hash = item.prompt_hash if item_texts.asked_as_we_do(item, answer) else matching.prompt_hash(answer)
    return result.imported(task, item, place, repeat, matching.response(item, answer), prompt, prompt_hash)
