"""What each service may do at NATS: a user by nkey for each, with no more rights than the service needs.

`python -m services.bus keys` makes the keys, and `python -m services.bus rights` writes the users for NATS's
configuration. The tests of the whole installation run with these rights, and fail on any that is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from services.bus import contract
from services.bus.login import inbox

SETUP, GATEWAY, SCHEDULER, RESULTS, EVALUATOR = "setup", "gateway", "scheduler", "results", "evaluator"
REPLICA = "replica"
USERS: Final = (SETUP, GATEWAY, SCHEDULER, RESULTS, REPLICA, EVALUATOR)
"""The services; the reader of the results service's copies; and `python -m services.bus`, which creates the streams."""

_API = "$JS.API"
_ANSWER_EXPIRES = "6m"
"""Longer than anyone waits for an evaluator's answer: see `services.bus.splits`."""
_DATASETS = contract.object_stream(contract.DATASETS)


@dataclass(frozen=True, slots=True)
class Rights:
    """Subjects that a user may publish to and subscribe to. Who `answers` may also answer each request once."""

    publish: Sequence[str]
    subscribe: Sequence[str]
    answers: bool = False


def rights_of(user: str, public: str) -> Rights:
    """Rights of one of USERS with this public key."""
    publish, subscribe = _RIGHTS[user]
    own = f"{inbox(public)}.>"
    # Who asks for a backup uses the key of the results service.
    answers = [own] if user == RESULTS else []
    return Rights(sorted({*publish, *answers}), sorted({*subscribe, own}), answers=user == EVALUATOR)


def users(keys: Mapping[str, Iterable[str]]) -> str:
    """The `authorization` block of NATS's configuration. `keys` has the public keys of each user: several while one
    replaces another."""
    entries = [_entry(user, public) for user in USERS for public in keys.get(user, ())]
    return "authorization {\n  users: [\n" + "".join(entries) + "  ]\n}\n"


def _entry(user: str, public: str) -> str:
    made = rights_of(user, public)
    parts = [f"publish: {{ allow: {_list(made.publish)} }}", f"subscribe: {{ allow: {_list(made.subscribe)} }}"]
    if made.answers:
        parts.append(f'allow_responses: {{ max: 1, expires: "{_ANSWER_EXPIRES}" }}')
    inner = "".join(f"        {part}\n" for part in parts)
    return f"    # {user}\n    {{\n      nkey: {public}\n      permissions: {{\n{inner}      }}\n    }}\n"


def _list(subjects: Sequence[str]) -> str:
    return "[" + "".join(f"\n          {json.dumps(subject)}" for subject in subjects) + "\n        ]"


# -- parts of rights ---------------------------------------------------------------------------------------------------


def _bucket(name: str) -> str:
    return f"KV_{name}"


def _read(*streams: str) -> list[str]:
    """Single messages, by the stream's leader."""
    return [f"{_API}.STREAM.MSG.GET.{stream}" for stream in streams]


def _list_of(*streams: str) -> list[str]:
    """Messages one after the other, by consumers that nobody else uses; and single ones."""
    found = _read(*streams)
    for stream in streams:
        found += [
            f"{_API}.CONSUMER.CREATE.{stream}",
            f"{_API}.CONSUMER.INFO.{stream}.*",
            f"{_API}.CONSUMER.MSG.NEXT.{stream}.*",
        ]
    return found


def _consume(stream: str, consumer: str) -> list[str]:
    """Messages by a consumer that stays, each until it is acknowledged."""
    return [
        f"{_API}.CONSUMER.DURABLE.CREATE.{stream}.{consumer}",
        f"{_API}.CONSUMER.INFO.{stream}.{consumer}",
        f"{_API}.CONSUMER.MSG.NEXT.{stream}.{consumer}",
        f"$JS.ACK.{stream}.{consumer}.>",
    ]


def _follow(stream: str, consumer: str) -> list[str]:
    """The same, by a consumer that may be replaced."""
    return [*_consume(stream, consumer), f"{_API}.CONSUMER.DELETE.{stream}.{consumer}"]


def _write(*buckets: str) -> list[str]:
    return [contract.kv_subject(bucket, ">") for bucket in buckets]


def _purge(*streams: str) -> list[str]:
    return [f"{_API}.STREAM.PURGE.{stream}" for stream in streams]


def _aside(service: str) -> str:
    """What the service cannot handle."""
    return f"{contract.set_aside_subjects().removesuffix('>')}{service}.>"


def _all_streams() -> list[str]:
    return [str(config.name) for config in contract.stream_configs(results_max_bytes=2**20)]


_INFO = f"{_API}.STREAM.INFO.*"
_READ_DATASETS = [*_read(_DATASETS), f"{_API}.DIRECT.GET.{_DATASETS}"]

_RIGHTS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    SETUP: (
        [_INFO, *(f"{_API}.STREAM.{verb}.{stream}" for verb in ("CREATE", "UPDATE") for stream in _all_streams())],
        [],
    ),
    GATEWAY: (
        [
            _INFO,
            *_list_of(_bucket(contract.TOKENS)),
            *_read(_bucket(contract.SESSIONS)),
            *_write(contract.TOKENS, contract.SESSIONS),
            "call.>",
        ],
        [],
    ),
    SCHEDULER: (
        [
            _INFO,
            "work.>",
            *_read(contract.WORK),
            *_purge(contract.WORK),
            f"{_API}.STREAM.MSG.DELETE.{contract.WORK}",
            contract.job_results_subjects("*"),
            *_list_of(contract.RESULTS, contract.LOGS, contract.DLQ),
            contract.audit_subject("*"),
            *_read(contract.AUDIT),
            *_consume(contract.AUDIT, "webhooks"),
            contract.logs_subject("*", "*"),
            _aside(SCHEDULER),
            *_list_of(*map(_bucket, (contract.JOBS, contract.WEBHOOKS, contract.DELIVERIES))),
            *_list_of(*map(_bucket, (contract.EVALUATORS, contract.PROVIDER_BATCHES))),
            *_read(*map(_bucket, (contract.LEASE, contract.TOKENS))),
            *_write(contract.JOBS, contract.LEASE, contract.WEBHOOKS, contract.DELIVERIES, contract.TOKENS),
            *_READ_DATASETS,
        ],
        [*_write(contract.EVALUATORS, contract.PROVIDER_BATCHES), contract.ROOM],
    ),
    RESULTS: (
        [
            _INFO,
            *(f"{_API}.STREAM.UPDATE.{stream}" for stream in _all_streams()),
            *_follow(contract.RESULTS, "results-items"),
            *_follow(contract.AUDIT, "results-events"),
            *_follow(contract.USAGE, "results-usage"),
            *_follow(contract.KEPT, "results-kept"),
            *_read(contract.RESULTS, contract.AUDIT, contract.USAGE),
            *_purge(contract.RESULTS, contract.USAGE),
            *(f"{_API}.CONSUMER.LIST.{one}" for one in ("WORK", "RESULTS", "AUDIT", "USAGE", "KEPT")),
            "usage._runs.*.end",
            contract.kept_subject(">"),
            *_list_of(contract.KEPT),
            contract.logs_subject("*", "*"),
            _aside(RESULTS),
            *_list_of(*map(_bucket, (contract.JOBS, contract.EVALUATORS))),
            *_read(_bucket(contract.TOKENS)),
            *_write(contract.TOKENS),
            *_READ_DATASETS,
            *_list_of(_DATASETS),
            *_purge(_DATASETS),
            f"$O.{contract.DATASETS}.>",
            *(contract.snapshot_subject(stream) for stream in contract.BACKED_UP),
            "$JS.SNAPSHOT.ACK.>",
            contract.BACKUPS,
            contract.BACKUPS_BY,
            contract.ROOM,
            contract.SPLITS,
            contract.split_session_subject("*"),
        ],
        [contract.BACKUPS, contract.BACKUPS_BY],
    ),
    REPLICA: (
        [
            _INFO,
            *_list_of(_bucket(contract.EVALUATORS)),
            *_read(*map(_bucket, (contract.JOBS, contract.TOKENS))),
            *_READ_DATASETS,
        ],
        [],
    ),
    EVALUATOR: (
        [
            _INFO,
            "work.>",
            *_consume(contract.WORK, "*"),
            contract.job_results_subjects("*"),
            *_read(contract.RESULTS),
            "dlq.*.*.*",
            _aside(EVALUATOR),
            contract.logs_subject("*", "*"),
            contract.usage_subject("*"),
            "usage._runs.*.text",
            contract.alive_subject("*"),
            *_list_of(*map(_bucket, (contract.EVALUATORS, contract.PROVIDER_BATCHES))),
            *_read(*map(_bucket, (contract.JOBS, contract.LIMITS, contract.SUSPECTS, contract.TOKENS))),
            *_write(contract.EVALUATORS, contract.LIMITS, contract.PROVIDER_BATCHES, contract.SUSPECTS),
            *_READ_DATASETS,
        ],
        [
            contract.kv_subject(contract.JOBS, contract.job_key("*")),
            contract.kv_subject(contract.JOBS, contract.drain_key("*")),
            contract.SPLITS,
            contract.split_session_subject("*"),
            "call.>",
            contract.alive_subject("*"),
        ],
    ),
}
"""What each user may publish to, and subscribe to in addition to its inboxes."""
