"""Logs of lm_eval: what is read out of them, which task of ours they are about, and what is said of bad ones."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.logs import DATE, choices, generated, lm_eval, sample
from touchstone.v1 import suite_pb2
from touchstone_client.errors import InvalidError
from touchstone_client.importing import reading
from touchstone_client.importing.log import Log
from touchstone_client.importing.names import resolve
from touchstone_client.importing.sending import Import

SUITES = {
    "glue": ("rte", "sst2", "mnli", "mnli_mismatched"),
    "superglue": ("rte", "wsc"),
    "mmlu": ("anatomy", "virology"),
    "medical": ("anatomy", "medqa"),
    "mmlu_pro": ("law", "computer_science"),
}
KNOWN = [
    suite_pb2.Suite(suite=suite, tasks=[suite_pb2.TaskInfo(task=task) for task in tasks])
    for suite, tasks in SUITES.items()
]
ROW = {"sentence1": "A.", "sentence2": "B.", "label": 1}
SCORED = [(" True", -1.5), (" False", -2.25)]


def made(logs: list[Log], suite: str = "", **named: str) -> Import:
    chosen, targets = resolve(logs, KNOWN, suite, named)
    return Import(logs, "m", chosen, targets)


def answers(logs: list[Log], suite: str = "", **named: str) -> list[Any]:
    return [answer for request in made(logs, suite, **named).requests() for answer in request.answers]


# -- samples -----------------------------------------------------------------------------------------------------------


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


def test_a_folders_logs_are_one_import(tmp_path: Path) -> None:
    for task in ("rte", "sst2"):
        lm_eval(tmp_path / "model", task, [choices(0, ROW, "A?", SCORED)])
    results = tmp_path / "model" / f"results_{DATE}.json"
    taken = made(reading.read([tmp_path, results]))
    assert {answer.task for request in taken.requests() for answer in request.answers} == {"rte", "sst2"}
    spec = taken.spec("i", 1)
    assert (spec.endpoint, spec.model, spec.suite.suite, list(spec.suite.tasks)) == (
        "lm_eval",
        "m",
        "glue",
        ["rte", "sst2"],
    )
    assert (spec.mode, spec.reuse.import_id) == (suite_pb2.MODE_LOGLIKELIHOOD, "i")
    assert set(taken.run.prompt_hashes) == {"rte", "sst2"}


def test_odd_texts_are_sent_as_they_can_be(tmp_path: Path) -> None:
    line = generated(0, {"t": "\x00\u2028"}, "a\x00b", "\ud800 yes\u2028\x00")
    file = lm_eval(tmp_path, "rte", [json.dumps(line)])
    (answer,) = answers(reading.read([file]))
    assert (answer.prompt, answer.response) == ("a\x00b", "? yes\u2028\x00")


def test_an_answer_too_long_to_be_scored_is_an_error_and_nothing_is_cut_from_it(tmp_path: Path) -> None:
    file = lm_eval(tmp_path, "rte", [generated(0, {"t": "x" * 200_000}, "p" * 200_000, "a" * 300_000)])
    (answer,) = answers(reading.read([file]))
    assert (answer.response, answer.row, len(answer.prompt)) == ("", "", 128 * 1024)
    assert "300,000 bytes" in answer.error


def test_messages_stay_small_and_reading_takes_no_memory(tmp_path: Path) -> None:
    lines = (json.dumps(generated(item, ROW, "p", "y" * 20_000)) for item in range(1500))
    logs = reading.read([lm_eval(tmp_path, "rte", lines)])
    taken = made(logs)
    tracemalloc.start()
    sizes = [(len(request.answers), request.ByteSize()) for request in taken.requests()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(count for count, _ in sizes) == 1500
    assert max(count for count, _ in sizes) <= 1000
    assert max(size for _, size in sizes) < 3_000_000
    assert peak < 12_000_000, "of a log of 30 MB"


# -- bad logs ----------------------------------------------------------------------------------------------------------


GOOD = choices(0, ROW, "A?", SCORED)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in choices(1, ROW, "A?", SCORED).items() if key != name}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{broken", "line 2: it is not JSON"),
        ("[" * 100_000, "line 2: it is not JSON"),
        ("[]", "line 2: it is no JSON object"),
        (GOOD, "line 2: row 0 has its answer number 1 twice."),
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


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "it has no samples."),
        ([{"a": 1}], "line 1: it has no resps"),
        ([sample(0, ROW, {"gen_args_0": {"arg_0": "text"}}, [["-12.5"]])], "scores a whole text"),
    ],
)
def test_what_is_no_log_is_refused_at_once(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        reading.read([lm_eval(tmp_path, "rte", lines)])


def test_a_line_beyond_any_measure_is_not_read_into_memory(tmp_path: Path) -> None:
    file = lm_eval(tmp_path, "rte", [GOOD])
    with file.open("r+b") as opened:
        opened.seek(80 * 1024 * 1024)
        opened.write(b"\n")
    with pytest.raises(InvalidError, match="line 2: it has more than 64 MB"):
        answers(reading.read([file]))


def both(tmp_path: Path, first: Callable[[Path], Path], second: Callable[[Path], Path]) -> list[Path]:
    return [first(tmp_path / "a"), second(tmp_path / "b")]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda f: lm_eval(f, "sst2", [generated(0, ROW, "p", "y")]), "several modes: generate, loglikelihood"),
        (lambda f: lm_eval(f, "sst2", [GOOD], shots=5), "several numbers of few-shot examples: 0, 5"),
        (lambda f: lm_eval(f, "sst2", [GOOD], lm_eval_version="0.4.9"), "several versions of the tool"),
        (lambda f: lm_eval(f, "rte", [GOOD]), "are both of rte"),
    ],
)
def test_logs_that_are_no_one_run_are_refused(tmp_path: Path, second: Callable[[Path], Path], said: str) -> None:
    files = both(tmp_path, lambda f: lm_eval(f, "rte", [GOOD]), second)
    with pytest.raises(InvalidError, match=said):
        reading.read(files)


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InvalidError, match=r"notes\.txt is no log"):
        reading.read([tmp_path / "notes.txt"])
    with pytest.raises(InvalidError, match=r"holds no samples_\*\.jsonl"):
        reading.read([tmp_path])


# -- names -------------------------------------------------------------------------------------------------------------


def log(tmp_path: Path, task: str) -> Log:
    return reading.read([lm_eval(tmp_path / task, task, [GOOD])])[0]


@pytest.mark.parametrize(
    ("task", "suite", "found"),
    [
        ("rte", "", ("glue", "rte")),
        ("mnli_mismatch", "", ("glue", "mnli_mismatched")),
        ("sglue_rte", "", ("superglue", "rte")),
        ("mmlu_anatomy", "", ("mmlu", "anatomy")),
        ("mmlu_anatomy", "medical", ("medical", "anatomy")),
        ("medqa_4options", "", ("medical", "medqa")),
        ("mmlu_pro_computer_science", "", ("mmlu_pro", "computer_science")),
        ("rte", "superglue", ("superglue", "rte")),
        ("virology", "mmlu", ("mmlu", "virology")),
    ],
)
def test_known_tasks_are_found(tmp_path: Path, task: str, suite: str, found: tuple[str, str]) -> None:
    chosen, targets = resolve([log(tmp_path, task)], KNOWN, suite, {})
    assert (chosen, [target.task for target in targets[task]]) == (found[0], [found[1]])


def test_a_subject_of_two_suites_follows_the_others(tmp_path: Path) -> None:
    logs = [log(tmp_path, "mmlu_anatomy"), log(tmp_path, "medqa_4options")]
    assert resolve(logs, KNOWN, "", {})[0] == "medical"


@pytest.mark.parametrize(
    ("tasks", "suite", "named", "said"),
    [
        (["my_task"], "", {}, "say which: --task my_task=SUITE/TASK"),
        (["mmlu_stem"], "", {}, "--task mmlu_stem=SUITE/TASK"),
        (["rte", "mmlu_anatomy"], "", {}, "several suites: glue, mmlu"),
        (["mmlu_anatomy"], "glue", {}, "is a task of mmlu, not of glue"),
        (["rte"], "gleu", {}, "There is no suite gleu"),
        (["my_task"], "", {"my_task": "rte"}, "name the suite too, as in my_task=SUITE/rte"),
        (["my_task"], "", {"my_task": "glue/rtee"}, "suite glue has no task rtee. Tasks: mnli"),
        (["rte"], "", {"other": "glue/rte"}, "No log is of other"),
        (["rte", "my_task"], "", {"my_task": "glue/rte"}, "rte and my_task are both rte"),
    ],
)
def test_what_cannot_be_told_is_said_with_the_remedy(
    tmp_path: Path, tasks: list[str], suite: str, named: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        resolve([log(tmp_path, task) for task in tasks], KNOWN, suite, named)
    assert said in refused.value.message


def test_a_task_of_any_name_is_imported_as_the_user_says(tmp_path: Path) -> None:
    found = answers([log(tmp_path, "my_task")], my_task="glue/sst2")
    assert [answer.task for answer in found] == ["sst2"]
    assert answers([log(tmp_path, "other")], "glue", other="sst2")[0].task == "sst2"


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
        (categories("law", "cooking"), "line 2: its category 'cooking' is no task of ours."),
    ],
)
def test_rows_that_cannot_be_numbered_are_refused(tmp_path: Path, lines: list[Any], said: str) -> None:
    with pytest.raises(InvalidError) as refused:
        answers(reading.read([lm_eval(tmp_path, "leaderboard_mmlu_pro", lines)]))
    assert said in refused.value.message


# -- digests -----------------------------------------------------------------------------------------------------------


def test_the_digest_tells_what_was_imported_and_not_where_it_lay(tmp_path: Path) -> None:
    def digest(folder: str, lines: list[Any], model: str = "m", shots: int = 0) -> str:
        logs = reading.read([lm_eval(tmp_path / folder, "rte", lines, shots=shots)])
        return Import(logs, model, *resolve(logs, KNOWN, "", {})).run.digest

    same = [digest("a", [GOOD]), digest("b", [GOOD])]
    others = [
        digest("c", [GOOD, choices(1, ROW, "A?", SCORED)]),
        digest("d", [GOOD], "n"),
        digest("e", [GOOD], shots=1),
    ]
    assert len({*same, *others}) == 4
    assert same[0] == same[1]
