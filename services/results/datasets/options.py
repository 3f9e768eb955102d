"""The name and the owner of a dataset."""

from __future__ import annotations

from collections.abc import Collection

from services.errors import InvalidRequestError
from services.rpc import Identity
from services.words import scorers, sentences
from services.words.limits import EXPIRY_S
from touchstone.v1 import dataset_pb2, scoring_pb2, suite_pb2, token_pb2

NAME_LENGTH = 200


def checked(asked: dataset_pb2.DatasetOptions, caller: Identity) -> dataset_pb2.DatasetOptions:
    """The options with the name without folders and the owner. Raises InvalidRequestError for an invalid name or
    owner."""
    return _checked(asked, asked.name.replace("\\", "/").rpartition("/")[2], caller)


def checked_hub(
    asked: dataset_pb2.DatasetOptions, source: suite_pb2.DataSource, caller: Identity
) -> dataset_pb2.DatasetOptions:
    """The same for a split of a Hub dataset, which is called after it unless it has a name."""
    found = _checked(asked, asked.name or f"{source.dataset}/{source.config or 'default'}/{source.split}", caller)
    found.format = dataset_pb2.Dataset.FORMAT_HUB
    return found


def checked_expiry(seconds: int) -> int:
    """Raises InvalidRequestError for a time that is too short or too long."""
    if not EXPIRY_S[0] <= seconds <= EXPIRY_S[1]:
        raise InvalidRequestError(sentences.between("expires_after_s", *EXPIRY_S), "expires_after_s")
    return seconds


def require_scorer(scoring: scoring_pb2.Scoring, plugged: Collection[str]) -> None:
    """Raises InvalidRequestError for a scorer that is neither built in nor one of plug-ins. What else a scoring says is
    looked at where the file is read."""
    option, sentence = scorers.problem(scoring, plugged)
    if option == "scorer":
        raise InvalidRequestError(sentence, "scoring.scorer")


def _checked(asked: dataset_pb2.DatasetOptions, name: str, caller: Identity) -> dataset_pb2.DatasetOptions:
    if asked.project_id < 0:
        raise InvalidRequestError(sentences.at_least("project_id", 0, zero="no project"), "project_id")
    found = dataset_pb2.DatasetOptions()
    found.CopyFrom(asked)
    found.name = _name(name)
    found.owner = _owner(asked, caller)
    return found


def _name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH:
        raise InvalidRequestError(
            f"The name must have between 1 and {NAME_LENGTH} characters; it has {len(name):,}.", "name"
        )
    if not name.isprintable():
        raise InvalidRequestError("The name has unprintable characters. Rename the file.", "name")
    return name


def _owner(asked: dataset_pb2.DatasetOptions, caller: Identity) -> str:
    return (asked.owner or caller.user) if caller.role == token_pb2.ROLE_SERVICE else caller.user
