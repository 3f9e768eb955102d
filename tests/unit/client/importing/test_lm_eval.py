"""Logs of lm_eval: what is read out of them, which task of ours they are about, and what is said of bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.importing.imports import GOOD, ROW, SCORED, answers
from tests.unit.client.logs import DATE, choices, generated, lm_eval
from touchstone_client.errors import InvalidError
from touchstone_client.importing import reading


def test_a_log_likelihood_sample_is_an_answer_with_its_continuations(tmp_path: Path) -> None:
    file = lm_eval(tmp_path, "rte", [choices(3, ROW, "A. B?", SCORED), choices(0, ROW, "C?", SCORED)], shots=2)
    (log,) = reading.read([file])
    assert (log.tool, log.version, log.task, log.mode, log.shots) == ("lm_eval", "0.4.13", "rte", "loglikelihood", 2)
    first, second = answers([log])
    assert (first.task, first.item, first.repeat, first.prompt) == ("rte", 3, 0, "A. B?")
    assert [(c.text, c.loglikelihood, c.greedy) for c in first.continuations] == [
        (" True", -1.5, False),
        (" False", -2.25, False),
    ]
    assert json.loads(first.row) == ROW
    assert second.item == 0


def test_unconditional_requests_of_a_mutual_information_metric_are_no_choices(tmp_path: Path) -> None:
    line = choices(0, ROW, "A?", SCORED)
    for number, (text, _) in enumerate(SCORED, start=2):
        line["arguments"][f"gen_args_{number}"] = {"arg_0": "", "arg_1": text}
        line["resps"].append([["-9", "False"]])
    (answer,) = answers(reading.read([lm_eval(tmp_path, "rte", [line])]))
    assert [c.loglikelihood for c in answer.continuations] == [-1.5, -2.25]


def test_repeats_are_answers_and_filters_are_not(tmp_path: Path) -> None:
    lines = [
        generated(item, ROW, "Say yes.", "yes", "no", filter=name) for name in ("strict", "flexible") for item in (0, 1)
    ]
    (log,) = reading.read([lm_eval(tmp_path, "rte", lines)])
    found = answers([log])
    assert [(a.item, a.repeat, a.response) for a in found] == [(0, 0, "yes"), (0, 1, "no"), (1, 0, "yes"), (1, 1, "no")]
    assert (log.mode, log.template, log.parameters) == ("generate", "none", {"until": ["\n"]})


def test_a_chats_messages_are_a_prompt_as_ours_are_shown(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say yes."}])
    (log,) = reading.read([lm_eval(tmp_path, "rte", [generated(0, ROW, [chat], "yes")])])
    assert log.template == "endpoint"
    assert answers([log])[0].prompt == "system:\nBe brief.\n\nuser:\nSay yes."


def test_logs_without_results_beside_them_take_what_the_user_says(tmp_path: Path) -> None:
    file = lm_eval(tmp_path, "rte", [choices(0, ROW, "A?", SCORED)], shots=None)
    assert [reading.read([file], shots)[0].shots for shots in (None, 5)] == [None, 5]
    assert reading.read([file])[0].prompt_hash == ""


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in choices(1, ROW, "A?", SCORED).items() if key != name}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "line 2: it is not JSON"),
        ("[" * 100_000, "line 2: it is not JSON"),
        ("[]", "line 2: it is not a JSON object"),
        (GOOD, "line 2: row 0 has answer 1 twice."),
        (without("doc_id"), "line 2: doc_id is None; it must be a row number."),
        (choices(-1, ROW, "A?", SCORED), "line 2: doc_id is -1"),
        (without("arguments"), "line 2: its answers cannot be read (KeyError"),
        (without("resps"), "line 2: its answers cannot be read (KeyError"),
        ({**choices(1, ROW, "A?", SCORED), "resps": []}, "line 2: its answers cannot be read"),
        ({**choices(1, ROW, "A?", SCORED), "resps": [[["x", "False"]], [["-1", "False"]]]}, "line 2: its answers"),
        ({**choices(1, ROW, "A?", SCORED), "arguments": 5}, "line 2: its answers cannot be read"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: Any, said: str) -> None:
    logs = reading.read([lm_eval(tmp_path, "rte", [GOOD, line])])
    with pytest.raises(InvalidError) as refused:
        answers(logs)
    assert refused.value.message.startswith(f"samples_rte_{DATE}.jsonl, ")
    assert said in refused.value.message


def categories(*names: str, start: int = 0) -> list[Any]:
    return [choices(n, {**ROW, "category": name}, "A?", SCORED) for n, name in enumerate(names, start)]


def test_rows_of_several_tasks_in_one_log_are_numbered_among_themselves(tmp_path: Path) -> None:
    lines = categories("law", "computer science", "law", "law")
    found = answers(reading.read([lm_eval(tmp_path, "leaderboard_mmlu_pro", lines)]))
    assert [(a.task, a.item) for a in found] == [("law", 0), ("computer_science", 0), ("law", 1), ("law", 2)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (categories("law", start=1), "line 1: it is row 1, not 0."),
        (categories("law", "cooking"), "line 2: its category 'cooking' is not a task of Touchstone."),
    ],
)
def test_rows_that_cannot_be_numbered_are_refused(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidError) as refused:
        answers(reading.read([lm_eval(tmp_path, "leaderboard_mmlu_pro", lines)]))
    assert said in refused.value.message
