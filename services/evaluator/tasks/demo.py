"""The bundled suite: our own text in GLUE's schema, so that a fresh installation has something real to run."""

from __future__ import annotations

from services.evaluator import demo
from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY, MATTHEWS, f1
from services.evaluator.tasks.kinds.text import Classification
from touchstone.v1.suite_pb2 import Weighting

SUITE = "demo"
TITLE = "Demo"
DESCRIPTION = "Four small tasks on bundled English text: sentiment, acceptability, entailment and paraphrase."
WEIGHTING = Weighting.WEIGHTING_TASKS

_PAIR = {"sentence1": "Sentence 1", "sentence2": "Sentence 2"}

TASKS: tuple[Classification, ...] = (
    Classification(
        suite=SUITE,
        task="sentiment",
        title="Sentiment",
        source=Source(demo.DATASET, "sentiment"),
        texts={"sentence": "Review"},
        instruction="Decide whether the writer of this review is, on the whole, content: positive or negative.",
        labels=("negative", "positive"),
        context="{sentence}\nQuestion: Is this review positive or negative?\nAnswer:",
        continuations=("negative", "positive"),
        metrics=(ACCURACY,),
        published_items=demo.VALIDATION_ROWS,
    ),
    Classification(
        suite=SUITE,
        task="acceptability",
        title="Acceptability",
        source=Source(demo.DATASET, "acceptability"),
        texts={"sentence": "Sentence"},
        instruction="Decide whether this is a grammatically acceptable English sentence.",
        labels=("unacceptable", "acceptable"),
        context="{sentence}\nQuestion: Does this sentence make sense?\nAnswer:",
        continuations=("no", "yes"),
        metrics=(ACCURACY, MATTHEWS),
        published_items=demo.VALIDATION_ROWS,
    ),
    Classification(
        suite=SUITE,
        task="entailment",
        title="Entailment",
        source=Source(demo.DATASET, "entailment"),
        texts={"sentence1": "Text", "sentence2": "Hypothesis"},
        instruction="Decide whether the hypothesis follows from the text.",
        labels=("entailment", "not_entailment"),
        context="{sentence1}\nQuestion: {sentence2} True or False?\nAnswer:",
        continuations=("True", "False"),
        metrics=(ACCURACY,),
        published_items=demo.VALIDATION_ROWS,
    ),
    Classification(
        suite=SUITE,
        task="paraphrase",
        title="Paraphrase",
        source=Source(demo.DATASET, "paraphrase"),
        texts=_PAIR,
        instruction="Decide whether these two sentences say the same thing.",
        labels=("not_equivalent", "equivalent"),
        context=(
            "Sentence 1: {sentence1}\nSentence 2: {sentence2}\n"
            "Question: Do both sentences mean the same thing?\nAnswer:"
        ),
        continuations=("no", "yes"),
        metrics=(ACCURACY, f1("equivalent")),
        published_items=demo.VALIDATION_ROWS,
    ),
)
