"""A page's form with files, read whole: files so small that they become texts of the form."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from services.errors import InvalidRequestError
from services.gateway import context
from services.gateway.access.auth import CSRF_FIELD
from services.gateway.uploads.body import chunks, clean_name, require_own
from services.gateway.uploads.parts import Part, Parts, boundary, disposition, is_form
from services.words.refusals import counted

MOST_FIELDS = 2_000


@dataclass(frozen=True, slots=True)
class File:
    """A chosen file. `data` is None if there was no room for it."""

    name: str
    data: bytes | None


async def received(request: Request, names: Collection[str], most: int) -> tuple[FormData, dict[str, list[File]]]:
    """The form's texts, and its chosen files by the names of their fields, which are `names`. All texts together have
    at most `most` bytes, and so have all files: one that is too large arrives without its data, so that the page can
    say so and keep the texts.

    Raises InvalidRequestError for a form that is malformed, PermissionDeniedError for another site's form,
    LimitReachedError, and HTTPException: 408, 415, and 413 for too large texts and for an upload that is too large
    whatever it holds.
    """
    kind = request.headers.get("content-type", "")
    if not is_form(kind):
        raise HTTPException(415, "The page is too old to send this. Reload it, then try again.")
    ctx = context.of(request)
    texts: list[tuple[str, str | UploadFile]] = []
    files: dict[str, list[File]] = {}
    text_bytes = file_bytes = 0
    with ctx.uploads.slot(context.identity(request).user):
        parts = Parts(chunks(request, ctx.settings.upload_max_bytes, ctx.settings.upload_idle_s), boundary(kind))
        fields = 0
        while isinstance(event := await parts.next(), Part):
            fields += 1
            if fields > MOST_FIELDS:
                raise InvalidRequestError(f"The form has more than {counted(MOST_FIELDS, 'field')}.")
            name, file_name = disposition(event)
            if file_name is not None and name not in names:
                raise InvalidRequestError(f"{name[:80]!r} is not a field for files.")
            data = await _data(parts, most - (text_bytes if file_name is None else file_bytes))
            if file_name is not None:
                file_bytes += len(data or b"")
                if file_name or data != b"":
                    files.setdefault(name, []).append(File(clean_name(file_name, "file"), data))
                continue
            if data is None:
                raise HTTPException(413, f"The form has more than {counted(most, 'byte')}.")
            text_bytes += len(data)
            texts.append((name, _text(name, data)))
    form = FormData(texts)
    require_own(request, str(form.get(CSRF_FIELD, "")))
    return form, files


async def _data(parts: Parts, most: int) -> bytes | None:
    """A part's data. None if it has more than `most` bytes; the rest is then read and dropped."""
    held = bytearray()
    size = 0
    while isinstance(event := await parts.next(), bytes):
        size += len(event)
        if size <= most:
            held += event
        else:
            held.clear()
    return bytes(held) if size <= most else None


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{name[:80]} is not UTF-8.") from error
