"""The Run page: an estimate from earlier runs, a choice that is an address and a command, and earlier jobs."""

from __future__ import annotations

import re
import shlex

from services.gateway.reads import estimate
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from touchstone.v1 import job_pb2
from touchstone_client.command import parser


def earlier(gateway: Running) -> job_pb2.Job:
    wanted = spec("qwen2.5:7b", "demo", limit=50)
    wanted.suite.tasks.append("sentiment")
    wanted.suite.shots = 0
    wanted.sampling.temperature, wanted.sampling.seed = 0.25, 1234567890
    wanted.priority = job_pb2.PRIORITY_LOW
    return gateway.world.finish(gateway.world.start(gateway.world.add(wanted, "local").job_id).job_id)


async def test_an_earlier_job_fills_the_choice_which_is_an_address_and_a_command(gateway: Running) -> None:
    job = earlier(gateway)
    answer = await gateway.client.get(f"/run?from={job.job_id}", headers={"HX-Request": "true"})
    address = answer.headers["HX-Replace-Url"]
    for part in ("model=qwen2.5%3A7b", "limit=50", "seed=1234567890", "temperature=0.25", "priority=low"):
        assert part in address
    again = await gateway.client.get(address, headers={"HX-Request": "true"})
    assert again.headers["HX-Replace-Url"] == address
    written = re.search(r'<pre id="command" hx-ignore>(.*?)</pre>', await page(gateway, address))
    assert written is not None
    asked = parser().parse_args(shlex.split(written[1])[1:])
    assert (asked.suite, asked.models, asked.endpoint, asked.limit) == ("demo", ["qwen2.5:7b"], "ollama", 50)
    assert (asked.seed, asked.temperature, asked.priority) == (1234567890, 0.25, "low")


async def test_the_estimate_is_that_of_the_models_earlier_run(gateway: Running) -> None:
    choice = "/run?endpoint=ollama&suite=demo&model=qwen2.5:7b"
    assert "Run up to 50 items of each task first" in await page(gateway, choice)
    earlier(gateway).started_at.FromSeconds(1)
    text = await page(gateway, choice)
    for said in ("from 1 earlier run", "10 in, 10 out", "no price is known", "Can tell apart"):
        assert said in text


def test_four_times_the_items_tell_half_the_difference_apart() -> None:
    assert estimate.smallest_difference(100) == 2 * estimate.smallest_difference(400)
    assert round(100 * estimate.smallest_difference(2933), 1) == 2.3
    assert estimate.smallest_difference(0) == 1
