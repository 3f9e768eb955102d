"""Answers to uploaded rows on pages: filters, the opened row, judging it, and runs side by side."""

from __future__ import annotations

import html
import json
import re
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import pytest

from services.gateway.pages.display import conversation
from tests.gateway import fake_data, fake_items, fake_world
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages_datasets import HTML, dataset_of, page, run_over
from tests.gateway.test_rest_results import finished
from tests.pictures import PNG, data_uri, image
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, results_service_pb2, scoring_pb2, suite_pb2

_LISTING = results_service_pb2.ListSideBySideRequest
_VERDICT = results_service_pb2.Annotation
ROWS = b"".join(
    b'{"custom_id": "case-%d", "prompt": "p%d", "reference": "A", "metadata": {"ward": "<i>w%d</i>"}}\n' % (n, n, n)
    for n in range(30)
)


async def answered(gateway: Running, dataset: dataset_pb2.Dataset | None = None) -> job_pb2.Job:
    job = run_over(gateway, dataset or await dataset_of(gateway, ROWS))
    gateway.world.finish(job.job_id)
    return job


async def test_rows_are_listed_by_their_own_id_with_downloads(gateway: Running) -> None:
    job = await answered(gateway)
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert ">case-3</a>" in text
    for query in ("kind=batch&amp;format=jsonl", "kind=batch&amp;format=csv", "kind=golden&amp;format=jsonl"):
        assert query in text
    assert '<option value="ward">' in text, "metadata fields are offered"


async def test_a_runs_page_has_a_table_by_field(gateway: Running) -> None:
    job = await answered(gateway)
    assert "By field" not in await page(gateway, f"/jobs/{job.job_id}")
    fields = gateway.world.results[job.job_id].fields
    fields.add(task="rows", field="weather.<city>", answers=8, right=6.5)
    fields.add(task="rows", field="weather", answers=1200, right=1200)
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert "By field" in text
    for cells in (
        '<th scope="row">weather.&lt;city&gt;</th><td class="num">6.5/8</td><td class="num share">81.2</td>',
        '<th scope="row">weather</th><td class="num">1,200/1,200</td><td class="num share">100.0</td>',
    ):
        assert cells in text


async def test_conditions_reach_the_service_and_stay_in_every_link(gateway: Running) -> None:
    job = await answered(gateway)
    query = "metadata_field=ward&metadata_value=w1&length_low=1&length_high=x&score_low=0.5&verdict=none"
    text = await page(gateway, f"/jobs/{job.job_id}?{query}")
    (asked,) = [one for one in gateway.world.asked if isinstance(one, results_service_pb2.ListItemsRequest)]
    given = asked.conditions
    assert (given.metadata_field, given.metadata_value, given.length_low, given.score_low) == ("ward", "w1", 1, 0.5)
    assert not given.HasField("length_high"), "what is no number asks for nothing"
    assert list(given.verdicts) == [_VERDICT.VERDICT_UNSPECIFIED]
    assert "items=failures&amp;metadata_field=ward&amp;metadata_value=w1" in text


async def test_side_by_side_has_the_conditions_of_the_items_page(gateway: Running) -> None:
    one = await answered(gateway)
    two = await answered(gateway, gateway.world.datasets[one.spec.dataset.dataset_id])
    address = f"/side-by-side?jobs={one.job_id},{two.job_id}"
    query = "&metadata_field=ward&metadata_value=w1&length_low=1&length_high=x&score_low=0.5&verdict=none"
    text = await page(gateway, f"{address}&filter=agree{query}")
    (asked,) = [one for one in gateway.world.asked if isinstance(one, results_service_pb2.ListSideBySideRequest)]
    given = asked.conditions
    assert (given.metadata_field, given.metadata_value, given.length_low, given.score_low) == ("ward", "w1", 1, 0.5)
    assert not given.HasField("length_high"), "what is no number asks for nothing"
    assert list(given.verdicts) == [_VERDICT.VERDICT_UNSPECIFIED]
    assert "filter=disagree&amp;metadata_field=ward&amp;metadata_value=w1" in text, "every link keeps them"
    assert f'href="{address}&amp;filter=agree">Clear</a>' in text
    assert '<option value="ward">' in text, "metadata fields are offered"
    items = await page(gateway, f"/jobs/{one.job_id}")
    for name in ("metadata_field", "metadata_value", "length_low", "length_high", "score_low", "score_high", "verdict"):
        assert f'name="{name}"' in text
        assert f'name="{name}"' in items
    answer = await gateway.client.get(f"{address}&q=&metadata_value=w2&verdict=", headers={"HX-Request": "true"})
    assert answer.headers["HX-Push-Url"] == f"{address}&metadata_value=w2", "the address names what is asked"
    assert answer.text.count('class="row"') == 11


async def test_a_live_run_shows_the_mean_of_its_scorers_own_metric(gateway: Running) -> None:
    dataset = await dataset_of(gateway, ROWS)
    for scorer, name in (
        ("exact_match", "Exact match"),
        ("contains", "Contains"),
        ("token_f1", "Token F1"),
        ("rouge_l", "ROUGE-L"),
        ("choice", "Accuracy"),
    ):
        job = run_over(gateway, dataset, scorer=scorer)
        text = strip_of(await page(gateway, f"/jobs/{job.job_id}"))
        assert f"{name} so far</span>" in text
        assert '<span class="value">–</span>' in text, "nothing is done yet"
        gateway.world.advance(job.job_id, 20)
        gateway.world.results[job.job_id].suite_score.mean = 0.4321
        text = strip_of(await page(gateway, f"/jobs/{job.job_id}"))
        assert f"{name} so far</span>" in text
        assert '<span class="value">43.2</span>' in text
        gateway.world.finish(job.job_id, job_pb2.Job.STATE_CANCELLED)


async def test_a_live_run_without_references_has_no_figure_and_says_why(gateway: Running) -> None:
    job = run_over(gateway, await dataset_of(gateway, b'{"prompt": "a"}\n{"prompt": "b"}\n'), scorer="rouge_l")
    gateway.world.advance(job.job_id, 1)
    text = strip_of(await page(gateway, f"/jobs/{job.job_id}"))
    assert '<span class="value">–</span>' in text
    assert "no row has a reference" in text


def strip_of(text: str) -> str:
    return text[text.index('id="job-strip"') :].partition("</section>")[0]


async def test_scoring_again_offers_the_scorers_with_their_options(gateway: Running) -> None:
    job = run_over(gateway, await dataset_of(gateway, ROWS), scorer="numeric", tolerance=0.5, reference_field="ward")
    gateway.world.datasets[job.spec.dataset.dataset_id].metadata_fields.append("ward")
    other = scoring_pb2.Scoring(scorer="contains", reference_field="ward")
    first = scoring_pb2.Scoring(scorer="json", fields=["name", "address.city"])
    gateway.world.jobs[job.job_id].spec.dataset.further.extend([other, first])
    gateway.world.finish(job.job_id)
    text = await page(gateway, f"/jobs/{job.job_id}")
    sheet = text[text.index('id="rescore-sheet"') :]
    assert '<option value="numeric" selected>number, as before</option>' in sheet
    assert 'name="tolerance" value="0.5"' in sheet
    assert 'name="reference_field" value="ward"' in sheet
    assert '<option value="ward">' in sheet
    sent: dict[str, Any] = {
        "scorer": "json",
        "fields": "name, address.city",
        "tolerance": "0.5",
        "reference_field": "",
        "request_id": "1",
    }
    assert 'name="also" value="contains" checked>' in sheet
    assert """value="[{"scorer": "json", "fields": ["name", "address.city"]}]\"""" in html.unescape(sheet)
    answer = await gateway.client.post(f"/jobs/{job.job_id}/rescore", data=sent)
    spec = gateway.world.specs[-1]
    # A further scorer that is now the first one would be there twice.
    assert (spec.dataset.scoring, list(spec.dataset.further)) == (first, [other])
    assert (spec.reuse.job_id, list(spec.reuse.rerun)) == (job.job_id, [])
    assert answer.headers["location"] == f"/jobs/{list(gateway.world.jobs)[-1]}"
    sent |= {"also": ["json", "regex"], "also_options": '[{"scorer": "json", "fields": ["name", "address.city"]}]'}
    await gateway.client.post(f"/jobs/{job.job_id}/rescore", data=sent | {"request_id": "2"})
    again = gateway.world.specs[-1].dataset
    assert list(again.further) == [scoring_pb2.Scoring(scorer=name) for name in ("json", "regex")]
    await gateway.client.post(
        f"/jobs/{job.job_id}/rescore", data=sent | {"also": [], "also_options": "", "request_id": "3"}
    )
    assert not gateway.world.specs[-1].dataset.further


async def test_what_is_wrong_with_a_scoring_stands_under_its_field(gateway: Running) -> None:
    job = await answered(gateway)
    made = len(gateway.world.specs)
    address, sent = f"/jobs/{job.job_id}/rescore", {"scorer": "numeric", "tolerance": "-1"}
    answer = await gateway.client.post(address, data=sent, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert '<span class="problem" id="tolerance-problem">Tolerance must be between 0' in answer.text
    assert '<option value="exact_match">exact match, as before</option>' in answer.text
    answer = await gateway.client.post(address, data=sent, headers=HTML)
    assert (answer.status_code, "Tolerance must be between 0" in answer.text) == (400, True)
    assert len(gateway.world.specs) == made


async def test_a_suites_job_is_scored_again_by_other_layers(gateway: Running) -> None:
    job = gateway.world.add(fake_world.spec(limit=50), "local")
    gateway.world.start(job.job_id)
    gateway.world.finish(job.job_id)
    address = f"/jobs/{job.job_id}"
    text = await page(gateway, address)
    assert "rescore-sheet" in text
    assert "layer would read" not in text
    result = gateway.world.results[job.job_id]
    result.offer = "The marked layer would read 120 of the 310 unread answers, the lenient one 260."
    result.offered_reading = scoring_pb2.READING_LENIENT
    text = await page(gateway, address)
    assert result.offer in text
    assert "Score again by the lenient layer" in text
    assert '<option value="lenient" selected>' in text
    result.texts_dropped = "2026-01-01T00:00:00Z"
    assert result.offer not in await page(gateway, address)
    for reading, asked in (("lenient", scoring_pb2.READING_LENIENT), ("", scoring_pb2.READING_UNSPECIFIED)):
        result.texts_dropped = ""
        await gateway.client.post(f"{address}/rescore", data={"scorer": "contains", "reading": reading})
        made = gateway.world.specs[-1]
        assert (made.WhichOneof("work"), made.reading, made.reuse.job_id) == ("suite", asked, job.job_id)


async def test_log_likelihoods_are_scored_again_without_a_question(gateway: Running) -> None:
    spec = fake_world.spec(limit=50)
    spec.mode = suite_pb2.MODE_LOGLIKELIHOOD
    job = gateway.world.add(spec, "local")
    gateway.world.start(job.job_id)
    gateway.world.finish(job.job_id)
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert f'hx-post="/jobs/{job.job_id}/rescore"' in text
    assert "rescore-sheet" not in text


async def test_a_run_whose_dataset_was_deleted_offers_nothing_that_needs_it(gateway: Running) -> None:
    job = await answered(gateway)
    dataset_id = job.spec.dataset.dataset_id
    gateway.world.results[job.job_id].outcomes.unparsed = 1
    assert "Run some again" in await page(gateway, f"/jobs/{job.job_id}")
    await gateway.client.delete(f"/admin/datasets/{dataset_id}")
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert "The dataset of this run was deleted" in text
    assert "They can no longer be scored again" in text
    for gone in ("/rescore", "/rerun", "again-sheet", f'href="/datasets/{dataset_id}"'):
        assert gone not in text
    assert ">case-3</a>" in text, "answers are kept"


async def test_an_opened_row_shows_its_metadata_as_text_and_the_judging(gateway: Running) -> None:
    job = await answered(gateway)
    text = await page(gateway, f"/jobs/{job.job_id}/items/rows/4", part=True)
    assert "&lt;i&gt;w4&lt;/i&gt;" in text
    assert "<i>w4" not in text
    assert f'action="/jobs/{job.job_id}/items/rows/4/annotation"' in text


async def test_a_row_offers_only_the_verdicts_that_it_can_have(
    gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await answered(gateway)
    address, made = f"/jobs/{job.job_id}/items/rows/4", fake_items.items

    def offered(text: str) -> list[str]:
        return [verdict for verdict in ("golden", "fix", "wrong", "none") if f'value="{verdict}"' in text]

    assert offered(await page(gateway, address, part=True)) == ["golden", "fix", "wrong"]
    await gateway.client.post(f"{address}/annotation", data={"verdict": "wrong"})
    for changed, verdicts in (
        ({"response": ""}, ["fix", "wrong", "none"]),
        ({"prompt": "", "response": ""}, ["wrong", "none"]),
        ({"outcome": item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR}, ["none"]),
    ):

        def items(
            world: fake_world.World, job_id: str, changed: dict[str, Any] = changed
        ) -> list[results_service_pb2.StoredItem]:
            stored = made(world, job_id)
            for one in stored:
                one.result.MergeFrom(item_result_pb2.ItemResult(**changed))
                for name in (name for name, value in changed.items() if not value):
                    one.result.ClearField(name)
            return stored

        monkeypatch.setattr(fake_items, "items", items)
        text = await page(gateway, address, part=True)
        assert offered(text) == verdicts
    assert "The call failed, so there is nothing to judge." in text
    assert "corrected_answer" not in text


async def test_judging_works_without_script_and_with_it(gateway: Running) -> None:
    job = await answered(gateway)
    address = f"/jobs/{job.job_id}/items/rows/4"
    sent = {"verdict": "golden", "corrected_answer": "kept out", "note": "good"}
    answer = await gateway.client.post(f"{address}/annotation", data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    held = gateway.world.annotations[job.job_id, "rows", 4]
    assert (held.verdict, held.corrected_answer, held.note) == (_VERDICT.VERDICT_GOLDEN, "", "good")
    sent = {"verdict": "fix", "corrected_answer": "one\r\ntwo"}
    answer = await gateway.client.post(f"{address}/annotation", data=sent, headers={"HX-Request": "true"})
    assert '<hx-partial hx-target="#judged-rows-4-0"' in answer.text
    assert gateway.world.annotations[job.job_id, "rows", 4].corrected_answer == "one\ntwo"


@pytest.mark.parametrize("sent", [{"verdict": "fix", "corrected_answer": " "}, {"verdict": "splendid"}, {}])
async def test_a_verdict_that_says_nothing_is_refused(gateway: Running, sent: dict[str, str]) -> None:
    job = await answered(gateway)
    answer = await gateway.client.post(f"/jobs/{job.job_id}/items/rows/4/annotation", data=sent)
    assert answer.status_code == 400
    assert gateway.world.annotations == {}


async def test_ticked_runs_come_to_one_address_side_by_side(gateway: Running) -> None:
    one = await answered(gateway)
    two = await answered(gateway, gateway.world.datasets[one.spec.dataset.dataset_id])
    ids = f"{one.job_id},{two.job_id}"
    answer = await gateway.client.get(f"/side-by-side?jobs={one.job_id}&jobs={two.job_id}")
    assert answer.headers["location"] == f"/side-by-side?jobs={ids}"
    text = await page(gateway, f"/side-by-side?jobs={ids}")
    assert f'<a href="/datasets/{one.spec.dataset.dataset_id}">rows.jsonl</a>' in text
    assert (text.count('class="row"'), text.count("<article")) == (30, 2)
    address = f"/side-by-side?jobs={ids}&row=rows%3A17"
    text = await page(gateway, address)
    assert "row 18 of 30" in text
    assert f'rel="next" href="/side-by-side?jobs={ids}&amp;row=rows%3A18"' in text
    # A judged row leads to the next one; in blind mode to itself, with the names.
    judge = address.replace("?", "/preference?", 1)
    answer = await gateway.client.post(judge, data={"choice": "2"}, headers=HTML)
    assert answer.headers["location"] == f"/side-by-side?jobs={ids}&row=rows%3A18"
    (said,) = gateway.world.preferences
    assert (said[3], said[7], said[8]) == (17, two.job_id, False)
    text = await page(gateway, f"{address}&blind=1")
    assert '<button name="choice" value="2" aria-pressed="true"' in text or 'value="1" aria-pressed="true"' in text
    blind = f"/side-by-side?jobs={ids}&blind=1&row=rows%3A18"
    opened = (await page(gateway, blind)).partition('<section class="card open"')[2].partition("</section>")[0]
    assert "qwen" not in opened
    assert "Answer 1" in opened
    answer = await gateway.client.post(blind.replace("?", "/preference?", 1), data={"choice": "1"}, headers=HTML)
    assert answer.headers["location"] == blind
    opened = (await page(gateway, blind)).partition('<section class="card open"')[2].partition("</section>")[0]
    assert "qwen" in opened
    assert gateway.world.preferences[-1][8], "it was blind"
    await gateway.client.post(judge, data={"choice": "none"}, headers=HTML)
    assert "1 row judged, by 1 judge" in await page(gateway, address)
    for wrong in ("3", "better", "", "²"):
        answer = await gateway.client.post(judge, data={"choice": wrong}, headers=HTML)
        assert answer.status_code == 400, wrong
    file = f"/api/v1/benchmarking/results/{one.job_id}/export?kind=preferences&format=json"
    exported = await gateway.client.get(file)
    assert [(row["item"], row["blind"]) for row in exported.json()] == [(18, True)]
    assert "Score of the run" not in await page(gateway, f"/side-by-side?jobs={ids}")
    text = await page(gateway, f"/side-by-side?jobs={ids}&filter=only_right&only=B&diff=0")
    own = gateway.world.results[two.job_id].suite_score
    assert "Score of these rows" in text
    assert "Score of the run" in text
    assert f'<td class="num whole">{100 * own.mean:.1f}<small>' in text
    asked = [one for one in gateway.world.asked if isinstance(one, _LISTING)][-1]
    assert (asked.filter, asked.only_job_id, asked.with_diffs) == (_LISTING.FILTER_ONLY_RIGHT, two.job_id, False)


async def test_another_number_of_runs_is_refused_with_what_to_do(gateway: Running) -> None:
    job = await answered(gateway)
    text = await page(gateway, f"/side-by-side?jobs={job.job_id}", 400)
    assert "page to compare them. Selected: 1." in text
    await page(gateway, "/side-by-side?jobs=nonsense", 404)


WITH_TOOLS = json.dumps(
    {
        "custom_id": "case-0",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "<i>What</i> is this?"}, image()]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c<1>",
                        "type": "function",
                        "function": {"name": "look_up", "arguments": '{"b":1.0,"a":"</pre>"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c<1>", "content": "<script>alert(1)</script>"},
        ],
        "tools": [{"type": "function", "function": {"name": "look_up", "parameters": {"title": "<b>"}}}],
        "temperature": 0,
    }
).encode()


async def test_the_list_of_rows_shows_the_named_metadata(gateway: Running) -> None:
    rows = b"".join(
        b'{"custom_id": "c%d", "prompt": "p%d", "reference": "A", "metadata": {"ward": "<i>w%d</i>", "level": %d}}\n'
        % (n, n, n, n % 2)
        for n in range(3)
    )
    dataset = await dataset_of(gateway, rows)
    one, two = await answered(gateway, dataset), await answered(gateway, dataset)
    address = f"/side-by-side?jobs={one.job_id},{two.job_id}"
    assert '<span class="asked"><' not in await page(gateway, address), "the prompt is shown"
    alone = await page(gateway, f"{address}&sort=-level")
    assert '<span class="asked"><span>0</span></span>' in alone, "the field of the order is shown"
    both = await page(gateway, f"{address}&field=level,%20ward,,none&sort=level")
    shown = "<span><i>level</i> 1</span><span><i>ward</i> &lt;i&gt;w1&lt;/i&gt;</span><span><i>none</i> –</span>"
    assert f'<span class="asked">{shown}</span>' in both
    assert 'value="level, ward,,none"' in both
    many = await page(gateway, f"{address}&field={','.join('abcdefgh')}")
    assert ("<i>f</i>" in many, "<i>g</i>" in many) == (True, False)


async def test_a_field_of_any_name_is_shown_and_orders_the_rows(gateway: Running) -> None:
    names = ["a,b", "", "-n", "k" * 200, 'say "hi"']
    told = [{"prompt": f"p{n}", "reference": "A", "metadata": dict.fromkeys(names, f"v{n}")} for n in range(2)]
    dataset = await dataset_of(gateway, "\n".join(map(json.dumps, told)).encode())
    one, two = await answered(gateway, dataset), await answered(gateway, dataset)
    jobs = f"{one.job_id},{two.job_id}"
    text = html.unescape(await page(gateway, f"/side-by-side?jobs={jobs}"))
    offered = text.partition('<datalist id="shown-fields">')[2].partition("</datalist>")[0]
    chosen = re.findall(r'value="(.*?)">(?=<|$)', offered)
    assert chosen == ['"a,b"', '""', '"-n"', "k" * 200, '"say ""hi"""']
    both = html.unescape(await page(gateway, "/side-by-side?" + urlencode({"jobs": jobs, "field": ",".join(chosen)})))
    assert all(f"<i>{name or chr(34) * 2}</i> v0" in both for name in names)
    ways = [way for way in re.findall(r'<option value="([^>]*)">', text.partition('id="sort"')[2]) if way][:8]
    for way in ways:
        address = "/side-by-side?" + urlencode({"jobs": jobs, "sort": way})
        assert f'<option value="{way}" selected>' in html.unescape(await page(gateway, address))
        asked = [call for call in gateway.world.asked if isinstance(call, _LISTING)][-1]
        assert asked.order_field in names
        assert asked.descending == (way[0] == "-")
    assert len(ways) == 8, "all but the one without a name"


async def test_blind_no_run_is_named(gateway: Running) -> None:
    one = await answered(gateway)
    two = await answered(gateway, gateway.world.datasets[one.spec.dataset.dataset_id])
    gateway.world.jobs[two.job_id].spec.model = "gemma3:4b"
    asked = f"jobs={one.job_id},{two.job_id}&row=rows%3A"
    address = f"/side-by-side?{asked}17"
    await gateway.client.post(f"/side-by-side/preference?{asked}17", data={"choice": "tie"}, headers=HTML)
    beside = 'id="beside"'
    open_ = (await page(gateway, address)).partition(beside)[2]
    assert open_.count("gemma3:4b") == 3, "its answer, what people prefer, and the list of runs"
    blind = (await page(gateway, f"/side-by-side?{asked}18&blind=1")).partition(beside)[2]
    assert "qwen2.5:7b" not in blind
    assert "gemma3:4b" not in blind


async def test_a_conversation_is_shown_with_its_picture_its_calls_and_its_tools(gateway: Running) -> None:
    job = await answered(gateway, await dataset_of(gateway, WITH_TOOLS))
    text = await page(gateway, f"/jobs/{job.job_id}/items/rows/0")
    assert f'<img src="{data_uri()}" alt="image/png, {len(PNG)} bytes"' in text
    assert "&lt;i&gt;What&lt;/i&gt; is this?" in text
    assert "{\n  &#34;b&#34;: 1.0,\n  &#34;a&#34;: &#34;&lt;/pre&gt;&#34;\n}" in text, (
        "arguments are indented, in order"
    )
    assert "c&lt;1&gt;" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "1 tool offered" in text
    assert "&#34;title&#34;: &#34;&lt;b&gt;&#34;" in text
    assert "calls <code>look_up</code>" in text
    assert "window.pwned=1&lt;/script&gt;" in text, "arguments of the answer are shown"
    assert "Log-probabilities, 1 token" in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text


async def test_without_the_dataset_a_picture_is_told_in_words(gateway: Running) -> None:
    job = await answered(gateway, await dataset_of(gateway, WITH_TOOLS))
    stored = fake_items.items(gateway.world, job.job_id)[0]
    shown = conversation.turns(stored.result.messages)
    assert (shown[0].pieces[1].picture, shown[0].pieces[1].about) == ("", f"image/png, {len(PNG)} bytes")
    assert [turn.text for turn in shown] == [
        f"<i>What</i> is this? image/png, {len(PNG)} bytes",
        'look_up({\n  "b": 1.0,\n  "a": "</pre>"\n})',
        "<script>alert(1)</script>",
    ]


@pytest.mark.parametrize(
    "stored",
    [
        "{",
        '"text"',
        "[1, null]",
        '[{"role": 1, "content": 5}]',
        '[{"content": [1, {"type": "text"}, {"type": "image", "bytes": "x"}]}]',
        '[{"content": [{"type": "image_url", "image_url": {"url": "javascript:alert(1)"}}]}]',
        '[{"tool_calls": [1, {"function": {"arguments": {}}}, {"function": null}]}]',
        '[{"tool_calls": {"a": 1}}]',
        "[" * 100_000,
    ],
)
def test_whatever_is_stored_as_messages_can_be_shown_and_is_no_picture(stored: str) -> None:
    shown = conversation.turns(stored)
    assert not any(piece.picture for turn in shown for piece in turn.pieces)
    assert all(isinstance(turn.text, str) for turn in shown)


async def test_rows_of_a_dataset_are_listed_with_their_parts_and_without_pictures_bytes(gateway: Running) -> None:
    dataset = await dataset_of(gateway, WITH_TOOLS)
    text = await page(gateway, f"/datasets/{dataset.dataset_id}")
    assert f"image/png, {len(PNG)} bytes" in text
    assert data_uri() not in text
    assert "<code>look_up</code>" in text


async def test_an_item_and_a_row_tell_their_parts_as_openai_does(gateway: Running) -> None:
    job = await answered(gateway, await dataset_of(gateway, WITH_TOOLS))
    got = (await gateway.client.get(f"/api/v1/benchmarking/results/{job.job_id}/items/rows/0")).json()
    assert got["tool_calls"][0]["function"]["name"] == "look_up"
    assert json.loads(got["tool_calls"][0]["function"]["arguments"])["query"] == fake_data.HOSTILE
    assert got["logprobs"] == [{"token": " <b>", "logprob": -0.25, "top_logprobs": [{"token": "\n", "logprob": -1.5}]}]
    assert got["messages"][0]["content"][1] == {
        "type": "image",
        "media_type": "image/png",
        "bytes": len(PNG),
        "sha256": sha256(PNG).hexdigest(),
    }
    rows = (await gateway.client.get(f"/admin/datasets/{job.spec.dataset.dataset_id}/rows")).json()["rows"]
    assert rows[0]["messages"] == got["messages"]
    plain = await answered(gateway)
    got = (await gateway.client.get(f"/api/v1/benchmarking/results/{plain.job_id}/items/rows/0")).json()
    assert "tool_calls" not in got
    assert "logprobs" not in got


async def test_a_score_without_an_interval_does_not_announce_one(gateway: Running) -> None:
    job = finished(gateway, "demo")
    assert "95\u00a0% interval, n = " in strip_of(await page(gateway, f"/jobs/{job.job_id}"))
    for name in ("ci95_low", "ci95_high"):
        # As of rows that are all in one group.
        gateway.world.results[job.job_id].suite_score.ClearField(name)
    assert "no interval, n = " in strip_of(await page(gateway, f"/jobs/{job.job_id}"))
