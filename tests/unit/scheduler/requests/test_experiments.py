"""Experiments: one job for each model, whatever comes in between, and judges apart from answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from services.errors import (
    ConflictError,
    InvalidFieldsError,
    InvalidRequestError,
    LimitReachedError,
    TouchstoneError,
    UnavailableError,
)
from services.rpc import Identity
from services.scheduler.ports import Change, LeadershipLostError
from services.scheduler.requests.judges import Judges
from services.scheduler.settings import Limits
from tests.unit.experiments.definitions import small
from tests.unit.scheduler.fakes import ADMIN, ALICE, World, dataset_spec, evaluator, plan
from touchstone.v1 import endpoint_pb2, evaluator_pb2, job_pb2, token_pb2
from touchstone.v1 import scheduler_service_pb2 as pb

OTHER_ADMIN = Identity("second", token_pb2.ROLE_ADMIN)
MODELS = ["ollama/qwen2.5:0.5b", "ollama/gemma3:1b"]
JUDGE = job_pb2.Judge(endpoint="stub", model="m")


def _fleet() -> evaluator_pb2.Evaluator:
    made = evaluator()
    listed = {"qwen2.5:0.5b": 0.49, "gemma3:1b": 1.0, "latecomer": 2.0, "giant": 70.0}
    made.endpoints.add(
        endpoint="ollama",
        kind="ollama",
        state=endpoint_pb2.Endpoint.STATE_REACHABLE,
        concurrency=1,
        exclusive=True,
        models=[
            endpoint_pb2.Model(model=name, parameters_b=size, input_price=1.0, output_price=1.0)
            for name, size in listed.items()
        ],
    )
    made.endpoints[1].refreshed_at.seconds = 1
    return made


@pytest.fixture
async def world() -> World:
    return _world()


def _world(**limits: Any) -> World:
    made = World(Limits(**limits))
    made.datasets.put()
    made.fleet.hear(_fleet(), made.time)
    return made


async def _run(
    world: World,
    *judges: job_pb2.Judge,
    who: Identity = ADMIN,
    check_only: bool = False,
    definition: str | None = None,
    **changes: Any,
) -> pb.RunExperimentResponse:
    text = json.dumps(small(**changes)) if definition is None else definition
    answer = await world.experiments.run(
        who, pb.RunExperimentRequest(definition=text, judges=judges, check_only=check_only)
    )
    for job in world.registry.jobs.values():
        world.datasets.put(job.message.spec.dataset.dataset_id)
    await world.settle()
    return answer


async def _complete(world: World, job_id: str) -> None:
    await world.planned(job_id, plan(items=40, unit_size=20, tasks=["rows"]))
    await world.run_all(job_id)
    await world.settle()
    assert world.state(job_id) == "completed"


async def _look(world: World) -> list[job_pb2.Job]:
    """The jobs that judge, after a look for judges to start."""
    running = asyncio.create_task(Judges(world.registry, world.desk).run())
    await world.settle()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await world.settle()
    return [job for job in world.desk.list("") if job.spec.HasField("judging")]


def _seeded(seed: int) -> job_pb2.Judge:
    return job_pb2.Judge(endpoint="stub", model="m", sampling=job_pb2.Sampling(seed=seed))


def _ids(answer: pb.RunExperimentResponse) -> list[str]:
    return [job.job_id for job in answer.jobs]


# -- jobs ----------------------------------------------------------------------------------------------------------


async def test_each_model_has_one_job_over_the_same_rows(world: World) -> None:
    made = await _run(world, repeats=2, temperature=0.5, priority="high", max_tokens=100, budget_usd=3)
    assert (made.experiment, made.cells, made.calls) == ("greetings", 4, 8)
    assert [f"{job.spec.endpoint}/{job.spec.model}" for job in made.jobs] == MODELS
    for job in made.jobs:
        assert (job.owner, job.spec.experiment_name, job.attempt) == (ADMIN.user, "greetings", 1)
        assert job.spec.dataset.dataset_id == made.dataset_id
        assert (job.spec.sampling.temperature, job.spec.sampling.max_tokens) == (0.5, 100)
        assert json.loads(job.spec.sampling.extra_json) == {"keep_alive": 0}
        assert (job.spec.priority, job.spec.budget_usd) == (job_pb2.PRIORITY_HIGH, 1.5)


async def test_only_ollama_is_told_to_unload_a_model(world: World) -> None:
    made = await _run(world, models=["stub/m"])
    assert made.jobs[0].spec.sampling.extra_json == ""


async def test_run_again_it_goes_on_with_the_same_jobs(world: World) -> None:
    first = await _run(world)
    again = await _run(world, who=OTHER_ADMIN)
    assert _ids(again) == _ids(first)
    assert len(world.registry.jobs) == 2


async def test_calls_at_the_same_time_make_each_job_once(world: World) -> None:
    answers = await asyncio.gather(*(_run(world) for _ in range(5)))
    assert len({tuple(_ids(answer)) for answer in answers}) == 1
    assert len(world.registry.jobs) == 2


async def test_more_models_of_the_same_experiment_get_jobs_of_the_same_owner(world: World) -> None:
    first = await _run(world)
    more = await _run(world, who=OTHER_ADMIN, models=["latecomer", *MODELS])
    assert _ids(more)[1:] == _ids(first)
    assert (more.jobs[0].spec.endpoint, more.jobs[0].owner) == ("ollama", ADMIN.user)
    assert more.dataset_id == first.dataset_id


async def test_what_failed_was_cancelled_or_misses_answers_runs_again(world: World) -> None:
    await world.start()
    first, second = _ids(await _run(world))
    await world.desk.cancel(ADMIN, first)
    world.results.missing = 1
    await _complete(world, second)
    assert world.registry.jobs[second].message.incomplete
    again = await _run(world, who=OTHER_ADMIN)
    assert _ids(again) == [first, second]
    assert [job.attempt for job in again.jobs] == [2, 2]
    assert _ids(await _run(world)) == [first, second]
    assert world.registry.jobs[first].message.attempt == 2
    await world.stop()


async def test_a_completed_job_stays_as_it_is(world: World) -> None:
    await world.start()
    first, _second = _ids(await _run(world))
    await _complete(world, first)
    await _run(world)
    assert world.state(first) == "completed"
    await world.stop()


async def test_jobs_that_only_the_results_service_still_knows_are_not_made_again(world: World) -> None:
    made = await _run(world)
    done, failed = made.jobs
    done.state, failed.state = job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_FAILED
    other = job_pb2.Job(job_id="other", spec=done.spec)
    other.spec.ClearField("experiment_name")
    world.results.old = {job.job_id: job for job in (done, failed, other)}
    world.registry.jobs.clear()
    again = await _run(world)
    assert _ids(again) == [done.job_id, failed.job_id]
    assert [job.state for job in again.jobs] == [job_pb2.Job.STATE_COMPLETED, job_pb2.Job.STATE_PENDING]
    assert list(world.registry.jobs) == [failed.job_id]


async def test_a_deleted_job_is_made_anew(world: World) -> None:
    first, second = _ids(await _run(world))
    await world.desk.cancel(ADMIN, first)
    await world.desk.delete(ADMIN, first)
    third, same = _ids(await _run(world))
    assert third != first
    assert same == second


# -- crashes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash", ["before the rows", "after the rows", "before the retries", "before the new jobs"])
async def test_the_same_call_makes_good_a_crash_at_any_step(crash: str) -> None:
    world = _world()
    cancelled = ""
    if crash in ("before the retries", "before the new jobs"):
        (cancelled,) = _ids(await _run(world, models=MODELS[:1]))
        await world.desk.cancel(ADMIN, cancelled)
    commits = 0
    prepare, commit = world.results.prepare_experiment, world.store.commit

    async def prepare_and_crash(owner: str, definition: str, check_only: bool = False) -> Any:
        if check_only:
            return await prepare(owner, definition, check_only)
        if crash == "after the rows":
            await prepare(owner, definition)
        raise UnavailableError("crashed")

    async def commit_and_crash(changes: Sequence[Change], pending_by_owner: dict[str, int]) -> None:
        nonlocal commits
        commits += 1
        if commits == (1 if crash == "before the retries" else 2):
            raise LeadershipLostError("crashed")
        await commit(changes, pending_by_owner)

    if cancelled:
        world.store.commit = commit_and_crash  # type: ignore[method-assign]
    else:
        world.results.prepare_experiment = prepare_and_crash  # type: ignore[method-assign]
    with pytest.raises(TouchstoneError):
        await _run(world)
    world.store.commit, world.results.prepare_experiment = commit, prepare  # type: ignore[method-assign]
    world.lead()
    world.fleet.hear(_fleet(), world.time)
    world.scheduler.restore(world.store.jobs(), set(), 0)
    made = await _run(world)
    assert len(world.registry.jobs) == len(made.jobs) == 2
    if cancelled:
        assert (made.jobs[0].job_id, made.jobs[0].attempt) == (cancelled, 2)
    assert {job.state for job in made.jobs} == {job_pb2.Job.STATE_PENDING}
    assert len(world.results.experiments) == 1


async def test_jobs_whose_write_failed_are_not_told_to_a_call_that_waited(world: World) -> None:
    world.store.fenced = True
    answers = await asyncio.gather(_run(world), _run(world), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LeadershipLostError] * 2


async def test_a_silent_results_service_starts_nothing(world: World) -> None:
    world.results.down = True
    with pytest.raises(UnavailableError):
        await _run(world)
    assert not world.registry.jobs


async def test_a_full_queue_takes_all_jobs_or_none_and_the_same_call_later_starts_them() -> None:
    world = _world(pending_per_owner=2)
    waiting = await world.create(ADMIN)
    with pytest.raises(LimitReachedError, match="room for 1 more of your jobs, not for 2"):
        await _run(world)
    assert not world.results.experiments
    await world.desk.cancel(ADMIN, waiting)
    made = await _run(world)
    assert len(made.jobs) == 2
    with pytest.raises(LimitReachedError):
        await _run(world, models=[*MODELS, "latecomer"])
    assert len(world.registry.in_state(job_pb2.Job.STATE_PENDING)) == 2


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"models": ["ollama/giant"]}, "models[0]", r"giant at ollama has 70 billion parameters; max_model_b is 4\."),
        ({"models": [{"provider": "nowhere", "model": "a"}]}, "models[0]", r"provider nowhere not found"),
        ({"models": ["ollama/missing"]}, "model", r"does not have model missing"),
        ({"repeats": 0}, "repeats", r"repeats"),
        ({"definition": "{"}, "", r"The definition is not JSON"),
        ({"definition": "[]"}, "", r"must be an object"),
        ({"definition": '{"name": "a", "name": "b"}'}, "", r"name"),
        ({"definition": " " * (3 * 1024 * 1024 + 1)}, "", r"at most 3,145,728 are allowed"),
    ],
)
async def test_what_cannot_run_is_refused_before_anything_is_made(
    world: World, changes: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said) as refused:
        await _run(world, **changes)
    assert refused.value.field == field
    assert not world.results.experiments
    assert not world.registry.jobs


async def test_a_baseline_that_answers_no_prompt_is_refused_also_by_a_check(world: World) -> None:
    fleet = _fleet()
    fleet.endpoints.add(
        endpoint="baseline",
        kind="baseline",
        baseline=True,
        state=endpoint_pb2.Endpoint.STATE_REACHABLE,
        models=[endpoint_pb2.Model(model=name) for name in ("echo", "majority", "random")],
    )
    world.fleet.hear(fleet, world.time)
    models = ["baseline/echo", "baseline/majority", "baseline/random"]
    with pytest.raises(InvalidFieldsError) as refused:
        await _run(world, models=models, check_only=True)
    assert refused.value.problems == [
        (
            "models[1]",
            "majority at baseline gives the most frequent reference, and no scenario has one. Leave it out.",
        ),
        ("models[2]", "random at baseline chooses among labels and cannot answer prompts. Leave it out."),
    ]
    scenarios = [{"who": "Ada", "reference": "Hello Ada"}]
    await _run(world, models=models[:2], scenarios=scenarios, check_only=True)


async def test_a_model_with_a_nul_is_refused_at_its_field(world: World) -> None:
    with pytest.raises(InvalidFieldsError) as refused:
        await _run(world, models=["local/a\0b"])
    assert refused.value.problems == [("models[0]", "models[0] contains the NUL character. Remove it.")]


async def test_a_judge_that_is_named_twice_is_refused(world: World) -> None:
    judge = job_pb2.Judge(endpoint="stub", model="m")
    with pytest.raises(InvalidRequestError, match="m at stub is given twice as the same judge") as no:
        await _run(world, judge, judge)
    assert no.value.field == "judges[1]"
    assert not world.results.experiments


async def test_a_judge_that_is_too_large_is_refused_unless_the_definition_allows_it(world: World) -> None:
    judge = job_pb2.Judge(endpoint="ollama", model="giant")
    with pytest.raises(InvalidRequestError, match="giant at ollama has 70 billion parameters; max_model_b is 4") as no:
        await _run(world, judge)
    assert no.value.field == "judges[0]"
    assert not world.results.experiments
    assert len(_ids(await _run(world, judge, max_judge_b=70))) == 2


async def test_other_rows_under_the_same_name_are_refused(world: World) -> None:
    await _run(world)
    with pytest.raises(ConflictError, match="other rows"):
        await _run(world, repeats=2)
    assert len(world.registry.jobs) == 2


async def test_a_check_starts_nothing(world: World) -> None:
    checked = await _run(world, check_only=True)
    assert (checked.experiment, checked.dataset_id, _ids(checked), checked.cells) == ("greetings", "", [], 4)
    assert not world.results.experiments
    made = await _run(world, models=MODELS[:1])
    checked = await _run(world, check_only=True)
    assert (checked.dataset_id, _ids(checked)) == (made.dataset_id, _ids(made))
    assert len(world.registry.jobs) == 1
    with pytest.raises(ConflictError):
        await _run(world, check_only=True, repeats=2)


async def test_nobody_says_that_a_job_is_of_an_experiment(world: World) -> None:
    spec = job_pb2.JobSpec(endpoint="stub", model="m", suite=job_pb2.SuiteWork(suite="demo"), experiment_name="x")
    with pytest.raises(InvalidRequestError, match="set by the scheduler") as refused:
        await world.desk.create(ALICE, "", spec)
    assert refused.value.field == "spec.experiment_name"
    with pytest.raises(InvalidRequestError, match="set by the scheduler"):
        await world.desk.check(ALICE, spec)


async def test_jobs_and_judges_keep_their_limits_of_size_also_when_retried_until_a_call_changes_them(
    world: World,
) -> None:
    await world.start()
    (first,) = _ids(await _run(world, JUDGE, models=MODELS[:1], max_judge_b=8))
    await world.desk.cancel(ADMIN, first)
    retried = await world.desk.retry(ADMIN, first)
    assert (retried.spec.max_model_b, retried.spec.judges[0].max_model_b) == (4, 8)
    await _complete(world, first)
    (judge,) = await _look(world)
    assert judge.spec.max_model_b == 8
    world.registry.jobs[first].message.incomplete = True
    await world.desk.cancel(ADMIN, judge.job_id)
    (again,) = (await _run(world, JUDGE, models=MODELS[:1], max_model_b=2)).jobs
    assert (again.attempt, again.spec.max_model_b, again.spec.judges[0].max_model_b) == (3, 2, 2)
    stored = {job.id: job.message.spec for job in world.store.jobs()}
    assert stored[first].max_model_b == 2
    await world.stop()


async def test_nobody_sets_the_limits_of_an_experiment(world: World) -> None:
    asked = dataset_spec()
    asked.max_model_b = 1
    with pytest.raises(InvalidRequestError, match="max_model_b is set by the scheduler") as refused:
        await world.desk.create(ALICE, "", asked)
    assert refused.value.field == "spec.max_model_b"


async def test_a_rerun_of_a_job_is_not_a_part_of_the_experiment(world: World) -> None:
    await world.start()
    first, _ = _ids(await _run(world))
    await _complete(world, first)
    spec = job_pb2.JobSpec()
    spec.CopyFrom(world.desk.get(first).spec)
    spec.reuse.job_id = first
    made = await world.desk.create(ADMIN, "", spec)
    assert made.spec.experiment_name == ""
    await world.stop()


# -- the budget ----------------------------------------------------------------------------------------------------


async def test_what_is_left_of_the_budget_is_shared_by_the_jobs_that_begin() -> None:
    world = _world()
    await world.start()
    budget: dict[str, Any] = {"max_tokens": 100, "budget_usd": 6}
    first, _second = _ids(await _run(world, **budget))
    spent = world.registry.jobs[first].message
    await world.desk.cancel(ADMIN, first)
    spent.progress.cost_usd, spent.progress.reserved_usd = 0.5, 0.5
    # The second one may still spend 3, and 1 of the others' 3 is spent.
    again = await _run(world, **budget, models=[*MODELS, "latecomer"])
    assert [job.spec.budget_usd for job in again.jobs] == [2, 3, 1]
    with pytest.raises(ConflictError, match=r"Nothing is left of the \$6\.00 of experiment greetings"):
        await _run(world, **budget, models=[*MODELS, "latecomer", "stub/m"])
    assert len(world.registry.jobs) == 3
    await world.stop()


async def test_a_job_that_cannot_pay_a_call_stays_as_it_is(world: World) -> None:
    await world.start()
    first, _ = _ids(await _run(world, max_tokens=100, budget_usd=2))
    job = world.registry.jobs[first].message
    await world.desk.cancel(ADMIN, first)
    job.progress.cost_usd = 0.9
    job.plan.add(task="rows", most_cost_usd=0.2)
    assert (await _run(world, max_tokens=100, budget_usd=2)).jobs[0].state == job_pb2.Job.STATE_CANCELLED
    raised = await _run(world, max_tokens=100, budget_usd=3)
    assert (raised.jobs[0].attempt, raised.jobs[0].spec.budget_usd) == (2, 2)
    await world.stop()


# -- judges --------------------------------------------------------------------------------------------------------


async def test_judges_have_the_rubric_of_the_experiment_and_start_when_no_job_is_live(world: World) -> None:
    await world.start()
    first, second = _ids(await _run(world, JUDGE))
    assert json.loads(world.desk.get(first).spec.judges[0].rubric)["version"] == "tip-v1"
    await _complete(world, first)
    assert await _look(world) == []
    await _complete(world, second)
    made = await _look(world)
    assert {job.spec.judging.job_id for job in made} == {first, second}
    assert {job.spec.experiment_name for job in made} == {"greetings"}
    assert len(await _look(world)) == 2
    await world.stop()


async def test_a_judge_at_ollama_unloads_its_model(world: World) -> None:
    await world.start()
    judge = job_pb2.Judge(endpoint="ollama", model="giant")
    judge.sampling.extra_json = '{"keep_alive":"1h","think":false}'
    (first,) = _ids(await _run(world, judge, models=MODELS[:1], max_judge_b=0))
    await _complete(world, first)
    (made,) = await _look(world)
    assert json.loads(made.spec.sampling.extra_json)["keep_alive"] == 0
    assert json.loads(made.spec.sampling.extra_json)["think"] is False
    await world.stop()


async def test_jobs_and_judges_of_an_experiment_never_run_together(world: World) -> None:
    await world.start()
    first, second = _ids(await _run(world, JUDGE))
    await world.desk.cancel(ADMIN, second)
    await _complete(world, first)
    (judge,) = await _look(world)
    assert world.state(judge.job_id) == "planning"
    # The other model's job runs again while the judge of the first one runs: it waits for the judge.
    await _run(world, JUDGE)
    assert world.state(second) == "pending"
    assert world.desk.get(second).progress.current_step == "Waiting for the judges of experiment greetings"
    await world.desk.cancel(ADMIN, judge.job_id)
    await world.settle()
    assert world.state(second) == "planning"
    # And a judge that is queued meanwhile waits for the job.
    await world.desk.retry(ADMIN, judge.job_id)
    await world.settle()
    waits = world.desk.get(judge.job_id)
    assert waits.state == job_pb2.Job.STATE_PENDING
    assert waits.progress.current_step == "Waiting for all answers of experiment greetings"
    await _complete(world, second)
    await world.settle()
    assert world.state(judge.job_id) == "planning"
    await world.stop()


async def test_a_judge_that_a_user_starts_waits_as_well(world: World) -> None:
    await world.start()
    first, second = _ids(await _run(world))
    await _complete(world, first)
    asked = job_pb2.JobSpec(endpoint="stub", model="m")
    asked.judging.job_id = first
    asked.judging.rubric = json.dumps({"version": "v", "criteria": [{"name": "good"}]})
    judge = await world.desk.create(ADMIN, "", asked)
    assert judge.spec.experiment_name == "greetings"
    await world.settle()
    assert world.state(judge.job_id) == "pending"
    await _complete(world, second)
    await world.settle()
    assert world.state(judge.job_id) == "planning"
    await world.stop()


async def test_jobs_are_kept_until_their_experiment_has_ended() -> None:
    """Otherwise those that end a day before the last one would have no judges."""
    world = _world(keep_finished_s=100)
    await world.start()
    first, second = _ids(await _run(world, JUDGE))
    await _complete(world, first)
    world.time += 2 * world.limits.keep_finished_s
    world.fleet.hear(_fleet(), world.time)
    await world.look()
    assert first in world.registry.jobs
    await _complete(world, second)
    assert len(await _look(world)) == 2
    await world.stop()


async def test_the_rubric_of_judges_is_the_experiments(world: World) -> None:
    judge = job_pb2.Judge(endpoint="stub", model="m", rubric="{}")
    with pytest.raises(InvalidRequestError, match="Leave rubric out") as refused:
        await _run(world, judge)
    assert refused.value.field == "judges[0].rubric"
    with pytest.raises(InvalidRequestError) as refused:
        await _run(world, job_pb2.Judge(endpoint="gone", model="m"))
    assert refused.value.field == "judges[0].endpoint"


async def test_a_judge_whose_budget_cannot_be_kept_is_refused_before_anything_is_made(world: World) -> None:
    judge = job_pb2.Judge(endpoint="ollama", model="latecomer", budget_usd=1)
    with pytest.raises(InvalidRequestError, match="A budget needs max_tokens") as refused:
        await _run(world, judge)
    assert refused.value.field == "judges[0].sampling.max_tokens"
    assert not world.registry.jobs


async def test_a_call_with_further_judges_adds_them_to_jobs_that_have_ended(world: World) -> None:
    await world.start()
    first, second = _ids(await _run(world, JUDGE))
    for job_id in (first, second):
        await _complete(world, job_id)
    assert len(await _look(world)) == 2
    other = _seeded(2)
    for _ in range(2):
        assert _ids(await _run(world, other)) == [first, second]
    assert [event.action for event in world.store.events].count("judges") == 2
    made = await _look(world)
    assert sorted(job.spec.sampling.seed for job in made) == [0, 0, 2, 2]
    assert {job.attempt for job in map(world.desk.get, (first, second))} == {1}
    with pytest.raises(InvalidRequestError) as refused:
        await _run(world, job_pb2.Judge(endpoint="gone", model="m"), check_only=True)
    assert refused.value.field == "judges[0].endpoint"
    await _run(world, _seeded(3))
    with pytest.raises(ConflictError, match="would have 4 judges, of which it has 3; at most 3 are allowed"):
        await _run(world, _seeded(4))
    await world.stop()


async def test_old_jobs_that_get_judges_are_kept_until_these_have_started() -> None:
    world = _world(keep_finished_s=100)
    await world.start()
    (first,) = _ids(await _run(world, models=MODELS[:1]))
    await _complete(world, first)
    world.results.old = {first: world.desk.get(first)}
    world.time += 200
    world.fleet.hear(_fleet(), world.time)
    await world.look()
    assert first not in world.registry.jobs
    assert _ids(await _run(world, JUDGE, models=MODELS[:1])) == [first]
    world.time += 50
    world.fleet.hear(_fleet(), world.time)
    await world.look()
    assert len(await _look(world)) == 1
    await world.stop()
