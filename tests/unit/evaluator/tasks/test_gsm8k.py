"""GSM8K asks and reads numbers."""

from __future__ import annotations

from pathlib import Path

from services.evaluator.items.task import Response
from tests.unit.evaluator.tasks.tasks import items, made, rows
from touchstone.v1 import item_result_pb2


def test_gsm8k_reads_the_number_behind_the_solution_and_examples_show_the_steps(tmp_path: Path) -> None:
    task = made(tmp_path, "gsm8k/gsm8k", shots=2)
    item = items(task)[0]
    number = rows("gsm8k/gsm8k")[0]["answer"].rpartition("#### ")[2]
    assert item.reference == number.replace(",", "")
    steps = item.messages[1].content
    assert "<<" not in steps
    assert "dollars." in steps
    assert steps.splitlines()[-1].startswith("Answer: ")
    right = task.score(item, Response(f"It costs that.\nAnswer: ${number}.00"))
    assert (right.outcome, right.statistics["correct"]) == (item_result_pb2.OUTCOME_ANSWERED, 1.0)
