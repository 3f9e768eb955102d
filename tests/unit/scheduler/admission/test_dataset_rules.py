"""Jobs over uploaded datasets: what is refused, what is filled in, whose answers they take, what ends them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services import further_fields
from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError, UnavailableError
from services.evaluator.answers.reading.layers import Layer, reading_of
from services.evaluator.answers.scorers.choosing import scorer
from services.scheduler.lifecycle.losses import stop_without_dataset
from services.scheduler.settings import Limits
from tests.unit.scheduler.fakes import ALICE, BOB, DATASET, World, dataset_spec, evaluator, spec
from touchstone.v1 import item_result_pb2, job_pb2, metric_pb2, scoring_pb2, suite_pb2, unit_pb2

FAILED = item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.fleet.hear(evaluator(), made.time)
    made.datasets.put(scoring=scoring_pb2.Scoring(scorer="contains", reference_field="answer"))
    await made.start()
    yield made
    await made.stop()


def rows_plan(items: int = 40, revision: str = f"digest of {DATASET}", item_set: str = "rows") -> unit_pb2.Plan:
    task = job_pb2.TaskPlan(task="rows", items=items, unit_size=10, item_set=item_set, published_items=100, version="1")
    task.data.MergeFrom(suite_pb2.DataSource(dataset=DATASET, revision=revision))
    return unit_pb2.Plan(tasks=[task], receipt=job_pb2.Receipt(configuration="c"))


async def create(world: World, wanted: job_pb2.JobSpec, request_id: str = "") -> job_pb2.Job:
    job = await world.desk.create(ALICE, request_id, wanted)
    await world.settle()
    return job


async def refusal(world: World, wanted: job_pb2.JobSpec) -> tuple[str, str]:
    with pytest.raises(InvalidRequestError) as refused:
        await world.desk.create(ALICE, "", wanted)
    return refused.value.field, refused.value.message


async def test_a_plugins_scorer_is_taken_while_an_evaluator_has_it(world: World) -> None:
    named = scoring_pb2.Scoring(scorer="same_words")
    one = evaluator()
    one.plugins.add(package="example", version="1.0").parts.add(part="scorer", name="same_words", title="T")

    field, sentence = await refusal(world, dataset_spec(scoring=named))
    assert (field, sentence.partition(".")[0]) == ("spec.dataset.scorer", "same_words is not a valid scorer")
    world.fleet.hear(one, world.time)
    assert (await create(world, dataset_spec(scoring=named))).spec.dataset.scoring == named


async def finished(world: World, wanted: job_pb2.JobSpec, made: unit_pb2.Plan | None = None) -> job_pb2.Job:
    job = await create(world, wanted)
    await world.planned(job.job_id, made or rows_plan())
    await world.run_all(job.job_id)
    assert world.state(job.job_id) == "completed"
    return world.desk.get(job.job_id)


async def test_a_job_tells_what_became_of_the_assistants_last_message(world: World) -> None:
    world.datasets.put(DATASET, last_assistant=job_pb2.LAST_ASSISTANT_PREFILL)
    wanted = dataset_spec()
    wanted.dataset.last_assistant = job_pb2.LAST_ASSISTANT_REFERENCE
    assert (await create(world, wanted)).spec.dataset.last_assistant == job_pb2.LAST_ASSISTANT_PREFILL


async def test_a_job_gets_the_datasets_name_digest_and_scoring_and_normal_priority(world: World) -> None:
    job = await create(world, dataset_spec(limit=40))
    work = job.spec.dataset
    assert (work.name, work.digest, work.limit) == ("rows.jsonl", f"digest of {DATASET}", 40)
    assert (work.scoring.scorer, work.scoring.reference_field) == ("contains", "answer")
    assert job.spec.priority == job_pb2.PRIORITY_NORMAL
    assert world.work.offered[job.job_id, -1].spec.dataset == work
    await world.planned(job.job_id, rows_plan())
    assert world.desk.get(job.job_id).subset, "40 of 100 rows"
    await world.run_all(job.job_id)
    assert world.state(job.job_id) == "completed"


async def test_a_scorer_counts_before_scoring_and_leaves_its_options_out(world: World) -> None:
    own = scoring_pb2.Scoring(scorer="numeric", tolerance=0.5, reference_field="value")
    given = (await create(world, dataset_spec(scoring=own))).spec.dataset
    assert given.scoring == own
    named = (await create(world, dataset_spec(scoring=own, scorer="rouge_l"))).spec.dataset
    assert named.scoring == scoring_pb2.Scoring(scorer="rouge_l", reference_field="value")
    assert named.scorer == ""


async def test_rows_stay_in_the_groups_of_their_dataset(world: World) -> None:
    world.datasets.put(DATASET, scoring=scoring_pb2.Scoring(scorer="contains", group_field="passage"))
    assert (await create(world, dataset_spec())).spec.dataset.scoring.group_field == "passage"
    for given, field in (({"scorer": "rouge_l"}, "passage"), ({"scoring": scoring_pb2.Scoring()}, "passage")):
        assert (await create(world, dataset_spec(**given))).spec.dataset.scoring.group_field == field
    other = scoring_pb2.Scoring(group_field="author")
    wanted = dataset_spec(scoring=other, further=[scoring_pb2.Scoring(scorer="rouge_l")])
    work = (await create(world, wanted)).spec.dataset
    assert (work.scoring.group_field, work.further[0].group_field) == ("author", "")


async def test_without_any_scoring_answers_are_matched_exactly(world: World) -> None:
    world.datasets.put()
    assert (await create(world, dataset_spec())).spec.dataset.scoring.scorer == "exact_match"


async def test_a_reading_is_for_scorers_that_look_for_an_answer(world: World) -> None:
    for scoring, usual in (
        ({"scorer": "choice"}, Layer.LENIENT),
        ({"scorer": "numeric"}, Layer.LENIENT),
        ({"scorer": "exact_match"}, Layer.MARKED),
        ({"scorer": "contains"}, None),
        ({"scorer": "choice", "answer_pattern": "(.)"}, None),
    ):
        how = scoring_pb2.Scoring(**scoring)  # type: ignore[arg-type]
        assert scorer(how).layer == usual
        for layer in Layer:
            wanted = dataset_spec(scoring=how)
            wanted.reading = reading_of(layer)
            if usual is None:
                assert (await refusal(world, wanted))[0] == "spec.reading"
                continue
            # What the scorer does anyway is nothing that the job asks for.
            kept = scoring_pb2.READING_UNSPECIFIED if layer == usual else wanted.reading
            assert (await create(world, wanted)).spec.reading == kept


async def test_a_limit_that_leaves_no_row_out_is_none(world: World) -> None:
    assert (await create(world, dataset_spec(limit=100))).spec.dataset.limit == 0


async def test_further_scorers_are_filled_in_and_each_is_another(world: World) -> None:
    near = scoring_pb2.Scoring(scorer="numeric", tolerance=2, reference_field="value")
    further = [scoring_pb2.Scoring(tolerance=1), near]
    work = (await create(world, dataset_spec(further=further))).spec.dataset
    assert list(work.further) == [scoring_pb2.Scoring(scorer="exact_match", reference_field="answer"), near]
    wanted = dataset_spec(scorer="exact_match", further=[near])
    wanted.reading = scoring_pb2.READING_MARKED
    # It changes what the further scorer reads.
    assert (await create(world, wanted)).spec.reading == scoring_pb2.READING_MARKED
    for wrong, field, sentence in (
        ([near, near], "further[1]", "Two scorers are the same: number within 2; reference in “value”. Give each"),
        ([scoring_pb2.Scoring(scorer="contains")], "further[0]", "Two scorers are the same: presence of the reference"),
        ([near] * 5, "further", "A run takes at most 4 further scorers, not 5."),
        ([near, scoring_pb2.Scoring(scorer="judge")], "further[1].scorer", "judge is not a valid scorer. Use"),
        ([scoring_pb2.Scoring(tolerance=-1)], "further[0].tolerance", "tolerance must be between"),
        ([scoring_pb2.Scoring(answer_pattern="(")], "further[0].answer_pattern", "answer_pattern is not a valid"),
        ([scoring_pb2.Scoring(scorer="json_schema", schema="{")], "further[0].schema", "The schema "),
    ):
        found = await refusal(world, dataset_spec(further=wrong))
        assert found[0] == f"spec.dataset.{field}"
        assert sentence in found[1]


@pytest.mark.parametrize(
    ("work", "field"),
    [
        ({"limit": -1}, "spec.dataset.limit"),
        ({"scorer": "guess"}, "spec.dataset.scorer"),
        ({"scoring": scoring_pb2.Scoring(scorer="judge")}, "spec.dataset.scorer"),
        ({"scoring": scoring_pb2.Scoring(tolerance=-1)}, "spec.dataset.scoring.tolerance"),
        ({"scoring": scoring_pb2.Scoring(tolerance=float("nan"))}, "spec.dataset.scoring.tolerance"),
        ({"scoring": scoring_pb2.Scoring(answer_pattern="a" * 1001)}, "spec.dataset.scoring.answer_pattern"),
        ({"scoring": scoring_pb2.Scoring(scorer="numeric", answer_pattern="(")}, "spec.dataset.scoring.answer_pattern"),
        ({"scoring": scoring_pb2.Scoring(answer_pattern="(?=a)")}, "spec.dataset.scoring.answer_pattern"),
        ({"scoring": scoring_pb2.Scoring(answer_match="ANSWER_MATCH_FIRST")}, "spec.dataset.scoring.answer_match"),
        ({"scoring": scoring_pb2.Scoring(choices=["a"] * 201)}, "spec.dataset.scoring.choices"),
        ({"scoring": scoring_pb2.Scoring(choices=["a"])}, "spec.dataset.scoring.choices"),
        ({"scoring": scoring_pb2.Scoring(fields=[""])}, "spec.dataset.scoring.fields"),
        ({"scoring": scoring_pb2.Scoring(reference_field="a" * 201)}, "spec.dataset.scoring.reference_field"),
    ],
)
async def test_what_a_dataset_cannot_be_asked_is_refused(world: World, work: dict[str, object], field: str) -> None:
    assert (await refusal(world, dataset_spec(**work)))[0] == field  # type: ignore[arg-type]


async def test_log_likelihoods_of_rows_are_refused(world: World) -> None:
    wanted = dataset_spec()
    wanted.mode = suite_pb2.MODE_LOGLIKELIHOOD
    assert (await refusal(world, wanted))[0] == "spec.mode"


async def test_a_dataset_that_is_not_there_or_being_deleted_is_named(world: World) -> None:
    other = f"ds_{'b' * 32}"
    with pytest.raises(NotFoundError, match=other):
        await create(world, dataset_spec(other))
    world.datasets.manifests[DATASET].deleting = True
    with pytest.raises(NotFoundError, match=DATASET):
        await create(world, dataset_spec())


async def test_while_datasets_cannot_be_read_nothing_is_queued(world: World) -> None:
    world.datasets.down = True
    with pytest.raises(UnavailableError):
        await create(world, dataset_spec())
    assert world.registry.jobs == {}


async def test_a_repeated_request_gives_its_job_even_when_the_dataset_is_gone(world: World) -> None:
    job = await create(world, dataset_spec(), "r1")
    assert (await create(world, dataset_spec(), "r1")).job_id == job.job_id
    with pytest.raises(ConflictError):
        await create(world, dataset_spec(limit=5), "r1")
    world.datasets.manifests.clear()
    assert (await create(world, dataset_spec(), "r1")).job_id == job.job_id


async def test_more_rows_than_a_job_may_ask_need_a_limit() -> None:
    world = World(Limits(requests_per_job=60))
    world.fleet.hear(evaluator(), world.time)
    world.datasets.put()
    field, message = await refusal(world, dataset_spec())
    assert field == "spec.dataset.limit"
    assert "The job has 100 rows; at most 60 are allowed" in message
    await world.desk.create(ALICE, "", dataset_spec(limit=60))
    await world.desk.create(ALICE, "", spec())
    unbounded = World(Limits(requests_per_job=0))
    unbounded.fleet.hear(evaluator(), unbounded.time)
    unbounded.datasets.put(rows=1_000_000)
    await unbounded.desk.create(ALICE, "", dataset_spec())


# -- answers of other jobs ---------------------------------------------------------------------------------------


def taking(job: job_pb2.Job, *rerun: item_result_pb2.Outcome, **scoring: object) -> job_pb2.JobSpec:
    copied = job_pb2.JobSpec()
    copied.CopyFrom(job.spec)
    copied.reuse.CopyFrom(job_pb2.Reuse(job_id=job.job_id, rerun=rerun))
    if scoring:
        copied.dataset.scoring.CopyFrom(scoring_pb2.Scoring(**scoring))  # type: ignore[arg-type]
    return copied


async def test_answers_are_scored_again_in_another_way_without_calls(world: World) -> None:
    source = await finished(world, dataset_spec(limit=40))
    job = await create(world, taking(source, scorer="token_f1"))
    await world.planned(job.job_id, rows_plan(item_set="scored otherwise"))
    await world.run_all(job.job_id)
    done = world.desk.get(job.job_id)
    assert world.state(job.job_id) == "completed"
    assert done.spec.dataset.scoring.scorer == "token_f1"
    assert done.item_set != source.item_set, "runs that are scored differently never rank together"


async def test_a_dataset_of_the_same_rows_under_another_id_takes_the_answers(world: World) -> None:
    source = await finished(world, dataset_spec())
    again = f"ds_{'c' * 32}"
    world.datasets.put(again, digest=f"digest of {DATASET}", name="same.jsonl")
    wanted = taking(source)
    wanted.dataset.dataset_id = again
    job = await create(world, wanted)
    await world.planned(job.job_id, rows_plan())
    assert world.state(job.job_id) == "running"


async def test_other_rows_take_no_answers(world: World) -> None:
    source = await finished(world, dataset_spec(limit=40, seed=1))
    world.datasets.put(f"ds_{'d' * 32}")
    for name, value in (("limit", 41), ("seed", 2), ("dataset_id", f"ds_{'d' * 32}")):
        wanted = taking(source)
        setattr(wanted.dataset, name, value)
        assert (await refusal(world, wanted))[0] == "spec.dataset", name
    suite = await finished(world, spec())
    wanted = taking(source)
    wanted.reuse.job_id = suite.job_id
    assert (await refusal(world, wanted))[0] == "spec.dataset"


async def test_a_plan_of_other_rows_than_the_source_had_fails(world: World) -> None:
    source = await finished(world, dataset_spec())
    job = await create(world, taking(source, scorer="json"))
    await world.planned(job.job_id, rows_plan(revision="another digest"))
    assert world.state(job.job_id) == "failed"
    assert "have changed since job" in world.desk.get(job.job_id).reason


async def test_failed_rows_of_a_cancelled_job_run_again_as_the_next_attempt(world: World) -> None:
    job = await create(world, dataset_spec(limit=40))
    await world.planned(job.job_id, rows_plan())
    world.report(job.job_id, 0, items=10, done=True)
    await world.desk.cancel(ALICE, job.job_id)
    world.results.have = {"rows": set(range(10))}
    await world.desk.retry(ALICE, job.job_id)
    await world.settle()
    await world.planned(job.job_id, rows_plan())
    assert await world.run_all(job.job_id) == 3
    assert world.state(job.job_id) == "completed"


async def test_answers_of_a_run_that_was_declared_invalid_are_not_taken(world: World) -> None:
    source = await finished(world, dataset_spec())
    marked = metric_pb2.JobResult(job_id=source.job_id, mark="invalidated", mark_reason="wrong prompt")
    world.results.results[source.job_id] = marked
    for wanted in (taking(source), taking(source, FAILED)):
        with pytest.raises(ConflictError, match="wrong prompt"):
            await create(world, wanted)
    marked.mark = "superseded"
    await create(world, taking(source))


# -- what else a spec may say ------------------------------------------------------------------------------------


async def test_labels_stay_with_the_job_and_do_not_travel_with_its_units(world: World) -> None:
    wanted = dataset_spec()
    wanted.labels.update({"purpose": "night\nrun", "x" * 64: "ä" * 512})
    job = await create(world, wanted)
    assert dict(job.spec.labels) == dict(wanted.labels)
    await world.planned(job.job_id, rows_plan())
    assert world.work.offered
    assert not any(unit.spec.labels for unit in world.work.offered.values())


@pytest.mark.parametrize(
    "labels",
    [
        {f"n{i}": "" for i in range(17)},
        {"": "empty"},
        {"x" * 65: "long"},
        {"a\nb": "two lines"},
        {"a": "x" * 513},
        {"a": "\0"},
    ],
)
async def test_labels_beyond_their_limits_are_refused(world: World, labels: dict[str, str]) -> None:
    wanted = spec()
    wanted.labels.update(labels)
    assert (await refusal(world, wanted))[0].startswith("spec.labels")


async def test_sixteen_long_labels_leave_room_for_the_rest_of_the_spec(world: World) -> None:
    wanted = spec()
    wanted.labels.update({f"{i}": "語" * 512 for i in range(16)})
    further_fields.write(wanted.sampling, {"a": "b" * 15_000})
    assert (await create(world, wanted)).spec.labels == wanted.labels


async def test_a_providers_batch_api_has_two_days_and_takes_datasets_alone(world: World) -> None:
    wanted = dataset_spec()
    wanted.provider_batch = True
    assert (await create(world, wanted)).spec.time_limit_s == 48 * 3600
    wanted.time_limit_s = 48 * 3600 + 1
    assert (await refusal(world, wanted))[0] == "spec.time_limit_s"
    suite = spec()
    suite.provider_batch = True
    assert (await refusal(world, suite))[0] == "spec.provider_batch"
    source = await finished(world, dataset_spec())
    stored = taking(source)
    stored.provider_batch = True
    assert (await refusal(world, stored))[0] == "spec.provider_batch"


# -- a dataset that goes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("planned", [False, True])
async def test_a_job_whose_dataset_vanished_fails_and_says_so(world: World, planned: bool) -> None:
    job = await create(world, dataset_spec())
    other = await world.create()
    if planned:
        await world.planned(job.job_id, rows_plan())
    world.datasets.manifests.clear()
    world.datasets.down = True
    await stop_without_dataset(world.registry)
    assert world.state(job.job_id) in ("planning", "running")
    world.datasets.down = False
    await stop_without_dataset(world.registry)
    reason = world.desk.get(job.job_id).reason
    assert world.state(job.job_id) == "failed"
    assert f"Dataset rows.jsonl ({DATASET}) was deleted" in reason
    assert world.state(other) == "planning", "of a suite nothing is looked up"


@pytest.mark.parametrize("marked", [False, True])
async def test_a_retry_after_the_dataset_was_deleted_is_refused_at_once(world: World, marked: bool) -> None:
    job = await create(world, dataset_spec())
    await world.planned(job.job_id, rows_plan())
    await world.desk.cancel(ALICE, job.job_id)
    if marked:
        world.datasets.manifests[DATASET].deleting = True
    else:
        world.datasets.manifests.clear()
    with pytest.raises(ConflictError) as refused:
        await world.desk.retry(ALICE, job.job_id)
    assert refused.value.message == (
        f"Dataset rows.jsonl ({DATASET}) was deleted, and job {job.job_id} needs its rows. Answers so far are kept. "
        "Upload the dataset again and start a new job."
    )
    assert world.state(job.job_id) == "cancelled"
    with pytest.raises(PermissionDeniedError):
        await world.desk.retry(BOB, job.job_id)
    world.datasets.put()
    assert (await world.desk.retry(ALICE, job.job_id)).attempt == 2


@pytest.mark.parametrize("rerun", [(), (FAILED,)])
async def test_answers_over_a_deleted_dataset_are_not_taken(
    world: World, rerun: tuple[item_result_pb2.Outcome, ...]
) -> None:
    source = await finished(world, dataset_spec())
    wanted = taking(source, *rerun)
    world.datasets.manifests.clear()
    with pytest.raises(NotFoundError, match=rf"\({DATASET}\) was deleted, and job {source.job_id} needs its rows"):
        await create(world, wanted)


async def test_a_damaged_dataset_does_not_hide_that_another_jobs_is_gone(world: World) -> None:
    other = f"ds_{'b' * 32}"
    world.datasets.put(other)
    damaged, gone = await create(world, dataset_spec(other)), await create(world, dataset_spec())
    world.datasets.damaged.add(other)
    del world.datasets.manifests[DATASET]
    await stop_without_dataset(world.registry)
    assert [world.state(damaged.job_id), world.state(gone.job_id)] == ["planning", "failed"]


async def test_time_finds_out_that_a_dataset_vanished(world: World) -> None:
    job = await create(world, dataset_spec())
    world.datasets.manifests.clear()
    world.time += 6
    await world.look()
    assert world.state(job.job_id) == "failed"


async def test_a_schedule_makes_jobs_of_its_dataset_until_that_is_gone(world: World) -> None:
    schedule = await world.timetable.create(ALICE, "", "* * * * *", "", dataset_spec(), "")
    assert schedule.spec.dataset.name == "rows.jsonl"
    for gone in (False, True):
        if gone:
            world.datasets.manifests.clear()
        world.time += 61
        world.fleet.hear(evaluator(), world.time)
        running = world.running_timetable()
        await world.settle()
        await world.end(running)
        told = world.timetable.list(ALICE, "")[0]
        assert told.last_job_id
        assert (DATASET in told.last_problem) == gone
