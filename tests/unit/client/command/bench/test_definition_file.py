"""The definition of an experiment on the command line."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest

from services.experiments import files, reading
from services.results.experiments import preparing
from tests.unit.client.command.bench.boards import NAME
from tests.unit.client.fakes import Fakes
from tests.unit.experiments.definitions import small
from tests.unit.experiments.test_stored_definition import stored
from touchstone.v1 import dataset_service_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
DEFINITION = ["bench", "definition", "--experiment", NAME]


def test_the_definition_is_printed_as_collect_takes_it(fakes: Fakes, capsys: Captured) -> None:
    definition = reading.read(small(name=NAME, repeats=2))
    experiment, rows = stored(definition)
    experiment.dataset_id = "ds_1"
    fakes.answers["GetExperiment"] = pb.GetExperimentResponse(experiment=experiment)
    fakes.answers["ListDatasetRows"] = dataset_service_pb2.ListDatasetRowsResponse(rows=rows)
    assert main(DEFINITION) == 0
    made = files.definition(capsys.readouterr().out.encode())
    assert preparing.source_of(reading.read(made)) == preparing.source_of(definition)
    (request,) = fakes.requests("ListDatasetRows")
    assert (request.dataset_id, request.whole) == ("ds_1", True)
    assert main([*DEFINITION, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == made


def test_scenarios_that_are_gone_are_said(fakes: Fakes, capsys: Captured) -> None:
    experiment, _ = stored(reading.read(small(name=NAME)))
    fakes.answers["GetExperiment"] = pb.GetExperimentResponse(experiment=experiment)
    fakes.answers["ListDatasetRows"] = dataset_service_pb2.ListDatasetRowsResponse()
    assert main(DEFINITION) != 0
    assert f"The scenarios of experiment {NAME} are not stored any more." in capsys.readouterr().err


def test_without_its_package_json_is_offered(fakes: Fakes, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, _ = stored(reading.read(small(name=NAME, scenarios={"set": "tips", "count": 1}, prompts=["v1"])))
    fakes.answers["GetExperiment"] = pb.GetExperimentResponse(experiment=experiment)
    whole = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name == "services.chat_requests" and "yaml_document" in (rest[2] or ()):
            raise ModuleNotFoundError("No module named 'yaml'")
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(DEFINITION) != 0
    assert "use --format json" in capsys.readouterr().err
    assert main([*DEFINITION, "--format", "json"]) == 0
