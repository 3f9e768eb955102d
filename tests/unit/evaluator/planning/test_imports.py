"""Imported answers: which item each belongs to, what it says, and what a job over them comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from services.errors import InvalidRequestError
from services.evaluator.catalogue import Catalogue
from services.evaluator.datasets.opened import OpenDatasets
from services.evaluator.planning import imports
from services.evaluator.units.unit_loader import Loader
from services.evaluator.units.units_in_hand import FaultError
from tests.unit.evaluator.imports.logged import IMPORT, LOGLIKELIHOOD, Store, logged
from touchstone.v1 import job_pb2, suite_pb2, unit_pb2
from touchstone.v1.results_service_pb2 import ImportedAnswer


def spec(task: str, mode: suite_pb2.Mode = LOGLIKELIHOOD, import_id: str = IMPORT) -> job_pb2.JobSpec:
    return job_pb2.JobSpec(
        endpoint="lm_eval",
        model="m",
        mode=mode,
        suite=job_pb2.SuiteWork(suite="glue", tasks=[task]),
        reuse=job_pb2.Reuse(import_id=import_id),
    )


async def planned(
    catalogue: Catalogue, given: Sequence[ImportedAnswer], hashes: Mapping[str, str] | None = None
) -> tuple[job_pb2.TaskPlan, job_pb2.Receipt]:
    store = Store("rte", given, LOGLIKELIHOOD, hashes or {})
    (made,), receipt = await imports.plan(spec("rte"), store, catalogue, 32)
    return made, receipt


async def test_a_log_of_all_rows_with_our_prompts_is_planned_as_our_own_run(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    own = catalogue.plan(job_pb2.SuiteWork(suite="glue", tasks=["rte"]), LOGLIKELIHOOD, 32)
    made, receipt = await planned(catalogue, logged(task, range(task.size())), {"rte": "f" * 64})
    assert [made] == own
    assert (receipt.endpoint_kind, receipt.server) == ("lm_eval", "lm_eval 0.4.13")


async def test_a_run_covers_the_rows_of_the_log_alone(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    made, _ = await planned(catalogue, logged(task, [1, 3]))
    assert (made.items, made.item_set) == (2, catalogue.chosen(task, [1, 3]).item_set)
    assert made.prompt_hash == task.prompt_hash()


@pytest.mark.parametrize(("hashes", "said"), [({"rte": "ab" * 32}, "ab" * 8), ({}, None)])
async def test_other_prompts_have_a_hash_of_their_own(
    catalogue: Catalogue, hashes: dict[str, str], said: str | None
) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    given = logged(task, [0, 1])
    given[1].prompt += " "
    made, _ = await planned(catalogue, given, hashes)
    assert made.prompt_hash != task.prompt_hash()
    assert said in (None, made.prompt_hash)


async def test_the_same_prompt_with_other_continuations_is_another_prompt(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    given = logged(task, [0])
    given[0].continuations[0].text = " Yes"
    made, _ = await planned(catalogue, given)
    assert made.prompt_hash != task.prompt_hash()


async def test_rows_that_the_data_does_not_have_are_left_out(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    beyond = logged(task, [0])
    beyond[0].item = task.size()
    made, _ = await planned(catalogue, [*logged(task, [0]), *beyond])
    assert made.items == 1
    with pytest.raises(InvalidRequestError, match="No row of the import is in this installation's data"):
        await planned(catalogue, beyond)


async def test_units_are_loaded_by_the_rows_of_the_log(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte", LOGLIKELIHOOD)
    loader = Loader(catalogue, Store("rte", logged(task, [1, 3]), LOGLIKELIHOOD, {}), OpenDatasets(None))
    item_set = catalogue.chosen(task, [1, 3]).item_set
    unit = unit_pb2.Unit(spec=spec("rte"), task="rte", start=1, stop=2, item_set=item_set)
    assert [item.index for _, _, item in (await loader.load(unit)).items] == [3]
    unit.spec.reuse.import_id = "gone"
    with pytest.raises(FaultError):
        await loader.load(unit)
