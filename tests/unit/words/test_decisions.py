"""What the models of a decision are called, and what it says of them."""

from __future__ import annotations

import pytest

from services.words.decisions import names, said_of
from touchstone.v1 import decision_pb2, job_pb2


def spec(model: str = "m", endpoint: str = "e", **sampling: float) -> job_pb2.JobSpec:
    made = job_pb2.JobSpec(endpoint=endpoint, model=model, sampling=job_pb2.Sampling(**sampling))  # type: ignore[arg-type]
    made.suite.suite = "glue"
    return made


def test_models_are_called_by_their_endpoints() -> None:
    assert names([spec("a"), spec("b", temperature=1)]) == ["a@e", "b@e"]
    assert names([spec(endpoint="one"), spec(endpoint="two")]) == ["m@one", "m@two"]


def test_one_model_is_told_apart_by_what_is_set_otherwise() -> None:
    first, second, third = spec(temperature=0, top_p=0.5), spec(temperature=0.7, top_p=0.5), spec("other")
    third.suite.shots = 1
    assert names([first, second, third]) == [
        "m@e (temperature 0.0)",
        "m@e (temperature 0.7)",
        "other@e",
    ]
    first.suite.shots = 5
    assert names([first, spec(temperature=0, top_p=0.5)]) == ["m@e (5 shots)", "m@e (0 shots)"]
    first.sampling.extra_json = '{"think": false}'
    assert names([first, second])[0] == "m@e (temperature 0.0, think False, 5 shots)"


def test_equal_ones_are_told_apart_by_their_place() -> None:
    assert names([spec(), spec("n"), spec()]) == ["m@e (1)", "n@e", "m@e (3)"]


def test_datasets_are_called_by_their_names() -> None:
    made = [job_pb2.JobSpec(endpoint="e", model="m", dataset=job_pb2.DatasetWork(name=name)) for name in ("a", "b")]
    assert names(made) == ["m@e (a)", "m@e (b)"]


@pytest.mark.parametrize(
    ("pairs", "failed", "said"),
    [
        (40, 0, "b and a are not shown to differ, and all items are unlikely to show it"),
        (58, 2, "b and a are not shown to differ"),
        (60, 0, "b and a are not shown to differ"),
    ],
)
def test_what_all_items_have_shown_is_not_foretold(pairs: int, failed: int, said: str) -> None:
    found = decision_pb2.Decision(
        verdict=job_pb2.DECISION_VERDICT_NO_DIFFERENCE, decided_at=pairs, failed=failed, items_total=60
    )
    assert said_of(found, ["a", "b"]) == said
    found.racers.extend(decision_pb2.Racer(state=decision_pb2.Racer.STATE_LEFT) for _ in "abc")
    assert said_of(found, ["a", "b", "c"]) == said.replace("b and a", "a, b and c")
