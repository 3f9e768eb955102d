"""Aliases and names of configurations."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import Fakes
from touchstone.v1 import results_service_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


def test_an_alias_that_moves_says_whom_it_left(fakes: Fakes, capsys: Captured) -> None:
    told = results_service_pb2.Configuration(configuration="c1", alias="prod", alias_taken_from=["c0"])
    fakes.answers["NameConfiguration"] = results_service_pb2.NameConfigurationResponse(configuration=told)
    assert main(["configurations", "name", "c1", "--alias", "prod"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "c1: name none, alias prod",
        "The alias prod was taken from c0.",
    ]
