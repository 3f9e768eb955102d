"""Chat messages of a row, as requests to chat models hold them."""

from __future__ import annotations

import re
from base64 import b64decode
from hashlib import sha256
from typing import Any

from services import further_fields
from services.chat_requests.faults import WrongRowError, quoted
from services.chat_requests.strict_json import parse
from services.words import chat, refusals
from touchstone.v1.content_pb2 import Image
from touchstone.v1.dataset_pb2 import ChatMessage, DatasetRow

ROLES = ("system", "developer", "user", "assistant", "tool")
MOST_MESSAGES = 1000
_MOST_NAME = 256
_MOST_CALLS = 128
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_TYPES = ", ".join(kind.removeprefix("image/") for kind in chat.IMAGE_TYPES)
_DATA_URI = re.compile(rf"data:({'|'.join(chat.IMAGE_TYPES)});base64,", re.IGNORECASE)
_DETAILS = ("auto", "low", "high")


def ask(row: DatasetRow, prompt: Any) -> None:
    """Adds the prompt as one user message. Raises WrongRowError."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise WrongRowError('"prompt" must be a string that is not empty. Write the question there, or use "messages".')
    row.messages.add(role="user", content=prompt)


def converse(row: DatasetRow, messages: Any) -> None:
    """Adds messages in OpenAI's form. Texts of parts are joined by line ends where no part is anything else. Raises
    WrongRowError."""
    if not isinstance(messages, list) or not messages:
        raise WrongRowError('"messages" must be an array of objects with "role" and "content", and not empty.')
    if len(messages) > MOST_MESSAGES:
        raise WrongRowError(refusals.too_large("The row", len(messages), MOST_MESSAGES, "messages"))
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            raise WrongRowError(f'Message {place} must be an object with "role" and "content".')
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise WrongRowError(f"The role of message {place} must be one of {', '.join(ROLES)}; it is {quoted(role)}.")
        added = row.messages.add(role=role)
        if isinstance(content, str):
            added.content = content
        elif content is not None or not message.get("tool_calls"):
            _add_parts(added, content, place)
        if len(message) > 2 or not isinstance(content, str):
            _add_calls(added, message, place)
    if not asks(row):
        raise WrongRowError("The messages contain no text. Write the question.")
    if not all(map(chat.is_plain, row.messages)):
        row.has_parts = True
        _check_results(row)


def asks(row: DatasetRow) -> bool:
    return any(message.content.strip() or message.parts or message.tool_calls for message in row.messages)


def _add_parts(message: ChatMessage, parts: Any, place: int) -> None:
    if not isinstance(parts, list) or not parts:
        raise WrongRowError(f"The content of message {place} must be a string or a list of parts.")
    texts: list[str] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "image_url":
            if message.role != "user":
                raise WrongRowError(f"Message {place} has an image. Only messages of the user can have images.")
            message.parts.add(image=_image(part.get("image_url"), place))
            continue
        text = part.get("text") if kind == "text" else None
        if not isinstance(text, str):
            raise WrongRowError(
                f"Message {place} has a part of type {quoted(kind)}. Parts are text and image_url: leave it out."
                if isinstance(kind, str) and kind != "text"
                else f"Message {place} has a text part without text. Leave it out."
            )
        message.parts.add(text=text)
        texts.append(text)
    message.content = "\n".join(texts)
    if len(texts) == len(parts):
        message.ClearField("parts")
    elif sum(part.HasField("image") for part in message.parts) > chat.MOST_IMAGES:
        raise WrongRowError(f"Message {place} has more than {chat.MOST_IMAGES} images. Leave some out.")


def _image(value: Any, place: int) -> Image:
    """Raises WrongRowError unless it is a data URI of a picture of a type that can be sent."""
    where = f"An image of message {place}"
    if not isinstance(value, dict):
        raise WrongRowError(f'{where} must be written as {{"url": "data:image/png;base64,…"}}.')
    url, detail = value.get("url"), value.get("detail", "auto")
    if not isinstance(url, str) or not (found := _DATA_URI.match(url)):
        raise WrongRowError(
            f"{where} must be a data URI, such as data:image/png;base64,…, of type {_TYPES}. It is "
            f"{quoted(url, 40)}. Images behind addresses are not fetched."
        )
    if detail not in _DETAILS:
        raise WrongRowError(f'The "detail" of an image of message {place} must be one of {", ".join(_DETAILS)}.')
    try:
        data = b64decode(url[found.end() :], validate=True)
    except ValueError:
        raise WrongRowError(f"{where} is not valid base64.") from None
    if len(data) > chat.MOST_IMAGE_BYTES:
        raise WrongRowError(f"{refusals.too_large(where, len(data), chat.MOST_IMAGE_BYTES, 'bytes')} Make it smaller.")
    media_type = found[1].lower()
    if (told := chat.image_type(data)) != media_type:
        raise WrongRowError(f"{where} is {told or 'no picture that can be sent'}, but its data URI says {media_type}.")
    digest = sha256(data).hexdigest()
    return Image(
        media_type=media_type,
        data=data,
        detail="" if detail == "auto" else detail,
        size=len(data),
        digest=digest,
    )


def _add_calls(added: ChatMessage, message: dict[str, Any], place: int) -> None:
    """What a message holds in addition to role and content. Leaving any of it out would change the question."""
    for name, value in message.items():
        if name in ("role", "content") or value in _EMPTY:
            continue
        if name == "tool_calls" and added.role == "assistant":
            _read_calls(added, value, place)
        elif name in ("tool_call_id", "name") and added.role == "tool":
            if not isinstance(value, str) or len(value) > _MOST_NAME:
                raise WrongRowError(
                    f"{quoted(name)} of message {place} must be a string of up to {_MOST_NAME} characters."
                )
            setattr(added, name, value)
        elif name in ("tool_calls", "tool_call_id"):
            whose = "the assistant" if name == "tool_calls" else "a tool"
            raise WrongRowError(f"Message {place} has {quoted(name)}, which only messages of {whose} have.")
        else:
            why = 'Write it as "tool_calls".' if name == "function_call" else "It would not be sent. Leave it out."
            raise WrongRowError(f"Message {place} has {quoted(name)}. {why}")


def _read_calls(added: ChatMessage, value: Any, place: int) -> None:
    if not isinstance(value, list) or len(value) > _MOST_CALLS:
        raise WrongRowError(f'"tool_calls" of message {place} must be a list of up to {_MOST_CALLS} calls.')
    for call in value:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type", "function") != "function":
            raise WrongRowError(
                f'A tool call of message {place} must be {{"id": …, "type": "function", "function": …}}.'
            )
        own, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        if not isinstance(own, str) or not 0 < len(own) <= _MOST_NAME:
            raise WrongRowError(f'A tool call of message {place} must have an "id" of up to {_MOST_NAME} characters.')
        if not isinstance(name, str) or not further_fields.FUNCTION_NAME.fullmatch(name):
            raise WrongRowError(
                f"A tool call of message {place} must name its function in up to 64 letters, digits, _ and -; it is "
                f"{quoted(name, 40)}."
            )
        if not isinstance(arguments, str) or not isinstance(
            parse((arguments or "{}").encode(), "argument of a tool call"), dict
        ):
            raise WrongRowError(
                f'The "arguments" of a tool call of message {place} must be a JSON object, written as a string.'
            )
        if any(own == other.id for other in added.tool_calls):
            raise WrongRowError(
                f"Two tool calls of message {place} have the id {quoted(own, 40)}. Give each call an id of its own, "
                'and each result the "tool_call_id" of its call.'
            )
        added.tool_calls.add(id=own, name=name, arguments=arguments)


def _check_results(row: DatasetRow) -> None:
    """A result belongs to a call before it; providers refuse others."""
    called: set[str] = set()
    for place, message in enumerate(row.messages, start=1):
        called.update(call.id for call in message.tool_calls)
        if message.tool_call_id and message.tool_call_id not in called:
            raise WrongRowError(
                f"Message {place} is the result of the tool call {quoted(message.tool_call_id, 40)}, which no message "
                "before it makes."
            )
