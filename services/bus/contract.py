"""Streams, subjects, headers and buckets: everything that may be on the bus. Only rights name them, too."""

from __future__ import annotations

import hashlib
from typing import Any

from nats.js import api

from services.words.jobs import RECORDED

WORK, RESULTS, AUDIT, DLQ, ADVISORIES, LOGS = "WORK", "RESULTS", "AUDIT", "DLQ", "ADV", "LOGS"
KEPT = "KEPT"
"""What people entered, kept for ever: rows of the results service's tables as JSON."""
USAGE = "USAGE"
"""Calls that users make through the gateway, for the results service to store. See `services.bus.calls`."""
JOBS, LEASE, EVALUATORS, TOKENS, SESSIONS = "JOBS", "LEASE", "EVALUATORS", "TOKENS", "SESSIONS"
WEBHOOKS, DELIVERIES = "WEBHOOKS", "DELIVERIES"
"""WEBHOOKS holds secrets: anyone who may read the bucket can sign calls."""
DATASETS = "DATASETS"
"""An object store: rows and manifests of uploaded datasets. See `services.bus.datasets`."""
PROVIDER_BATCHES = "PROVIDER_BATCHES"
"""Units sent through providers' batch APIs. See `services.bus.provider_batches`."""
BACKUPS, BACKUPS_BY = "backups", "backups.by"
"""Subjects for requesting a backup from the results service, and the id of the process that makes it."""
SUSPECTS = "SUSPECTS"
"""Key by unit: how often it has crashed an evaluator while it ran alone. See `services.evaluator.units.suspects`."""
SPLITS = "splits"
"""Subject for requesting a split of a Hub dataset from evaluators. See `services.bus.splits`."""
_SESSIONS = "_sessions"
ROOM = "room"
"""Subject at which the results service reports the room on its disk. Not stored: a full disk could not store it."""
LIMITS = "LIMITS"
"""Key by endpoint: the turns of calls over all evaluators. Losing it costs fairness for a moment."""

PLAN_ENDPOINT = "plan"
"""Reserved endpoint token: every evaluator serves planning units with a separate slot."""
PLAN_UNIT = -1
STORED_ENDPOINT = "stored"
"""Reserved endpoint token: every evaluator serves units of re-scores, which read stored answers and make no calls."""
_BATCHES_OF = "_batches"
_SET_ASIDE = "_aside"
_RUNS = "_runs"
"""In the place of an endpoint. No endpoint's own name has the underscore."""
_TEXT, _END = "text", "end"
IMPORTED = "imported"
"""The tool's name for answers from an unknown tool. They identify their item by an id or a text."""
IMPORTED_ENDPOINTS = ("lm_eval", "inspect", IMPORTED, RECORDED)
"""Reserved endpoint names: tools whose answers jobs import."""

LOG_LEVELS = ("info", "warning", "error")

REPLACE = {"Nats-Rollup": "sub"}
"""Headers of every write to a key: the server removes the key's earlier values, and records that.

It does not record what it removes because of a limit per subject, and nats-server 2.15 reads that back after a kill
once the newer message is gone: deleted keys came back with an earlier value (nats-server issue 8505).
"""

_DAY_S = 24 * 3600
# Server error codes (nats-server errors.json): see where each is handled.
ERR_WRONG_LAST_SEQUENCE = 10071
ERR_WRONG_LAST_SEQUENCE_CONSTANT = 10164
# The stream takes no more: of this subject (WORK) or at all (RESULTS, DLQ).
ERR_STREAM_LIMIT = 10077
# The server does not open the stream: it cannot read the description of it or of one of its consumers.
ERR_STREAM_UNSUPPORTED = 10194
# The server has no disk left that it may use.
ERR_NO_STORAGE = 10023
# There is a stream of this name, with other settings.
ERR_STREAM_EXISTS = 10058
# Several copies of a stream were asked of a server that is not part of a cluster.
ERR_NOT_CLUSTERED = 10074
# The cluster lacks nodes or a leader at this moment: incomplete, no peers, not active, not assigned, not available, not
# the leader, stream offline.
ERR_CLUSTER_NOT_READY = (10004, 10005, 10006, 10007, 10008, 10009, 10118)


def batches_endpoint(endpoint: str) -> str:
    """Reserved endpoint token of units that go through an endpoint's batch API, where they wait for hours."""
    return endpoint + _BATCHES_OF


def batched_endpoint(token: str) -> str:
    """The endpoint whose batch API the token means; empty for other tokens."""
    # As for _SET_ASIDE.
    return token.removesuffix(_BATCHES_OF) if token.endswith(_BATCHES_OF) else ""


def work_subject(endpoint: str, priority: int, job_id: str, unit: int) -> str:
    return f"work.{endpoint}.{priority}.{job_id}.{unit_token(unit)}"


def endpoint_work_subjects(endpoint: str) -> str:
    """Matches every unit of an endpoint on WORK."""
    return f"work.{endpoint}.>"


def job_work_subjects(job_id: str) -> str:
    """Matches every unit of a job on WORK."""
    return f"work.*.*.{job_id}.>"


def results_subject(job_id: str, unit: int) -> str:
    return f"results.{job_id}.{unit_token(unit)}"


def job_results_subjects(job_id: str) -> str:
    return f"results.{job_id}.*"


def dlq_subject(endpoint: str, job_id: str, unit: int) -> str:
    return f"dlq.{endpoint}.{job_id}.{unit_token(unit)}"


def set_aside_subject(service: str, stream: str, sequence: int, digest: str) -> str:
    """Where a message that a service cannot handle is kept; `digest` distinguishes messages of one position."""
    return f"dlq.{_SET_ASIDE}.{service}.{stream}.{sequence}.{digest}"


def set_aside_subjects() -> str:
    """Matches every message that is set aside."""
    return f"dlq.{_SET_ASIDE}.>"


def audit_subject(job_id: str) -> str:
    return f"audit.{job_id}"


def kept_subject(table: str, key: str = "") -> str:
    """`key` names the row if a later message replaces an earlier one of the same row."""
    return f"kept.{table}.{key}" if key else f"kept.{table}"


def kept_table(subject: str) -> str:
    return subject.split(".")[1]


def logs_subject(job_id: str, level: str) -> str:
    """One subject per level, so that many lines of one level do not displace lines of a graver one."""
    return f"logs.{job_id}.{level}"


def call_subject(endpoint: str) -> str:
    """Where to request a call of an endpoint's model. Not stored: a call is made at once or not at all."""
    return f"call.{endpoint}"


def call_session_subject(session: str) -> str:
    """Where the evaluator that makes a call is asked for its answer."""
    # As for _SET_ASIDE.
    return f"call.{_SESSIONS}.{session}"


def split_session_subject(session: str) -> str:
    """Where the evaluator that reads a split is asked for its pieces."""
    return f"{SPLITS}.{_SESSIONS}.{session}"


def usage_subject(endpoint: str) -> str:
    return f"usage.{endpoint}"


def run_text_subject(owner: str, name: str) -> str:
    """Texts of calls that are recorded under a name."""
    return f"usage.{_RUNS}.{_run_token(owner, name)}.{_TEXT}"


def run_end_subject(owner: str, name: str) -> str:
    """Ends of the runs recorded under a name. On the stream of its calls, as the order decides what belongs to it."""
    return f"usage.{_RUNS}.{_run_token(owner, name)}.{_END}"


def is_run_text(subject: str) -> bool:
    return subject.startswith(f"usage.{_RUNS}.") and subject.endswith(f".{_TEXT}")


def is_run_end(subject: str) -> bool:
    return subject.startswith(f"usage.{_RUNS}.") and subject.endswith(f".{_END}")


def _run_token(owner: str, name: str) -> str:
    return hashlib.sha256(f"{owner}\0{name}".encode()).hexdigest()[:32]


def alive_subject(process: str) -> str:
    """Where an evaluator's process answers while it runs."""
    return f"alive.{process}"


def pull_subject(stream: str, consumer: str) -> str:
    """Where pull requests of a consumer are sent."""
    return f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"


def info_of_stream(stream: str) -> str:
    """Where to request a stream's state."""
    return f"$JS.API.STREAM.INFO.{stream}"


def snapshot_subject(stream: str) -> str:
    """Where to request a stream's content as a file."""
    return f"$JS.API.STREAM.SNAPSHOT.{stream}"


def restore_subject(stream: str) -> str:
    """Where to create a stream from such a file."""
    return f"$JS.API.STREAM.RESTORE.{stream}"


def info_subject(bucket: str) -> str:
    """Where to request the state of a bucket's stream."""
    return info_of_stream(f"KV_{bucket}")


def unit_token(unit: int) -> str:
    return "plan" if unit == PLAN_UNIT else str(unit)


def parse_unit_token(token: str) -> int:
    """Raises ValueError."""
    return PLAN_UNIT if token == "plan" else int(token)


def parse_results_subject(subject: str) -> tuple[str, int]:
    """Job id and unit. Raises ValueError."""
    _, job_id, token = subject.split(".")
    return job_id, parse_unit_token(token)


def parse_work_subject(subject: str) -> tuple[str, int]:
    """Job id and unit. Raises ValueError."""
    _, _, _, job_id, token = subject.split(".")
    return job_id, parse_unit_token(token)


def job_key(job_id: str) -> str:
    return f"job.{job_id}"


def drain_key(evaluator: str) -> str:
    """In JOBS, while an admin drains the evaluator: who does."""
    return f"drain.{evaluator}"


def kv_subject(bucket: str, key: str) -> str:
    return f"$KV.{bucket}.{key}"


def object_stream(bucket: str) -> str:
    """The stream behind an object store."""
    return f"OBJ_{bucket}"


def object_meta_subject(bucket: str, token: str) -> str:
    """Where an object's meta is; `token` is its name in URL-safe base64."""
    return f"$O.{bucket}.M.{token}"


def object_chunks_subject(bucket: str, nuid: str) -> str:
    """Where an object's pieces are; `nuid` is in its meta."""
    return f"$O.{bucket}.C.{nuid}"


EPOCH_KEY = "epoch"
FLOOR_KEY = "floor"
"""Last RESULTS position that the scheduler no longer needs, decimal. Results purges up to the lower of both floors."""


BACKED_UP = (
    *(f"KV_{bucket}" for bucket in (JOBS, TOKENS, WEBHOOKS, DELIVERIES, PROVIDER_BATCHES)),
    RESULTS,
    AUDIT,
    KEPT,
    USAGE,
    object_stream(DATASETS),
    DLQ,
    LOGS,
)
"""Streams that a backup holds, in the order in which they are read. WORK is rebuilt from JOBS, and the remaining ones
concern only present processes and browsers."""


def _bucket(name: str, **settings: Any) -> api.StreamConfig:
    """A KV bucket's stream. Made by hand where `create_key_value` lacks a setting (`allow_atomic`).

    Without a limit per subject: every write replaces its key by `REPLACE`.
    """
    defaults: dict[str, Any] = {
        "discard": api.DiscardPolicy.NEW,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "allow_msg_ttl": True,
        "deny_delete": True,
        "storage": api.StorageType.FILE,
    }
    return api.StreamConfig(name=f"KV_{name}", subjects=[f"$KV.{name}.>"], **(defaults | settings))


def _objects(name: str) -> api.StreamConfig:
    """An object store's stream, as `create_object_store` makes it, with replicas set later. Without `max_bytes`, which
    the server would reserve on its disk at once and for ever: the only writer counts instead."""
    return api.StreamConfig(
        name=object_stream(name),
        subjects=[object_chunks_subject(name, ">"), object_meta_subject(name, ">")],
        discard=api.DiscardPolicy.NEW,
        allow_rollup_hdrs=True,
        allow_direct=True,
        storage=api.StorageType.FILE,
    )


def stream_configs(results_max_bytes: int, replicas: int = 1) -> list[api.StreamConfig]:
    """Every stream of an installation. `results_max_bytes` must be below the disk's size."""
    limits: dict[str, Any] = {"retention": api.RetentionPolicy.LIMITS, "storage": api.StorageType.FILE}
    configs = [
        api.StreamConfig(
            name=WORK,
            subjects=["work.>"],
            retention=api.RetentionPolicy.WORK_QUEUE,
            storage=api.StorageType.FILE,
            discard=api.DiscardPolicy.NEW,
            max_msgs_per_subject=1,
            discard_new_per_subject=True,
            allow_direct=True,
        ),
        api.StreamConfig(
            name=RESULTS,
            subjects=["results.>"],
            discard=api.DiscardPolicy.NEW,
            max_bytes=results_max_bytes,
            allow_direct=True,
            **limits,
        ),
        api.StreamConfig(name=AUDIT, subjects=["audit.>"], deny_delete=True, deny_purge=True, **limits),
        api.StreamConfig(
            name=KEPT, subjects=["kept.>"], deny_delete=True, deny_purge=True, allow_direct=True, **limits
        ),
        api.StreamConfig(name=USAGE, subjects=["usage.>"], max_age=30 * _DAY_S, **limits),
        api.StreamConfig(name=DLQ, subjects=["dlq.>"], max_age=30 * _DAY_S, **limits),
        api.StreamConfig(
            name=ADVISORIES,
            subjects=[f"$JS.EVENT.ADVISORY.CONSUMER.{kind}.>" for kind in ("MAX_DELIVERIES", "MSG_TERMINATED")],
            max_age=7 * _DAY_S,
            **limits,
        ),
        api.StreamConfig(
            name=LOGS,
            subjects=["logs.>"],
            max_age=14 * _DAY_S,
            max_msgs_per_subject=2000,
            max_bytes=results_max_bytes // 8,
            allow_direct=True,
            **limits,
        ),
        _bucket(JOBS, allow_atomic=True),
        # Its only key expires, and does so only under a limit (nats-server 2.15).
        _bucket(LEASE, subject_delete_marker_ttl=30, max_msgs_per_subject=1),
        _bucket(EVALUATORS, max_age=7 * _DAY_S),
        _bucket(SUSPECTS, max_age=7 * _DAY_S),
        _bucket(TOKENS),
        _bucket(SESSIONS, max_age=7 * _DAY_S),
        _bucket(LIMITS, max_age=3600),
        _bucket(WEBHOOKS),
        _bucket(DELIVERIES, max_age=14 * _DAY_S),
        # Longer than a job may run: a unit whose batch is forgotten would be sent, and paid, again.
        _bucket(PROVIDER_BATCHES, max_age=30 * _DAY_S),
        _objects(DATASETS),
    ]
    for config in configs:
        config.num_replicas = replicas
    return configs


def differing(present: api.StreamConfig, wanted: api.StreamConfig) -> dict[str, Any]:
    """Settings of an existing stream from an earlier version that must change so that it loses nothing; empty for
    none."""
    changes: dict[str, Any] = {}
    if wanted.name == RESULTS and present.max_age:
        # An installation that was off for longer would have lost what the results service had not read yet.
        changes["max_age"] = 0
    bucket = (wanted.name or "").startswith("KV_")
    if bucket and wanted.max_msgs_per_subject == -1 and present.max_msgs_per_subject != -1:
        changes["max_msgs_per_subject"] = -1
    return changes


def is_marker(headers: dict[str, str] | None) -> bool:
    """Whether a KV message says that the key is gone (deleted, purged or expired)."""
    return bool(headers) and ("KV-Operation" in headers or "Nats-Marker-Reason" in headers)  # type: ignore[operator]


def one_line(text: str) -> str:
    """Text that fits into a NATS header."""
    return " ".join(text.split())[:500]
