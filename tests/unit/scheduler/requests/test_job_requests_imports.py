"""Jobs over answers that another tool collected: what is asked of them, and where their units go."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from services.bus import STORED_ENDPOINT
from services.errors import ConflictError, InvalidRequestError, NotFoundError
from services.scheduler.jobs.fleet import route
from services.scheduler.requests.job_requests import Desk
from services.scheduler.requests.visibility import Reads
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, BOB, DATASET, World, dataset_spec, evaluator, plan
from touchstone.v1 import item_result_pb2, job_pb2, results_service_pb2, suite_pb2, unit_pb2

IMPORT = str(uuid.uuid4())


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.fleet.hear(evaluator(), made.time)
    made.results.imports[IMPORT] = results_service_pb2.GetImportResponse(
        owner="alice",
        run=results_service_pb2.ImportedRun(tool="lm_eval", model="gpt-x", suite="demo", mode=suite_pb2.MODE_GENERATE),
        tasks=[
            results_service_pb2.ImportedTask(task=task, items=100, answers=100, repeats=1) for task in ("one", "two")
        ],
    )
    await made.start()
    yield made
    await made.stop()


def imported(**reuse: object) -> job_pb2.JobSpec:
    taken = job_pb2.Reuse(**({"import_id": IMPORT} | reuse))  # type: ignore[arg-type]
    return job_pb2.JobSpec(endpoint="lm_eval", model="gpt-x", suite=job_pb2.SuiteWork(suite="demo"), reuse=taken)


async def test_an_import_needs_no_endpoint_and_runs_wherever_an_evaluator_is(world: World) -> None:
    job = await world.desk.create(ALICE, "", imported())
    await world.settle()
    assert (job.spec.endpoint, route(job.spec), job.baseline) == ("lm_eval", STORED_ENDPOINT, False)
    receipt = job_pb2.Receipt(endpoint_kind="lm_eval", configuration="c")
    await world.planned(job.job_id, unit_pb2.Plan(tasks=plan().tasks, receipt=receipt))
    assert world.desk.get(job.job_id).receipt == receipt
    await world.run_all(job.job_id)
    assert world.state(job.job_id) == "completed"


@pytest.mark.parametrize(
    "reuse",
    [
        {"job_id": IMPORT},
        {"any_job": True},
        {"rerun": [item_result_pb2.OUTCOME_UNPARSED]},
        {"import_id": "x"},
        {"import_id": IMPORT.upper()},
    ],
)
async def test_an_import_stands_alone(world: World, reuse: dict[str, object]) -> None:
    wanted = imported(**reuse)
    world.results.old[IMPORT] = job_pb2.Job(job_id=IMPORT, state=job_pb2.Job.STATE_COMPLETED, plan=plan().tasks)
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wanted)
    assert refused.value.field.startswith("spec.reuse.")


def of_stub(spec: job_pb2.JobSpec) -> None:
    spec.endpoint = "stub"


def of_another_tool(spec: job_pb2.JobSpec) -> None:
    spec.endpoint = "inspect"


def of_another_model(spec: job_pb2.JobSpec) -> None:
    spec.model = "gpt-y"


def in_another_mode(spec: job_pb2.JobSpec) -> None:
    spec.mode = suite_pb2.MODE_LOGLIKELIHOOD


def of_an_absent_task(spec: job_pb2.JobSpec) -> None:
    spec.suite.tasks.append("paraphrase")


def limited(spec: job_pb2.JobSpec) -> None:
    spec.suite.limit = 1


def over_a_dataset(spec: job_pb2.JobSpec) -> None:
    spec.dataset.dataset_id = "ds_1"


def repeated(spec: job_pb2.JobSpec) -> None:
    spec.suite.repeats = 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (of_stub, "spec.endpoint"),
        (of_another_tool, "spec.endpoint"),
        (of_another_model, "spec.model"),
        (in_another_mode, "spec.mode"),
        (of_an_absent_task, "spec.suite.tasks"),
        (limited, "spec.suite.limit"),
        (repeated, "spec.suite.repeats"),
        (over_a_dataset, "spec.suite.suite"),
    ],
)
async def test_an_import_is_run_as_what_it_is(
    world: World, change: Callable[[job_pb2.JobSpec], None], field: str
) -> None:
    wanted = imported()
    change(wanted)
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wanted)
    assert refused.value.field == field


async def test_an_endpoint_run_cannot_bear_a_tools_name_without_an_import(world: World) -> None:
    wanted = imported()
    wanted.ClearField("reuse")
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wanted)
    assert refused.value.field == "spec.endpoint"


async def test_an_unknown_import_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError, match=r"Import .* not found"):
        await world.desk.create(ALICE, "", imported(import_id=str(uuid.uuid4())))


async def test_where_reads_are_closed_an_import_of_another_user_is_not_found(world: World) -> None:
    desk = Desk(world.registry, world.results, Reads(own=True))
    with pytest.raises(NotFoundError, match=r"Import .* not found"):
        await desk.create(BOB, "", imported())
    assert (await desk.create(ALICE, "", imported())).owner == "alice"


async def test_an_imported_runs_answers_are_taken_by_no_other_job(world: World) -> None:
    job = await world.desk.create(ALICE, "", imported())
    await world.settle()
    await world.planned(job.job_id)
    await world.run_all(job.job_id)
    rescore = imported(import_id="", job_id=job.job_id)
    with pytest.raises(ConflictError, match="import the log again"):
        await world.desk.create(ALICE, "", rescore)


async def test_too_few_imported_answers_fail_the_job_with_what_to_do(world: World) -> None:
    job = await world.desk.create(ALICE, "", imported())
    await world.settle()
    await world.planned(job.job_id)
    world.results.missing = 150
    await world.run_all(job.job_id)
    assert world.desk.get(job.job_id).reason == (
        "150 of 200 items have no stored answer, which is more than 5%. "
        "Import the missing answers too, or import fewer tasks."
    )


async def test_an_import_for_a_dataset_may_be_of_more_rows_than_a_job_may_ask() -> None:
    world = World(Limits(requests_per_job=60))
    world.fleet.hear(evaluator(), world.time)
    await world.start()
    world.datasets.put(rows=100)
    run = results_service_pb2.ImportedRun(
        tool="imported", model="gpt-x", dataset_id=DATASET, mode=suite_pb2.MODE_GENERATE
    )
    world.results.imports[IMPORT] = results_service_pb2.GetImportResponse(owner="alice", run=run)
    asked = dataset_spec()
    asked.endpoint, asked.model, asked.reuse.import_id = "imported", "gpt-x", IMPORT
    job = await world.desk.create(ALICE, "", asked)
    assert (job.spec.dataset.name, job.spec.dataset.limit) == ("rows.jsonl", 0)
    asked.dataset.dataset_id = f"ds_{'e' * 32}"
    with pytest.raises(InvalidRequestError, match=r"dataset\.dataset_id must be 'ds_a.* for this import; it is 'ds_e"):
        await world.desk.create(ALICE, "", asked)
    await world.stop()
