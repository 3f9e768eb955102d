"""Kinds of rows that other projects write: what of a row is the question, and what the right answer."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, Protocol

from services.chat_requests import strict_json
from services.chat_requests.faults import WrongRowError, quoted
from touchstone.v1.dataset_pb2 import Dataset

_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
}
"""Of ShareGPT, as the roles of chat messages."""
_OF_TASKS = ("choices", "options")
"""Columns that belong to the question: a row with them needs a template."""
_SANDBOXED = ("sandbox", "files", "setup")


class Row:
    """A row's values. Names are the same in upper and lower case. With `keep_answers`, the columns of answers stay:
    the uploader names another reference."""

    def __init__(self, values: dict[str, Any], keep_answers: bool = False) -> None:
        self.values = values
        self._keep_answers = keep_answers
        self._names: dict[str, str] | None = None

    def name(self, wanted: str) -> str:
        """The name as the row writes it, "" if it has no such column."""
        if wanted in self.values:
            return wanted
        if self._names is None:
            self._names = {name.strip().casefold(): name for name in self.values}
        return self._names.get(wanted, "")

    def has(self, *wanted: str) -> bool:
        return all(self.name(one) for one in wanted)

    def get(self, wanted: str) -> Any:
        """None without such a column."""
        return self.values.get(self.name(wanted))

    def take(self, wanted: str) -> Any:
        """The value, which leaves the row. None without such a column."""
        return self.values.pop(self.name(wanted), None)

    def answer(self, wanted: str) -> Any:
        """The value, which leaves the row if it is the reference. Raises WrongRowError without such a column."""
        if not (name := self.name(wanted)):
            raise WrongRowError(f"The row has no {quoted(wanted)}. Add it, with null if there is no answer.")
        return self.values[name] if self._keep_answers else self.values.pop(name)


class Shape(Protocol):
    """One kind of rows."""

    format: Dataset.Format

    def fits(self, row: Row) -> bool:
        """Whether the row's names are those of the kind."""
        ...

    def about(self, row: Row) -> str:
        """What becomes of a row like this one: "prompt from …, reference from …"."""
        ...

    def question(self, row: Row) -> dict[str, Any]:
        """The row's "prompt" or "messages", and its "reference", as plain lines have them; what they are made of leaves
        the row. Raises WrongRowError."""
        ...


class Alpaca:
    """Stanford Alpaca's rows, with the "system" and "history" of LLaMA-Factory."""

    format = Dataset.FORMAT_ALPACA

    def fits(self, row: Row) -> bool:
        return row.has("instruction", "output")

    def about(self, row: Row) -> str:
        return _from(
            "prompt",
            [name for name in ("system", "history", "instruction", "input") if row.has(name)] or ["instruction"],
        ) + (", reference from output")

    def question(self, row: Row) -> dict[str, Any]:
        prompt = _asked(row, "instruction")
        if more := text(row.take("input"), "input"):
            prompt = f"{prompt}\n\n{more}"
        turns = [{"role": "user", "content": prompt}]
        history = listed(row.take("history"))
        for turn in reversed(history or []):
            if not isinstance(turn, list) or len(turn) != 2:
                raise WrongRowError('"history" must be a list of pairs: a question and its answer.')
            turns[:0] = [{"role": "user", "content": turn[0]}, {"role": "assistant", "content": turn[1]}]
        if system := text(row.take("system"), "system"):
            turns.insert(0, {"role": "system", "content": system})
        return {"messages": turns, "reference": row.answer("output")}


class ShareGPT:
    """Conversations with "from" and "value". The reader takes the last message of the assistant as the reference."""

    format = Dataset.FORMAT_SHAREGPT

    def fits(self, row: Row) -> bool:
        return row.has("conversations")

    def about(self, row: Row) -> str:
        return "prompt from conversations, reference from the last message of gpt"

    def question(self, row: Row) -> dict[str, Any]:
        turns = listed(row.take("conversations"))
        if not turns:
            raise WrongRowError('"conversations" must be a list of messages with "from" and "value", and not empty.')
        if row.get("tools"):
            raise WrongRowError('The row has "tools", which ShareGPT writes as a text. Write it as "messages".')
        messages = [_turn(turn, place) for place, turn in enumerate(turns, start=1)]
        if system := text(row.take("system"), "system"):
            messages.insert(0, {"role": "system", "content": system})
        return {"messages": messages}


class OpenAIEvals:
    """Samples of OpenAI's evals."""

    format = Dataset.FORMAT_OPENAI_EVALS

    def fits(self, row: Row) -> bool:
        return row.has("input", "ideal")

    def about(self, row: Row) -> str:
        return "prompt from input, reference from ideal"

    def question(self, row: Row) -> dict[str, Any]:
        return _prompted(row, "input") | {"reference": row.answer("ideal")}


class PromptCompletion:
    """Rows for fine-tuning, of texts or of messages."""

    format = Dataset.FORMAT_PROMPT_COMPLETION

    def fits(self, row: Row) -> bool:
        return row.has("prompt", "completion")

    def about(self, row: Row) -> str:
        return "prompt from prompt, reference from completion"

    def question(self, row: Row) -> dict[str, Any]:
        return _prompted(row, "prompt") | {"reference": _said(row.answer("completion"), "completion")}


class QuestionAnswer:
    """Questions with an answer or several right ones, as SQuAD has them, too."""

    format = Dataset.FORMAT_QUESTION_ANSWER

    def fits(self, row: Row) -> bool:
        return row.has("question") and bool(_answers(row)) and not any(row.has(name) for name in _OF_TASKS)

    def about(self, row: Row) -> str:
        names = [name for name in ("context", "question") if row.has(name)] or ["question"]
        return f"{_from('prompt', names)}, reference from {_answers(row) or 'answer'}"

    def question(self, row: Row) -> dict[str, Any]:
        if not (name := _answers(row)):
            raise WrongRowError('The row has neither "answer" nor "answers". Add one, with null if there is no answer.')
        prompt = _asked(row, "question")
        if context := text(row.take("context"), "context"):
            prompt = f"{context}\n\n{prompt}"
        right = row.answer(name)
        return {"prompt": prompt, "reference": _several(right) if name == "answers" else right}


class Preferences:
    """Rows for DPO: the chosen answer is the right one."""

    format = Dataset.FORMAT_DPO

    def fits(self, row: Row) -> bool:
        return row.has("chosen", "rejected")

    def about(self, row: Row) -> str:
        source = "prompt" if row.has("prompt") else "chosen"
        return f"prompt from {source}, reference from chosen; rejected is metadata"

    def question(self, row: Row) -> dict[str, Any]:
        chosen = row.answer("chosen")
        turns = turns_of(chosen)
        if row.has("prompt"):
            asked = _prompted(row, "prompt")
        elif turns and len(turns) > 1:
            asked = {"messages": turns[:-1]}
        else:
            raise WrongRowError('The row has no "prompt". Add it, or write "chosen" as a list of messages.')
        return asked | {"reference": _said(chosen, "chosen")}


class Inspect:
    """Samples of Inspect. Choices follow the question, each with its letter."""

    format = Dataset.FORMAT_INSPECT

    def fits(self, row: Row) -> bool:
        return row.has("input", "target")

    def about(self, row: Row) -> str:
        if row.get("choices"):
            return "prompt from input and choices, reference from target, which the scorer choice compares"
        return "prompt from input, reference from target"

    def question(self, row: Row) -> dict[str, Any]:
        for name in _SANDBOXED:
            if row.get(name):
                raise WrongRowError(f'The sample has "{name}", and Touchstone has no sandbox. Leave the sample out.')
        asked = _prompted(row, "input")
        target = row.answer("target")
        if choices := _choices(row.take("choices")):
            if isinstance(target, list) and len(target) > 1:
                raise WrongRowError("The sample has several right choices, which must all be named. Keep one target.")
            lines = [f"{letter}) {choice}" for letter, choice in zip(string.ascii_uppercase, choices, strict=False)]
            _append(asked, "\n".join(lines))
        if (own := row.take("id")) is not None:
            asked["custom_id"] = own
        return asked | {"reference": target}


# -- values --------------------------------------------------------------------------------------------------------


def text(value: Any, name: str) -> str:
    """A cell as a text: numbers as written in JSON, null as nothing. Raises WrongRowError."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return strict_json.dump(value)
    raise WrongRowError(f"{quoted(name)} must be a text.")


def listed(value: Any) -> list[Any] | None:
    """A list, also one that a table holds as JSON; None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = strict_json.parse(value.encode())
        except WrongRowError:
            return None
    return value if isinstance(value, list) else None


def turns_of(value: Any) -> list[Any] | None:
    """Messages with roles, also as JSON; None for anything else."""
    turns = listed(value)
    return turns if turns and all(isinstance(turn, dict) and "role" in turn for turn in turns) else None


def _from(what: str, names: list[str]) -> str:
    return f"{what} from {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _asked(row: Row, name: str) -> str:
    """A text that is not blank. Raises WrongRowError."""
    found = text(row.take(name), name)
    if not found.strip():
        raise WrongRowError(f"{quoted(name)} is empty or absent. It must hold the question.")
    return found


def _prompted(row: Row, name: str) -> dict[str, Any]:
    """A text or a list of messages, in the members of a plain line. Raises WrongRowError."""
    if turns := turns_of(row.get(name)):
        row.take(name)
        return {"messages": turns}
    return {"prompt": _asked(row, name)}


def _turn(turn: Any, place: int) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise WrongRowError(f'Message {place} must be an object with "from" and "value".')
    who = turn.get("from", turn.get("role"))
    if not isinstance(who, str) or who not in _ROLES:
        raise WrongRowError(f"Message {place} is from {quoted(who, 20)}, and must be from one of {', '.join(_ROLES)}.")
    return {"role": _ROLES[who], "content": turn.get("value", turn.get("content"))}


def _said(value: Any, name: str) -> Any:
    """An answer: a value, or the content of the last of several messages. Raises WrongRowError."""
    turns = turns_of(value)
    last = turns[-1] if turns else value
    if not isinstance(last, Mapping):
        return value
    if last.get("role", "assistant") != "assistant" or not isinstance(last.get("content"), str):
        raise WrongRowError(f"The last message of {quoted(name)} must be the assistant's, with a text.")
    return last["content"]


def _answers(row: Row) -> str:
    return next((name for name in ("answer", "answers") if row.has(name)), "")


def _several(value: Any) -> Any:
    """The different answers of a list, or of SQuAD's "text", also as JSON; one answer as it is."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = (listed(f"[{value}]") or [value])[0]
    if isinstance(value, Mapping) and "text" in value:
        value = value["text"]
    if (found := listed(value)) is None:
        return value
    answers = [each["text"] if isinstance(each, Mapping) and "text" in each else each for each in found]
    return list({strict_json.dump(each): each for each in answers}.values()) or None


def _choices(value: Any) -> list[str]:
    """As Inspect reads them: a list, or a text with commas or spaces between. Raises WrongRowError."""
    found = listed(value)
    if found is None and isinstance(value, str) and value.strip():
        found = [each.strip() for each in value.split(",")]
        found = found if len(found) > 1 else value.split()
    if len(found or []) > len(string.ascii_uppercase):
        raise WrongRowError(f"The sample has {len(found or []):,} choices. At most 26 have a letter.")
    return [text(each, "choices") for each in found or []]


def _append(asked: dict[str, Any], more: str) -> None:
    if "prompt" in asked:
        asked["prompt"] = f"{asked['prompt']}\n\n{more}"
        return
    last = asked["messages"][-1]
    if not isinstance(last, dict) or not isinstance(last.get("content"), str):
        raise WrongRowError("The last message of the sample must be a text, which the choices follow.")
    asked["messages"] = [*asked["messages"][:-1], last | {"content": f"{last['content']}\n\n{more}"}]


SHAPES: tuple[Shape, ...] = (
    Alpaca(),
    ShareGPT(),
    OpenAIEvals(),
    PromptCompletion(),
    QuestionAnswer(),
    Preferences(),
    Inspect(),
)
