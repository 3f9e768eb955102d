"""Sampling parameters: declared once, and the same wherever one is given."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest
from google.protobuf.descriptor import FieldDescriptor

from services.chat_requests.faults import WrongRowError
from services.chat_requests.sampling import ask_for
from services.errors import InvalidRequestError
from services.gateway.fields import checks
from services.gateway.fields.job import parameter_problems, parameter_schema
from services.scheduler.admission.validation import validate
from services.words.sampling import BY_REST_NAME, BY_ROW_NAME, PARAMETERS, Parameter, offered
from tests.unit.scheduler.admission.test_validation import LIMITS, NOW, fleet, spec
from touchstone.v1 import dataset_pb2, job_pb2
from touchstone_client.command.arguments.declaring import add_field

REAL = {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}
NO_NUMBERS = {FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_BOOL, FieldDescriptor.CPPTYPE_MESSAGE}


def test_every_number_of_the_message_is_declared_with_a_range_that_its_field_holds() -> None:
    fields = {field.name: field for field in job_pb2.Sampling.DESCRIPTOR.fields if field.cpp_type not in NO_NUMBERS}
    assert {*PARAMETERS} == {*fields}
    for name, one in PARAMETERS.items():
        assert one.low < one.high
        assert one.whole == (fields[name].type not in REAL)
        for end in (one.low, one.high):
            held = job_pb2.Sampling()
            setattr(held, name, end)
            assert getattr(held, name) == end


def test_names_are_unique() -> None:
    assert len(BY_REST_NAME) == sum(1 + len(one.aliases) for one in PARAMETERS.values())
    assert len(BY_ROW_NAME) == sum(1 + len(one.rows) for one in PARAMETERS.values())
    flags = [flag for one in PARAMETERS.values() for flag in one.flags]
    assert sorted({*flags}) == sorted(flags)


def test_parameters_are_offered_to_the_kinds_that_take_them() -> None:
    assert [one.name for one in offered(["baseline"])] == ["seed"]
    assert [one.name for one in offered(["anthropic", "baseline"])] == [
        *("temperature", "top_p", "top_k", "max_tokens", "seed"),
    ]


def scheduler(one: Parameter, value: float) -> str:
    wanted = spec()
    setattr(wanted.sampling, one.name, value)
    try:
        return str(validate(wanted, fleet(one.kinds[0]), LIMITS, NOW) and "")
    except InvalidRequestError as error:
        return error.message.replace(error.field, one.name)


def rest(one: Parameter, value: float) -> str:
    return "".join(sentence for _, sentence in parameter_problems({one.rest: value}, "params")).replace(
        f"params.{one.rest}", one.name
    )


def form(one: Parameter, value: float) -> str:
    return checks.read({one.rest: str(value)}, [one])[1].get(one.rest, "").replace(one.label, one.name)


def row(one: Parameter, value: float) -> str:
    try:
        ask_for(dataset_pb2.DatasetRow(), {one.name: value})
    except WrongRowError as error:
        return str(error).replace('"', "")
    return ""


def command(one: Parameter, value: float) -> str:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_field(parser, one)
    try:
        parser.parse_args([f"{one.flags[0]}={value}"])
    except argparse.ArgumentError as error:
        return f"{error.message}.".replace("it must", f"{one.name} must")
    return ""


@pytest.mark.parametrize("interface", [scheduler, rest, form, row, command])
@pytest.mark.parametrize("one", PARAMETERS.values(), ids=lambda one: one.name)
def test_every_interface_takes_the_same_values_and_says_the_same_of_others(
    interface: Callable[[Parameter, float], str], one: Parameter
) -> None:
    for value in (one.low, one.high):
        assert interface(one, value) == ""
    if one.name != "seed":
        # A seed may be any number that its field holds.
        for value in (one.low - 1, one.high + 1):
            assert interface(one, value) == one.problem(value, one.name)


def test_the_schema_has_every_name_and_range() -> None:
    members = parameter_schema()["properties"]
    assert {*members} == {*BY_REST_NAME}
    for name, one in BY_REST_NAME.items():
        assert (members[name]["minimum"], members[name]["maximum"]) == (one.low, one.high)
