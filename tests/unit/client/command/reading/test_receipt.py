"""A job's receipt, and what differs between two."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.unit.client.fakes import DATASET, JOB, OTHER, Fakes, dataset_job, job
from touchstone.v1 import job_pb2, scheduler_service_pb2
from touchstone.v1.endpoint_pb2 import Prices
from touchstone_client.command import main
from touchstone_client.command.printing.output import FORMATS

Captured = pytest.CaptureFixture[str]


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
    assert "The configurations differ: a leaderboard ranks them separately." in out
    assert "The items are the same, so the runs can be compared item by item." in out


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
