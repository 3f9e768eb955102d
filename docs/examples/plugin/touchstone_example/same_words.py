"""A scorer of uploaded rows: the answer has the words of the reference, in any order."""

from collections.abc import Mapping, Sequence

from services.evaluator.answers.scorers.scorer import Scorer, as_text, mean, whole


def _judge(answer: str, answers: Sequence[str]) -> Mapping[str, float]:
    """The statistics of an answer against all right ones; the best one counts."""
    words = sorted(answer.lower().split())
    return {"correct": float(any(words == sorted(right.lower().split()) for right in answers))}


SCORER = Scorer(
    name="same_words",
    title="same words",
    version="same_words-1",  # change it with anything that moves a score
    metrics=(mean("same_words", "correct"),),
    statistics=("correct",),
    right=as_text,  # takes a text, a number or a Boolean as the reference
    read=whole,  # the whole response without its reasoning
    judge=_judge,
)
