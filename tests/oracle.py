"""What stub models answer to a suite's prompts: right, turned round, or as a careless model would."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from services.evaluator.catalogue import Catalogue
from services.evaluator.items.task import Item, Task

Answer = Callable[[Task, Item], str]

NONSENSE = "The weather in the harbour stays mild, and nobody knows why."


def answers(catalogue: Catalogue, suite: str, tasks: Sequence[str], answer: Answer) -> dict[str, str]:
    """Prompt → answer for every item. A prompt that two items share with different answers raises ValueError."""
    found: dict[str, str] = {}
    for name in tasks:
        task = catalogue.task(suite, name)
        for item in task.items(range(task.size())):
            prompt = "\n\n".join(message.content for message in item.messages)
            said = answer(task, item)
            if found.setdefault(prompt, said) != said:
                raise ValueError(f"two items of {name} have one prompt: {prompt}")
    return found


def right(task: Task, item: Item) -> str:
    return task.answer(item.reference)


def inverted(task: Task, item: Item) -> str:
    """The next label; a number mirrored within its scale."""
    if task.scale is not None:
        low, high = task.scale
        return task.answer(f"{high + low - float(item.reference):.6g}")
    place = task.labels.index(item.reference)
    return task.answer(task.labels[(place + 1) % len(task.labels)])


def careless(task: Task, item: Item) -> str:
    """Right four times in five, now and then nonsense; the same at every call for the same item."""
    chance = random.Random(item.hash)
    draw = chance.random()
    if draw < 0.08:
        return NONSENSE
    if task.scale is not None:
        low, high = task.scale
        value = float(item.reference) + chance.uniform(-1.5, 1.5)
        return f"They share much.\n{task.answer(f'{min(high, max(low, value)):.2f}')}"
    if draw < 0.8:
        return f"Let me think about it.\n{right(task, item)}"
    return inverted(task, item)
