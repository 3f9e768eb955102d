"""`touchstone side-by-side`, `receipt` and `estimate`: what jobs have in common, what not, and what more would take."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest

from services import errors
from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job, job
from touchstone.v1 import (
    endpoint_pb2,
    item_result_pb2,
    job_pb2,
    queue_pb2,
    results_service_pb2,
    scheduler_service_pb2,
)
from touchstone.v1.endpoint_pb2 import Prices
from touchstone_client.command import main
from touchstone_client.command.marks import ADDED, REMOVED, Part, coloured, markdown, plain
from touchstone_client.command.output import FORMATS

Captured = pytest.CaptureFixture[str]
Kind = results_service_pb2.WordDiff.Part
DIFF = (Part("The capital is "), Part("Paris.", REMOVED), Part("Lyon. ", ADDED), Part("I | think"))


def stored(model: str, response: str, correct: int) -> results_service_pb2.StoredItem:
    result = item_result_pb2.ItemResult(
        item=3, custom_id="a", outcome=item_result_pb2.OUTCOME_ANSWERED, response=response, latency_ms=50,
        output_tokens=4, statistics={"correct": correct},
    )  # fmt: skip
    return results_service_pb2.StoredItem(task="rows", result=result, score=correct, evaluator=model)


@pytest.fixture
def pair(fakes: Fakes) -> Fakes:
    """Two jobs over one row: the first is right, the second wrong."""
    diff = results_service_pb2.WordDiff(
        parts=[
            Kind(kind=Kind.KIND_SAME, text="The capital is "),
            Kind(kind=Kind.KIND_REMOVED, text="Paris."),
            Kind(kind=Kind.KIND_ADDED, text="Lyon."),
        ]
    )
    row = results_service_pb2.SideBySideRow(
        custom_id="a", task="rows", item=3, diffs=[results_service_pb2.WordDiff(), diff],
        items=[stored("one", "The capital is Paris.", 1), stored("two", "The capital is Lyon.", 0)],
    )  # fmt: skip
    runs = [
        results_service_pb2.SideBySideRun(
            job=dataset_job(JOB, "one"),
            rows=1,
            mean_score=1,
            score_ci95_low=0.207,
            score_ci95_high=1,
            only_right=1,
            cost_usd=0.002,
        ),
        results_service_pb2.SideBySideRun(job=dataset_job(OTHER, "two"), rows=1, mean_score=0, only_wrong=1),
    ]

    def page(request: Any) -> Any:
        after = int(request.page_token or 0) + request.page_size
        return results_service_pb2.ListSideBySideResponse(
            rows=[row] * request.page_size, next_page_token=str(after) if after < 250 else "",
            total_size=250, count_all=300, count_agree=50, runs=runs,
        )  # fmt: skip

    fakes.answers["ListSideBySide"] = page
    return fakes


def test_a_row_stands_beside_itself_with_who_is_right(pair: Fakes, capsys: Captured) -> None:
    assert main(["side-by-side", JOB, OTHER, "--limit", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", lines[2])[4:6] == ["1.0000", "0.2070 to 1.0000"]
    assert ["row", "agree", "one", "two"] in [line.split() for line in lines]
    assert "right: The capital is Paris." in lines[-4]
    assert "wrong: The capital is Lyon." in lines[-4]
    assert lines[-2:] == [
        "300 rows: 50 agree, 0 all right, 0 all wrong.",
        "1 of 250 rows that fit. 249 more: --limit 250.",
    ]
    (request,) = pair.requests("ListSideBySide")
    assert (request.with_diffs, request.only_job_id) == (False, "")


def test_a_word_diff_is_marked_in_text(pair: Fakes, capsys: Captured) -> None:
    assert main(["side-by-side", JOB, OTHER, "--diff", "--limit", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(None, 4)[-1] for line in lines if line.startswith(("one  right", "two  wrong"))] == [
        "The capital is Paris.",
        "The capital is [-Paris.-]{+Lyon.+}",
    ]
    assert "a, not agreed" in lines


def test_marks_are_text_markdown_or_colour() -> None:
    assert plain(DIFF) == "The capital is [-Paris.-]{+Lyon.+} I | think"
    assert markdown(DIFF) == "The capital is ~~Paris.~~**Lyon.** I \\| think"
    made = coloured(DIFF, "")
    assert made.plain == "The capital is Paris.Lyon. I | think"
    assert {str(span.style) for span in made.spans if span.end > span.start} >= {"red strike", "green"}


def test_the_only_one_is_the_first_unless_said(pair: Fakes) -> None:
    main(["side-by-side", JOB, OTHER, "--filter", "only-right", "--limit", "1"])
    main(["side-by-side", JOB, "--filter", "only-wrong", OTHER, "--only", OTHER, "--query", "Lyon", "--limit", "1"])
    first, second = pair.requests("ListSideBySide")
    assert (list(first.job_ids), first.only_job_id) == ([JOB, OTHER], JOB)
    assert (list(second.job_ids), second.only_job_id, second.query) == ([JOB, OTHER], OTHER, "Lyon")


def test_as_many_rows_as_asked_for_come_from_several_pages(pair: Fakes, capsys: Captured) -> None:
    main(["side-by-side", JOB, OTHER, "--limit", "120", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(pair.requests("ListSideBySide")) == 3
    assert len(rows) == 240
    assert [(row["job_id"], row["model_name"], row["score"], row["agree"]) for row in rows[:2]] == [
        (JOB, "one", "1.0", "false"),
        (OTHER, "two", "0.0", "false"),
    ]


def test_programs_get_all_rows_and_a_terminal_says_how_many_more_there_are(
    pair: Fakes, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for format in ("csv", "jsonl"):
        assert main(["side-by-side", JOB, OTHER, "--format", format]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) - (format == "csv") == 2 * 250
    assert (json.loads(lines[0])["custom_id"], json.loads(lines[1])["agree"]) == ("a", False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["side-by-side", JOB, OTHER]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "20 of 250 rows that fit. 230 more: --limit 250."


def test_side_by_side_prints_every_format(pair: Fakes, capsys: Captured) -> None:
    for format in FORMATS:
        assert main(["side-by-side", JOB, OTHER, "--diff", "--format", format]) == 0
        out = capsys.readouterr().out
        if format == "markdown":
            assert "~~Paris.~~**Lyon.**" in out
        if format == "json":
            made = json.loads(out)
            assert (made["runs"][0]["only_right"], made["rows"][0]["diffs"][1]["parts"][1]["kind"]) == (1, "removed")


def test_costs_side_by_side_say_where_they_are_at_list_prices(pair: Fakes, capsys: Captured) -> None:
    runs = [
        results_service_pb2.SideBySideRun(job=dataset_job(i, m), cost_usd=0.5)
        for i, m in ((JOB, "one"), (OTHER, "two"))
    ]
    runs[0].job.receipt.prices.CopyFrom(Prices(input=1, output=2, source="SOURCE_LIST", as_of="2026-10-03"))
    pair.answers["ListSideBySide"] = results_service_pb2.ListSideBySideResponse(runs=runs)
    assert main(["side-by-side", JOB, OTHER]) == 0
    shown = capsys.readouterr().out
    assert "one: cost at the list price as of 2026-10-03." in shown
    assert "two: cost at" not in shown


def test_a_job_without_an_answer_leaves_its_place_empty(pair: Fakes, capsys: Captured) -> None:
    runs = [results_service_pb2.SideBySideRun(job=dataset_job(i, m)) for i, m in ((JOB, "one"), (OTHER, "two"))]
    row = results_service_pb2.SideBySideRow(
        custom_id="a", items=[stored("one", "Paris.", 1), results_service_pb2.StoredItem()]
    )
    pair.answers["ListSideBySide"] = results_service_pb2.ListSideBySideResponse(rows=[row], runs=runs, total_size=1)
    for more in ([], ["--diff"], ["--format", "csv"]):
        assert main(["side-by-side", JOB, OTHER, *more]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"a,,0,0,false,{OTHER},two,,")


def receipts(fakes: Fakes, *jobs: job_pb2.Job) -> None:
    known = {made.job_id: made for made in jobs}
    fakes.answers["Scheduler.GetJob"] = lambda request: scheduler_service_pb2.GetJobResponse(job=known[request.job_id])


def with_receipt(job_id: str, **fields: Any) -> job_pb2.Job:
    made = job(job_id, item_set="s")
    made.receipt.MergeFrom(job_pb2.Receipt(configuration="c", server="Ollama 0.33.1", software="1.4.0"))
    made.receipt.MergeFrom(job_pb2.Receipt(**fields))
    made.plan.add(task="rte", items=277, prompt_hash="p")
    return made


def test_two_receipts_show_what_differs(fakes: Fakes, capsys: Captured) -> None:
    first = with_receipt(JOB, model_digest="aa", parameters='{"temperature": 0, "max_tokens": 16}')
    second = with_receipt(
        OTHER, model_digest="bb", parameters='{"temperature": 0}', configuration="d", server="Ollama 0.34.0"
    )
    second.plan[0].prompt_hash = "q"
    receipts(fakes, first, second)
    assert main(["receipt", JOB, OTHER]) == 0
    out = capsys.readouterr().out
    lines = [re.split(r"  +", line) for line in out.split("\n\n")[0].splitlines()]
    assert lines[0] == ["fact", "m …111111", "m …222222"]
    assert lines[1:] == [
        ["configuration", "c", "d"],
        ["digest", "aa", "bb"],
        ["server", "Ollama 0.33.1", "Ollama 0.34.0"],
        ["parameters.max_tokens", "16", "–"],
        ["rte: prompt", "p", "q"],
    ]
    assert "The configurations differ: a leaderboard ranks them apart." in out
    assert "The items are the same, so the runs compare item by item." in out


def test_a_receipt_names_what_rows_ask_for(fakes: Fakes, capsys: Captured) -> None:
    made = dataset_job()
    made.plan.add(task="rows", items=3, row_parameters=["max_tokens", "stop"])
    receipts(fakes, made)
    assert main(["receipt", JOB, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows: rows ask for"] == "max_tokens, stop"


def test_a_receipt_shows_what_lost_calls_may_cost(fakes: Fakes, capsys: Captured) -> None:
    spent = with_receipt(JOB)
    spent.spec.budget_usd, spent.progress.cost_usd = 5.0, 0.42
    spent.progress.lost_calls, spent.progress.lost_usd, spent.progress.reserved_usd = 1, 0.03, 0.03
    receipts(fakes, spent, with_receipt(OTHER))
    assert main(["receipt", JOB]) == 0
    shown = capsys.readouterr().out
    assert "$0.42 of $5.00, up to 1 call without a known price, up to $0.030" in shown
    main(["receipt", JOB, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    money = {name: told[name] for name in ("budget_usd", "cost_usd", "lost_calls", "lost_usd")}
    assert money == {"budget_usd": 5.0, "cost_usd": 0.42, "lost_calls": 1, "lost_usd": 0.03}
    main(["receipt", JOB, OTHER])
    assert "Nothing differs." in capsys.readouterr().out, "what a score rests on is the same"
    main(["receipt", OTHER, "--format", "json"])
    assert "lost_calls" not in json.loads(capsys.readouterr().out), "nobody tells a price"


def test_costs_at_list_prices_say_of_which_day(fakes: Fakes, capsys: Captured) -> None:
    listed = Prices(input=2.5, output=15, source="SOURCE_LIST", as_of="2026-10-03", table_digest="0f" * 32)
    listed.long_prompts.above_tokens, listed.long_prompts.input, listed.long_prompts.output = 272_000, 5, 22.5
    own = Prices(input=1, output=2, source="SOURCE_ENDPOINTS_FILE")
    made, configured = with_receipt(JOB, prices=listed), with_receipt(OTHER, prices=own)
    made.progress.cost_usd = configured.progress.cost_usd = 0.42
    receipts(fakes, made, configured)
    main(["receipt", JOB, "--format", "csv"])
    shown = capsys.readouterr().out
    assert "$2.50 in, $15.00 out per million tokens; of prompts above 272,000 tokens $5.00 in, $22.50 out" in shown
    assert f"list price as of 2026-10-03 (table {'0f' * 32})" in shown
    assert "$0.42, list price as of 2026-10-03" in shown
    main(["receipt", JOB, "--format", "json"])
    told = json.loads(capsys.readouterr().out)["prices"]
    assert (told["source"], told["as_of"], told["table_digest"]) == ("list", "2026-10-03", "0f" * 32)
    main(["receipt", OTHER, "--format", "csv"])
    shown = capsys.readouterr().out
    assert "$1.00 in, $2.00 out per million tokens; endpoints file" in shown
    assert "list price" not in shown
    main(["receipt", JOB, OTHER])
    assert "Nothing differs." in capsys.readouterr().out, "prices do not touch scores"


def test_equal_receipts_say_so_and_can_be_shown_whole(fakes: Fakes, capsys: Captured) -> None:
    receipts(fakes, with_receipt(JOB), with_receipt(OTHER))
    main(["receipt", JOB, OTHER])
    assert "Nothing differs." in capsys.readouterr().out
    main(["receipt", JOB, OTHER, "--all", "--format", "json"])
    rows = {row["fact"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["server"]["first"], rows["server"]["same"]) == ("Ollama 0.33.1", True)


def test_one_receipt_is_shown_in_every_format(fakes: Fakes, capsys: Captured) -> None:
    receipts(fakes, dataset_job())
    for format in FORMATS:
        assert main(["receipt", JOB, "--format", format]) == 0
        assert DATASET in capsys.readouterr().out


@pytest.fixture
def pilots(fakes: Fakes) -> Fakes:
    """Pilots of two models end at once; what they cost is known of one."""
    ids = {"one": JOB, "two": OTHER}
    endpoints = [endpoint_pb2.Endpoint(endpoint="e", kind="openai")]
    told = results_service_pb2.EstimateRunResponse(
        items=5000,
        pilot_items=30,
        input_tokens=results_service_pb2.Estimate(value=120_000, low=118_000, high=122_000),
        output_tokens=results_service_pb2.Estimate(value=64_000.4, low=51_000, high=80_000),
        duration_s=results_service_pb2.Estimate(value=1320, low=1080, high=1620),
    )
    priced = results_service_pb2.EstimateRunResponse()
    priced.CopyFrom(told)
    priced.cost_usd.MergeFrom(results_service_pb2.Estimate(value=1.234, low=0.9, high=1.6))
    fakes.answers |= {
        "ListEndpoints": scheduler_service_pb2.ListEndpointsResponse(endpoints=endpoints),
        "ListModels": scheduler_service_pb2.ListModelsResponse(models=[endpoint_pb2.Model(model=name) for name in ids]),
        "CreateJobs": lambda request: scheduler_service_pb2.CreateJobsResponse(
            jobs=[dataset_job(ids[spec.model], spec.model, "PENDING") for spec in request.specs]
        ),
        "GetQueue": scheduler_service_pb2.GetQueueResponse(queue=queue_pb2.Queue()),
        "Scheduler.GetJob": lambda request: scheduler_service_pb2.GetJobResponse(
            job=dataset_job(request.job_id, "one" if request.job_id == JOB else "two")
        ),
        "EstimateRun": lambda request: priced if request.job_id == JOB else told,
    }
    return fakes


ESTIMATE = ["estimate", "--dataset", DATASET, "--model", "one"]


def test_an_estimate_runs_a_pilot_and_prints_tokens_money_and_time(pilots: Fakes, capsys: Captured) -> None:
    assert main([*ESTIMATE, "--max-tokens", "400", "--provider-batch"]) == 0
    (spec,) = pilots.specs()
    work = spec.dataset
    assert (work.dataset_id, work.limit, spec.sampling.max_tokens) == (DATASET, 30, 400)
    assert (spec.priority, spec.provider_batch) == (job_pb2.PRIORITY_UNSPECIFIED, False)
    assert dict(spec.labels) == {"pilot": "0"}
    captured = capsys.readouterr()
    assert f"pilot: job {JOB}" in captured.err
    assert [re.split(r"  +", line)[1:] for line in captured.out.splitlines()[1:5]] == [
        ["tokens in", "120,000", "118,000 to 122,000"],
        ["tokens out", "64,000", "51,000 to 80,000"],
        ["cost", "$1.23", "$0.90 to $1.60"],
        ["time", "22 min", "18–27"],
    ]
    assert f"one: 5,000 items, learned from 30 of job {JOB}." in captured.out


def test_answers_are_promised_only_where_the_weights_are_known(pilots: Fakes, capsys: Captured) -> None:
    assert main(ESTIMATE) == 0
    assert "--reuse" not in capsys.readouterr().out
    known: Any = pilots.answers["Scheduler.GetJob"]

    def with_digest(request: Any) -> Any:
        made = known(request)
        made.job.receipt.model_digest = "sha256:aa" if request.job_id == JOB else ""
        return made

    pilots.answers["Scheduler.GetJob"] = with_digest
    assert main(ESTIMATE) == 0
    assert "A run with --reuse takes the pilot's answers.\n" in capsys.readouterr().out
    assert main([*ESTIMATE, "--model", "two"]) == 0
    assert "A run with --reuse takes the pilot's answers of one.\n" in capsys.readouterr().out


def test_several_models_are_estimated_together(pilots: Fakes, capsys: Captured) -> None:
    assert main([*ESTIMATE, "--model", "two@e", "--pilot", "10", "--limit", "200", "--format", "json"]) == 0
    one, two = json.loads(capsys.readouterr().out)
    assert (one["model_name"], one["pilot_job"], one["cost_usd"]["low"]) == ("one", JOB, 0.9)
    assert (two["model_name"], two["cost_usd"]) == ("two", None)
    assert [(spec.dataset.limit, spec.labels["pilot"]) for spec in pilots.specs()] == [(10, "200"), (10, "200")]
    assert [request.items for request in pilots.requests("EstimateRun")] == [200, 200]


def test_what_is_not_priced_is_said(pilots: Fakes, capsys: Captured) -> None:
    assert main(["estimate", "--dataset", DATASET, "--model", "two"]) == 0
    assert "two: what it costs is not known, as no price is." in capsys.readouterr().out


def test_a_suites_tasks_are_counted_by_their_plan(pilots: Fakes) -> None:
    planned = job(JOB, model="one")
    planned.plan.add(task="rte", items=30, published_items=277, repeats=2)
    planned.plan.add(task="sst2", items=30, published_items=872, repeats=2)
    pilots.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=planned)
    suite = ["estimate", "--suite", "glue", "--model", "one"]
    for more in (["--tasks", "rte,sst2", "--limit", "300"], ["--limit", "100"], []):
        assert main([*suite, *more]) == 0
    assert [request.items for request in pilots.requests("EstimateRun")] == [2 * (277 + 300), 2 * 200, 0]
    assert [spec.suite.limit for spec in pilots.specs()] == [30, 30, 30]


def test_a_pilot_that_fails_tells_why(pilots: Fakes, capsys: Captured) -> None:
    failed = dataset_job(JOB, "one", "FAILED", reason="The endpoint is down.")
    pilots.answers["Scheduler.GetJob"] = scheduler_service_pb2.GetJobResponse(job=failed)
    assert main(ESTIMATE) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "touchstone: one: The endpoint is down." in captured.err


def test_a_pilot_with_too_few_answers_is_refused_in_words(pilots: Fakes, capsys: Captured) -> None:
    pilots.answers["EstimateRun"] = errors.ConflictError("Job x has 3 answers; 5 are needed.")
    assert main(ESTIMATE) == 2
    assert "5 are needed." in capsys.readouterr().err
