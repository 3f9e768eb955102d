"""Every metric of the services: its name, what it means, its labels, and which services show it.

Names end with their unit, and those of counters with `_total`. No label has ids of jobs, names of users, or models.
"""

from __future__ import annotations

from typing import Any

from services.telemetry.instruments import Counter, Gauge, Histogram, Instrument, Label
from services.words.enums import PRIORITIES
from services.words.jobs import STATUSES

GATEWAY, SCHEDULER, RESULTS, EVALUATOR = SERVICES = ("gateway", "scheduler", "results", "evaluator")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
FULL, SILENT, REFUSED = "full", "silent", "refused"
PUBLISH_FAILURES = (FULL, SILENT, REFUSED)
RATE_LIMITED, KEY_REFUSED, UNREACHABLE, CALL_REFUSED, FAILED = PROVIDER_ERRORS = (
    "rate_limited",
    "key_refused",
    "unreachable",
    "refused",
    "failed",
)
CALLS, BATCHES = JOB_KINDS = ("calls", "provider_batch")
WRITE, READ, LONG_READ = DATABASE_OPERATIONS = ("write", "read", "long_read")
DATABASE_FILES = ("database", "log")
WAITING, OFFERED = UNIT_STATES = ("waiting", "offered")
STORED_ANSWERS, STORED_ERRORS = STORED = ("answer", "error")
INPUT, OUTPUT = DIRECTIONS = ("input", "output")
LIMITS = (
    *("requests", "streams", "waits", "uploads", "calls", "connections", "wrong_tokens"),
    *("pending_jobs", "schedules", "webhooks"),
    *("questions", "exports", "uploads_at_once"),
)
"""Of the gateway (and of wrong tokens anywhere), the scheduler and the results service."""

ENDPOINT = Label("endpoint", "name of a configured endpoint; `plan` for reading data, `stored` for stored answers")
ROUTE = Label("route", "path of the route, such as `/api/v1/benchmarking/status/{job_id}`; `other` for unknown paths")
STATUS = Label("status", "status code of HTTP")
METHOD = Label("method", "method of HTTP", METHODS)
RPC = Label("method", "service and method, such as `SchedulerService/CreateJob`")
CODE = Label("code", "status code of gRPC, such as `OK`")
STREAM = Label("stream", "stream of NATS")
CONSUMER = Label("consumer", "durable consumer of NATS, such as `work-vllm-a`")
VERSION = Label("version", "version of Touchstone")
SERVICE = Label("service", "name of the service")
REASON = Label("reason", "why", PUBLISH_FAILURES)
KIND = Label("kind", "kind of failure", PROVIDER_ERRORS)
JOB_KIND = Label("kind", "how the job asks: calls, or a provider's batch API", JOB_KINDS)
PRIORITY = Label("priority", "priority of the job", tuple(PRIORITIES))
STATE = Label("state", "how the job ended", STATUSES[2:])
UNIT_STATE = Label("state", "where the unit is: in the scheduler, or offered to evaluators", UNIT_STATES)
DIRECTION = Label("direction", "what the tokens are", DIRECTIONS)
RESULT = Label("result", "what is stored; an error where no call succeeded", STORED)
OPERATION = Label("operation", "kind of transaction", DATABASE_OPERATIONS)
FILE = Label("file", "the database, or the log of what is not yet in it", DATABASE_FILES)
LIMIT = Label("limit", "what there was too much of", LIMITS)

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SLOW = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

# -- every service ---------------------------------------------------------------------------------------------
BUILD = Gauge("touchstone_build_info", "The version that runs; always 1", SERVICES, [SERVICE, VERSION])
NATS_CONNECTED = Gauge("touchstone_nats_connected", "1 while NATS answers, else 0", SERVICES)
NATS_PUBLISH_FAILURES = Counter(
    "touchstone_nats_publish_failures", "Messages that NATS did not take. They are sent again", SERVICES, [REASON]
)
SET_ASIDE = Counter("touchstone_messages_set_aside", "Messages that could not be handled and were set aside", SERVICES)
REFUSALS = Counter("touchstone_refusals", "Requests that a limit refused", (GATEWAY, SCHEDULER, RESULTS), [LIMIT])

# -- gateway ---------------------------------------------------------------------------------------------------
HTTP_REQUESTS = Counter("touchstone_http_requests", "Requests", (GATEWAY,), [ROUTE, STATUS, METHOD])
HTTP_SECONDS = Histogram(
    "touchstone_http_request_duration_seconds",
    "Seconds from a request to the first byte of its answer",
    (GATEWAY,),
    [ROUTE],
    buckets=_QUICK,
)

# -- gRPC ------------------------------------------------------------------------------------------------------
RPC_REQUESTS = Counter("touchstone_rpc_requests", "Calls over gRPC", (SCHEDULER, RESULTS), [RPC, CODE])
RPC_SECONDS = Histogram(
    "touchstone_rpc_duration_seconds",
    "Seconds of a call over gRPC; of one that answers with a stream, until its first answer",
    (SCHEDULER, RESULTS),
    [RPC],
    buckets=_QUICK,
)

# -- scheduler: zeros on a standby -----------------------------------------------------------------------------
LEADING = Gauge("touchstone_scheduler_leading", "1 in the scheduler that leads, 0 in a standby", (SCHEDULER,))
QUEUE_JOBS = Gauge("touchstone_queue_jobs", "Jobs that wait to start", (SCHEDULER,), [PRIORITY])
QUEUE_AGE = Gauge("touchstone_queue_oldest_age_seconds", "Seconds that the oldest waiting job has waited", (SCHEDULER,))
RUNNING_JOBS = Gauge("touchstone_running_jobs", "Jobs that hold a slot", (SCHEDULER,), [JOB_KIND])
JOB_SLOTS = Gauge("touchstone_job_slots", "Slots of jobs", (SCHEDULER,), [JOB_KIND])
JOBS_ENDED = Counter("touchstone_jobs_ended", "Jobs that ended", (SCHEDULER,), [STATE])
UNITS = Gauge("touchstone_units", "Unfinished units of running jobs", (SCHEDULER,), [ENDPOINT, UNIT_STATE])
ENDPOINT_EVALUATORS = Gauge(
    "touchstone_live_evaluators", "Live evaluators of an endpoint that take work", (SCHEDULER,), [ENDPOINT]
)

# -- evaluators ------------------------------------------------------------------------------------------------
SLOTS = Gauge("touchstone_evaluator_slots", "Calls that may run at a time", (EVALUATOR,), [ENDPOINT])
SLOTS_BUSY = Gauge("touchstone_evaluator_slots_busy", "Calls that run", (EVALUATOR,), [ENDPOINT])
UNITS_IN_HAND = Gauge("touchstone_evaluator_units", "Units that the evaluator has", (EVALUATOR,), [ENDPOINT])
CALL_SECONDS = Histogram(
    "touchstone_provider_call_duration_seconds",
    "Seconds of a call that a provider answered, for a job or for a user",
    (EVALUATOR,),
    [ENDPOINT],
    buckets=_SLOW,
)
CALL_ERRORS = Counter("touchstone_provider_errors", "Calls that failed", (EVALUATOR,), [ENDPOINT, KIND])
TOKENS = Counter("touchstone_provider_tokens", "Tokens that providers counted", (EVALUATOR,), [ENDPOINT, DIRECTION])

# -- results service -------------------------------------------------------------------------------------------
ITEMS_STORED = Counter("touchstone_items_stored", "Results of items that were stored", (RESULTS,), [RESULT])
ITEMS_LEFT = Counter("touchstone_items_left", "Items that left the database: the archive alone has them", (RESULTS,))
ITEMS_RETURNED = Counter("touchstone_items_returned", "Items that came back from the archive", (RESULTS,))
OUTPUT_TOKENS_STORED = Counter("touchstone_output_tokens_stored", "Output tokens of stored answers", (RESULTS,))
INGEST_PENDING = Gauge(
    "touchstone_ingest_pending_messages", "Messages of a stream that are not yet stored", (RESULTS,), [STREAM]
)
INGEST_LAG = Gauge(
    "touchstone_ingest_lag_seconds", "Age in seconds of the oldest message that is not yet stored", (RESULTS,), [STREAM]
)
CONSUMER_PENDING = Gauge(
    "touchstone_nats_pending_messages",
    "Messages that a durable consumer has not delivered",
    (RESULTS,),
    [STREAM, CONSUMER],
)
CONSUMER_UNACKNOWLEDGED = Gauge(
    "touchstone_nats_unacknowledged_messages",
    "Messages that a durable consumer delivered and nobody has acknowledged",
    (RESULTS,),
    [STREAM, CONSUMER],
)
DATABASE_SECONDS = Histogram(
    "touchstone_database_duration_seconds",
    "Seconds of a transaction of DuckDB, with its wait for a thread",
    (RESULTS,),
    [OPERATION],
    buckets=_QUICK,
)
DATABASE_BYTES = Gauge("touchstone_database_size_bytes", "Size of DuckDB's files", (RESULTS,), [FILE])
COPY_AGE = Gauge(
    "touchstone_copy_age_seconds",
    "Seconds since the newest copy for reads was as the database; NaN without a copy",
    (RESULTS,),
)

METRICS: tuple[Instrument[Any], ...] = tuple(made for made in globals().copy().values() if isinstance(made, Instrument))
