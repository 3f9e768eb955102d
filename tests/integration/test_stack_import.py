"""Logs of other tools as runs, through every process: scored as the tool scored, compared and refused as our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Item
from tests.record import published
from tests.record.runner import compared, upload
from tests.record.runner import imported as imported_record
from tests.stack import Stack, running, touchstone, until
from tests.unit.client.logs import archive, choices, generated, header, inspected, lm_eval
from touchstone.v1 import item_result_pb2, job_pb2, suite_pb2

pytestmark = pytest.mark.stack

TASK = "sentiment"


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(tmp_path_factory.mktemp("stack"), [{"name": "base", "kind": "baseline"}])
    with running(made, request):
        yield made


def items(mode: suite_pb2.Mode = suite_pb2.MODE_LOGLIKELIHOOD) -> list[Item]:
    task = Catalogue(None).task("demo", TASK, mode)
    return list(task.items(range(task.size())))


def scored_log(folder: Path, chosen: Sequence[Item], shift: int = 0) -> tuple[Path, float]:
    """A log-likelihood log of the demo's rows with our prompts, and the accuracy that the tool would print."""
    samples, hits = [], 0
    for number, item in enumerate(chosen):
        values = [
            (choice, -1.0 if (choice.strip() == item.reference) == bool(number % 3) else -7.0)
            for choice in item.choices
        ]
        best = max(values, key=lambda pair: pair[1])[0]
        hits += best.strip() == item.reference
        samples.append(choices(item.index + shift, dict(item.fields), item.context, values))
    return lm_eval(folder, "own_sentiment", samples), hits / len(chosen)


def imported(stack: Stack, *arguments: str, code: int = 0) -> dict[str, Any]:
    made = touchstone(stack, "import", *arguments, "--task", f"own_sentiment=demo/{TASK}", "--format", "json")
    assert made.returncode == code, made.stderr
    body: dict[str, Any] = json.loads(made.stdout) if made.stdout else {}
    return {**body, "said": made.stderr}


def test_a_whole_log_with_our_prompts_scores_as_the_tool_did_and_ranks(stack: Stack, tmp_path: Path) -> None:
    file, accuracy = scored_log(tmp_path, items())
    made = imported(stack, str(file), "--model", "theirs")
    result = stack.get(f"/results/{made['job_id']}")
    assert result["status"] == "completed"
    assert made["result"]["tasks"][0]["metrics"][0]["mean"] == pytest.approx(accuracy, abs=1e-12)
    receipt = made["job"]["receipt"]
    assert (receipt["endpoint_kind"], receipt["server"], receipt["template"]) == ("lm_eval", "lm_eval 0.4.13", "none")
    task = Catalogue(None).task("demo", TASK, suite_pb2.MODE_LOGLIKELIHOOD)
    assert made["job"]["plan"][0]["prompt_hash"] == task.prompt_hash()
    board = stack.get("/leaderboard", suite="demo", mode="loglikelihood")["leaderboard"]
    assert [(row["model"], row["provider"]) for row in board] == [("theirs", "lm_eval")]
    again = imported(stack, str(file), "--model", "theirs")
    assert again["job_id"] == made["job_id"]
    assert "imported before" in again["said"]
    forced = imported(stack, str(file), "--model", "theirs", "--again")
    assert forced["job_id"] != made["job_id"]


def test_a_log_of_the_first_rows_is_a_subset_of_just_these(stack: Stack, tmp_path: Path) -> None:
    file, accuracy = scored_log(tmp_path, items()[:40])
    made = imported(stack, str(file), "--model", "first")
    assert made["job"]["subset"]
    assert [item.result.item for item in stack.items(made["job_id"])] == list(range(40))
    assert made["result"]["tasks"][0]["metrics"][0]["mean"] == pytest.approx(accuracy, abs=1e-12)


def test_a_log_of_other_rows_is_never_scored(stack: Stack, tmp_path: Path) -> None:
    file, _ = scored_log(tmp_path, items()[:40], shift=1)
    made = imported(stack, str(file), "--model", "shifted", code=1)
    # It fails as soon as it is seen to be hopeless, which may be before the last of them.
    assert re.search(r"\d+ of 40 items have no stored answer", made["said"])
    job_id = made["said"].splitlines()[1] if not made.get("job_id") else made["job_id"]
    until(lambda: stack.settled(job_id.strip()))
    found = [item.result for item in stack.items(job_id.strip())]
    assert {item.outcome for item in found} == {item_result_pb2.OUTCOME_INFRASTRUCTURE_ERROR}
    assert all("The log's row differs" in item.error for item in found)
    assert stack.job(job_id.strip()).state == job_pb2.Job.STATE_FAILED


def test_inspects_answers_are_read_by_our_extraction_with_its_prompts_shown(stack: Stack, tmp_path: Path) -> None:
    chosen = items(suite_pb2.MODE_GENERATE)[:30]
    samples = [
        inspected(item.index + 1, f"Sentiment of: {next(iter(item.fields.values()))}", f"Answer: {item.reference}")
        for item in chosen
    ]
    file = archive(tmp_path / "log.eval", samples, header("own_sentiment", range(1, 31)))
    made = imported(stack, str(file), "--model", "theirs")
    assert made["result"]["tasks"][0]["metrics"][0]["mean"] == 1.0
    task = Catalogue(None).task("demo", TASK)
    assert made["job"]["plan"][0]["prompt_hash"] != task.prompt_hash()
    first = stack.items(made["job_id"])[0].result
    assert first.prompt.startswith("user:\nSentiment of: ")
    assert (first.calls, first.reused, first.input_tokens) == (0, True, 9)


def test_repeats_of_a_log_are_answers_per_item(stack: Stack, tmp_path: Path) -> None:
    chosen = items(suite_pb2.MODE_GENERATE)[:10]
    samples = [
        generated(item.index, dict(item.fields), "p", f"Answer: {item.reference}", "Answer: neither") for item in chosen
    ]
    file = lm_eval(tmp_path, "own_sentiment", samples)
    made = imported(stack, str(file), "--model", "twice")
    assert made["result"]["tasks"][0]["metrics"][0]["mean"] == 0.5
    assert len(stack.items(made["job_id"])) == 20


def test_an_imported_run_is_not_rescored_but_imported_again(stack: Stack, tmp_path: Path) -> None:
    file, _ = scored_log(tmp_path, items()[:20])
    made = imported(stack, str(file), "--model", "rescored")
    refused = touchstone(stack, "rescore", made["job_id"])
    assert refused.returncode == 2
    assert "import the log again" in refused.stderr


# -- files of answers --------------------------------------------------------------------------------------------------


def answer_file(folder: Path, chosen: Sequence[Item], *more: object) -> Path:
    """Every third answer is wrong; half of the lines name their item by its number, half by our prompt."""
    lines = [
        {
            **({"id": item.index} if item.index % 2 else {"prompt": item.messages[0].content}),
            "output": [f"Answer: {item.reference if number % 3 else 'neither'}"],
            "generator": "published",
        }
        for number, item in enumerate(chosen)
    ]
    file = folder / "answers.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, *more]))
    return file


def taken(stack: Stack, file: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    made = touchstone(stack, "import", str(file), *arguments, "--format", "json")
    assert made.returncode == code, made.stderr
    body: dict[str, Any] = json.loads(made.stdout) if made.stdout else {}
    return {**body, "said": made.stderr}


def test_a_file_of_answers_to_every_item_is_a_run_that_ranks(stack: Stack, tmp_path: Path) -> None:
    chosen = items(suite_pb2.MODE_GENERATE)
    stray = {"id": "of-nobody", "response": "x"}
    file = answer_file(tmp_path, chosen[::-1], stray, {"id": 1, "response": "Answer: twice"})
    made = taken(stack, file, "--suite", "demo", "--task", TASK)
    right = sum(bool(number % 3) for number in range(len(chosen)))
    assert made["result"]["tasks"][0]["metrics"][0]["mean"] == pytest.approx(right / len(chosen), abs=1e-12)
    assert "1 line matches no item; the first one has id “of-nobody”." in made["said"]
    assert "1 line answers an item that already has an answer" in made["said"]
    assert not made["job"].get("subset") or made["job"]["plan"][0]["items"] == len(chosen)
    result = stack.get(f"/results/{made['job_id']}")
    assert result["receipt"]["import_counts"] == {
        "answers": len(chosen) + 2,
        "unmatched": 1,
        "unmatched_example": "id “of-nobody”",
        "repeated": 1,
    }
    assert (result["receipt"]["endpoint_kind"], result["cost_usd"]) == ("imported", None)
    board = stack.get("/leaderboard", suite="demo", mode="generate")["leaderboard"]
    assert [(row["model"], row["provider"]) for row in board] == [("published", "imported")]
    assert taken(stack, file, "--suite", "demo", "--task", TASK)["job_id"] == made["job_id"]


def test_a_file_of_answers_to_some_rows_of_a_dataset_is_a_subset_of_it(stack: Stack, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"custom_id": f"r{n}", "prompt": f"{n} + 1?", "reference": n + 1}) + "\n" for n in range(5))
    )
    uploaded = touchstone(stack, "dataset", "upload", str(rows), "--scorer", "numeric")
    assert uploaded.returncode == 0, uploaded.stderr
    dataset = uploaded.stdout.split()[0]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps({"id": f"r{n}", "completion": f"It is {n + 1}."}) + "\n" for n in (4, 0, 2)))
    made = taken(stack, file, "--dataset", dataset, "--model", "published")
    assert "3 of 5 items have an answer." in made["said"]
    assert made["job"]["subset"]
    assert made["result"]["tasks"][0]["metrics"][0]["mean"] == 1.0
    assert [item.result.custom_id for item in stack.items(made["job_id"])] == ["r0", "r2", "r4"]


@pytest.mark.skipif(not published.is_there(), reason=published.ABSENT)
def test_a_published_file_reproduces_what_its_authors_say(stack: Stack, tmp_path: Path) -> None:
    (record,) = (each for each in published.records() if (each.task, each.model) == ("crux", "gemma-2-2b-it"))
    figures = compared(stack, record, imported_record(stack, record, *upload(stack, tmp_path, "crux")))
    assert (figures.items, figures.reproduced, figures.unexplained) == (800, True, 0)


def test_a_file_with_a_bad_line_leaves_nothing_behind(stack: Stack, tmp_path: Path) -> None:
    before = len(stack.get("/history")["history"])
    file = answer_file(tmp_path, items(suite_pb2.MODE_GENERATE)[:5], {"id": 7, "text": "x"})
    made = taken(stack, file, "--suite", "demo", "--task", TASK, code=2)
    assert "answers.jsonl, line 6: it has no response. Add one of: response," in made["said"]
    assert len(stack.get("/history")["history"]) == before
