"""Options of a job: declared once, and the same wherever one is given."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from services.errors import InvalidRequestError
from services.gateway.fields import checks
from services.gateway.fields.job import option
from services.scheduler.admission.validation import validate
from services.words.fields import Choice, Number, Switch, declared
from services.words.job_options import ALL, DATASET, NUMBERS, SUITE, SuiteJobOptions, fill, place_of
from tests.unit.scheduler.admission.test_validation import LIMITS, NOW, fleet, spec
from touchstone.v1 import job_pb2, scoring_pb2
from touchstone_client.command.arguments.declaring import add_field

CHOICES = declared(SuiteJobOptions, Choice)
GIVEN: dict[str, Any] = {
    "limit": 5,
    "seed": -7,
    "reading": "strict",
    "stream": True,
    "sampling": job_pb2.Sampling(top_k=4),
    "priority": "low",
    "project_id": 9,
    "time_limit_s": 60,
    "webhook_url": "https://ci.example/hook",
    "any_job": True,
    "without_digest": True,
    "labels": {"ticket": "T-1"},
    "budget_usd": 2.5,
    "tasks": ["a", "b"],
    "mode": "loglikelihood",
    "shots": 3,
    "repeats": 2,
    "scoring": scoring_pb2.Scoring(scorer="contains"),
    "further": [scoring_pb2.Scoring(scorer="json")],
    "provider_batch": True,
}


def suite() -> job_pb2.JobSpec:
    return job_pb2.JobSpec(suite=job_pb2.SuiteWork(suite="glue"))


def dataset() -> job_pb2.JobSpec:
    return job_pb2.JobSpec(dataset=job_pb2.DatasetWork(dataset_id="ds_1"))


@pytest.mark.parametrize(("made", "fields"), [(suite, SUITE), (dataset, DATASET)])
def test_every_option_gets_to_its_place(made: Callable[[], job_pb2.JobSpec], fields: dict[str, Any]) -> None:
    assert {*GIVEN} == {*ALL}
    filled = made()
    fill(filled, GIVEN)
    for name, field in fields.items():
        part, path = place_of(filled, field)
        held = getattr(part, name)
        wanted = field.words[GIVEN[name]] if isinstance(field, Choice) else GIVEN[name]
        assert (list(held) if isinstance(wanted, list) else held) == wanted, path
    # What is not an option of this work stays out.
    others = {name for name, _ in ((field.name, value) for field, value in filled.ListFields())}
    assert others <= {*fields, "suite", "dataset", "reuse"}


def test_empty_options_are_left_out_and_defaults_filled_in() -> None:
    filled = suite()
    fill(filled, dict.fromkeys(ALL) | {"limit": 0, "labels": {}, "tasks": [], "any_job": False, "priority": ""})
    assert filled == job_pb2.JobSpec(mode="MODE_GENERATE", suite=job_pb2.SuiteWork(suite="glue"))
    with pytest.raises(KeyError):
        fill(filled, {"mode": "chat"})


def test_every_range_is_held_by_its_field() -> None:
    for made in (suite, dataset):
        for field in NUMBERS.values():
            if field.name in (SUITE if made is suite else DATASET):
                part, _ = place_of(made(), field)
                for end in (field.low, field.high):
                    setattr(part, field.name, end)
                    assert getattr(part, field.name) == end


def scheduler(one: Number, value: float) -> str:
    wanted = spec()
    part, path = place_of(wanted, one)
    try:
        setattr(part, one.name, value)
        validate(wanted, fleet(), LIMITS, NOW)
    except InvalidRequestError as error:
        assert_own(error, path)
        return error.message.replace(path, one.name)
    except ValueError:
        # The field of the message cannot hold it.
        return one.problem(value, one.name)
    return ""


def assert_own(error: InvalidRequestError, path: str) -> None:
    assert error.field == path, error.message


def rest(one: Number, value: float) -> str:
    return "".join(sentence for _, sentence in option(one.name).check.judge(value, one.name))


def form(one: Number, value: float) -> str:
    sentence = checks.read({one.rest: str(value)}, [one])[1].get(one.rest, "")
    return sentence.replace(one.label, one.name).partition(" Write it as")[0]


def command(one: Number, value: float) -> str:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_field(parser, one)
    try:
        parser.parse_args([f"{one.flags[0]}={value}"])
    except argparse.ArgumentError as error:
        return f"{error.message}.".replace("it must", f"{one.name} must")
    return ""


@pytest.mark.parametrize("interface", [scheduler, rest, form, command])
@pytest.mark.parametrize("one", NUMBERS.values(), ids=lambda one: one.name)
def test_every_interface_says_the_same_of_numbers_out_of_range(
    interface: Callable[[Number, float], str], one: Number
) -> None:
    if one.name == "budget_usd" and interface is form:
        # Amounts have no sign there.
        assert interface(one, -1) == "budget_usd must be a number."
        return
    for value in (one.low - 1, one.high + 1):
        if interface is scheduler and (value == 0 or one.name == "time_limit_s"):
            # Nothing is given, or the installation's own limit holds.
            continue
        assert interface(one, value) == one.problem(value, one.name)


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_that_is_none_is_refused_with_the_others(name: str) -> None:
    wanted, words = spec(), ", ".join(CHOICES[name].words)
    setattr(wanted, name, 77)
    with pytest.raises(InvalidRequestError) as refused:
        validate(wanted, fleet(), LIMITS, NOW)
    assert refused.value.message == f"77 is not a valid spec.{name}. Use one of: {words}."
    assert [*option(name).check.judge("loud", name)] == [(name, f"loud is not a valid {name}. Use one of: {words}.")]


def test_switches_are_off_by_default() -> None:
    parser = argparse.ArgumentParser()
    for field in ALL.values():
        if isinstance(field, Switch):
            add_field(parser, field)
    assert {*vars(parser.parse_args([])).values()} == {False}
