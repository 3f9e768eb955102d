"""How much of a job goes into one batch of a provider's batch API, as the endpoints file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.errors import InvalidRequestError

KINDS = ("openai", "gemini")
"""Kinds of endpoints whose batch API is supported."""
# OpenAI takes 50,000 requests in 200 MB, Gemini 20 MB of requests in one call.
_MOST_ROWS = 50_000
_MOST_MEGABYTES = {"openai": 190, "gemini": 18}
_LEAST_MEGABYTES = 8
"""An uploaded row has at most 4 MB, so that any fits."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """At most `rows` requests and `megabytes` of them in a batch; `at_once` batches under way for each evaluator."""

    rows: int = 5_000
    megabytes: int = 50
    at_once: int = 4

    @property
    def most_bytes(self) -> int:
        return self.megabytes * 1_000_000

    @classmethod
    def usual(cls, kind: str) -> BatchOptions:
        return cls(megabytes=min(cls().megabytes, _MOST_MEGABYTES.get(kind, cls().megabytes)))

    @classmethod
    def read(cls, values: Mapping[str, Any], kind: str) -> BatchOptions:
        """The table `batch` of an endpoint. Raises InvalidRequestError."""
        if kind not in KINDS:
            raise InvalidRequestError(f"batch is only for the kinds {' and '.join(KINDS)}. Remove it.", field="batch")
        usual = cls.usual(kind)
        limits = {"rows": (1, _MOST_ROWS), "megabytes": (_LEAST_MEGABYTES, _MOST_MEGABYTES[kind]), "at_once": (1, 64)}
        for key, value in values.items():
            if key not in limits:
                raise InvalidRequestError(f"batch.{key} is not known. Known keys: {', '.join(limits)}.", field="batch")
            least, most = limits[key]
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise InvalidRequestError(
                    f"batch.{key} must be a whole number between {least} and {most:,}; it is {value!r}.", field="batch"
                )
        return cls(**({"rows": usual.rows, "megabytes": usual.megabytes, "at_once": usual.at_once} | dict(values)))
