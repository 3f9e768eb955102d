"""Which units an evaluator refuses to run."""

from __future__ import annotations

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.imports.store import NoImports
from services.evaluator.plugins.contract import NotHereError
from services.evaluator.units.unit_loader import Loader
from touchstone.v1 import job_pb2, scoring_pb2, unit_pb2

SUITE = job_pb2.JobSpec(suite=job_pb2.SuiteWork(suite="sums"))
ROWS = job_pb2.JobSpec(dataset=job_pb2.DatasetWork(dataset_id="d", scoring=scoring_pb2.Scoring(scorer="same_words")))


@pytest.mark.parametrize("spec", [SUITE, ROWS])
async def test_a_unit_that_another_version_of_a_plugin_planned_goes_back(spec: job_pb2.JobSpec) -> None:
    loader = Loader(Catalogue(None), NoImports(), OpenDatasets(None))
    with pytest.raises(NotHereError, match=r"^it needs the plug-in example 1.0; this evaluator has no such plug-in$"):
        await loader.load(unit_pb2.Unit(spec=spec, task="two_numbers", stop=1, plugin="example 1.0"))
