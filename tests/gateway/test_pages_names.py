"""Names on pages: those that users give configurations, and those of models that would turn a line around."""

from __future__ import annotations

import pytest

from services.words import rubrics
from tests.gateway import fake_data
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from tests.gateway.test_pages_compare import finished
from tests.gateway.test_pages_judges import agreed, judged
from touchstone.v1 import endpoint_pb2

_TURNED = "qwen\u202e4"


async def test_a_configurations_name_stands_beside_its_model_wherever_its_runs_are(gateway: Running) -> None:
    world = gateway.world
    named, other = (world.jobs[job_id] for job_id in finished(world, "alpha:1b", "beta"))
    address = f"/api/v1/benchmarking/configurations/{named.receipt.configuration}"
    assert (await gateway.client.put(address, json={"name": "renamed-1", "alias": "prod"})).status_code == 200
    tags = (">renamed-1</span>", ">prod</span>")
    for place in (f"/jobs/{named.job_id}", f"/jobs/{named.job_id}/report.html", "/jobs", "/overview?suite=glue"):
        text = await page(gateway, place)
        assert [text.count(tag) for tag in tags] == [1, 1], place
        assert "alpha:1b" in text
    assert "alpha:1b renamed-1" in await page(gateway, "/overview?suite=glue"), "the lines of the chart"
    assert "renamed-1" not in await page(gateway, f"/jobs/{other.job_id}")
    for place in ("", "/report.html"):
        text = await page(gateway, f"/compare{place}?jobs={named.job_id},{other.job_id}")
        assert "renamed-1" in text
        assert '<span class="at">alpha:1b' in text
        assert '<span class="at">beta' not in text, "its name is the model's"
    for asked in ("renamed", "prod", "alpha renamed"):
        found = (await gateway.client.get("/jump", params={"q": asked}, headers={"HX-Request": "true"})).text
        group = found.partition('id="found-configurations"')[2].partition('role="group"')[0]
        assert f'href="/jobs/{named.job_id}"' in group, asked
        assert "alpha:1b on ollama" in group


async def test_direction_controls_in_a_models_name_are_written_out(
    gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = fake_data.models()
    listed["ollama"].append(endpoint_pb2.Model(model=_TURNED))
    monkeypatch.setattr(fake_data, "models", lambda: listed)
    text = await page(gateway, "/run?endpoint=ollama&suite=glue")
    assert text.count("\u202e") == text.count(f'name="model" value="{_TURNED}"') == 1, "only what the form sends"
    assert "qwen\\u202e4</label>" in text
    world = gateway.world
    one, two = (world.jobs[job_id] for job_id in finished(world, _TURNED, "beta"))
    world.add(spec(_TURNED, limit=5), "local")
    pair = f"jobs={one.job_id},{two.job_id}"
    for place in (
        *("/jobs", "/overview?suite=glue", "/leaderboard?suite=glue", "/queue", "/compare", f"/jobs/{one.job_id}"),
        *(f"/compare?{pair}", f"/compare/report.html?{pair}", f"/side-by-side?{pair}", "/jump?q=qwen"),
    ):
        # A command that repeats the job names the model as it is.
        text = (await page(gateway, place)).partition('<section class="card how"')[0]
        assert "\u202e" not in text, place
        assert "qwen\\u202e4" in text, place
    judge = judged(world, two)
    judge.job.spec.model = _TURNED
    agreed(judge)
    by = rubrics.digest(judge.rubric)
    for place in ("", "/rate", f"/rate/agreement?rubric={by}"):
        text = await page(gateway, f"/jobs/{two.job_id}{place}")
        assert "\u202e" not in text, place
        assert "qwen\\u202e4" in text, place
