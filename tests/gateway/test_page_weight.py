"""What the pages transfer, compressed as browsers get them."""

from __future__ import annotations

import gzip
import json
import random
import re
import uuid

import pytest

from services.gateway.pages.boards import overview
from tests.e2e.every_page import finished, places
from tests.gateway import fake_datasets, fake_figures
from tests.gateway.fake_world import World, spec
from tests.gateway.gateway_server import Running, running
from touchstone.v1 import dataset_pb2, job_pb2, metric_pb2, results_service_pb2

MOST_OF_A_PAGE = 60_000
MOST_OF_A_FIRST_VISIT = 150_000
_HTML = {"Accept": "text/html", "Accept-Encoding": "gzip"}


async def transferred(gateway: Running, address: str) -> tuple[int, str]:
    """Bytes of an answer's body as they travel, and its text."""
    async with gateway.client.stream("GET", address, headers=_HTML) as answer:
        sent = b"".join([piece async for piece in answer.aiter_raw()])
    packed = answer.headers.get("content-encoding") == "gzip"
    return len(sent), (gzip.decompress(sent) if packed else sent).decode()


@pytest.mark.stack
async def test_every_page_is_light_also_on_a_first_visit() -> None:
    world, found = places()
    assets: dict[str, int] = {}
    heavy: dict[str, tuple[int, int]] = {}
    async with running(world) as gateway:
        for place in found:
            page, text = await transferred(gateway, place.address)
            whole = page
            for asset in set(re.findall(r'(?:src|href|data-stream)="(/static/[^"]+)"', text)):
                if asset not in assets:
                    assets[asset], _ = await transferred(gateway, asset)
                whole += assets[asset]
            if page > MOST_OF_A_PAGE or whole > MOST_OF_A_FIRST_VISIT:
                heavy[place.name] = page, whole
    assert len(assets) > 10, "scripts and styles are found"
    assert not heavy


def full_trends(_: World, request: results_service_pb2.ListTrendsRequest) -> results_service_pb2.ListTrendsResponse:
    """As many lines and points as the Overview draws, no two alike."""
    drawn = random.Random(1)
    answer = results_service_pb2.ListTrendsResponse()
    for number in range(overview.SERIES):
        name = f"vendor/model-{number}:70b-instruct"
        trend = answer.trends.add(configuration=f"{number:064x}", model=name, endpoint="ollama", item_set="set")
        for place in range(request.points):
            mean, width = drawn.random(), drawn.random() / 20
            score = metric_pb2.Metric(
                metric="accuracy", mean=mean, ci95_low=mean - width, ci95_high=mean + width, n=1043
            )
            point = trend.points.add(job_id=str(uuid.UUID(int=drawn.getrandbits(128))), score=score)
            point.completed_at.FromSeconds(1_790_000_000 + 43_000 * place + drawn.randrange(40_000))
    return answer


async def test_the_fullest_overview_is_light(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    finished(world, *(spec(f"model-{number}", limit=5) for number in range(overview.RECENT)))
    monkeypatch.setattr(fake_figures, "trends", full_trends)
    async with running(world) as gateway:
        size, text = await transferred(gateway, "/overview?suite=glue")
    assert text.count('<tr id="run-') == overview.SERIES * overview.RUNS_A_LINE
    assert size <= MOST_OF_A_PAGE, size


PAGES = ("/jobs/{0}", "/jobs/{0}?open=rows:1", "/jobs/{0}/items/rows/1", "/side-by-side?jobs={0},{1}")


async def test_answers_of_200_kb_make_no_page_heavy_and_can_be_read_whole() -> None:
    world = World()
    drawn = random.Random(1)
    said = " ".join("".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(30_000))
    rows = (json.dumps({"prompt": f"{said} {number}", "reference": "A"}) for number in range(20))
    held = fake_datasets.add(world, dataset_pb2.DatasetOptions(name="long.jsonl"), "\n".join(rows).encode()).dataset_id
    work = job_pb2.DatasetWork(dataset_id=held, name="long.jsonl")
    jobs = finished(
        world, *(job_pb2.JobSpec(endpoint="ollama", model=one, dataset=work) for one in ("gemma3:4b", "phi4-mini"))
    )
    async with running(world) as gateway:
        for page in PAGES:
            size, text = await transferred(gateway, page.format(*jobs))
            assert said[:200] in text, page
            assert size <= MOST_OF_A_PAGE, page
        _, short = await transferred(gateway, f"/jobs/{jobs[0]}/items/rows/1")
        _, whole = await transferred(gateway, f"/jobs/{jobs[0]}/items/rows/1?whole=1")
    assert f'href="/jobs/{jobs[0]}/items/rows/1?whole=1">Show all' in short
    assert said not in short
    assert said in whole
    assert "Show all" not in whole
