"""GET /queue, /evaluators, /endpoints, /models, /suites: what can be run and what waits."""

from __future__ import annotations

from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_rest_results import BASE, get
from touchstone.v1 import job_pb2


async def test_the_queue_tells_who_runs_and_who_waits_in_order(gateway: Running) -> None:
    world = gateway.world
    running = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)
    world.advance(running.job_id, 10)
    waiting = [world.add(spec("mistral:7b", "demo"), "local", age_s=-n).job_id for n in range(2)]
    got = await get(gateway, "/queue")
    assert [job["job_id"] for job in got["running"]] == [running.job_id]
    assert got["running"][0]["progress"]["items_done"] == 10
    assert [job["job_id"] for job in got["pending"]] == waiting
    assert [job["progress"]["queue_position"] for job in got["pending"]] == [1, 2]
    assert (got["slots"], got["pending_per_user"], got["evaluators"]) == (3, 10, 3)


async def test_a_job_that_may_not_be_seen_keeps_its_place_in_the_queue(gateway: Running) -> None:
    hidden = job_pb2.Job(state=job_pb2.Job.STATE_PENDING, progress=job_pb2.Progress(queue_position=1))
    gateway.world.jobs[""] = hidden
    (place,) = (await get(gateway, "/queue"))["pending"]
    assert (place["status"], place["progress"]["queue_position"]) == ("pending", 1)
    assert {place[name] for name in ("job_id", "model_name", "owner", "provider", "project_id")} == {None}


async def test_evaluators_tell_what_they_serve(gateway: Running) -> None:
    (one,) = (await get(gateway, "/evaluators"))["evaluators"]
    assert (one["evaluator"], one["live"], one["suites"]) == ("evaluator-1", True, ["demo", "glue"])
    assert "ollama" in one["endpoints"]
    assert one["plugins"] == [
        {
            "package": "touchstone-example",
            "version": "1.0",
            "parts": [
                {"part": "scorer", "name": "same_words", "title": "same words", "left_out": None},
                {"part": "suite", "name": "sums", "title": None, "left_out": "RuntimeError: no luck."},
            ],
        }
    ]


async def test_the_run_page_says_what_of_a_plugin_is_left_out(gateway: Running) -> None:
    run = (await gateway.client.get("/run")).text
    assert "Left out: touchstone-example 1.0, suite sums: RuntimeError: no luck." in run


async def test_endpoints_tell_their_state_and_what_to_do(gateway: Running) -> None:
    found = {one["endpoint"]: one for one in (await get(gateway, "/endpoints"))["endpoints"]}
    assert (found["grok"]["state"], found["grok"]["detail"]) == ("not_configured", "set XAI_API_KEY")
    assert (found["ollama"]["state"], found["ollama"]["exclusive"], found["ollama"]["max_model_b"]) == (
        "reachable",
        True,
        40,
    )
    assert found["baselines"]["baseline"] is True


async def test_models_are_those_of_one_endpoint(gateway: Running) -> None:
    got = await get(gateway, "/models?provider=ollama")
    assert got["endpoint"]["endpoint"] == "ollama"
    first = got["models"][0]
    assert (first["model"], first["quantization"], first["input_price"]) == ("qwen2.5:7b", "Q4_K_M", 0.01)
    assert first["prices"] is None
    (listed,) = (await get(gateway, "/models?provider=gemini"))["models"]
    assert (listed["prices"]["source"], listed["prices"]["as_of"]) == ("list", "2026-10-03")
    by_kind = await get(gateway, "/models?provider=baseline")
    assert by_kind["endpoint"]["endpoint"] == "baselines"
    assert (
        "Unknown provider 'nope'. Endpoints here: gemini"
        in (await get(gateway, "/models?provider=nope", 400))["detail"]
    )
    assert (await get(gateway, "/models", 422))["detail"] == "provider is required."


async def test_suites_tell_their_tasks_metrics_and_modes(gateway: Running) -> None:
    suites = {suite["suite"]: suite for suite in (await get(gateway, "/suites"))["suites"]}
    cola = suites["glue"]["tasks"][0]
    assert (cola["task"], cola["metrics"], cola["modes"]) == (
        "cola",
        ["matthews_correlation", "accuracy"],
        ["generate", "loglikelihood"],
    )
    assert suites["glue"]["tasks"][5]["score_group"] == "mnli"


async def test_a_running_job_says_what_keeps_its_endpoint_from_answering(gateway: Running) -> None:
    world = gateway.world
    job = world.start(world.add(spec("gemini-2.5-flash", "demo", endpoint="gemini"), "local").job_id)
    got = await get(gateway, f"/results/{job.job_id}")
    assert got["trouble"] == "rate limit, next call in 26 s"
    world.finish(job.job_id)
    assert (await get(gateway, f"/results/{job.job_id}"))["trouble"] is None


async def test_an_admin_drains_and_resumes_an_evaluator(gateway: Running) -> None:
    assert (await get(gateway, "/evaluators"))["evaluators"][0]["state"] == "live"
    answer = await gateway.client.post(f"{BASE}/evaluators/evaluator-1/drain")
    assert (answer.status_code, answer.json()["state"], answer.json()["draining"]) == (200, "drained", True)
    assert (await gateway.client.post(f"{BASE}/evaluators/nobody/drain")).status_code == 404
    assert "/evaluators/evaluator-1/resume" in (await gateway.client.get("/queue")).text
    answer = await gateway.client.post("/evaluators/evaluator-1/resume", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"], gateway.world.drained) == (303, "/queue", False)
    assert "/evaluators/evaluator-1/drain" in (await gateway.client.get("/queue")).text


async def test_a_job_that_scores_has_the_phase_that_pages_show_and_the_status_that_clients_know(
    gateway: Running,
) -> None:
    world = gateway.world
    job = world.start(world.add(spec("qwen2.5:7b", "demo"), "local").job_id)

    async def told() -> set[tuple[str, str]]:
        one = await get(gateway, f"/results/{job.job_id}")
        lists = [(await get(gateway, path))[name] for path, name in (("/results", "results"), ("/history", "history"))]
        queue = await get(gateway, "/queue")
        rows = [one, *(row for listed in lists for row in listed), *queue["running"], *queue["scoring"]]
        return {(row["status"], row["phase"]) for row in rows}

    assert await told() == {("running", "running")}
    world.advance(job.job_id, job.progress.items_total)
    assert await told() == {("running", "scoring")}
    assert "scoring" in (await gateway.client.get("/jobs")).text
    world.finish(job.job_id)
    assert await told() == {("completed", "completed")}
