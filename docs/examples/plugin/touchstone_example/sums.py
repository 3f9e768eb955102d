"""Sums of two numbers: a suite whose rows come with the package, so that it runs without the Hub."""

from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import EXACT_MATCH
from services.evaluator.tasks.kinds.free_answer import FreeAnswer

SUITE = "sums"
TITLE = "Sums"
DESCRIPTION = "Sums of two numbers below 1,000."


def rows(split: str) -> list[dict[str, str]]:
    """The rows of a split, the same at each call."""
    first = 0 if split == "test" else 500
    pairs = [(7 * number % 997, 13 * number % 991) for number in range(first + 1, first + 101)]
    return [{"question": f"What is {one} + {other}?", "answer": str(one + other)} for one, other in pairs]


TASKS = (
    FreeAnswer(
        suite=SUITE,
        task="two_numbers",
        title="Two numbers",
        source=Source("touchstone-example", "sums", rows=rows),
        split="test",
        texts={"question": "Question"},
        instruction="Solve the problem.",
        kind="number",
        metrics=(EXACT_MATCH,),
        published_items=100,
    ),
)
