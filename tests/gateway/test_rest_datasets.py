"""/admin/datasets: uploads in every form, lists, rows, deletion, the Hub."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.gateway.gateway_server import Running
from tests.unit.results.datasets.files.workbooks import texts, workbook
from touchstone.v1 import dataset_pb2, job_pb2, scoring_pb2

LINES = b"""{"prompt": "2+2?", "reference": 4, "metadata": {"name": "Ada"}}
{"custom_id": "b", "prompt": "x", "max_tokens": 7}
"""
COLUMNS = b'{"id": "a", "name": "Ada", "label": "yes"}\n'
BATCH = b"".join(
    b'{"custom_id": "c-%d", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "messages": '
    b'[{"role": "user", "content": "p"}]}}\n' % number
    for number in range(2)
)
DOCUMENTED = {"id", "name", "count", "uploaded_at"}


async def upload(gateway: Running, status: int = 200, *, data: dict[str, str] | None = None, **files: Any) -> Any:
    sent = files or {"file": ("batch_5k.jsonl", LINES)}
    answer = await gateway.client.post("/admin/datasets/upload", data=data or {}, files=sent)
    assert answer.status_code == status, answer.text
    return answer.json()


async def get(gateway: Running, path: str, status: int = 200) -> Any:
    answer = await gateway.client.get(f"/admin{path}")
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_form_with_a_file_becomes_a_dataset_in_the_documents_shape(gateway: Running) -> None:
    made = await upload(gateway)
    assert set(made) >= {"dataset_id", "name", "count", "uploaded_at"}
    assert (made["name"], made["count"], made["owner"]) == ("batch_5k.jsonl", 2, "local")
    assert made["uploaded_at"].endswith("Z")
    listed = await get(gateway, "/datasets")
    assert set(listed["datasets"][0]) >= DOCUMENTED
    assert (listed["datasets"][0]["id"], listed["total"]) == (made["dataset_id"], 1)


async def test_every_option_reaches_the_service(gateway: Running) -> None:
    options = {
        "name": "candidates",
        "format": "columns",
        "template": "Is {{name}}\ngood?",
        "custom_id_field": "id",
        "last_assistant": "reference",
        "project_id": "7",
        "scorer": "choice",
        "reference_field": "label",
        "group_field": "name",
        "tolerance": "0.5",
        "tolerance_is_relative": "true",
        "fields": '["a.b"]',
        "choices": '["yes", "no"]',
        "answer_pattern": "(yes|no)",
        "answer_match": "first",
    }
    await upload(gateway, data=options, file=("rows.jsonl", COLUMNS))
    query = {name: value for name, value in options.items() if name != "template"}
    raw = await gateway.client.post(
        "/admin/datasets/upload", params=query, content=COLUMNS, headers={"Content-Type": "application/jsonl"}
    )
    assert raw.status_code == 400, "columns need a template"
    first, second = gateway.world.options
    assert (first.name, first.format, first.template) == (
        "candidates",
        dataset_pb2.Dataset.FORMAT_COLUMNS,
        "Is {{name}}\ngood?",
    )
    scoring = first.scoring
    assert (scoring.scorer, list(scoring.choices), list(scoring.fields)) == ("choice", ["yes", "no"], ["a.b"])
    assert (scoring.answer_pattern, scoring.answer_match) == ("(yes|no)", scoring_pb2.ANSWER_MATCH_FIRST)
    assert (scoring.tolerance, scoring.tolerance_is_relative, scoring.reference_field) == (0.5, True, "label")
    assert scoring.group_field == "name"
    assert (first.project_id, first.custom_id_field) == (7, "id")
    assert first.last_assistant == job_pb2.LAST_ASSISTANT_REFERENCE
    first.ClearField("template")
    assert first == second


@pytest.mark.parametrize(
    ("kind", "data", "name"),
    [
        ("application/jsonl", LINES, "dataset.jsonl"),
        ("application/x-ndjson; charset=utf-8", LINES, "dataset.jsonl"),
        ("text/csv", b"prompt\nWhy?\n", "dataset.csv"),
        ("application/gzip", gzip.compress(LINES), "dataset.jsonl.gz"),
    ],
)
async def test_the_body_may_be_the_file_itself(gateway: Running, kind: str, data: bytes, name: str) -> None:
    query = {"template": "{{prompt}}"} if kind == "text/csv" else {}
    for asked, called in (({}, name), ({"name": f"mine-{name}"}, f"mine-{name}")):
        answer = await gateway.client.post(
            "/admin/datasets/upload", params=query | asked, content=data, headers={"Content-Type": kind}
        )
        assert (answer.status_code, answer.json()["name"]) == (200, called)


@pytest.mark.parametrize("kind", ["application/xml", "text/plain", "", "multipart/mixed; boundary=x", "x" * 300])
async def test_what_is_neither_a_form_nor_a_file_is_415(gateway: Running, kind: str) -> None:
    answer = await gateway.client.post("/admin/datasets/upload", content=LINES, headers={"Content-Type": kind})
    assert answer.status_code == 415
    assert "Send multipart/form-data with a part 'file', or the file itself as" in answer.json()["detail"]
    assert gateway.world.datasets == {}


async def test_wrong_lines_are_named_by_number_with_the_reason_and_nothing_is_kept(gateway: Running) -> None:
    lines = b"".join(b"no\n" if number % 2 else b"{}\n" for number in range(1, 301))
    refused = await upload(gateway, 400, file=("a.jsonl", lines))
    assert refused["lines"][0] == {"line": 1, "reason": "The line is not JSON: Expecting value at character 1."}
    assert [one["line"] for one in refused["lines"]] == list(range(1, len(refused["lines"]) + 1))
    assert 40 <= len(refused["lines"]) <= 100
    assert refused["bad_lines"] == 300
    assert refused["error"] == refused["detail"]
    assert refused["detail"].startswith("300 lines are wrong in a.jsonl, so nothing was stored. Line 1: ")
    assert gateway.world.datasets == {}


async def test_all_wrong_lines_are_counted_by_reason(gateway: Running) -> None:
    faults = [b'{"prompt": "a", "custom_id": "same"}\n', b"no\n", b'{"prompt": 7}\n', b'{"prompt": "a"}\n']
    lines = b"".join(faults[min(number % 10, 3)] for number in range(5000))
    refused = await upload(gateway, 400, file=("a.jsonl", lines))
    assert refused["reasons"] == [
        {"reason": refused["lines"][0]["reason"], "count": 500, "lines": list(range(2, 200, 10))},
        {"reason": refused["lines"][1]["reason"], "count": 500, "lines": list(range(3, 200, 10))},
        {
            "reason": 'The id "same" is already on line 1. Give each row its own.',
            "count": 499,
            "lines": list(range(11, 210, 10)),
        },
    ]
    assert (refused["bad_lines"], refused["other_lines"]) == (1499, 0)
    preview = (await gateway.client.post("/admin/datasets/preview", files={"file": ("a.jsonl", lines)})).json()
    assert [preview[name] for name in ("reasons", "other_lines")] == [refused["reasons"], 0]


async def test_many_reasons_are_cut_and_the_lines_with_others_counted(gateway: Running) -> None:
    words = ["".join("abcdefghij"[int(digit)] for digit in str(number)) for number in range(150)]
    lines = b"".join(json.dumps({"prompt": "a", "reference": f"({word}"}).encode() + b"\n" for word in words)
    sent = {"file": ("a.jsonl", lines)}
    answer = await gateway.client.post("/admin/datasets/preview", data={"scorer": "regex"}, files=sent)
    preview = answer.json()
    assert (len(preview["reasons"]), preview["other_lines"], preview["bad_lines"]) == (100, 50, 150), answer.text
    refused = await upload(gateway, 400, data={"scorer": "regex"}, file=sent["file"])
    assert 10 < len(refused["reasons"]) < 100
    assert refused["reasons"] == preview["reasons"][: len(refused["reasons"])]
    assert refused["other_lines"] == 150 - len(refused["reasons"])


async def test_a_scorer_that_nobody_has_is_refused_and_those_of_plugins_are_named(gateway: Running) -> None:
    refused = await upload(gateway, 400, data={"scorer": "judge"})
    assert refused["detail"].startswith("judge is not a valid scorer. Use one of: exact_match, ")
    assert refused["detail"].endswith(", json, tool_calls, json_schema, judgement, same_words.")
    made = await upload(gateway, data={"scorer": "same_words"})
    assert made["scoring"]["scorer"] == "same_words"


async def test_wrong_options_are_422_by_field_and_unread_forms_400(gateway: Running) -> None:
    for name, value, words in [
        ("scorer", "a judge", "'a judge' is not a valid scorer. Use one of: exact_match, contains, regex"),
        ("format", "hub", "hub is not a valid format. Use one of: batch, lines, columns, csv, alpaca, "),
        ("project_id", "x", "project_id must be a whole number."),
        ("tolerance", "-1", "tolerance must be between 0"),
        ("choices", "a,b", 'choices must be a JSON list of strings, such as ["a", "b"].'),
        ("choices", "[1, 2]", "choices[0] must be a string."),
        ("choices", "{}", "choices must be a JSON list of strings"),
        ("choices", "[" * 100_000, "choices must be a JSON list of strings"),
        ("name", "x" * 201, "name has 201 characters; at most 200 are allowed."),
        ("name", "a\x00b", "name contains a control character"),
    ]:
        refused = await upload(gateway, 422, data={name: value})
        assert refused["detail"].startswith(words), refused
        assert refused["errors"][0]["field"].startswith(name)
    both = await gateway.client.post("/admin/datasets/upload?name=a", data={"name": "b"}, files={"file": ("a", LINES)})
    assert both.status_code == 400
    assert both.json()["detail"] == "name is given in the query and in the form. Give it once."
    assert "not a field of this form" in (await upload(gateway, 400, data={"nope": "1"}))["detail"]
    assert "has no file" in (await upload(gateway, 400, scorer=(None, "json")))["detail"]
    assert gateway.world.options == []


async def test_a_file_after_which_something_comes_is_not_kept(gateway: Running) -> None:
    late = await upload(gateway, 400, file=("a.jsonl", LINES), scorer=(None, "json"))
    assert late["detail"] == "'scorer' comes after the file. Send it before the file."
    form = [("file", ("a", LINES)), ("file", ("b", LINES))]
    twice = await gateway.client.post("/admin/datasets/upload", files=form)
    assert (twice.status_code, twice.json()["detail"][:23]) == (400, "The form has two files.")
    assert gateway.world.datasets == {}


async def test_hostile_names_stay_text(gateway: Running) -> None:
    name = '<img src=x onerror=alert(1)>"; DROP TABLE datasets; --.jsonl'
    made = await upload(gateway, data={"name": name})
    assert made["name"] == name
    assert (await get(gateway, "/datasets"))["datasets"][0]["name"] == name
    other = await upload(gateway, file=("../../\u202e\x01evil\n.jsonl", LINES))
    assert other["name"] == "%01evil%0A.jsonl"


async def test_rows_are_shown_with_what_they_ask_for(gateway: Running) -> None:
    made = await upload(gateway)
    got = await get(gateway, f"/datasets/{made['dataset_id']}/rows?page_size=1")
    assert got["rows"] == [
        {
            "row": 0,
            "custom_id": "row-1",
            "messages": [{"role": "user", "content": "2+2?"}],
            "parameters": None,
            "stop": [],
            "reference": 4,
            "metadata": {"name": "Ada"},
        }
    ]
    rest = await get(gateway, f"/datasets/{made['dataset_id']}/rows?page_size=1&page_token={got['next_page_token']}")
    assert (rest["rows"][0]["row"], rest["rows"][0]["custom_id"], rest["next_page_token"]) == (1, "b", "")
    assert (rest["rows"][0]["parameters"], rest["rows"][0]["metadata"]) == ({"num_predict": 7}, None)


async def test_datasets_are_filtered_and_paged(gateway: Running) -> None:
    for number in range(3):
        await upload(gateway, data={"name": f"Rows {number}", "project_id": str(number)})
    got = await get(gateway, "/datasets?page_size=2")
    assert ([one["name"] for one in got["datasets"]], got["total"]) == (["Rows 2", "Rows 1"], 3)
    rest = await get(gateway, f"/datasets?page_size=2&page_token={got['next_page_token']}")
    assert [one["name"] for one in rest["datasets"]] == ["Rows 0"]
    assert (await get(gateway, "/datasets?query=rows%201"))["total"] == 1
    assert (await get(gateway, "/datasets?project_id=2"))["total"] == 1
    assert (await get(gateway, "/datasets?owner=nobody"))["total"] == 0


async def test_a_dataset_is_deleted_once_and_not_while_a_run_uses_it(gateway: Running) -> None:
    dataset_id = (await upload(gateway))["dataset_id"]
    run = {"model_id": "mistral:7b", "dataset_id": dataset_id}
    started = (await gateway.client.post("/admin/benchmarks/run", json=run)).json()
    assert (await get(gateway, f"/datasets/{dataset_id}"))["live_runs"] == 1
    used = await gateway.client.delete(f"/admin/datasets/{dataset_id}")
    assert (used.status_code, started["job_id"] in used.json()["detail"]) == (409, True)
    await gateway.client.post(f"/admin/benchmarks/{started['benchmark_id']}/cancel")
    assert (await get(gateway, f"/datasets/{dataset_id}"))["finished_runs"] == 1
    gone = await gateway.client.delete(f"/admin/datasets/{dataset_id}")
    told = "1 finished run keeps its results and answers, but can no longer be scored again"
    message = f"Dataset {dataset_id} deleted. {told}"
    assert (gone.status_code, gone.json()) == (200, {"message": message, "finished_runs": 1})
    for answer in (
        await gateway.client.delete(f"/admin/datasets/{dataset_id}"),
        await gateway.client.get(f"/admin/datasets/{dataset_id}"),
        await gateway.client.get(f"/admin/datasets/{dataset_id}/rows"),
        await gateway.client.delete("/admin/datasets/ds_x"),
    ):
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("Dataset ds_")
    assert (await gateway.client.post("/admin/benchmarks/run", json=run)).status_code == 404
    shown = (await gateway.client.get(f"/admin/benchmarks/{started['benchmark_id']}")).json()
    assert (shown["dataset_name"], shown["status"]) == ("batch_5k.jsonl", "cancelled")


async def test_a_split_of_the_hub_becomes_a_dataset(gateway: Running) -> None:
    body: dict[str, Any] = {
        "dataset": "openai/gsm8k",
        "config": "main",
        "split": "test",
        "template": "{{question}}",
        "limit": 5,
        "scoring": {"scorer": "numeric", "reference_field": "answer", "tolerance": 0.01},
    }
    made = (await gateway.client.post("/admin/datasets/hub", json=body)).json()
    assert (made["name"], made["count"], made["format"]) == ("openai/gsm8k/main/test", 5, "hub")
    assert made["source"] == {"dataset": "openai/gsm8k", "config": "main", "split": "test", "revision": "c0ffee" * 6}
    assert (made["scoring"]["scorer"], made["scoring"]["tolerance"]) == ("numeric", 0.01)
    wrong: list[tuple[dict[str, Any], int]] = [
        ({"dataset": "open ai/gsm8k"}, 400),
        ({"dataset": "nobody/answers"}, 503),
        ({"split": None}, 422),
    ]
    for changed, status in wrong:
        answer = await gateway.client.post("/admin/datasets/hub", json=body | changed)
        assert (answer.status_code, bool(answer.json()["detail"])) == (status, True)
    silent = await gateway.client.post("/admin/datasets/hub", json=body | {"dataset": "nobody/answers"})
    assert silent.json()["detail"] == "No evaluator is running to read the dataset. Start one."


async def test_a_repeated_request_id_makes_one_dataset(gateway: Running) -> None:
    in_form = [await upload(gateway, data={"request_id": "once"}) for _ in range(2)]
    raw = await gateway.client.post(
        "/admin/datasets/upload",
        params={"request_id": "once", "name": "batch_5k.jsonl"},
        content=LINES,
        headers={"Content-Type": "application/jsonl"},
    )
    assert raw.status_code == 200, raw.text
    assert len({made["dataset_id"] for made in (*in_form, raw.json())}) == 1
    other = await upload(
        gateway, 409, data={"request_id": "once"}, file=("batch_5k.jsonl", LINES.replace(b"Ada", b"Eve"))
    )
    assert "already used for dataset" in other["detail"]
    assert (await upload(gateway))["dataset_id"] != in_form[0]["dataset_id"]
    body = {"dataset": "openai/gsm8k", "split": "test", "template": "{{q}}", "request_id": "hub-once"}
    answers = [await gateway.client.post("/admin/datasets/hub", json=body) for _ in range(2)]
    assert len({answer.json()["dataset_id"] for answer in answers}) == 1
    refused = await gateway.client.post("/admin/datasets/hub", json=body | {"limit": 7})
    assert refused.status_code == 409
    assert len(gateway.world.datasets) == 3


async def test_what_is_below_admin_and_unknown_is_404_in_json(gateway: Running) -> None:
    for path in ("/admin/nope", "/admin/datasets/", "/admin/datasets/ds_x/nope", "/admin/benchmarks/run/"):
        answer = await gateway.client.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert (await gateway.client.get("/admin/datasets/upload")).status_code == 405
    assert json.loads((await gateway.client.get("/admin/benchmarks/bm_x")).content)["detail"]


async def test_a_file_sent_again_with_its_key_is_one_file(gateway: Running) -> None:
    async def send(key: str) -> str:
        answer = await gateway.client.post(
            "/v1/files",
            data={"purpose": "batch"},
            files={"file": ("batch.jsonl", BATCH)},
            headers={"Idempotency-Key": key} if key else {},
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    assert await send("try-1") == await send("try-1")
    assert len({await send("try-2"), await send(""), await send("")}) == 3


async def test_a_preview_says_how_rows_are_read_and_stores_nothing(gateway: Running) -> None:
    rows = [{"instruction": "Name a gas.", "output": "neon", "n": n} for n in range(7)] + [{"instruction": "b"}]
    answer = await gateway.client.post("/admin/datasets/preview", json=rows)
    assert answer.status_code == 200, answer.text
    made = answer.json()
    reading = "JSON array, read as Alpaca: prompt from instruction, reference from output"
    assert (made["reading"], made["format"], made["rows"], made["rows_that_fit"]) == (reading, "alpaca", 8, 7)
    assert made["readings"] == [{"format": "alpaca", "reading": reading}]
    assert made["columns"] == ["instruction", "output", "n"]
    assert (made["bad_lines"], made["lines"][0]["line"]) == (1, 8)
    assert [row["messages"][0]["content"] for row in made["first_rows"]] == ["Name a gas."] * 5
    assert (made["why"], made["field"]) == (None, None)
    assert (await get(gateway, "/datasets"))["total"] == 0


async def test_a_preview_says_which_option_an_upload_needs(gateway: Running) -> None:
    sent = {"file": ("rows.csv", b"a;b\n1;2\n")}
    made = (await gateway.client.post("/admin/datasets/preview", files=sent)).json()
    assert (made["field"], made["columns"], made["reading"]) == ("template", ["a", "b"], None)
    assert "Columns need a template" in made["why"]

    answer = await gateway.client.post("/admin/datasets/preview", data={"template": "{{a}}"}, files=sent)
    assert answer.json()["rows_that_fit"] == 1

    sheets = '<sheet name="A" sheetId="1" r:id="rId4"/><sheet name="B" sheetId="2" r:id="rId1"/>'
    sent = {"file": ("rows.xlsx", workbook(texts(("question", "answer"), ("a", "b")), sheets=sheets))}
    made = (await gateway.client.post("/admin/datasets/preview", files=sent)).json()
    assert (made["field"], made["sheets"]) == ("sheet", ["A", "B"])
    made = (await gateway.client.post("/admin/datasets/preview?sheet=B", files=sent)).json()
    assert (made["rows_that_fit"], made["why"]) == (1, None)

    sent = {"file": ("rows.parquet", b"PAR1")}
    answer = await gateway.client.post("/admin/datasets/preview", files=sent)
    assert (answer.status_code, "damaged" in answer.json()["detail"]) == (400, True)
