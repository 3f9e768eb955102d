"""The switch of the optional suite `lm_eval`. What it does is shown by `make parity`, where lm_eval is installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from services.errors import InvalidRequestError
from services.evaluator.lm_eval.suite import LmEvalSuite, group_weighting
from services.evaluator.settings import Settings
from touchstone.v1.suite_pb2 import WEIGHTING_ITEMS, WEIGHTING_TASKS, Weighting


@pytest.mark.skipif(find_spec("lm_eval") is not None, reason="lm_eval is installed here")
def test_evaluator_says_what_to_install_where_lm_eval_is_switched_on_and_missing() -> None:
    with pytest.raises(InvalidRequestError) as error:
        LmEvalSuite(None)
    assert error.value.message == (
        "TOUCHSTONE_LM_EVAL is set, but lm_eval is not installed. Install touchstone[lm_eval], or unset it."
    )


@pytest.mark.parametrize(("text", "on"), [("", False), ("0", False), ("1", True)])
def test_lm_eval_is_off_unless_switched_on(monkeypatch: pytest.MonkeyPatch, text: str, on: bool) -> None:
    monkeypatch.setenv("TOUCHSTONE_LM_EVAL", text)
    assert Settings.from_env().lm_eval is on


def test_a_switch_that_is_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_LM_EVAL", "yes")
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_LM_EVAL must be 0 or 1; it is 'yes'"):
        Settings.from_env()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([{"metric": "acc", "weight_by_size": True}], WEIGHTING_ITEMS),
        ([{"metric": "acc", "aggregation": "mean"}], WEIGHTING_ITEMS),
        ({"metric": "acc", "weight_by_size": True}, WEIGHTING_ITEMS),
        (
            [{"metric": "acc", "weight_by_size": False}, {"metric": "acc_norm", "weight_by_size": False}],
            WEIGHTING_TASKS,
        ),
        (None, WEIGHTING_TASKS),
        ([], WEIGHTING_TASKS),
    ],
)
def test_a_group_keeps_its_weights(rules: object, expected: Weighting) -> None:
    group = {"group": "g", "task": ["a", "b"]} | ({} if rules is None else {"aggregate_metric_list": rules})
    assert group_weighting(group) == expected
