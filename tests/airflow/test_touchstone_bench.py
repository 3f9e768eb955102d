"""The DAG in a real Airflow, with the client's wheel, against a whole installation and a stub of Ollama's wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.experiments import reading
from services.words import rubrics
from tests.airflow.world import BROKEN, CELLS, CONF, JUDGE, MODELS, NAME, World, both
from touchstone.v1 import job_pb2

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[World]:
    with both(tmp_path_factory.mktemp("airflow"), request, {}) as made:
        yield made


def test_two_runs_with_the_same_conf_are_one_experiment(world: World) -> None:
    (first, second), said = world.inside("run", json.dumps(CONF), json.dumps(CONF))
    assert (first["state"], second["state"]) == ("success", "success"), said
    # Each run waited in the trigger.
    assert said.count("running trigger in line") == 2
    assert sorted(job.spec.model for job in world.jobs(NAME)) == sorted(MODELS)
    assert len(world.ollama.records) == CELLS

    tasks = first["tasks"]
    assert tasks["collect"]["result"] == NAME
    files = [Path(made["tasks"]["export_for_judge"]["result"]) for made in (first, second)]
    # People may have filled in the first one.
    assert [file.relative_to(world.home / "touchstone").stem for file in files] == [NAME, f"{NAME}-2"]
    document = json.loads(files[0].read_text())
    assert len(document["cells"]) == CELLS
    assert document["rubric"] == json.loads(rubrics.written(reading.shipped_rubric()))
    board = tasks["compare"]["result"]
    rows = board["leaderboard"]
    assert {(row["model"], row["prompt"]) for row in rows} == {(m, p) for m in MODELS for p in ("v1", "own")}
    assert all(row["answered"] == 3 for row in rows)
    with world.stack.client() as client:
        told = client.get(f"{world.stack.url}/api/bench/leaderboard/{NAME}").json()
    assert (board.keys(), rows) == (told.keys(), told["leaderboard"])
    assert "No scores yet." in said


def test_judges_are_awaited_and_the_address_may_come_from_a_connection(world: World) -> None:
    extra = {"results": world.settings["TOUCHSTONE_RESULTS"]}
    connection = {"conn_type": "generic", "host": "127.0.0.1", "port": world.stack.scheduler_port, "extra": extra}
    folder = world.home / "for people"
    elsewhere = {
        "AIRFLOW_CONN_TOUCHSTONE": json.dumps(connection),
        "AIRFLOW_VAR_TOUCHSTONE_BENCH_DIR": str(folder),
        "TOUCHSTONE_SCHEDULER": "127.0.0.1:1",
    }
    judged = World(world.stack, world.ollama, world.home, {**world.settings, **elsewhere})
    judge = {"endpoint": "ollama", "model": JUDGE, "sampling": {"temperature": 0}, "repeats": 1}
    made, said = judged.run(CONF | {"experiment": "judged", "judges": [judge]})
    assert made["state"] == "success", said
    assert said.count("running trigger in line") == 2
    board = made["tasks"]["compare"]["result"]
    assert board["source"] == "judge"
    assert [row["scored"] for row in board["leaderboard"]] == [3] * 4
    assert f"Scores are those of the judge ollama/{JUDGE}." in said
    assert Path(made["tasks"]["export_for_judge"]["result"]) == folder / "judged.json"


def test_a_failed_job_fails_the_task_and_a_retry_continues_the_experiment(world: World) -> None:
    conf = CONF | {"experiment": "failing", "models": f"{MODELS[0]},{BROKEN}"}
    made, said = world.run(conf)
    assert made["state"] == "failed", said
    tasks = made["tasks"]
    assert (tasks["collect"]["state"], tasks["collect"]["tries"]) == ("failed", 2), said
    assert (tasks["export_for_judge"]["state"], tasks["compare"]["state"]) == ("upstream_failed", "upstream_failed")
    by_model = {job.spec.model: job for job in world.jobs("failing")}
    assert f"{BROKEN}: {by_model[BROKEN].reason}" in said
    # The second try ran the failed job again, and no other.
    assert {model: job.attempt for model, job in by_model.items()} == {MODELS[0]: 1, BROKEN: 2}


def test_what_touchstone_refuses_is_not_tried_again(world: World) -> None:
    made, said = world.run(CONF | {"experiment": "wrong", "models": "qwen2.5:7b", "prompts": "v1,v9"})
    assert (made["tasks"]["collect"]["state"], made["tasks"]["collect"]["tries"]) == ("failed", 1), said
    assert "prompts[1]" in said


def test_a_wait_survives_a_restart_of_the_triggerer(world: World) -> None:
    world.ollama.hold = world.home / "stopped"
    with world.stack.client() as client:
        started = client.post(f"{world.stack.url}/api/bench/run", json=CONF | {"experiment": "slow"})
    assert started.status_code == 200
    (made,), said = world.inside("wait", "slow")
    assert made["kept"] == {"experiment": "slow"}
    assert made["stopped"], said
    assert made["event"] == {"experiment": "slow", "problems": []}
    assert {job.state for job in world.jobs("slow")} == {job_pb2.Job.STATE_COMPLETED}
