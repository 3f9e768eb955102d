"""GLUE (Wang et al. 2018) as published on the Hub, evaluated on its validation splits: the test labels are not public.

The diagnostic set `ax` is left out: its labels on the Hub are all −1. Contexts and continuations of log-likelihood mode
are those of lm_eval 0.4.13, which has no STS-B.
"""

from __future__ import annotations

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY, MATTHEWS, PEARSON, SPEARMAN, f1
from services.evaluator.tasks.kinds.definition import Row
from services.evaluator.tasks.kinds.text import Classification, Regression
from touchstone.v1.suite_pb2 import Weighting

SUITE = "glue"
TITLE = "GLUE"
DESCRIPTION = "Nine tasks on English sentences: acceptability, sentiment, paraphrase and inference."
WEIGHTING = Weighting.WEIGHTING_TASKS

_REVISION = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = (
    "Decide how the hypothesis relates to the premise: entailment if it follows from the premise, contradiction if it "
    "cannot be true together with it, neutral if it may or may not be true."
)


_INFERENCE_CONTEXT = "{premise}\nQuestion: {claim} True, False or Neither?\nAnswer:"
_NO_YES = ("no", "yes")


def _with_claim(row: Row) -> Row:
    """Adds the hypothesis as a sentence: lm_eval adds a full stop if it has none."""
    claim = row["hypothesis"].strip()
    return {**row, "claim": claim if claim.endswith(".") else f"{claim}."}


def _source(config: str) -> Source:
    return Source("nyu-mll/glue", config, _REVISION)


TASKS: tuple[Classification | Regression, ...] = (
    Classification(
        suite=SUITE,
        task="cola",
        title="CoLA",
        source=_source("cola"),
        texts={"sentence": "Sentence"},
        instruction="Decide whether this is a grammatically acceptable English sentence.",
        labels=("unacceptable", "acceptable"),
        context="{sentence}\nQuestion: Does this sentence make sense?\nAnswer:",
        continuations=_NO_YES,
        metrics=(MATTHEWS, ACCURACY),
        published_items=1043,
    ),
    Classification(
        suite=SUITE,
        task="sst2",
        title="SST-2",
        source=_source("sst2"),
        texts={"sentence": "Review"},
        instruction="Decide whether this piece of a film review is positive or negative about the film.",
        labels=("negative", "positive"),
        context="{sentence}\nQuestion: Is this sentence positive or negative?\nAnswer:",
        continuations=("negative", "positive"),
        metrics=(ACCURACY,),
        published_items=872,
    ),
    Classification(
        suite=SUITE,
        task="mrpc",
        title="MRPC",
        source=_source("mrpc"),
        texts={"sentence1": "Sentence 1", "sentence2": "Sentence 2"},
        instruction="Decide whether these two sentences from the news say the same thing.",
        labels=("not_equivalent", "equivalent"),
        context=(
            "Sentence 1: {sentence1}\nSentence 2: {sentence2}\n"
            "Question: Do both sentences mean the same thing?\nAnswer:"
        ),
        continuations=_NO_YES,
        metrics=(f1("equivalent"), ACCURACY),
        published_items=408,
    ),
    Classification(
        suite=SUITE,
        task="qqp",
        title="QQP",
        source=_source("qqp"),
        texts={"question1": "Question 1", "question2": "Question 2"},
        instruction="Decide whether these two questions ask the same thing, so that one answer would serve both.",
        labels=("not_duplicate", "duplicate"),
        context=(
            "Question 1: {question1}\nQuestion 2: {question2}\nQuestion: Do both questions ask the same thing?\nAnswer:"
        ),
        continuations=_NO_YES,
        metrics=(f1("duplicate"), ACCURACY),
        published_items=40430,
    ),
    Regression(
        suite=SUITE,
        task="stsb",
        title="STS-B",
        source=_source("stsb"),
        texts={"sentence1": "Sentence 1", "sentence2": "Sentence 2"},
        instruction="Rate how similar in meaning these two sentences are, from 0 (unrelated) to 5 (the same meaning).",
        metrics=(PEARSON, SPEARMAN),
        published_items=1500,
    ),
    Classification(
        suite=SUITE,
        task="mnli",
        title="MNLI matched",
        source=_source("mnli"),
        split="validation_matched",
        texts={"premise": "Premise", "hypothesis": "Hypothesis"},
        instruction=_INFERENCE,
        labels=("entailment", "neutral", "contradiction"),
        prepare=_with_claim,
        context=_INFERENCE_CONTEXT,
        continuations=("True", "Neither", "False"),
        metrics=(ACCURACY,),
        published_items=9815,
        score_group="mnli",
    ),
    Classification(
        suite=SUITE,
        task="mnli_mismatched",
        title="MNLI mismatched",
        source=_source("mnli"),
        split="validation_mismatched",
        texts={"premise": "Premise", "hypothesis": "Hypothesis"},
        instruction=_INFERENCE,
        labels=("entailment", "neutral", "contradiction"),
        prepare=_with_claim,
        context=_INFERENCE_CONTEXT,
        continuations=("True", "Neither", "False"),
        metrics=(ACCURACY,),
        published_items=9832,
        score_group="mnli",
        optional=True,
    ),
    Classification(
        suite=SUITE,
        task="qnli",
        title="QNLI",
        source=_source("qnli"),
        texts={"question": "Question", "sentence": "Sentence"},
        instruction=("Decide whether the sentence answers the question: entailment if it does, not_entailment if not."),
        labels=_ENTAILMENT,
        context="{question}\n{sentence}\nQuestion: Does this response answer the question?\nAnswer:",
        continuations=("yes", "no"),
        metrics=(ACCURACY,),
        published_items=5463,
    ),
    Classification(
        suite=SUITE,
        task="rte",
        title="RTE",
        source=_source("rte"),
        texts={"sentence1": "Text", "sentence2": "Hypothesis"},
        instruction="Decide whether the hypothesis follows from the text.",
        labels=_ENTAILMENT,
        context="{sentence1}\nQuestion: {sentence2} True or False?\nAnswer:",
        continuations=("True", "False"),
        metrics=(ACCURACY,),
        published_items=277,
    ),
    Classification(
        suite=SUITE,
        task="wnli",
        title="WNLI",
        source=_source("wnli"),
        texts={"sentence1": "Text", "sentence2": "Hypothesis"},
        instruction="The hypothesis spells out a pronoun of the text. Decide whether it follows from the text.",
        # The reverse of RTE's order.
        labels=("not_entailment", "entailment"),
        context="{sentence1}\nQuestion: {sentence2} True or False?\nAnswer:",
        continuations=("False", "True"),
        metrics=(ACCURACY,),
        published_items=71,
    ),
)
