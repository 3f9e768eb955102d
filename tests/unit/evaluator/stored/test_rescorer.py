"""Imported answers are scored."""

from __future__ import annotations

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.stored import rescorer
from services.evaluator.units.unit_loader import Loaded
from services.evaluator.units.units_in_hand import FaultError
from tests.unit.evaluator.imports.logged import LOGLIKELIHOOD, Store, logged, results
from touchstone.v1 import item_result_pb2

ERROR = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR
ANSWERED = item_result_pb2.OUTCOME_ANSWERED


async def test_answers_are_scored_by_our_scorers(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    for best in (0, 1):
        for result, item in zip(
            await results(task, logged(task, [0, 1, 2], best), [0, 1, 2]), task.items([0, 1, 2]), strict=True
        ):
            assert (result.outcome, result.prediction) == (ANSWERED, task.labels[best])
            assert result.statistics["correct"] == (item.reference == task.labels[best])
            assert (result.prompt, result.prompt_hash) == (item.context, item.prompt_hash)
            assert (result.calls, result.reused, result.item_hash) == (0, True, item.hash)


async def test_an_answer_without_all_choices_is_an_error_and_never_scored(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    (given,) = logged(task, [0])
    del given.continuations[1]
    (result,) = await results(task, [given], [0])
    assert (result.outcome, result.error) == (ERROR, "The log has 1 continuation, but the item has 2 choices.")
    assert not result.statistics


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308])
async def test_a_log_likelihood_that_cannot_be_is_an_error_of_its_item(catalogue: Catalogue, value: float) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    lied, honest = logged(task, [0, 1])
    lied.continuations[0].loglikelihood = value
    honest.continuations[1].loglikelihood = float("-inf")
    first, second = await results(task, [lied, honest], [0, 1])
    assert (first.outcome, first.error) == (ERROR, "The log has an impossible log-likelihood.")
    assert second.outcome == ANSWERED


async def test_what_the_log_lacks_or_failed_is_an_error_with_the_reason(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    (failed,) = logged(task, [1])
    failed.error = "Inspect had an error: boom"
    absent, broken = await results(task, [failed], [0, 1])
    assert (absent.outcome, absent.error) == (ERROR, "The log has no answer for it.")
    assert (broken.outcome, broken.error) == (ERROR, "Inspect had an error: boom")


async def test_an_answer_to_another_row_is_an_error_and_never_scored(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    shifted = logged(task, [1, 2])
    for answer in shifted:
        answer.item -= 1
    for result in await results(task, shifted, [0, 1]):
        assert result.outcome == ERROR
        assert "The log's row differs" in result.error
        assert not result.statistics


async def test_generated_answers_are_read_by_our_extraction(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte")
    given = logged(task, [0, 1])
    given[1].response, given[1].finish_reason = "It may well", "max_tokens"
    right, cut = await results(task, given, [0, 1])
    assert (right.outcome, right.statistics["correct"]) == (ANSWERED, 1.0)
    assert cut.outcome == item_result_pb2.OUTCOME_OUTPUT_TRUNCATED


async def test_an_import_that_is_gone_fails_the_job_with_the_stores_sentence(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    loaded = Loaded(task, [(0, 0, next(iter(task.items([0]))))])
    with pytest.raises(FaultError, match="gone"):
        await rescorer.results(Store("rte", [], LOGLIKELIHOOD, {}), "other", "rte", loaded)
