"""Sentences of the services in the words of REST: fields of the services' messages by the names that a body has."""

from __future__ import annotations

import re

from services.words.sampling import BY_REST_NAME, PARAMETERS

_RENAMED = {name: one.rest for name, one in PARAMETERS.items() if name not in BY_REST_NAME}
_NAMES = _RENAMED | {"extra_json": "custom_config"}
_PATH = re.compile(r"(?<![\w.])(?:spec\.(?:sampling\.|suite\.|dataset\.)?|sampling\.)([a-z_]+)")
_BARE = re.compile(rf"(?<![\w.])({'|'.join(_RENAMED)})(?!\w)")


def in_rest(sentence: str) -> str:
    """Set sampling.max_tokens → Set max_tokens. spec.suite.limit must be … → limit must be …"""
    for names in (_PATH, _BARE):
        sentence = names.sub(lambda found: _NAMES.get(found[1], found[1]), sentence)
    return sentence
