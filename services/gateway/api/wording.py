"""Sentences of the services in the words of REST: fields of the services' messages by the names that a body has."""

from __future__ import annotations

import re

_NAMES = {"context_length": "num_ctx", "extra_json": "custom_config"}
_PATH = re.compile(r"(?<![\w.])(?:spec\.)?sampling\.([a-z_]+)")
_BARE = re.compile(r"(?<![\w.])context_length(?!\w)")


def in_rest(sentence: str) -> str:
    """Set sampling.max_tokens → Set max_tokens."""
    return _BARE.sub(_NAMES["context_length"], _PATH.sub(lambda found: _NAMES.get(found[1], found[1]), sentence))
