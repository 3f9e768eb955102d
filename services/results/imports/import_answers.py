"""The ImportAnswers call: all answers or none."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial

from services.errors import InvalidRequestError
from services.results.imports import store
from services.results.imports.checks import MOST_BYTES, check_answers, check_run
from services.results.storage.database import Database
from touchstone.v1.results_service_pb2 import ImportAnswersRequest, ImportAnswersResponse


async def take(
    database: Database, requests: AsyncIterator[ImportAnswersRequest], owner: str, now: datetime
) -> ImportAnswersResponse:
    """Stores message after message, and drops them all when the stream breaks or one is wrong.

    Raises InvalidRequestError.
    """
    first = await anext(requests, None)
    if first is None:
        raise InvalidRequestError("The first message must describe the run. Set run.", "run")
    run = first.run
    check_run(run)
    if not first.again:
        known = await database.read(lambda c: store.known(c, owner, run.digest))
        if known is not None:
            return ImportAnswersResponse(
                import_id=known.import_id,
                answers=known.answers,
                known=True,
                job_id=known.job_id,
                repeats=known.repeats,
            )
    import_id = str(uuid.uuid4())
    await database.write(lambda c: store.begin(c, import_id, owner, run, now))
    try:
        answers = await _take_all(database, import_id, first, requests)
        # No stream holds an import.
        await database.checkpoint()
    except BaseException:
        # Also when the caller is gone, which cancels this.
        await asyncio.shield(database.write(lambda c: store.discard(c, import_id)))
        raise
    repeats = await database.read(lambda c: store.repeats(c, import_id))
    return ImportAnswersResponse(import_id=import_id, answers=answers, repeats=repeats)


async def _take_all(
    database: Database, import_id: str, first: ImportAnswersRequest, requests: AsyncIterator[ImportAnswersRequest]
) -> int:
    answers = used = 0
    message: ImportAnswersRequest | None = first
    while message is not None:
        check_answers(message.answers, answers, first.run.mode)
        answers += len(message.answers)
        used += message.ByteSize()
        if used > MOST_BYTES:
            raise InvalidRequestError(
                f"An import must have at most {MOST_BYTES // 1024**3} GB. Import fewer tasks at once.", "answers"
            )
        if message.answers:
            await database.write(partial(store.add, import_id=import_id, answers=message.answers))
        message = await anext(requests, None)
    if not answers:
        raise InvalidRequestError("The import has no answers.", "answers")
    await database.write(lambda c: store.finish(c, import_id, answers, used))
    return answers
