"""Prompts of experiments: templates with an id and the hash of their text, those that ship with Touchstone and others.

Templates have the language of datasets, in `services.chat_requests.template`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from services.chat_requests.faults import RefusedError
from services.chat_requests.template import Template
from services.words import chat
from touchstone.v1.dataset_pb2 import DatasetRow

SHIPPED = ("v1", "v2-mentor", "v3-few-shot")
"""Prompts that ask for tips. The text of a version never changes, so that experiments of any two days can be compared:
another text gets another id."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A version of a prompt. Two of them are equal if id and text are."""

    prompt_id: str
    text: str
    """The template: a text for one user message, or a JSON array of messages."""
    template: Template = field(compare=False, repr=False)

    @classmethod
    def parse(cls, prompt_id: str, text: str) -> Prompt:
        """Raises RefusedError for a text that is not a template."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise RefusedError("The template contains half a character. Remove it.", "template") from error
        return cls(prompt_id, text, Template.parse(text))

    @classmethod
    def stored(cls, prompt_id: str, text: str) -> Prompt:
        """One that an experiment holds already, to be shown and written, not filled. It is not checked again: what an
        earlier version took must not be lost because this one would refuse it."""
        return cls(prompt_id, text, Template((), ()))

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal digits."""
        return sha256(self.text.encode()).hexdigest()

    def messages(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The filled messages, in OpenAI's form. Raises WrongRowError for a value that is missing, and for messages
        that are empty or too long."""
        row = DatasetRow()
        self.template.fill(row, values)
        return [chat.written(message) for message in row.messages]


@cache
def shipped(prompt_id: str) -> Prompt:
    """One of SHIPPED. Raises KeyError for any other id."""
    if prompt_id not in SHIPPED:
        raise KeyError(prompt_id)
    return Prompt.parse(prompt_id, data("prompts", f"{prompt_id}.txt").rstrip("\n"))


def data(*path: str) -> str:
    """A file that ships with this package."""
    return resources.files(__package__).joinpath("data", *path).read_text("utf-8")
