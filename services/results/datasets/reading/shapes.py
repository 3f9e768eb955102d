"""Kinds of rows that other projects write: what of a row is the question, and what the right answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from services.chat_requests import strict_json
from services.chat_requests.faults import WrongRowError, quoted
from services.results.datasets.reading.row import (
    Row,
    append_choices,
    choices_of,
    listed,
    listed_choices,
    take_choices,
    text,
    transcript,
    turns_of,
)
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
_SANDBOXED = ("sandbox", "files", "setup")
_CHOICE = ", which the scorer choice compares"


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
    """Stanford Alpaca's rows, with the "system" and "history" of LLaMA-Factory, and those of Dolly, which call the
    input "context" and the output "response"."""

    format = Dataset.FORMAT_ALPACA

    def fits(self, row: Row) -> bool:
        return row.has("instruction") and bool(row.first("output", "response"))

    def about(self, row: Row) -> str:
        names = [name for name in ("system", "history", "instruction", *_INPUTS) if row.has(name)]
        right = row.first("output", "response") or "output"
        return f"{_from('prompt', names or ['instruction'])}, reference from {right}{_labelled(row, 'kto_tag')}"

    def question(self, row: Row) -> dict[str, Any]:
        asked = _instructed(row)
        right = row.first("output", "response") or "output"
        return asked | {"reference": None if _rejected(row, "kto_tag") else row.answer(right)}


class ShareGPT:
    """Conversations with "from" and "value". The reader takes the last message of the assistant as the reference."""

    format = Dataset.FORMAT_SHAREGPT

    def fits(self, row: Row) -> bool:
        return row.has("conversations") and not row.has("chosen", "rejected")

    def about(self, row: Row) -> str:
        return "prompt from conversations, reference from the last message of gpt"

    def question(self, row: Row) -> dict[str, Any]:
        return {"messages": _conversation(row)}


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
    """Rows for fine-tuning, of texts or of messages. A completion that TRL's "label" calls wrong becomes metadata."""

    format = Dataset.FORMAT_PROMPT_COMPLETION

    def fits(self, row: Row) -> bool:
        return row.has("prompt", "completion")

    def about(self, row: Row) -> str:
        return f"prompt from prompt, reference from completion{_labelled(row, 'label')}"

    def question(self, row: Row) -> dict[str, Any]:
        asked = _prompted(row, "prompt")
        right = None if _rejected(row, "label") else _said(row.answer("completion"), "completion")
        return asked | {"reference": right}


class QuestionAnswer:
    """Questions with an answer or several right ones, as SQuAD has them, too, and questions with choices: a list of
    them, as MMLU and ARC have, or one column for each letter."""

    format = Dataset.FORMAT_QUESTION_ANSWER

    def fits(self, row: Row) -> bool:
        return row.has("question") and bool(_answers(row))

    def about(self, row: Row) -> str:
        columns = choices_of(row)
        names = [*filter(row.has, _PASSAGES), "question", *columns]
        right = f"reference from {_answers(row) or 'answer'}"
        return f"{_from('prompt', names)}, {right}{_CHOICE if columns else ''}"

    def question(self, row: Row) -> dict[str, Any]:
        if not (name := _answers(row)):
            raise WrongRowError('The row has neither "answer" nor "answers". Add one, with null if there is no answer.')
        prompt = _asked(row, "question")
        for passage in _PASSAGES:
            if context := text(row.take(passage), passage):
                prompt = f"{context}\n\n{prompt}"
        asked: dict[str, Any] = {"prompt": prompt}
        choices = take_choices(row)
        right = row.answer(name)
        if choices.texts:
            append_choices(asked, choices.texts)
            return asked | {"reference": choices.letter(right)}
        return asked | {"reference": _several(right) if name == "answers" or isinstance(right, Mapping) else right}


class Preferences:
    """Rows for DPO: the chosen answer is the right one. OpenAI calls it "preferred_output"."""

    format = Dataset.FORMAT_DPO

    def fits(self, row: Row) -> bool:
        return row.has("chosen", "rejected") or row.has("input", *_OPENAI)

    def about(self, row: Row) -> str:
        if not row.has("chosen") and row.has(_OPENAI[0]):
            return f"prompt from input, reference from {_OPENAI[0]}; {_OPENAI[1]} is metadata"
        source = row.first("prompt", "conversations", "question") or "chosen"
        names = [source]
        if source == "chosen" and row.has("instruction"):
            names = ["instruction", *filter(row.has, _INPUTS)]
        if row.has("system") and source in ("question", "conversations"):
            names.insert(0, "system")
        return f"{_from('prompt', names)}, reference from chosen; rejected is metadata"

    def question(self, row: Row) -> dict[str, Any]:
        if not row.has("chosen") and row.has(_OPENAI[0]):
            return _request(row) | {"reference": _said(row.answer(_OPENAI[0]), _OPENAI[0])}
        chosen = row.answer("chosen")
        turns = turns_of(chosen)
        if row.has("prompt"):
            asked = _prompted(row, "prompt")
        elif row.has("conversations"):
            asked = {"messages": _conversation(row)}
        elif row.has("question"):
            system = text(row.take("system"), "system")
            asked = _begun(system, [{"role": "user", "content": _asked(row, "question")}])
        elif row.has("instruction"):
            asked = _instructed(row)
        else:
            turns = turns or transcript(chosen)
            if not turns or len(turns) < 2:
                raise WrongRowError('The row has no "prompt". Add it, or write "chosen" as a list of messages.')
            asked = {"messages": turns[:-1]}
        return asked | {"reference": _said(turns or chosen, "chosen")}


class Inspect:
    """Samples of Inspect. Choices follow the question, each with its letter."""

    format = Dataset.FORMAT_INSPECT

    def fits(self, row: Row) -> bool:
        return row.has("input", "target")

    def about(self, row: Row) -> str:
        if row.get("choices"):
            return f"prompt from input and choices, reference from target{_CHOICE}"
        return "prompt from input, reference from target"

    def question(self, row: Row) -> dict[str, Any]:
        for name in _SANDBOXED:
            if row.get(name):
                raise WrongRowError(f'The sample has "{name}", and Touchstone has no sandbox. Leave the sample out.')
        asked = _prompted(row, "input")
        target = row.answer("target")
        if choices := listed_choices(row.take("choices")):
            if isinstance(target, list) and len(target) > 1:
                raise WrongRowError("The sample has several right choices, which must all be named. Keep one target.")
            append_choices(asked, choices)
        if (own := row.take("id")) is not None:
            asked["custom_id"] = own
        return asked | {"reference": target}


# -- parts of rows -------------------------------------------------------------------------------------------------

_INPUTS = ("input", "context")
"""What an instruction is about."""
_PASSAGES = ("context", "passage")
"""What a question is about."""
_OPENAI = ("preferred_output", "non_preferred_output")


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


def _begun(system: str, turns: list[Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": system}, *turns] if system else turns}


def _instructed(row: Row) -> dict[str, Any]:
    """The messages of an instruction, its input and what came before. Raises WrongRowError."""
    prompt = _asked(row, "instruction")
    for name in _INPUTS:
        if more := text(row.take(name), name):
            prompt = f"{prompt}\n\n{more}"
    turns = [{"role": "user", "content": prompt}]
    history = listed(row.take("history"))
    for turn in reversed(history or []):
        if not isinstance(turn, list) or len(turn) != 2:
            raise WrongRowError('"history" must be a list of pairs: a question and its answer.')
        turns[:0] = [{"role": "user", "content": turn[0]}, {"role": "assistant", "content": turn[1]}]
    return _begun(text(row.take("system"), "system"), turns)


def _conversation(row: Row) -> list[Any]:
    """The messages of ShareGPT. Raises WrongRowError."""
    turns = listed(row.take("conversations"))
    if not turns:
        raise WrongRowError('"conversations" must be a list of messages with "from" and "value", and not empty.')
    if row.get("tools") not in (None, "", "[]", []):
        raise WrongRowError('The row has "tools", which ShareGPT writes as a text. Write it as "messages".')
    row.take("tools")
    messages = [_turn(turn, place) for place, turn in enumerate(turns, start=1)]
    return list(_begun(text(row.take("system"), "system"), messages)["messages"])


def _request(row: Row) -> dict[str, Any]:
    """The messages and tools of OpenAI's "input". Raises WrongRowError."""
    asked = row.take("input")
    turns = turns_of(asked.get("messages")) if isinstance(asked, Mapping) else None
    if not turns:
        raise WrongRowError('"input" must be an object with a list of "messages".')
    tools = asked.get("tools")
    return {"messages": turns} | ({"tools": tools} if tools else {})


def _turn(turn: Any, place: int) -> dict[str, Any]:
    if not isinstance(turn, dict):
        raise WrongRowError(f'Message {place} must be an object with "from" and "value".')
    who = turn.get("from", turn.get("role"))
    if not isinstance(who, str) or who not in _ROLES:
        raise WrongRowError(f"Message {place} is from {quoted(who, 20)}, and must be from one of {', '.join(_ROLES)}.")
    return {"role": _ROLES[who], "content": turn.get("value", turn.get("content"))}


def _said(value: Any, name: str) -> Any:
    """An answer: a value, or the content of a message or of the last of several. Raises WrongRowError."""
    turns = turns_of(value)
    last = turns[-1] if turns else value
    if not isinstance(last, Mapping):
        return value
    if "from" in last and "role" not in last:
        last = _turn(last, 1)
    if last.get("role", "assistant") != "assistant" or not isinstance(last.get("content"), str):
        raise WrongRowError(f"The last message of {quoted(name)} must be the assistant's, with a text.")
    return last["content"]


def _labelled(row: Row, label: str) -> str:
    return f" unless {label} is false" if row.has(label) else ""


def _rejected(row: Row, label: str) -> bool:
    """Whether the row calls its answer wrong. A 0 may be a class."""
    value = row.get(label)
    return value is False or (isinstance(value, str) and value.strip().casefold() == "false")


def _answers(row: Row) -> str:
    return row.first("answer", "answers") or (row.name("answerkey") if choices_of(row) else "")


def _several(value: Any) -> Any:
    """The different answers of a list, of SQuAD's "text" or of TriviaQA's "aliases", also as JSON; one answer as it
    is."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = (listed(f"[{value}]") or [value])[0]
    if isinstance(value, Mapping) and "text" in value:
        value = value["text"]
    elif isinstance(value, Mapping) and "value" in value and isinstance(value.get("aliases", []), list):
        value = [value["value"], *value.get("aliases", [])]
    if (found := listed(value)) is None:
        return value
    answers = [each["text"] if isinstance(each, Mapping) and "text" in each else each for each in found]
    return list({strict_json.dump(each): each for each in answers}.values()) or None


SHAPES: tuple[Shape, ...] = (
    Alpaca(),
    ShareGPT(),
    OpenAIEvals(),
    PromptCompletion(),
    QuestionAnswer(),
    Preferences(),
    Inspect(),
)
