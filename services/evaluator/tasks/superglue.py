"""SuperGLUE (Wang et al. 2019) as published on the Hub, evaluated on its validation splits: the test labels are not
public, except for the two diagnostic sets, which are not part of the suite's score.

Log-likelihood mode follows lm_eval 0.4.13, with two exceptions that are wrong there: MultiRC, whose label 1 selects
"no", and ReCoRD, which no longer loads.
"""

from __future__ import annotations

import pyarrow as pa

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY, EXACT_MATCH, MACRO_F1, MATTHEWS
from services.evaluator.tasks import superglue_rows as rows
from services.evaluator.tasks.kinds.definition import Definition
from services.evaluator.tasks.kinds.free_answer import FreeAnswer
from services.evaluator.tasks.kinds.text import Classification
from touchstone.v1.suite_pb2 import MetricSpec, Weighting

SUITE = "superglue"
TITLE = "SuperGLUE"
DESCRIPTION = "Eight harder tasks on English texts: questions on passages, causes, inference, words in context."
WEIGHTING = Weighting.WEIGHTING_TASKS

_REVISION = "3de24cf8022e94f4ee4b9d55a6f539891524d646"
_NO_YES = ("no", "yes")
_ENTAILMENT = ("entailment", "not_entailment")
_TEXT, _INTEGER = pa.string(), pa.int64()
_INFERENCE = "Decide whether the hypothesis follows from the text."
_TRUE_OR_FALSE = "\nQuestion: {} True or False?\nAnswer:"


def _source(config: str) -> Source:
    return Source("aps/super_glue", config, _REVISION)


TASKS: tuple[Definition, ...] = (
    Classification(
        suite=SUITE,
        task="boolq",
        title="BoolQ",
        source=_source("boolq"),
        texts={"passage": "Passage", "question": "Question"},
        instruction="Answer the question from the passage with yes or no.",
        labels=_NO_YES,
        metrics=(ACCURACY,),
        published_items=3270,
        context="{passage}\nQuestion: {question}?\nAnswer:",
        continuations=_NO_YES,
    ),
    Classification(
        suite=SUITE,
        task="cb",
        title="CommitmentBank",
        source=_source("cb"),
        texts={"premise": "Premise", "hypothesis": "Hypothesis"},
        instruction=(
            "Decide what whoever speaks in the premise holds of the hypothesis: entailment if it is true, "
            "contradiction if it is false, neutral if neither can be told."
        ),
        labels=("entailment", "contradiction", "neutral"),
        metrics=(ACCURACY, MACRO_F1),
        published_items=56,
        context="{premise}\nQuestion: {hypothesis}. True, False, or Neither?\nAnswer:",
        continuations=("True", "False", "Neither"),
    ),
    Classification(
        suite=SUITE,
        task="copa",
        title="COPA",
        source=_source("copa"),
        columns={**dict.fromkeys(("premise", "choice1", "choice2", "question"), _TEXT), "label": _INTEGER},
        prepare=rows.copa,
        texts={"premise": "Premise", "asked": "Wanted", "choice1": "choice1", "choice2": "choice2"},
        instruction="Decide which choice is more plausibly the cause, or the effect, of the premise.",
        labels=("choice1", "choice2"),
        metrics=(ACCURACY,),
        published_items=100,
        context="{begun}",
        continuations=("{continued1}", "{continued2}"),
    ),
    Classification(
        suite=SUITE,
        task="multirc",
        title="MultiRC",
        source=_source("multirc"),
        columns={
            **dict.fromkeys(("paragraph", "question", "answer"), _TEXT),
            "idx": pa.struct([("paragraph", _INTEGER), ("question", _INTEGER)]),
            "label": _INTEGER,
        },
        prepare=rows.multirc,
        texts={"paragraph": "Passage", "question": "Question", "answer": "Proposed answer"},
        instruction=(
            "Decide whether the proposed answer to the question is right according to the passage. Other answers to "
            "the same question may be right, too."
        ),
        labels=_NO_YES,
        metrics=(
            MetricSpec(metric="f1a", positive_label="yes"),
            MetricSpec(metric="exact_match", rule=MetricSpec.RULE_ALL, statistic="correct", over="question"),
        ),
        published_items=4848,
        optional=True,
        group="{passage_id}",
        statistics={"question": "question_id"},
        context="{paragraph}\nQuestion: {question}\nAnswer:",
        continuations=("{answer}\nIs the answer correct? no", "{answer}\nIs the answer correct? yes"),
    ),
    FreeAnswer(
        suite=SUITE,
        task="record",
        title="ReCoRD",
        source=_source("record"),
        columns={
            **dict.fromkeys(("passage", "query"), _TEXT),
            **dict.fromkeys(("entities", "answers"), pa.list_(_TEXT)),
            "idx": pa.struct([("passage", _INTEGER)]),
        },
        prepare=rows.record,
        texts={"read": "Passage", "query": "Statement", "listed": "Entities"},
        instruction="Find the entity that stands in the statement's place @placeholder, according to the passage.",
        form="is one of the entities.",
        target="answers",
        judge=rows.entity_match,
        metrics=(MetricSpec(metric="f1", rule=MetricSpec.RULE_MEAN, statistic="f1"), EXACT_MATCH),
        published_items=10000,
        optional=True,
        group="{passage_id}",
        context="{told}",
        candidates="entities",
        continuation="  - {before}{candidate}{after}",
    ),
    Classification(
        suite=SUITE,
        task="rte",
        title="RTE",
        source=_source("rte"),
        texts={"premise": "Text", "hypothesis": "Hypothesis"},
        instruction=_INFERENCE,
        labels=_ENTAILMENT,
        metrics=(ACCURACY,),
        published_items=277,
        context="{premise}" + _TRUE_OR_FALSE.format("{hypothesis}"),
        continuations=("True", "False"),
    ),
    Classification(
        suite=SUITE,
        task="wic",
        title="WiC",
        source=_source("wic"),
        columns={
            **dict.fromkeys(("word", "sentence1", "sentence2"), _TEXT),
            **dict.fromkeys(("start1", "end1", "label"), _INTEGER),
        },
        prepare=rows.wic,
        texts={"sentence1": "Sentence 1", "sentence2": "Sentence 2", "word": "Word"},
        instruction="Decide whether the word has the same meaning in both sentences.",
        labels=_NO_YES,
        metrics=(ACCURACY,),
        published_items=638,
        context=(
            "Sentence 1: {sentence1}\nSentence 2: {sentence2}\n"
            "Question: Is the word '{shape}' used in the same way in the two sentences above?\nAnswer:"
        ),
        continuations=_NO_YES,
    ),
    Classification(
        suite=SUITE,
        task="wsc",
        title="WSC",
        source=_source("wsc.fixed"),
        columns={
            **dict.fromkeys(("text", "span1_text", "span2_text"), _TEXT),
            **dict.fromkeys(("span2_index", "label"), _INTEGER),
        },
        prepare=rows.wsc,
        texts={"shown": "Text", "span2_text": "Pronoun", "span1_text": "Candidate"},
        instruction="Decide whether the pronoun between asterisks in the text refers to the candidate.",
        labels=_NO_YES,
        metrics=(ACCURACY,),
        published_items=104,
        context=(
            "Passage: {marked}\n"
            'Question: In the passage above, does the pronoun "*{span2_text}*" refer to "*{span1_text}*"?\nAnswer:'
        ),
        continuations=_NO_YES,
    ),
    Classification(
        suite=SUITE,
        task="axb",
        title="AX-b",
        source=_source("axb"),
        split="test",
        train_split="",
        texts={"sentence1": "Text", "sentence2": "Hypothesis"},
        instruction=_INFERENCE,
        labels=_ENTAILMENT,
        metrics=(MATTHEWS,),
        published_items=1104,
        context="{sentence1}" + _TRUE_OR_FALSE.format("{sentence2}"),
        continuations=("True", "False"),
        beside=True,
        optional=True,
    ),
    Classification(
        suite=SUITE,
        task="axg",
        title="AX-g",
        source=_source("axg"),
        split="test",
        train_split="",
        columns={**dict.fromkeys(("premise", "hypothesis"), _TEXT), **dict.fromkeys(("idx", "label"), _INTEGER)},
        prepare=rows.axg,
        texts={"premise": "Text", "hypothesis": "Hypothesis"},
        instruction=_INFERENCE,
        labels=_ENTAILMENT,
        metrics=(ACCURACY, MetricSpec(metric="gender_parity", rule=MetricSpec.RULE_EQUAL, over="pair", beside=True)),
        published_items=356,
        group="{pair}",
        statistics={"pair": "pair"},
        context="{premise}" + _TRUE_OR_FALSE.format("{hypothesis}"),
        continuations=("True", "False"),
        beside=True,
        optional=True,
    ),
)
