"""What leaderboards rank, with the names and aliases that users give."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results import paging
from services.results.storage.database import Connection, first_row, query
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from services.words import refusals
from services.words.jobs import require_project
from touchstone.v1 import results_service_pb2 as pb

JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SHORT = 12
"""Digits of a hash that are shown."""

_NAME = re.compile(r"[A-Za-z0-9._-]{0,64}")
_LISTED = 5
"""Configurations that a refusal names."""
_PREFIX = re.compile(r"[0-9a-f]{8,63}")
_SHARING = (
    "configuration IN (SELECT configuration FROM run_scores WHERE suite IN "
    "(SELECT suite FROM run_scores WHERE configuration = $configuration))"
)
"""SQL: configurations that share a suite with this one, so that their names must differ."""


def is_prefix(text: str) -> bool:
    """Whether a text may be the beginning of a configuration's hash."""
    return _PREFIX.fullmatch(text) is not None


def list_configurations(
    connection: Connection, request: pb.ListConfigurationsRequest, visible: Visibility = EVERYTHING
) -> pb.ListConfigurationsResponse:
    """Newest run first. Raises InvalidRequestError for a bad page or project."""
    require_project(request.project_id)
    size = paging.page_size(request.page_size, default=100, most=500)
    filter_ = paging.page_filter(request)
    after = paging.decode_token(request.page_token, filter_, (int, str)) or (None, None)
    found = _read(
        connection,
        visible,
        project_id=request.project_id,
        model=request.model,
        named=request.named,
        after_at=paging.time_of(after[0]) if after[0] is not None else None,
        after_configuration=after[1],
        size=size + 1,
    )
    page, token = paging.fill_page(found, size, filter_, lambda c: [c.last_run_at.ToMicroseconds(), c.configuration])
    return pb.ListConfigurationsResponse(configurations=page, next_page_token=token)


def name_configuration(
    connection: Connection,
    request: pb.NameConfigurationRequest,
    caller: Identity,
    now: datetime,
    visible: Visibility = EVERYTHING,
) -> pb.Configuration:
    """Sets or removes a name and an alias; an alias moves here from the suite's configuration that has it.

    The configuration is named by its hash or the hash's first 8 digits or more. Raises NotFoundError without a complete
    run, PermissionDeniedError when the caller has none of its runs or none of those that the alias would be taken from,
    InvalidRequestError for an invalid name, ConflictError for a name that another configuration of the suite has.
    """
    known = _one(connection, request.configuration, visible)
    if known is None:
        raise NotFoundError(
            f"{refusals.not_found('Configuration', request.configuration)}. Use a hash from a leaderboard."
        )
    _require_own(connection, known.configuration, caller)
    for field in ("name", "alias"):
        if request.HasField(field):
            _check(connection, field, getattr(request, field))
    name = request.name if request.HasField("name") else known.name
    alias = request.alias if request.HasField("alias") else known.alias
    if name and name == alias:
        raise InvalidRequestError("The name and the alias must differ: a name stays, an alias moves.", "alias")
    others = {"configuration": known.configuration, "name": name, "alias": alias}
    holder = first_row(
        connection,
        f"SELECT configuration FROM configuration_names WHERE configuration <> $configuration AND {_SHARING} "
        "AND (($name <> '' AND $name IN (name, alias)) OR ($alias <> '' AND $alias = name)) LIMIT 1",
        others,
    )
    if holder is not None:
        which = "Another configuration" if visible.owner else f"Configuration {holder[0]}"
        raise ConflictError(
            f"{which} of this suite already has this name. Choose another name, or rename that configuration."
        )
    by = {"by": caller.user, "at": now}
    for held_by in _holders(connection, known.configuration, alias):
        _require_own(connection, held_by, caller, "The configuration with this alias" if visible.owner else "")
        connection.execute(
            "UPDATE configuration_names SET alias = '', named_by = $by, named_at = $at WHERE configuration = $held_by",
            {"held_by": held_by} | by,
        )
        known.alias_taken_from.append(held_by)
    connection.execute(
        "INSERT INTO configuration_names VALUES ($configuration, $name, $alias, $by, $at) "
        "ON CONFLICT DO UPDATE SET name = excluded.name, alias = excluded.alias, named_by = excluded.named_by, "
        "named_at = excluded.named_at",
        others | by,
    )
    known.name, known.alias = name, alias
    return known


def _check(connection: Connection, field: str, text: str) -> None:
    """Raises InvalidRequestError for an invalid name or alias."""
    if not _NAME.fullmatch(text):
        raise InvalidRequestError(f'{field} must have at most 64 characters: letters, digits, ".", "_" and "-".', field)
    if JOB_ID.fullmatch(text):
        raise InvalidRequestError(f"{text!r} looks like a job id. Choose another {field}.", field)
    if text and first_row(connection, "SELECT 1 FROM jobs WHERE model = $text LIMIT 1", {"text": text}):
        raise InvalidRequestError(
            f"{text!r} is already the id of a model. Choose another {field}.",
            field,
        )


def _holders(connection: Connection, configuration: str, alias: str) -> list[str]:
    """Other configurations of the suite that have the alias."""
    rows = connection.execute(
        "SELECT configuration FROM configuration_names WHERE configuration <> $configuration AND $alias <> '' "
        f"AND alias = $alias AND {_SHARING} ORDER BY configuration",
        {"configuration": configuration, "alias": alias},
    ).fetchall()
    return [held_by for (held_by,) in rows]


def _require_own(connection: Connection, configuration: str, caller: Identity, called: str = "") -> None:
    if caller.is_admin:
        return
    own = first_row(
        connection,
        "SELECT 1 FROM run_scores WHERE configuration = $configuration AND owner = $owner LIMIT 1",
        {"configuration": configuration, "owner": caller.user},
    )
    if own is None:
        raise PermissionDeniedError(
            f"{called or f'Configuration {configuration}'} was run by other users. Only a user who has run it or an "
            "admin may name it."
        )


def _one(connection: Connection, configuration: str, visible: Visibility) -> pb.Configuration | None:
    """By its hash, or by a unique beginning of it."""
    found = _read(connection, visible, configuration=configuration, size=1) if configuration else []
    if not found and is_prefix(configuration):
        found = _read(connection, visible, prefix=configuration, size=_LISTED)
    if len(found) > 1:
        listed = ", ".join(sorted(one.configuration[: SHORT + len(configuration)] for one in found))
        raise InvalidRequestError(
            f"Several configurations start with {configuration!r}: {listed}. Give more digits.", "configuration"
        )
    return found[0] if found else None


def _read(connection: Connection, visible: Visibility, project_id: int = 0, **asked: Any) -> list[pb.Configuration]:
    where = {
        "model": "",
        "configuration": "",
        "prefix": "",
        "named": False,
        "after_at": None,
        "after_configuration": None,
        **asked,
    }
    runs = "FROM current_scores WHERE newest = 1"
    if visible.owner or project_id:
        # The newest of all runs are stored; among some runs they are searched.
        runs = query("runs/own_runs")
        where |= visible.parameters | {"project_id": project_id}
    text = query("runs/list_configurations").format(runs=runs)
    columns = ("configuration", "model", "endpoint", "name", "alias", "job_id", "suite", "run_count")
    found = []
    for *values, last_run_at in connection.execute(text, where).fetchall():
        configuration = pb.Configuration(**dict(zip(columns, values, strict=True)))
        configuration.last_run_at.FromDatetime(last_run_at.replace(tzinfo=UTC))
        found.append(configuration)
    return found
