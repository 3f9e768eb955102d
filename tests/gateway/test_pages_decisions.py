"""Pages of decisions: the list, one with its evidence while it runs and after, and the form that starts one."""

from __future__ import annotations

import html
import math
import re
import time
from urllib.parse import parse_qsl, urlencode

import pytest

from services.gateway.pages.forms.decision_form import DecisionForm
from tests.gateway import fake_decisions
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_page_weight import MOST_OF_A_PAGE, transferred
from tests.gateway.test_pages import page
from tests.gateway.test_pages_experiments import words
from touchstone.v1 import job_pb2

FORM = "/decisions/new"
SHARES = {"llama3.2:3b": 0.5, "gemma3:4b": 0.62, "qwen2.5:7b": 0.85}
FIELDS = {"request_id": "one", "baseline": "ollama|llama3.2:3b", "candidate": "ollama|phi4-mini", "work": "demo"}


async def test_decisions_are_listed_with_what_was_found(gateway: Running) -> None:
    assert "No decisions yet" in await page(gateway, "/decisions")
    found = fake_decisions.add(gateway.world)
    begun = fake_decisions.begun(gateway.world, ("phi4-mini", "gemma3:4b"))
    said = await page(gateway, "/decisions")
    told = words(said)
    assert "qwen2.5:7b is better than llama3.2:3b." in told
    assert f"{found.decided_at} of 600 {100 * found.saved.items / 1200:.1f} %" in told
    assert "It is not decided whether gemma3:4b is better than phi4-mini. running" in told
    assert 'data-watch="jobs"' in said
    for job_id in (begun.decision_id, gateway.world.jobs[begun.decision_id].spec.deciding.against_job_id):
        fake_decisions.stop(gateway.world, job_id, "Stopped.")
    assert 'data-watch="jobs"' not in await page(gateway, "/decisions"), "nothing changes any more"


async def test_without_a_pair_of_answers_there_is_no_interval_to_show(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world)
    gateway.world.jobs[found.decision_id].spec.schedule_id = "one"
    interval = f"{100 * found.low:+.1f} to {100 * found.high:+.1f}"
    assert interval in words(await page(gateway, "/decisions?schedule=one"))
    found.ClearField("difference")
    assert interval not in words(await page(gateway, "/decisions?schedule=one"))


async def test_the_list_has_pages(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.gateway.pages.decisions.listing.PAGE_SIZE", 2)
    for _ in range(3):
        fake_decisions.add(gateway.world)
    first = await page(gateway, "/decisions")
    (more,) = re.findall(r'href="(/decisions\?after=[^"]+)"', first)
    second = await page(gateway, more)
    assert first.count('<th scope="row"') == 2
    assert second.count('<th scope="row"') == 1


async def test_a_schedule_of_decisions_has_a_page_with_what_they_found(gateway: Running) -> None:
    sent = FIELDS | {"cron": "0 2 * * 1", "label": "nightly", "margin": "2"}
    made = await gateway.client.post(FORM, data=sent)
    (schedule,) = gateway.world.schedules.values()
    address = f"/decisions?schedule={schedule.schedule_id}"
    assert (made.status_code, made.headers["location"]) == (303, address)
    assert (schedule.spec.model, schedule.candidates[0].model) == ("llama3.2:3b", "phi4-mini")
    assert (schedule.cron, schedule.label, schedule.spec.deciding.margin) == ("0 2 * * 1", "nightly", 0.02)
    assert not gateway.world.jobs, "nothing is asked now"
    again = await gateway.client.post(FORM, data=sent)
    assert (again.headers["location"], len(gateway.world.schedules)) == (address, 1)
    told = words(await page(gateway, address))
    assert "nightly · Is phi4-mini better than llama3.2:3b? · demo · 0 2 * * 1 UTC" in told
    assert "The next decision starts at" in told
    assert "This schedule has not started a decision yet." in told

    found = fake_decisions.add(gateway.world)
    fake_decisions.add(gateway.world, models=("phi4-mini", "gemma3:4b"))
    gateway.world.jobs[found.decision_id].spec.schedule_id = schedule.schedule_id
    schedule.last_job_id, schedule.last_problem = found.decision_id, "Its last decision has not ended yet."
    told = words(await page(gateway, address))
    assert "Its last decision has not ended yet." in told
    figures = f"{100 * found.difference:+.1f} {100 * found.low:+.1f} to {100 * found.high:+.1f}"
    asked = f"{found.decided_at} of 600 {100 * found.saved.items / 1200:.1f} %"
    assert f"qwen2.5:7b is better than llama3.2:3b. {figures} {asked}" in told
    assert "gemma3:4b" not in told
    of_decision = await page(gateway, f"/decisions/{found.decision_id}")
    assert f'href="/decisions?schedule={schedule.schedule_id}">Its schedule</a>' in of_decision
    settings = await page(gateway, "/settings")
    assert f'<a href="{address}">nightly</a>' in settings
    assert "decides: phi4-mini against llama3.2:3b at ollama, demo" in words(settings)
    assert f'href="/decisions/{found.decision_id}"' in settings

    del gateway.world.schedules[schedule.schedule_id]
    assert "qwen2.5:7b is better than llama3.2:3b." in words(await page(gateway, address)), "deleted"
    assert (await gateway.client.get("/decisions?schedule=unknown")).status_code == 404


async def test_a_decision_is_repeated_on_a_schedule(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world, margin=0.05)
    said = await page(gateway, f"/decisions/{found.decision_id}")
    address = f"/settings?job={found.decision_id}#schedules"
    assert f'href="{address}">Repeat on a schedule</a>' in said
    assert f'value="{found.decision_id}"' in await page(gateway, address.partition("#")[0])
    candidate = gateway.world.jobs[found.decision_id].spec.deciding.against_job_id
    gateway.world.jobs[candidate].spec.sampling.temperature = 0.5
    sent = {"job": candidate, "cron": "0 2 * * 1"}
    assert (await gateway.client.post("/settings/schedules", data=sent)).status_code == 303
    (schedule,) = gateway.world.schedules.values()
    assert (schedule.spec.model, schedule.spec.deciding.margin) == ("llama3.2:3b", 0.05)
    assert not schedule.spec.deciding.against_job_id
    assert (schedule.candidates[0].model, schedule.candidates[0].sampling.temperature) == ("qwen2.5:7b", 0.5)


async def test_a_wrong_time_is_said_in_the_form(gateway: Running) -> None:
    answer = await gateway.client.post(FORM, data=FIELDS | {"cron": "daily"})
    assert answer.status_code == 422
    assert "cron must have five fields" in answer.text
    assert 'value="daily"' in answer.text
    assert 'id="cron-problem"' in answer.text, "under its field"
    zone = await gateway.client.post(FORM, data=FIELDS | {"cron": "0 2 * * *", "time_zone": HOSTILE})
    assert 'id="time_zone-problem"' in zone.text
    assert HOSTILE not in zone.text
    assert not gateway.world.schedules


async def test_a_decision_reads_without_statistics_and_draws_its_evidence(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world, margin=0.05)
    said = await page(gateway, f"/decisions/{found.decision_id}")
    told = words(said)
    assert f"qwen2.5:7b is better than llama3.2:3b. On {found.decided_at} of 600 items, qwen2.5:7b scored" in told
    assert "At most 5 % of such verdicts are wrong" in told
    assert f"Calls saved {found.saved.items:,}" in told
    assert f"Tokens saved {found.saved.tokens:,}" in told
    assert "Money saved $" in told
    assert "Time saved" in told
    assert said.count('<svg class="course evidence') == 2, "a wide one and one for phones"
    chart = said[said.index('<svg class="course evidence wide') :]
    chart = chart[: chart.index("</svg>")]
    assert chart.count('class="way ') == 3, "better, worse, and equivalent"
    assert 'class="limit"' in chart
    assert said.count('<svg class="course difference') == 2
    chart = said[said.index('<svg class="course difference wide') :]
    chart = chart[: chart.index("</svg>")]
    assert (chart.count('class="span"'), chart.count('class="zero"'), chart.count('class="limit"')) == (1, 1, 2)
    assert re.search(r"qwen2.5:7b answers [\d.]+ to [\d.]+ of 100 items better than llama3.2:3b\.", told)
    ids = f"{gateway.world.jobs[found.decision_id].spec.deciding.against_job_id},{found.decision_id}"
    assert f'href="/side-by-side?jobs={ids}"' in said
    assert all(f'href="/jobs/{job_id}"' in said for job_id in ids.split(","))
    assert "data-watch" not in said


async def test_a_verdict_of_the_test_at_the_end_says_so(gateway: Running) -> None:
    said = "No line reached its limit on the way, so the test of all items decided."
    by_all = fake_decisions.add(gateway.world, (0.6, 0.68), items=300)
    assert by_all.verdict == job_pb2.DECISION_VERDICT_BETTER
    assert said in words(await page(gateway, f"/decisions/{by_all.decision_id}"))
    early = fake_decisions.add(gateway.world)
    assert said not in words(await page(gateway, f"/decisions/{early.decision_id}"))


async def test_evidence_after_the_verdict_does_not_seem_to_take_it_back(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world)
    claim = "qwen2.5:7b is better"
    before = re.search(rf"{claim} ([\d.]+) times", words(await page(gateway, f"/decisions/{found.decision_id}")))
    assert before is not None
    assert float(before[1]) >= 80
    found.path.add(pairs=found.decided_at + 8, better=math.log(2), worse=0.0, chance=1.0, low=-0.1, high=0.3)
    found.pairs += 8
    assert before[0] in words(await page(gateway, f"/decisions/{found.decision_id}"))


async def test_without_a_margin_no_evidence_of_equivalence_is_drawn(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world, (0.7, 0.71))
    said = await page(gateway, f"/decisions/{found.decision_id}")
    chart = said[said.index('<svg class="course evidence wide') :]
    assert chart[: chart.index("</svg>")].count('class="way ') == 2
    assert "they differ by less" not in said
    assert '<svg class="course chance' in said
    assert "which may be chance" in said


async def test_a_running_decision_is_followed_and_stopped(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world, (0.6, 0.64), upto=150)
    address = f"/decisions/{found.decision_id}"
    said = await page(gateway, address)
    assert f'data-watch="jobs" data-every="2" hx-get="{address}"' in said
    assert "150 of 600 items answered by both" in words(said)
    assert '<meta http-equiv="refresh" content="5">' in said, "also without scripts"
    part = (await gateway.client.get(address, headers={"HX-Request": "true"})).text
    assert part.lstrip().startswith('<div id="decision"')
    answer = await gateway.client.post(f"{address}/stop")
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    assert job_pb2.Job.STATE_CANCELLED in {job.state for job in gateway.world.jobs.values()}


async def test_a_race_shows_what_became_of_each_model(gateway: Running) -> None:
    found = fake_decisions.add_race(gateway.world, SHARES)
    said = await page(gateway, f"/decisions/{found.decision_id}")
    told = words(said)
    assert "qwen2.5:7b is the best of 3 models. On " in told
    assert "2 of 3 models were beaten." in told
    assert f"beaten by qwen2.5:7b after {found.racers[0].beaten_at} items" in told
    assert f"{100 * found.saved.items / 1800:.1f} % of all full runs" in told
    chart = said[said.index('<svg class="course evidence wide') :]
    assert chart[: chart.index("</svg>")].count('class="way ') == 2, "one line for each model but the best"
    assert "qwen2.5:7b is the best of 3 models." in words(await page(gateway, "/decisions"))


async def test_a_race_is_followed_and_stopped(gateway: Running) -> None:
    found = fake_decisions.begun(gateway.world, [*SHARES])
    address = f"/decisions/{found.decision_id}"
    said = await page(gateway, address)
    assert "It is not decided which of 3 models is the best. All models have yet to answer" in words(said)
    assert "data-watch" in said
    assert (await gateway.client.post(f"{address}/stop")).status_code == 303
    assert {job.state for job in gateway.world.jobs.values()} == {job_pb2.Job.STATE_CANCELLED}
    assert (await gateway.client.post(f"{address}/stop")).status_code == 409


async def test_a_race_is_started_from_the_form(gateway: Running) -> None:
    further = ["ollama|gemma3:4b", "ollama|qwen2.5:7b"]
    answer = await gateway.client.post(FORM, data=FIELDS | {"further": further, "candidate-temperature": "0.5"})
    assert answer.status_code == 303
    models = [job.spec.model for job in gateway.world.jobs.values()]
    assert models == ["llama3.2:3b", "phi4-mini", "gemma3:4b", "qwen2.5:7b"]
    again = await page(gateway, answer.headers["location"])
    (form,) = re.findall(r'href="(/decisions/new\?[^"]+)"', again)
    filled = await page(gateway, form)
    assert filled.count(" checked>") >= 2
    assert f'value="{further[0]}" checked' in filled
    many = {"further": [f"ollama|m{number}" for number in range(19)]}
    assert "Choose at most 20 models in all." in (await gateway.client.post(FORM, data=FIELDS | many)).text


async def test_every_model_of_a_race_may_have_its_own_parameters(gateway: Running) -> None:
    further = {"further": ["ollama|gemma3:4b", "ollama|qwen2.5:7b"], "baseline-top_k": "40"}
    own = {"ollama|gemma3:4b-parameters": "temperature=0.5, num_predict = 64", "ollama|phi4-mini-parameters": "x"}
    answer = await gateway.client.post(FORM, data=FIELDS | further | own)
    assert answer.status_code == 303
    told = [job.spec.sampling for job in gateway.world.jobs.values()]
    assert (told[2].temperature, told[2].max_tokens) == (0.5, 64)
    assert not told[3].ListFields()
    (form,) = re.findall(r'href="(/decisions/new\?[^"]+)"', await page(gateway, answer.headers["location"]))
    filled = await page(gateway, html.unescape(form))
    assert 'value="temperature=0.5, num_predict=64"' in filled, "to decide again"
    assert re.search(r'name="baseline-top_k" value="40"', filled)
    for text, said in (
        ("warmth=1", "Write parameters as temperature=0.7, top_p=0.9. warmth is not a valid parameter."),
        ("temperature", "Write parameters as"),
        ("temperature=9", "Temperature must be between 0 and 2."),
    ):
        wrong = await gateway.client.post(FORM, data=FIELDS | further | {"ollama|gemma3:4b-parameters": text})
        assert wrong.status_code == 422
        assert said in words(wrong.text)
        assert f'value="{text}"' in wrong.text
    assert len(gateway.world.jobs) == 4


async def test_a_decision_is_made_again_with_all_that_the_form_said(gateway: Running) -> None:
    settings = {"margin": "1.5", "error": "0.1", "limit": "40", "shots": "3", "budget_usd": "2.5", "project": "7"}
    priced = {"baseline": "gemini|gemini-2.5-flash", "candidate": "gemini|gemini-2.5-flash"}
    sent = FIELDS | settings | priced | {"work": "glue", "mode": "loglikelihood"}
    answer = await gateway.client.post(FORM, data=sent)
    assert answer.status_code == 303, words(answer.text)
    (form,) = re.findall(r'href="(/decisions/new\?[^"]+)"', await page(gateway, answer.headers["location"]))
    filled = dict(parse_qsl(html.unescape(form).partition("?")[2]))
    assert filled | {"request_id": "one"} == sent


async def test_a_decision_that_has_just_begun_is_shown(gateway: Running) -> None:
    found = fake_decisions.begun(gateway.world)
    gateway.world.unstored.add(found.decision_id)
    said = await page(gateway, f"/decisions/{found.decision_id}")
    assert "Both models have yet to answer the same items." in said
    assert '<svg class="course' not in said


async def test_others_jobs_are_no_decision(gateway: Running) -> None:
    job = gateway.world.add(spec(), "local")
    for name in (job.job_id, "nothing", "%00"):
        answer = await gateway.client.get(f"/decisions/{name}", headers={"Accept": "text/html"})
        assert answer.status_code == 404


async def test_a_job_leads_to_its_decision(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world)
    said = await page(gateway, f"/jobs/{found.decision_id}")
    assert f'The baseline of a <a href="/decisions/{found.decision_id}">decision</a>' in said
    race = fake_decisions.add_race(gateway.world, SHARES)
    assert f'3 models of a <a href="/decisions/{race.decision_id}">race</a>' in await page(
        gateway, f"/jobs/{race.decision_id}"
    )


async def test_a_path_of_14_000_items_is_a_small_page_in_no_time(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world, (0.7, 0.7), items=600, margin=0.02)
    points = list(found.path)
    while len(found.path) < 14_000:
        found.path.extend(points)
    for at, point in enumerate(found.path, 1):
        point.pairs = at
    found.pairs = found.items_total = len(found.path)
    address = f"/decisions/{found.decision_id}"
    await page(gateway, address)
    began = time.perf_counter()
    text = await page(gateway, address)
    assert time.perf_counter() - began < 1, "most of it is the message of that many points"
    assert len(text) < 120_000
    assert (await transferred(gateway, address))[0] < MOST_OF_A_PAGE


async def test_hostile_names_stay_text(gateway: Running) -> None:
    found = fake_decisions.add(gateway.world, models=(HOSTILE, f"{HOSTILE} 2"))
    for address in ("/decisions", f"/decisions/{found.decision_id}", f"{FORM}?{urlencode({'candidate': HOSTILE})}"):
        answer = await gateway.client.get(address, headers={"Accept": "text/html"})
        assert answer.status_code == 200
        assert HOSTILE not in answer.text
        assert HOSTILE in html.unescape(answer.text)


async def test_a_decision_is_started_from_the_form(gateway: Running) -> None:
    said = await page(gateway, f"{FORM}?candidate=ollama%7Cphi4-mini&work=demo")
    assert '<option value="ollama|phi4-mini" selected>' in said
    fields = FIELDS | {"margin": "2", "error": "10", "limit": "50", "candidate-temperature": "0.5", "any_job": "1"}
    answer = await gateway.client.post(FORM, data=fields)
    assert answer.status_code == 303
    baseline, candidate = gateway.world.jobs.values()
    assert answer.headers["location"] == f"/decisions/{baseline.job_id}"
    assert (baseline.spec.model, candidate.spec.model) == ("llama3.2:3b", "phi4-mini")
    assert (baseline.spec.suite.suite, candidate.spec.suite.limit) == ("demo", 50)
    deciding = candidate.spec.deciding
    assert (deciding.margin, deciding.error, deciding.candidate) == (0.02, 0.1, True)
    assert (baseline.spec.sampling.HasField("temperature"), candidate.spec.sampling.temperature) == (False, 0.5)
    assert baseline.spec.reuse.any_job
    await gateway.client.post(FORM, data=fields)
    assert len(gateway.world.jobs) == 2, "a second click starts nothing"
    assert "Both models have yet" in await page(gateway, answer.headers["location"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"candidate": ""}, "Choose a model."),
        ({"baseline": "ollama|"}, "Choose a model."),
        ({"work": ""}, "Choose a suite or a dataset."),
        ({"margin": "100"}, "Difference that does not matter must be between 0 and 99.9."),
        ({"error": "0"}, "Chance of a wrong verdict must be between 0.01 and 50."),
        ({"limit": "0"}, "Items per task must be"),
        ({"baseline-temperature": "9"}, "Temperature must be between 0 and 2."),
        ({"candidate": "nowhere|m"}, "Nothing was started."),
        ({"work": "ds_" + "0" * 32}, "Nothing was started."),
        ({"work": "ds_" + "0" * 32, "shots": "3"}, "Examples are for suites. Leave this empty."),
        ({"work": "ds_" + "0" * 32, "mode": "loglikelihood"}, "Rows of a dataset are generated: choose Generate."),
        ({"label": "nightly"}, "Give the times of the schedule, or leave time zone and label empty."),
        ({"time_zone": "Europe/Zurich"}, "Give the times of the schedule, or leave time zone and label empty."),
    ],
)
async def test_a_wrong_form_says_what_is_wrong_and_keeps_the_rest(
    gateway: Running, changes: dict[str, str], said: str
) -> None:
    answer = await gateway.client.post(FORM, data=FIELDS | {"limit": "7"} | changes)
    assert answer.status_code == 422
    assert said in answer.text
    assert 'value="one"' in answer.text
    assert not gateway.world.jobs
    part = await gateway.client.post(FORM, data=FIELDS | changes, headers={"HX-Request": "true"})
    assert part.text.lstrip().startswith('<form id="decide"')


async def test_the_form_tells_the_most_calls(gateway: Running) -> None:
    asked = await gateway.client.get(FORM, params={"work": "demo", "limit": "50"}, headers={"HX-Request": "true"})
    assert asked.text.lstrip().startswith('<p id="decision-estimate"')
    assert "At most 400 calls: 200 items" in asked.text, "demo has four tasks"


def test_a_changed_form_is_another_request() -> None:
    same = [DecisionForm(work="demo", request_id="r").request() for _ in range(2)]
    assert same[0].request_id == same[1].request_id
    assert DecisionForm(work="glue", request_id="r").request().request_id != same[0].request_id
