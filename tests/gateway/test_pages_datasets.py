"""Pages of datasets: upload without script, the list, one dataset with its runs, the form that starts them."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import httpx
import pytest

from services.gateway.pages.display.formatting import stamp
from tests.gateway.gateway_server import Running
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, scoring_pb2

HTML = {"Accept": "text/html"}
HOSTILE = "<img src=x onerror=alert(1)>.jsonl"
LINES = (
    b'{"prompt": "<script>alert(1)</script>", "reference": "a", "metadata": {"who": "<b>Ann</b>"}}\n{"prompt": "b"}\n'
)


async def page(gateway: Running, address: str, status: int = 200, *, part: bool = False) -> str:
    answer = await gateway.client.get(address, headers=HTML | ({"HX-Request": "true"} if part else {}))
    assert answer.status_code == status, answer.text
    return answer.text


async def upload(gateway: Running, data: bytes = LINES, file_name: str = "rows.jsonl", **fields: str) -> httpx.Response:
    """As the form sends it without script: the fields, then the file."""
    parts: list[tuple[str, Any]] = [(key, (None, value)) for key, value in fields.items()]
    return await gateway.client.post(
        "/datasets/upload", files=[*parts, ("file", (file_name, data))], headers=HTML, follow_redirects=False
    )


async def dataset_of(gateway: Running, data: bytes = LINES, name: str = "rows.jsonl") -> dataset_pb2.Dataset:
    answer = await upload(gateway, data, name)
    assert answer.status_code == 303, answer.text
    return gateway.world.datasets[answer.headers["location"].rpartition("/")[2]]


def run_over(gateway: Running, dataset: dataset_pb2.Dataset, model: str = "qwen2.5:7b", **scoring: Any) -> job_pb2.Job:
    work = job_pb2.DatasetWork(dataset_id=dataset.dataset_id, name=dataset.name, digest=dataset.digest)
    work.scoring.CopyFrom(scoring_pb2.Scoring(**scoring) if scoring else dataset.scoring)
    made = job_pb2.JobSpec(endpoint="ollama", model=model, priority=job_pb2.PRIORITY_NORMAL, dataset=work)
    return gateway.world.start(gateway.world.add(made, "local").job_id)


async def test_a_plugins_scorer_is_offered_and_taken(gateway: Running) -> None:
    await upload(gateway, scorer="same_words", reference_field="", template="")
    made = next(iter(gateway.world.datasets.values()))
    assert made.scoring.scorer == "same_words"
    option = '<option value="same_words"{}>same words{}</option>'
    assert option.format("", "") in await page(gateway, "/datasets")
    assert option.format(" selected", ", the dataset&#39;s") in await page(gateway, f"/datasets/{made.dataset_id}")


async def test_an_upload_without_script_leads_to_the_dataset_with_its_options(gateway: Running) -> None:
    answer = await upload(gateway, scorer="contains", reference_field="", template="")
    made = next(iter(gateway.world.datasets.values()))
    assert (answer.status_code, answer.headers["location"]) == (303, f"/datasets/{made.dataset_id}")
    assert (made.name, made.rows, made.scoring.scorer) == ("rows.jsonl", 2, "contains")


async def test_a_refused_upload_shows_its_lines_by_number_and_reason(gateway: Running) -> None:
    answer = await upload(gateway, b'{"prompt": "a"}\nnot json\n[1]\nnot json\n')
    assert answer.status_code == 400
    lines = re.findall(r'<tr><td>(.*?)</td><td class="num">(\d+)</td><td>([\d, ]+)</td></tr>', answer.text)
    assert [(count, which) for _, count, which in lines] == [("2", "2, 4"), ("1", "3")]
    assert lines[0][0].startswith("The line is not JSON")
    assert "3 lines are wrong in rows.jsonl" in answer.text
    assert gateway.world.datasets == {}


async def test_names_and_rows_are_shown_as_text(gateway: Running) -> None:
    made = await dataset_of(gateway, name=HOSTILE)
    for address in ("/datasets", f"/datasets/{made.dataset_id}"):
        text = await page(gateway, address)
        assert "<img src=x" not in text
        assert html.escape(HOSTILE) in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "&lt;b&gt;Ann" in text


async def test_long_metadata_of_a_row_folds_under_its_names(gateway: Running) -> None:
    held = {"source": "<i>" + 190 * "s", "pages": [1, 2], **{f"field-{n:02}": "" for n in range(20)}}
    rows = [{"prompt": "a", "metadata": {"source": 120 * "s"}}, {"prompt": "b", "metadata": held}]
    made = await dataset_of(gateway, b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    short, long = (await page(gateway, f"/datasets/{made.dataset_id}")).split('<td class="meta">')[1:3]
    assert short.startswith(f"<span><i>source</i> {120 * 's'}</span>")
    assert long.startswith("<details><summary>source, pages, field-00, field-01,")
    folded = long.partition("</summary>")
    assert folded[0].endswith("…"), "many names are cut"
    assert folded[2].startswith(f"<span><i>source</i> &lt;i&gt;{190 * 's'}</span> <span><i>pages</i> [1, 2]</span>")
    assert "<i>field-19</i>" in folded[2].partition("</details>")[0]


async def test_the_list_tells_rows_references_and_live_runs(gateway: Running) -> None:
    made = await dataset_of(gateway)
    run_over(gateway, made)
    text = await page(gateway, "/datasets")
    row = text[text.index('<th scope="row"') : text.index("</tr>", text.index('<th scope="row"'))]
    assert '<td class="num">2</td>' in row
    assert '<span class="tag live"><i class="dot"></i>1</span>' in row
    assert "No dataset matches" in await page(gateway, "/datasets?query=nothing-like-it")


async def test_runs_over_all_datasets_are_listed_with_the_dataset_that_each_is_on(gateway: Running) -> None:
    assert "No dataset has been run yet" in await page(gateway, "/datasets/runs")
    answer = await upload(gateway, name="<b>First of two")
    sets = [
        gateway.world.datasets[answer.headers["location"].rpartition("/")[2]],
        await dataset_of(gateway, name=HOSTILE),
    ]
    assert [one.name for one in sets] == ["<b>First of two", HOSTILE]
    live, ended = (run_over(gateway, one) for one in sets)
    gateway.world.advance(live.job_id, 1)
    gateway.world.finish(ended.job_id)
    text = await page(gateway, "/datasets/runs")
    active, finished = text.split('<div id="finished">')
    for part, one, job in ((active, sets[0], live), (finished, sets[1], ended)):
        assert f'<a href="/datasets/{one.dataset_id}">{html.escape(one.name)}</a>' in part
        assert f'href="/jobs/{job.job_id}"' in part
    poll = html.unescape(text[text.index('hx-get="/datasets/runs') + 8 :].partition('"')[0])
    assert "hx-partial" not in await page(gateway, poll, part=True)
    gateway.world.finish(live.job_id)
    part = await page(gateway, poll, part=True)
    assert part.count("View results") == 2
    await gateway.stop_service("scheduler")
    assert "The scheduler does not answer" in await page(gateway, "/datasets/runs")
    answer = await gateway.client.get(poll, headers={"HX-Request": "true"})
    assert answer.status_code == 204


async def test_a_dataset_that_expires_says_when(gateway: Running) -> None:
    dataset = await dataset_of(gateway)
    assert "xpires" not in await page(gateway, "/datasets") + await page(gateway, f"/datasets/{dataset.dataset_id}")
    dataset.expires_at.FromSeconds(1_798_000_000)
    assert f"<small>expires {stamp(dataset.expires_at)}</small>" in await page(gateway, "/datasets")
    own = await page(gateway, f"/datasets/{dataset.dataset_id}")
    assert f"<dt>Expires</dt><dd>{stamp(dataset.expires_at)}</dd>" in own


async def test_a_dataset_in_use_is_kept_and_the_page_says_why(gateway: Running) -> None:
    made = await dataset_of(gateway)
    job = run_over(gateway, made)
    address = f"/datasets/{made.dataset_id}/delete"
    answer = await gateway.client.post(address, headers=HTML)
    assert answer.status_code == 409
    assert f"Job {job.job_id} uses the dataset." in answer.text
    assert "Nothing was deleted." in answer.text
    gateway.world.finish(job.job_id)
    answer = await gateway.client.post(address, headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "/datasets")
    assert gateway.world.datasets == {}
    assert "or it was deleted" in await page(gateway, f"/datasets/{made.dataset_id}", 404)
    assert "rows.jsonl" in await page(gateway, f"/jobs/{job.job_id}"), "its runs keep its name"


async def test_the_form_starts_a_run_for_each_model_over_all_endpoints(gateway: Running) -> None:
    made = await dataset_of(gateway)
    sent = {
        "model": ["ollama|qwen2.5:7b", "gemini|gemini-2.5-flash"],
        "limit": "1",
        "scorer": "contains",
        "temperature": "0.5",
        "num_predict": "64",
        "budget": "1.50",
        "request_id": "form-1",
    }
    answer = await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/datasets/{made.dataset_id}")
    first, second = gateway.world.specs
    assert [(s.endpoint, s.model) for s in (first, second)] == [
        ("ollama", "qwen2.5:7b"),
        ("gemini", "gemini-2.5-flash"),
    ]
    assert (first.dataset.limit, first.dataset.scoring.scorer, first.budget_usd) == (1, "contains", 1.5)
    assert (first.sampling.temperature, first.sampling.max_tokens) == (0.5, 64)
    await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    assert len(gateway.world.specs) == 2, "sending the form again starts nothing"


async def test_the_form_starts_every_model_or_none(gateway: Running) -> None:
    made = await dataset_of(gateway)
    sent = {"model": ["ollama|qwen2.5:7b", "ollama|mistral:7b"], "budget": "1.50", "num_predict": "64"}
    answer = await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    assert answer.status_code == 422
    assert "mistral:7b@ollama: The prices of mistral:7b at ollama are unknown" in answer.text
    assert "Nothing was started." in answer.text
    assert gateway.world.specs == []


async def test_after_a_silence_the_form_does_not_say_that_nothing_was_started(gateway: Running) -> None:
    made = await dataset_of(gateway)
    await gateway.stop_service("scheduler")
    sent = {"model": "ollama|qwen2.5:7b"}
    answer = await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    assert answer.status_code == 422
    assert "The scheduler does not answer" in answer.text
    assert "Nothing was started" not in answer.text


async def test_the_form_sends_the_scorers_options_and_no_other_scorers(gateway: Running) -> None:
    numbers = b'{"prompt": "2+2?", "reference": 4, "metadata": {"label": "yes"}}\n'
    answer = await upload(gateway, numbers, scorer="numeric", tolerance="0.01", tolerance_is_relative="true")
    address = answer.headers["location"]
    text = await page(gateway, address)
    assert '<option value="numeric" selected>number, the dataset&#39;s</option>' in text
    assert 'name="tolerance" value="0.01"' in text
    sent = {
        "model": "ollama|qwen2.5:7b",
        "scorer": "choice",
        "choices": "yes, no",
        "tolerance": "0.01",
        "fields": "a.b",
    }
    sent |= {"reference_field": "label", "group_field": "passage", "answer_pattern": "it is (.+)"}
    await gateway.client.post(f"{address}/run", data=sent, headers=HTML)
    (spec,) = gateway.world.specs
    assert spec.dataset.scoring == scoring_pb2.Scoring(
        scorer="choice",
        choices=["yes", "no"],
        reference_field="label",
        group_field="passage",
        answer_pattern="it is (.+)",
    )


async def test_the_form_sends_further_scorers(gateway: Running) -> None:
    address = (await upload(gateway, scorer="exact_match")).headers["location"]
    options = '{"scorer": "numeric", "tolerance": 0.1}'
    text = await page(gateway, f"{address}?scorer=contains&also=json&also=same_words")
    assert '<option value="contains" selected>' in text
    for name in ("json", "same_words"):
        assert f'name="also" value="{name}" checked>' in text
    assert text.count('name="also"') - text.count("checked>") >= 1
    sent = {"model": "ollama|qwen2.5:7b", "scorer": "contains", "also": ["json", "same_words"], "also_options": options}
    assert (await gateway.client.post(f"{address}/run", data=sent)).status_code == 303
    near = scoring_pb2.Scoring(scorer="numeric", tolerance=0.1)
    plain = [scoring_pb2.Scoring(scorer=name) for name in ("json", "same_words")]
    assert list(gateway.world.specs[-1].dataset.further) == [*plain, near]


@pytest.mark.parametrize(
    ("also", "options", "sentence"),
    [
        (["json"], "{", "further_scorers[1] must be an object. Write them as [{&#34;scorer&#34;: "),
        ([], '[{"scorer": "numeric", "tolerance": -1}]', "further_scorers[0].tolerance must be between"),
        (["json", "regex", "choice", "numeric", "contains"], "", "further_scorers must hold 0 to 4 entries."),
        ([], "<script>", "further_scorers[0] must be an object."),
    ],
)
async def test_wrong_further_scorers_stand_in_the_form(
    gateway: Running, also: list[str], options: str, sentence: str
) -> None:
    address = (await upload(gateway, scorer="exact_match")).headers["location"]
    sent = {"model": "ollama|qwen2.5:7b", "scorer": "exact_match", "also": also, "also_options": options}
    answer = await gateway.client.post(f"{address}/run", data=sent)
    assert answer.status_code == 422
    assert sentence in answer.text
    assert "<script>" not in answer.text.partition('id="run"')[2].partition("</form>")[0]
    assert not gateway.world.specs


async def test_the_form_sends_which_match_counts_and_the_layers_that_read(gateway: Running) -> None:
    address = (await upload(gateway, scorer="exact_match")).headers["location"]
    sent = {"model": "ollama|qwen2.5:7b", "scorer": "choice", "reading": "strict", "answer_match": "first"}
    for more, reading, match in (
        ({}, scoring_pb2.READING_STRICT, scoring_pb2.ANSWER_MATCH_UNSPECIFIED),
        ({"answer_pattern": "is (.)"}, scoring_pb2.READING_UNSPECIFIED, scoring_pb2.ANSWER_MATCH_FIRST),
        ({"scorer": "contains"}, scoring_pb2.READING_UNSPECIFIED, scoring_pb2.ANSWER_MATCH_UNSPECIFIED),
    ):
        await gateway.client.post(f"{address}/run", data=sent | more, headers=HTML)
        spec = gateway.world.specs[-1]
        assert (spec.reading, spec.dataset.scoring.answer_match) == (reading, match)


async def test_what_is_wrong_stands_under_its_field_and_nothing_starts(gateway: Running) -> None:
    made = await dataset_of(gateway)
    sent = {"limit": "0", "temperature": "3", "num_predict": "x", "budget": "-1", "scorer": "numeric", "tolerance": "x"}
    answer = await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    assert answer.status_code == 422
    for sentence in (
        "Choose at least one model.",
        "Rows must be between 1 and 2,147,483,647.",
        "Temperature must be between 0 and 2.",
        "Max tokens must be a whole number.",
        "Budget must be a number. Write it as 5.50 or 1,250.",
        "Tolerance must be a number.",
    ):
        assert sentence in answer.text
    assert gateway.world.specs == []


async def test_estimating_first_runs_a_pilot_and_shows_what_the_whole_would_take(gateway: Running) -> None:
    rows = b"".join(b'{"prompt": "p%d", "reference": "a"}\n' % number for number in range(50))
    made = await dataset_of(gateway, rows)
    sent = {"model": "ollama|qwen2.5:7b", "pilot": "1"}
    await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    (spec,) = gateway.world.specs
    assert (spec.dataset.limit, dict(spec.labels)) == (30, {"pilot": "0"})
    job = gateway.world.start(next(iter(gateway.world.jobs)))
    assert "pilot</span>" in await page(gateway, f"/datasets/{made.dataset_id}")
    gateway.world.finish(job.job_id)
    text = await page(gateway, f"/datasets/{made.dataset_id}")
    assert "100 rows would take <b>10 s</b> (8–13)" in text


@pytest.mark.parametrize(("limit", "rows"), [(None, 100), (40, 40), (90, 50)])
async def test_a_pilot_by_rest_tells_what_its_own_run_would_take(
    gateway: Running, limit: int | None, rows: int
) -> None:
    made = await dataset_of(gateway, b"".join(b'{"prompt": "p%d", "reference": "a"}\n' % n for n in range(50)))
    body = {"dataset_id": made.dataset_id, "model_id": "qwen2.5:7b"} | ({"limit": limit} if limit else {})
    pilot = (await gateway.client.post("/admin/benchmarks/estimate", json=body)).json()["benchmark"]["job_id"]
    gateway.world.start(pilot)
    gateway.world.finish(pilot)
    text = await page(gateway, f"/datasets/{made.dataset_id}")
    assert f"{rows} rows would take <b>10 s</b> (8–13)" in text


async def test_live_runs_follow_the_jobs_and_finished_ones_come_once_when_a_run_ends(gateway: Running) -> None:
    made = await dataset_of(gateway)
    job = run_over(gateway, made)
    gateway.world.advance(job.job_id, 1)
    text = await page(gateway, f"/datasets/{made.dataset_id}")
    poll = text[text.index('hx-get="/datasets/') + 8 :].partition('"')[0]
    assert '<div id="active" data-watch="jobs"' in text
    fragment = await page(gateway, poll, part=True)
    assert '<progress class="thin" max="2" value="1"' in fragment
    assert "hx-partial" not in fragment, "finished runs are not drawn again while none began or ended"
    gateway.world.finish(job.job_id)
    fragment = await page(gateway, poll, part=True)
    assert "<h2>Active runs</h2>" not in fragment
    assert '<hx-partial hx-target="#finished"' in fragment
    assert "View results" in fragment


async def test_finished_runs_are_called_so_and_each_says_how_it_ended(gateway: Running) -> None:
    made = await dataset_of(gateway)
    for model, state in (
        ("qwen2.5:7b", job_pb2.Job.STATE_COMPLETED),
        ("mistral:7b", job_pb2.Job.STATE_CANCELLED),
        ("phi4-mini", job_pb2.Job.STATE_FAILED),
    ):
        gateway.world.finish(run_over(gateway, made, model).job_id, state, "The key was refused.")
    text = await page(gateway, f"/datasets/{made.dataset_id}")
    listed = text[text.index('<div id="finished">') : text.index('id="run"')]
    assert "<h2>Finished runs</h2>" in listed
    assert listed.count('<td class="state">') == 3
    for word in ("completed</span>", ">cancelled</span>", ">failed</span>"):
        assert word in listed


async def test_runs_of_one_model_are_told_apart_by_how_they_were_scored(gateway: Running) -> None:
    made = await dataset_of(gateway)
    own = run_over(gateway, made)
    other = run_over(gateway, made, scorer="numeric", tolerance=0.5)
    again = run_over(gateway, made, scorer="token_f1")
    again.spec.reuse.job_id = own.job_id
    rerun = run_over(gateway, made)
    rerun.spec.reuse.CopyFrom(job_pb2.Reuse(job_id=own.job_id, rerun=[item_result_pb2.OUTCOME_UNPARSED]))
    address, history = f"/datasets/{made.dataset_id}", {}
    poll = html.unescape((await page(gateway, address)).partition('hx-get="')[2].partition('"')[0])
    for job in (own, other, again, rerun):
        gateway.world.finish(job.job_id)
    text = await page(gateway, "/jobs")
    for job in (own, other, again, rerun):
        row = text[text.index(f'<tr id="job-{job.job_id}"') :].partition("</tr>")[0]
        asked = row.partition('<td class="mode">')[2].partition("</td>")[0]
        history[job.job_id] = [word.partition("<")[0] for word in asked.split("<span>")[1:]]
        assert '<td class="num accuracy">–</td>' in row, "it would repeat the score"
    assert history == {
        own.job_id: ["generate,", "exact match"],
        other.job_id: ["generate,", "number"],
        again.job_id: ["generate,", "token F1,", "scored again"],
        rerun.job_id: ["generate,", "exact match"],
    }
    for text in (await page(gateway, address), await page(gateway, poll, part=True)):
        rows = {job_id: text[text.index(f'id="pick-{job_id}"') :].partition("</tr>")[0] for job_id in history}
        assert ["scored by" in row for row in rows.values()] == [False, True, True, False]
        assert ["scored again" in row for row in rows.values()] == [False, False, True, False]
        assert ">scored by number, within 0.5</small>" in rows[other.job_id]
        assert ">scored by token F1</small>" in rows[again.job_id]


async def test_before_a_delete_the_page_says_what_becomes_of_finished_runs(gateway: Running) -> None:
    made = await dataset_of(gateway)
    text = await page(gateway, "/datasets")
    assert "cannot run again.</p>" in text, "no run, no word of runs"
    for _ in range(2):
        gateway.world.finish(run_over(gateway, made).job_id)
    told = "cannot run again. 2 finished runs keep their results and answers, but can no longer be scored again.</p>"
    for address in ("/datasets", f"/datasets/{made.dataset_id}"):
        assert told in await page(gateway, address)


async def test_history_calls_a_run_without_references_so_and_not_unranked(gateway: Running) -> None:
    made = await dataset_of(gateway, b'{"prompt": "a"}\n')
    job = run_over(gateway, made)
    gateway.world.finish(job.job_id)
    text = await page(gateway, "/jobs")
    assert "not ranked" not in text
    assert "completed</span>" in text
    assert 'title="no references">no references</span>' in text
    gateway.world.results[job.job_id].not_ranked_reason = "6.2% of the answers could not be read, more than 5%"
    text = await page(gateway, "/jobs")
    assert ">not ranked</span>" in text, "another reason is one"
    assert "could not be read" in text


async def test_while_the_scheduler_is_silent_the_figures_stay(gateway: Running) -> None:
    made = await dataset_of(gateway)
    await gateway.stop_service("scheduler")
    answer = await gateway.client.get(f"/datasets/{made.dataset_id}/runs?known=x", headers={"HX-Request": "true"})
    assert answer.status_code == 204
    assert "The scheduler does not answer" in await page(gateway, f"/datasets/{made.dataset_id}")


async def test_lists_and_boards_say_the_datasets_name_and_lead_to_it(gateway: Running) -> None:
    made = await dataset_of(gateway)
    job = run_over(gateway, made)
    link = f'href="/datasets/{made.dataset_id}"'
    for address in ("/jobs", f"/jobs/{job.job_id}", f"/leaderboard?suite={made.dataset_id}"):
        text = await page(gateway, address)
        assert link in text, address
        assert "rows.jsonl" in text
        assert f">{made.dataset_id}<" not in text
    text = await page(gateway, f"/jobs?suite={made.dataset_id}")
    assert f'<option value="{made.dataset_id}" selected>rows.jsonl</option>' in text
    jump = await gateway.client.get(f"/jump?q={made.dataset_id}")
    assert jump.headers["location"] == f"/datasets/{made.dataset_id}"


async def test_the_preview_is_paged(gateway: Running) -> None:
    rows = b"".join(json.dumps({"prompt": f"question {number}"}).encode() + b"\n" for number in range(15))
    made = await dataset_of(gateway, rows)
    text = await page(gateway, f"/datasets/{made.dataset_id}")
    assert "question 9" in text
    assert "question 10" not in text
    following = html.unescape(text[text.index('<tr id="more">') :].partition('href="')[2].partition('"')[0])
    text = await page(gateway, following.partition("#")[0], part=True)
    assert "question 14" in text
    assert "<html" not in text


async def test_the_form_offers_what_some_endpoint_takes_and_refuses_what_a_chosen_one_does_not(
    gateway: Running,
) -> None:
    made = await dataset_of(gateway)
    text = await page(gateway, f"/datasets/{made.dataset_id}")
    assert all(f'<label for="{name}">' in text for name in ("top_k", "repeat_penalty", "num_ctx", "seed"))
    sent = {"model": ["ollama|qwen2.5:7b", "gemini|gemini-2.5-flash"], "top_p": "0.9", "repeat_penalty": "1.1"}
    answer = await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    assert (answer.status_code, gateway.world.specs) == (422, [])
    assert "gemini does not take Repeat penalty." in answer.text
    assert "does not take Top P" not in answer.text
    sent["model"] = ["ollama|qwen2.5:7b"]
    await gateway.client.post(f"/datasets/{made.dataset_id}/run", data=sent, headers=HTML)
    (spec,) = gateway.world.specs
    assert (spec.sampling.top_p, spec.sampling.repeat_penalty) == (0.9, 1.1)
