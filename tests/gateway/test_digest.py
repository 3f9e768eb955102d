"""The digest over REST and as a page."""

from __future__ import annotations

from datetime import timedelta

from services.words.digests import NOTHING_BEFORE
from tests.gateway import fake_datasets
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from tests.gateway.test_rest_changes import UNKNOWN, send
from tests.gateway.test_rest_results import get
from touchstone.v1 import comparison_pb2, dataset_pb2, digest_pb2, suite_pb2


def furnish(gateway: Running) -> None:
    gateway.world.digest = digest_pb2.Digest(
        series=[
            digest_pb2.DigestSeries(
                model="m<i>",
                endpoint="e",
                suite="demo",
                mode=suite_pb2.MODE_GENERATE,
                part_items=100,
                runs=3,
                verdict=comparison_pb2.VERDICT_WORSE,
                words="It is worse.",
                items=200,
                became_right=4,
                became_wrong=60,
                before=digest_pb2.DigestRun(job_id=UNKNOWN, score=0.9, served_models=["m-1"], cost_usd=0.5),
                after=digest_pb2.DigestRun(job_id=UNKNOWN, score=0.6, served_models=["m-2"], median_latency_ms=12),
            ),
            digest_pb2.DigestSeries(
                model="new",
                endpoint="e",
                suite="demo",
                runs=1,
                words="There is no run.",
                after=digest_pb2.DigestRun(job_id=UNKNOWN),
            ),
        ],
        turned=[
            digest_pb2.TurnedVerdict(
                a="m@e",
                b="n@e",
                a_job_id=UNKNOWN,
                b_job_id=UNKNOWN,
                suite="demo",
                before=comparison_pb2.VERDICT_BETTER,
                after=comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN,
            )
        ],
    )


async def test_the_digest_says_what_changed(gateway: Running) -> None:
    furnish(gateway)
    found = await get(gateway, "/digest?days=7&to=2026-11-30T06:00")
    assert (found["from"], found["to"]) == ("2026-11-23T06:00:00.000Z", "2026-11-30T06:00:00.000Z")
    one, alone = found["series"]
    assert (one["mode"], one["part_items"], alone["mode"], alone["part_items"]) == ("generate", 100, None, None)
    assert (one["verdict"], one["became_wrong"], one["before"]["cost_usd"], one["after"]["cost_usd"]) == (
        "worse",
        60,
        0.5,
        None,
    )
    assert one["changes"] == ["the served model was m-1 and is m-2"]
    assert (alone["before"], alone["verdict"], alone["changes"]) == (None, None, [])
    assert [(turned["before"], turned["after"]) for turned in found["turned"]] == [("better", "no_difference_shown")]


async def test_a_wrong_time_is_said(gateway: Running) -> None:
    said = (await send(gateway, "GET", "/digest?to=yesterday", status=400))["detail"]
    assert said == "yesterday is not a time. Write it as 2026-11-30 or 2026-11-30T06:00:00Z."
    for query in ("days=0", "days=367", "days=x"):
        await send(gateway, "GET", f"/digest?{query}", status=422)


async def test_the_page_names_datasets(gateway: Running) -> None:
    furnish(gateway)
    made = fake_datasets.add(gateway.world, dataset_pb2.DatasetOptions(name="q<i>.jsonl"), b'{"prompt": "q"}\n')
    gone = f"ds_{'0' * 32}"
    gateway.world.digest.series[0].suite = gateway.world.digest.turned[0].suite = made.dataset_id
    gateway.world.digest.series[1].suite = gone
    text = await page(gateway, "/digest")
    assert text.count("q<i>.jsonl") == 2
    assert made.dataset_id not in text
    assert gone in text, "of a deleted one without runs nothing else is known"


async def test_the_page_shows_it(gateway: Running) -> None:
    furnish(gateway)
    text = await page(gateway, "/digest?days=30")
    for words in (
        "Verdicts that turned",
        "no difference shown",
        "the served model was m-1 and is m-2",
        "There is no run.",
        "100 items</div>",
        "200 items in both</div>",
    ):
        assert words in text
    gateway.world.digest.series[0].part_items = 200
    assert "in both" not in await page(gateway, "/digest")
    gateway.world.digest.series[1].words = NOTHING_BEFORE
    assert f'title="{NOTHING_BEFORE}">no earlier run</td>' in await page(gateway, "/digest")
    assert "m<i>" not in (await gateway.client.get("/digest")).text
    gateway.world.digest = digest_pb2.Digest()
    for wrong in ("never", "0", "367", "000007000000", f"1{'0' * 5_000}", "²"):
        assert "No run has completed in this time." in await page(gateway, f"/digest?days={wrong}")
        asked = gateway.world.digest
        assert asked.end_at.ToDatetime() - asked.begin_at.ToDatetime() == timedelta(days=7)
