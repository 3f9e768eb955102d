"""What pages say where there is little to show: unknown addresses, baselines alone, jobs that never started."""

from __future__ import annotations

import html

import pytest

from tests.gateway import fake_data
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from touchstone.v1 import endpoint_pb2, job_pb2, suite_pb2


async def page(gateway: Running, address: str, status: int = 200) -> str:
    answer = await gateway.client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


@pytest.mark.parametrize("filled", [False, True])
async def test_an_unknown_suite_or_metric_is_said_with_the_known_ones(gateway: Running, filled: bool) -> None:
    if filled:
        gateway.world.boards["glue"] = fake_data.leaderboard({})
    text = await page(gateway, "/leaderboard?suite=zzz", 400)
    assert "Invalid benchmark suite. Supported: glue, demo" in text
    assert 'value="zzz"' not in text
    assert "runs yet" not in text
    text = await page(gateway, "/leaderboard?suite=glue&metric=nonsense", 400)
    assert "Suite glue has no metric 'nonsense'. Its metrics: score, accuracy" in text


async def test_a_metric_chosen_for_another_suite_gives_way_to_the_score(gateway: Running) -> None:
    text = await page(gateway, "/leaderboard?form=1&suite=demo&metric=f1")
    assert '<option value="f1" selected>' in text
    await page(gateway, "/leaderboard?form=1&suite=demo&metric=nonsense", 400)


async def test_baselines_alone_are_ranked_and_can_be_hidden(gateway: Running) -> None:
    alone = [entry for entry in fake_data.leaderboard({}) if entry.baseline]
    for rank, entry in enumerate(alone, 1):
        entry.rank = rank
    gateway.world.boards["glue"] = alone
    text = await page(gateway, "/leaderboard?suite=glue")
    assert "Only baselines are ranked so far" in text
    text = await page(gateway, "/leaderboard?suite=glue&form=1&show=unranked")
    assert "Only baselines have run" in text
    assert "bag-of-words" not in text


async def test_beside_models_baselines_are_the_floor(gateway: Running) -> None:
    gateway.world.boards["glue"] = fake_data.leaderboard({})
    text = await page(gateway, "/leaderboard?suite=glue")
    assert "Baselines mark the floor and have no rank." in text
    assert "Only baselines" not in text


async def test_a_board_without_a_run_in_its_mode_leads_to_those_there_are(gateway: Running) -> None:
    assert "No GLUE runs yet" in await page(gateway, "/leaderboard?suite=glue")
    job = gateway.world.start(gateway.world.add(spec(), "local").job_id)
    job.spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    gateway.world.finish(job.job_id)
    text = await page(gateway, "/leaderboard?suite=glue")
    assert "No GLUE run on the board yet" in text
    assert '1 job of GLUE is in <a href="/jobs?suite=glue">History</a>' in text
    assert "No GLUE run on the board with these choices yet" in await page(
        gateway, "/leaderboard?suite=glue&endpoint=ollama"
    )


async def test_without_a_choice_the_board_is_that_of_the_newest_complete_run(gateway: Running) -> None:
    world = gateway.world
    for suite, incomplete in (("glue", True), ("demo", False), ("glue", True)):
        job = world.finish(world.start(world.add(spec(suite=suite), "local").job_id).job_id)
        job.incomplete = incomplete
    chosen = '<option value="demo" selected>'
    assert chosen in await page(gateway, "/leaderboard")
    for _ in range(20):
        job = world.add(job_pb2.JobSpec(dataset=job_pb2.DatasetWork(dataset_id="ds_" + "0" * 32)), "local")
        job.state = job_pb2.Job.STATE_COMPLETED
    assert chosen in await page(gateway, "/leaderboard"), "runs over datasets stand before it"


async def test_the_run_page_starts_every_model_or_none(gateway: Running) -> None:
    for _ in range(9):
        gateway.world.add(spec(), "local")
    made = len(gateway.world.specs)
    sent = {"endpoint": "ollama", "suite": "glue", "model": ["qwen2.5:7b", "mistral:7b"], "request_id": "1"}
    answer = await gateway.client.post("/run", data=sent, headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert "Queue is full. Please try again later. Nothing was started." in answer.text
    assert len(gateway.world.specs) == made, "there is room for one"


async def test_the_run_page_asks_whether_the_model_may_have_changed(gateway: Running) -> None:
    sent = {"endpoint": "ollama", "suite": "glue", "task": "sst2", "tasks_of": "glue", "model": "qwen2.5:7b"}
    refused = await gateway.client.post("/run", data=sent | {"without_digest": "1"})
    assert refused.status_code == 422
    assert "Also tick Stored answers, or leave this box empty." in refused.text
    assert "I accept that the model may have changed" in refused.text
    for ticked in ({}, {"any_job": "1"}, {"any_job": "1", "without_digest": "1"}):
        answer = await gateway.client.post("/run", data=sent | ticked)
        assert answer.status_code in (200, 303), answer.text
    # The default takes no stored answers.
    assert [spec.reuse for spec in gateway.world.specs] == [
        job_pb2.Reuse(),
        job_pb2.Reuse(any_job=True),
        job_pb2.Reuse(any_job=True, without_digest=True),
    ]


async def test_a_failed_job_that_kept_nothing_offers_to_try_again(gateway: Running) -> None:
    job = gateway.world.add(spec("dead:1b"), "local")
    gateway.world.finish(job.job_id, job_pb2.Job.STATE_FAILED, "ollama has no model 'dead:1b'.")
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert "Nothing was kept. Try again as attempt 2 once the cause is gone." in text
    assert "<span>Try again</span>" in text
    for untrue in ("0 of 0", "Run what is missing", "Items are counted when"):
        assert untrue not in text


async def test_the_receipt_of_an_experiment_s_job_has_its_limit_of_size(gateway: Running) -> None:
    job = gateway.world.start(gateway.world.add(spec("m:1b", limit=5), "local").job_id)
    gateway.world.finish(job.job_id)
    assert "Largest model" not in await page(gateway, f"/jobs/{job.job_id}")
    told = f"/api/v1/benchmarking/results/{job.job_id}"
    assert (await gateway.client.get(told)).json()["max_model_b"] is None
    job.spec.max_model_b = 4.5
    assert "4.5 billion parameters" in await page(gateway, f"/jobs/{job.job_id}")
    assert (await gateway.client.get(told)).json()["max_model_b"] == 4.5


async def test_costs_at_list_prices_say_of_which_day_they_are(gateway: Running) -> None:
    job = gateway.world.start(gateway.world.add(spec("m:1b", limit=5), "local").job_id)
    gateway.world.finish(job.job_id)
    gateway.world.results[job.job_id].cost_usd = 0.42
    prices = job.receipt.prices
    prices.CopyFrom(endpoint_pb2.Prices(input=2.5, output=15, source="SOURCE_ENDPOINTS_FILE"))
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert "$2.50 in, $15.00 out per million tokens; endpoints file" in text
    assert "list price" not in text
    prices.source, prices.as_of, prices.table_digest = endpoint_pb2.Prices.SOURCE_LIST, "2026-10-03", "0fab" * 16
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert "$0.42 (list price as of 2026-10-03)" in text
    assert "$2.50 in, $15.00 out per million tokens; list price as of 2026-10-03 <code>0fab0fab0fab</code>" in text
    job.receipt.ClearField("prices")
    assert "per million tokens" not in await page(gateway, f"/jobs/{job.job_id}")


async def test_a_new_run_shows_its_models_prices_where_they_are_known(gateway: Running) -> None:
    text = await page(gateway, "/run?endpoint=gemini&suite=glue")
    assert "$0.30 in, $2.50 out<small>list price as of 2026-10-03</small>" in text
    assert "Per million tokens" not in await page(gateway, "/run?endpoint=ollama&suite=glue")


async def test_the_run_page_names_the_models_without_a_completed_run(gateway: Running) -> None:
    world = gateway.world
    done = world.start(world.add(spec("qwen2.5:7b"), "local").job_id, ago_s=600)
    world.finish(done.job_id)
    chosen = "/run?endpoint=ollama&suite=glue&model=qwen2.5:7b"
    assert "No completed run" not in await page(gateway, chosen)
    text = await page(gateway, f"{chosen}&model=mistral:7b")
    assert "No completed run of mistral:7b on GLUE to estimate from." in text
    done.attempt = 2
    assert "The last run of qwen2.5:7b on GLUE took several attempts" in await page(gateway, chosen)


async def test_an_item_whose_texts_were_dropped_says_so_and_keeps_how_it_was_read(gateway: Running) -> None:
    job = gateway.world.add(spec("m:1b", limit=5), "local")
    gateway.world.start(job.job_id)
    gateway.world.finish(job.job_id)
    task = job.plan[0].task
    before = await page(gateway, f"/jobs/{job.job_id}/items/{task}/0")
    assert "dropped" not in before
    gateway.world.results[job.job_id].texts_dropped = "2026-11-19T08:00:00Z"
    after = await page(gateway, f"/jobs/{job.job_id}/items/{task}/0")
    assert "The texts of this job's answers were dropped on 2026-11-19" in after
    assert "(empty)" not in after
    reading = before.partition("How it was read")[2].partition("</dl>")[0]
    assert reading
    assert reading == after.partition("How it was read")[2].partition("</dl>")[0]


async def test_trying_again_is_offered_only_where_it_may_help(gateway: Running) -> None:
    html = {"accept": "text/html"}
    gone = await gateway.client.get("/jobs/01a00000-0000-7000-8000-000000000000", headers=html)
    assert gone.status_code == 404
    assert "Try again" not in gone.text
    assert "Open history" in gone.text
