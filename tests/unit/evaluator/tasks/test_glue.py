"""GLUE and the demo suite: prompts, label order, metrics, ratings. What holds everywhere is in test_every_task.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.errors import InvalidRequestError
from services.evaluator.answers.reading.layers import Layer
from services.evaluator.catalogue import Catalogue
from services.evaluator.data.reader import DataError
from services.evaluator.items.task import Item, Response, Task
from tests import real_rows
from tests.unit.evaluator import glue_rows
from touchstone.v1 import item_result_pb2, suite_pb2

GLUE = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "mnli_mismatched", "qnli", "rte", "wnli")
DEMO = ("sentiment", "acceptability", "entailment", "paraphrase")
EVERY = [("glue", task) for task in GLUE] + [("demo", task) for task in DEMO]
# The labels of rows with the data's integer 0, 1, 2.
LABEL_ORDER = {
    "cola": ("unacceptable", "acceptable"),
    "sst2": ("negative", "positive"),
    "mrpc": ("not_equivalent", "equivalent"),
    "qqp": ("not_duplicate", "duplicate"),
    "mnli": ("entailment", "neutral", "contradiction"),
    "mnli_mismatched": ("entailment", "neutral", "contradiction"),
    "qnli": ("entailment", "not_entailment"),
    "rte": ("entailment", "not_entailment"),
    "wnli": ("not_entailment", "entailment"),
}
# Prompt hash by task. A prompt that changes is not comparable: give the task a new version, then change it here.
PROMPTS = {
    "cola": ("1", "850eb11fb89b3bec"),
    "sst2": ("1", "95a17b2add7f8313"),
    "mrpc": ("1", "46200fbab616895b"),
    "qqp": ("1", "94647bd23cdd2dab"),
    "stsb": ("1", "82c20a266b6511bc"),
    "mnli": ("1", "b6f95eb7ca9a0cb4"),
    "mnli_mismatched": ("1", "b6f95eb7ca9a0cb4"),
    "qnli": ("1", "02b0614878819448"),
    "rte": ("1", "784b4519a2e24f1c"),
    "wnli": ("1", "7de20bcd510329c8"),
    "sentiment": ("1", "fc2c7db3bd586f90"),
    "acceptability": ("1", "850eb11fb89b3bec"),
    "entailment": ("1", "784b4519a2e24f1c"),
    "paraphrase": ("1", "95e87ff24076c161"),
}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return Catalogue(glue_rows.write(tmp_path_factory.mktemp("mirror")))


@pytest.fixture(params=EVERY, ids=lambda param: "-".join(param))
def task(catalogue: Catalogue, request: pytest.FixtureRequest) -> Task:
    return catalogue.task(*request.param)


def _items(task: Task) -> list[Item]:
    return list(task.items(range(task.size())))


def test_what_the_first_answer_would_have_scored_is_kept_where_it_differs(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "rte")
    item = next(task.items([0]))
    other = next(label for label in task.labels if label != item.reference)
    changed = task.score(item, Response(f"Answer: {other}\nOn reflection:\nAnswer: {item.reference}"))
    assert (changed.statistics["correct"], changed.statistics["correct_first"]) == (1, 0)
    spoilt = task.score(item, Response(f"The answer is {item.reference}.\nAnswer: {other}"))
    assert (spoilt.statistics["correct"], spoilt.statistics["correct_first"]) == (0, 1)
    reply = f'The answer is the same for both.\n{{"reasoning": "So the answer is:", "answer": "{item.reference}"}}'
    for same in (
        reply,
        f"Answer: {item.reference}",
        f"Answer: {item.reference}\nAnswer: {item.reference}",
        "Hard to say.",
    ):
        assert "correct_first" not in task.score(item, Response(same)).statistics
    thought = task.score(item, Response(f"<think>Answer: {other}</think>Answer: {item.reference}"))
    assert "correct_first" not in thought.statistics, "reasoning is no answer"


def test_a_job_chooses_the_layers_by_which_answers_are_read(catalogue: Catalogue) -> None:
    usual, strict = catalogue.task("glue", "rte"), catalogue.task("glue", "rte", reading=Layer.STRICT)
    assert (usual.reading, strict.reading) == (Layer.LENIENT, Layer.STRICT)
    assert list(usual.hashes([0])) == list(strict.hashes([0]))
    item = next(strict.items([0]))
    boxed = Response(f"\\boxed{{{item.reference}}}")
    assert usual.score(item, boxed).statistics == {"correct": 1, "layer": Layer.MARKED}
    unread = strict.score(item, boxed)
    assert (unread.outcome, unread.statistics) == (
        item_result_pb2.OUTCOME_UNPARSED,
        {"correct": 0, "would_read": Layer.MARKED},
    )
    assert catalogue.task("glue", "rte", suite_pb2.MODE_LOGLIKELIHOOD).reading is None


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (Response("", refused=True), item_result_pb2.OUTCOME_REFUSED),
        (Response("Well,", finish_reason="length"), item_result_pb2.OUTCOME_OUTPUT_TRUNCATED),
        (Response("Well,", finish_reason="MAX_TOKENS"), item_result_pb2.OUTCOME_OUTPUT_TRUNCATED),
        (Response("<think>Is it", finish_reason="length"), item_result_pb2.OUTCOME_OUTPUT_TRUNCATED),
        (Response("Well,", finish_reason="stop"), item_result_pb2.OUTCOME_UNPARSED),
    ],
)
def test_unanswered_item_says_why_and_is_not_correct(
    task: Task, response: Response, outcome: item_result_pb2.Outcome
) -> None:
    item = _items(task)[0]
    scored = task.score(item, response)
    assert (scored.outcome, scored.prediction) == (outcome, "")
    assert scored.statistics.get("correct", 0.0) == 0.0
    assert scored.extraction.startswith("none: ")


def test_answer_to_a_cut_prompt_does_not_count(task: Task) -> None:
    item = _items(task)[0]
    scored = task.score(item, Response(task.answer(item.reference), input_truncated=True))
    assert (scored.outcome, scored.prediction) == (item_result_pb2.OUTCOME_INPUT_TRUNCATED, "")


def test_answer_given_before_the_token_limit_counts(task: Task) -> None:
    item = _items(task)[0]
    text = task.answer(item.reference) + "\n\nAnd now I will go on until"
    assert task.score(item, Response(text, finish_reason="length")).outcome == item_result_pb2.OUTCOME_ANSWERED


def test_items_are_alike_in_another_process_and_distinct(task: Task, catalogue: Catalogue, tmp_path: Path) -> None:
    again = Catalogue(glue_rows.write(tmp_path / "copy"))
    suite = "demo" if task.info.task in DEMO else "glue"
    other = again.task(suite, task.info.task)
    assert _items(other) == _items(task)
    assert other.revision() == task.revision()
    assert len({item.hash for item in _items(task)}) == task.size()


def test_prompt_holds_the_texts_the_labels_and_the_answer_form(task: Task) -> None:
    for item in _items(task)[:12]:
        (message,) = item.messages
        assert message.role == "user"
        assert all(text and text in message.content for text in item.fields.values())
        assert all(label in message.content for label in task.labels)
        assert "\nAnswer: <" in message.content


def test_prompts_change_only_with_their_version(task: Task) -> None:
    name = task.info.task
    assert (task.version, task.prompt_hash()) == PROMPTS[name]


def test_train_split_is_read_whole_and_in_order(task: Task) -> None:
    train = task.train()
    assert [item.index for item in train] == list(range(len(train)))
    assert train[3] == list(train)[3] == train[3:4][0]
    assert len(train) >= 12


@pytest.mark.parametrize("name", sorted(LABEL_ORDER))
def test_glue_labels_stand_in_the_order_of_the_data(catalogue: Catalogue, name: str) -> None:
    task = catalogue.task("glue", name)
    rows = glue_rows.rows()[task.info.data.config]
    expected = [LABEL_ORDER[name][int(row["label"] or 0)] for row in rows]
    assert [item.reference for item in _items(task)] == expected


def test_metrics_begin_with_the_primary_one(catalogue: Catalogue) -> None:
    glue = next(suite for suite in catalogue.suites() if suite.suite == "glue")
    shown = {task.task: [(spec.metric, spec.positive_label) for spec in task.metrics] for task in glue.tasks}
    assert shown == {
        "cola": [("matthews_correlation", ""), ("accuracy", "")],
        "sst2": [("accuracy", "")],
        "mrpc": [("f1", "equivalent"), ("accuracy", "")],
        "qqp": [("f1", "duplicate"), ("accuracy", "")],
        "stsb": [("pearson", ""), ("spearman", "")],
        "mnli": [("accuracy", "")],
        "mnli_mismatched": [("accuracy", "")],
        "qnli": [("accuracy", "")],
        "rte": [("accuracy", "")],
        "wnli": [("accuracy", "")],
    }
    for task in glue.tasks:
        labels = catalogue.task("glue", task.task).labels
        assert all(spec.positive_label in labels for spec in task.metrics if spec.positive_label)


def test_published_sizes_are_those_of_glue(catalogue: Catalogue) -> None:
    glue = next(suite for suite in catalogue.suites() if suite.suite == "glue")
    assert [task.published_items for task in glue.tasks] == [1043, 872, 408, 40430, 1500, 9815, 9832, 5463, 277, 71]
    assert {task.task: task.score_group for task in glue.tasks if task.score_group} == {
        "mnli": "mnli",
        "mnli_mismatched": "mnli",
    }


def test_unanswered_rating_counts_with_the_train_mean(catalogue: Catalogue) -> None:
    task = catalogue.task("glue", "stsb")
    item = _items(task)[1]
    mean = sum(float(row["label"] or 0) for row in glue_rows.rows()["stsb"]) / 12
    for response in (Response("no idea"), Response("Answer: 17"), Response("", refused=True)):
        scored = task.score(item, response)
        assert scored.prediction == ""
        assert scored.statistics == {"value": pytest.approx(mean), "target": 1.25}


def test_rating_kept_in_32_bits_is_shown_as_published(catalogue: Catalogue) -> None:
    item = _items(catalogue.task("glue", "stsb"))[5]
    assert item.reference == "3.8"


def test_braces_in_a_text_reach_the_prompt(catalogue: Catalogue) -> None:
    item = _items(catalogue.task("glue", "sst2"))[9]
    assert "loud, long and {empty}" in item.messages[0].content


def test_item_hash_follows_text_label_and_version_only(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = tmp_path / "nyu-mll" / "glue" / "sst2"
    folder.mkdir(parents=True)
    row = {"sentence": "a warm and funny portrait of a family", "label": 1, "idx": 5}
    changed = [row, row | {"idx": None}, row | {"label": 0}, row | {"sentence": "a cold portrait"}]
    (folder / "validation.jsonl").write_text("".join(json.dumps(one) + "\n" for one in changed))
    first, same, label, text = _items(Catalogue(tmp_path).task("glue", "sst2"))
    assert first.hash == same.hash == _items(catalogue.task("glue", "sst2"))[0].hash
    assert len({first.hash, label.hash, text.hash}) == 3


def test_unpublished_labels_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "nyu-mll" / "glue" / "rte"
    folder.mkdir(parents=True)
    (folder / "validation.jsonl").write_text('{"sentence1": "a", "sentence2": "b", "label": -1}\n')
    with pytest.raises(DataError, match=r"nyu-mll/glue \(rte, validation\) cannot be used: labels run from -1 to -1"):
        Catalogue(tmp_path).task("glue", "rte").size()


def test_row_without_a_label_is_refused_with_its_number(tmp_path: Path) -> None:
    folder = tmp_path / "nyu-mll" / "glue" / "sst2"
    folder.mkdir(parents=True)
    rows = '{"sentence": "a", "label": 1}\n{"sentence": "b", "label": null}\n'
    (folder / "validation.jsonl").write_text(rows)
    with pytest.raises(DataError) as error:
        Catalogue(tmp_path).task("glue", "sst2").size()
    assert error.value.message == (
        "nyu-mll/glue (sst2, validation) cannot be used: row 1 has no label. Use a split whose answers are published."
    )


LOGLIKELIHOOD = {
    "cola": ("Question: Does this sentence make sense?", (" no", " yes")),
    "sst2": ("Question: Is this sentence positive or negative?", (" negative", " positive")),
    "mrpc": ("Question: Do both sentences mean the same thing?", (" no", " yes")),
    "qqp": ("Question: Do both questions ask the same thing?", (" no", " yes")),
    "mnli": ("Question: At noon the ferry leaves. True, False or Neither?", (" True", " Neither", " False")),
    "qnli": ("Question: Does this response answer the question?", (" yes", " no")),
    "rte": ("Question: At noon the ferry leaves. True or False?", (" True", " False")),
    "wnli": ("Question: At noon the ferry leaves. True or False?", (" False", " True")),
}


@pytest.mark.parametrize("name", sorted(LOGLIKELIHOOD))
def test_glue_is_continued_as_in_lm_eval(catalogue: Catalogue, name: str) -> None:
    item = next(catalogue.task("glue", name, suite_pb2.MODE_LOGLIKELIHOOD).items([0]))
    question, choices = LOGLIKELIHOOD[name]
    assert item.context.endswith(f"\n{question}\nAnswer:")
    assert item.choices == choices


def test_rating_is_asked_for_in_generate_mode_only(catalogue: Catalogue) -> None:
    with pytest.raises(InvalidRequestError, match="Task stsb runs in generate mode only") as error:
        catalogue.task("glue", "stsb", suite_pb2.MODE_LOGLIKELIHOOD)
    assert error.value.field == "mode"


@pytest.mark.skipif(not real_rows.folder(), reason=real_rows.absent())
@pytest.mark.parametrize("name", [name for name in GLUE if name != "mnli_mismatched"])
def test_real_rows_are_read_and_scored(name: str) -> None:
    task = Catalogue(real_rows.folder()).task("glue", name)
    items = _items(task)
    assert len(items) == task.size() >= 71
    for item in items:
        perfect = task.score(item, Response(task.answer(item.reference)))
        assert (perfect.outcome, perfect.prediction) == (item_result_pb2.OUTCOME_ANSWERED, item.reference)
        nothing = task.score(item, Response(item.messages[0].content))
        assert nothing.outcome == item_result_pb2.OUTCOME_UNPARSED


@pytest.mark.skipif(not real_rows.folder(), reason=real_rows.absent())
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cola", "acceptable"),
        ("sst2", "positive"),
        ("mrpc", "equivalent"),
        ("qqp", "not_duplicate"),
        ("mnli", "neutral"),
        ("qnli", "entailment"),
        ("rte", "not_entailment"),
        ("wnli", "not_entailment"),
        ("stsb", "5"),
    ],
)
def test_first_real_row_has_its_known_label(name: str, label: str) -> None:
    assert next(Catalogue(real_rows.folder()).task("glue", name).items([0])).reference == label
