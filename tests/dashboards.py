"""Grafana's dashboards in deploy/grafana, built here: `python -m tests.dashboards` writes them.

Each panel asks one question. Its description says what the answer means, and what to do about it where that is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, VisibilityMode
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef

from deploy.local.settings import ROOT

FOLDER = ROOT / "deploy/grafana"
_SOURCE = DataSourceRef("prometheus", "${source}")
_WIDTH = 24


@dataclass(frozen=True)
class Question:
    """A panel: queries by the legends of their series. `now` shows one number, else it is drawn over time."""

    title: str
    about: str
    unit: str
    queries: Mapping[str, str]
    now: bool = False
    most: float | None = None


def _quantile(share: float, metric: str, by: str) -> str:
    return f"histogram_quantile({share}, sum by ({by}, le) (rate({metric}_bucket[$__rate_interval])))"


def _rate(metric: str, by: str = "", labels: str = "") -> str:
    grouped = f"sum by ({by})" if by else "sum"
    return (
        f"{grouped} (rate({metric}{{{labels}}}[$__rate_interval]))"
        if labels
        else (f"{grouped} (rate({metric}[$__rate_interval]))")
    )


WORK: Mapping[str, list[Question]] = {
    "Now": [
        Question(
            "Items per second",
            "Results stored per second, over all jobs.",
            "short",
            {"": _rate("touchstone_items_stored_total")},
            now=True,
        ),
        Question("Jobs that run", "Jobs that hold a slot.", "short", {"": "sum(touchstone_running_jobs)"}, now=True),
        Question("Jobs that wait", "Jobs that wait to start.", "short", {"": "sum(touchstone_queue_jobs)"}, now=True),
        Question(
            "Oldest waiting job",
            "How long the oldest waiting job has waited. If no slot is free for long, raise the number of jobs that "
            "may run, or start more evaluators.",
            "s",
            {"": "max(touchstone_queue_oldest_age_seconds)"},
            now=True,
        ),
    ],
    "Jobs": [
        Question(
            "Queue by priority",
            "Jobs that wait to start.",
            "short",
            {"{{priority}}": "sum by (priority) (touchstone_queue_jobs)"},
        ),
        Question(
            "Slots of jobs",
            "Jobs that run, and how many may. Batches at a provider have slots of their own.",
            "short",
            {
                "running, {{kind}}": "sum by (kind) (touchstone_running_jobs)",
                "slots, {{kind}}": "sum by (kind) (touchstone_job_slots)",
            },
        ),
        Question(
            "Jobs that ended",
            "Per hour, by how they ended.",
            "short",
            {"{{state}}": "sum by (state) (rate(touchstone_jobs_ended_total[$__rate_interval])) * 3600"},
        ),
        Question(
            "Results stored",
            "Per second. An error is an item of which no call succeeded: it is never scored.",
            "short",
            {"{{result}}": _rate("touchstone_items_stored_total", "result")},
        ),
    ],
    "Endpoints": [
        Question(
            "Latency of calls",
            "The slowest 5 %, and the median, of calls that the provider answered.",
            "s",
            {
                "{{endpoint}}, 95 %": _quantile(0.95, "touchstone_provider_call_duration_seconds", "endpoint"),
                "{{endpoint}}, median": _quantile(0.5, "touchstone_provider_call_duration_seconds", "endpoint"),
            },
        ),
        Question(
            "Failed calls",
            "Per second. They are tried again, unless the provider refuses the request itself. Rate limits are among "
            "them: lower requests_per_minute of the endpoint if there are many.",
            "short",
            {"{{endpoint}}, {{kind}}": _rate("touchstone_provider_errors_total", "endpoint, kind")},
        ),
        Question(
            "Tokens per second",
            "As providers count them.",
            "short",
            {"{{endpoint}}, {{direction}}": _rate("touchstone_provider_tokens_total", "endpoint, direction")},
        ),
        Question(
            "Busy slots",
            "The share of an endpoint's slots in which a call runs. Well below 1 with units that wait: the provider "
            "slows calls down, or evaluators lack processors.",
            "percentunit",
            {
                "{{endpoint}}": "sum by (endpoint) (touchstone_evaluator_slots_busy) "
                "/ sum by (endpoint) (touchstone_evaluator_slots)"
            },
            most=1,
        ),
        Question(
            "Units of work",
            "Unfinished units of running jobs: in the scheduler, or offered to evaluators.",
            "short",
            {"{{endpoint}}, {{state}}": "sum by (endpoint, state) (touchstone_units)"},
        ),
        Question(
            "Evaluators",
            "Live evaluators that take an endpoint's work. None: its jobs wait.",
            "short",
            {"{{endpoint}}": "sum by (endpoint) (touchstone_live_evaluators)"},
        ),
    ],
}
SERVICES: Mapping[str, list[Question]] = {
    "Now": [
        Question(
            "Processes", "Processes that Prometheus reaches.", "short", {"": 'sum(up{job="touchstone"})'}, now=True
        ),
        Question(
            "Leading schedulers",
            "Always 1. With 0 for more than 15 seconds no job starts: see the logs of all schedulers.",
            "short",
            {"": "sum(touchstone_scheduler_leading)"},
            now=True,
        ),
        Question(
            "Without NATS",
            "Processes that NATS does not answer. Jobs wait until it does; nothing is lost.",
            "short",
            {"": "count(touchstone_nats_connected) - sum(touchstone_nats_connected)"},
            now=True,
        ),
        Question(
            "Messages set aside",
            "Messages that could not be handled. The Queue page and ListSetAsideMessages show them.",
            "short",
            {"": "sum(touchstone_messages_set_aside_total)"},
            now=True,
        ),
    ],
    "Requests": [
        Question(
            "Requests over HTTP",
            "Per second, by status.",
            "reqps",
            {"{{status}}": _rate("touchstone_http_requests_total", "status")},
        ),
        Question(
            "Latency over HTTP",
            "The slowest 5 % of a route's requests, to the first byte: the ten slowest routes.",
            "s",
            {"{{route}}": f"topk(10, {_quantile(0.95, 'touchstone_http_request_duration_seconds', 'route')})"},
        ),
        Question(
            "Calls over gRPC",
            "Per second, by status code.",
            "reqps",
            {"{{job}}, {{code}}": _rate("touchstone_rpc_requests_total", "job, code")},
        ),
        Question(
            "Latency over gRPC",
            "The slowest 5 % of a method's calls: the ten slowest methods.",
            "s",
            {"{{method}}": f"topk(10, {_quantile(0.95, 'touchstone_rpc_duration_seconds', 'method')})"},
        ),
        Question(
            "Refused by limits",
            "Requests per second that a limit refused. Operations lists the limits and their settings.",
            "short",
            {"{{limit}}": _rate("touchstone_refusals_total", "limit")},
        ),
    ],
    "The way into the database": [
        Question(
            "Age of what is not stored",
            "Of the oldest message that the results service has not stored. Growing: the disk or the processor is too "
            "slow, or the service is away.",
            "s",
            {"{{stream}}": "max by (stream) (touchstone_ingest_lag_seconds)"},
        ),
        Question(
            "Messages not delivered",
            "Of each durable consumer. Those of work-… wait for evaluators.",
            "short",
            {"{{consumer}}": "sum by (consumer) (touchstone_nats_pending_messages)"},
        ),
        Question(
            "Transactions of DuckDB",
            "The slowest 5 %, with their wait for a thread.",
            "s",
            {"{{operation}}": _quantile(0.95, "touchstone_database_duration_seconds", "operation")},
        ),
        Question(
            "Size of DuckDB's files",
            "The database, and the log of what is not yet in it.",
            "bytes",
            {"{{file}}": "sum by (file) (touchstone_database_size_bytes)"},
        ),
        Question(
            "Items between database and archive",
            "Per second. Those that left are in the archive alone, until somebody opens their run.",
            "short",
            {"left": _rate("touchstone_items_left_total"), "returned": _rate("touchstone_items_returned_total")},
        ),
        Question(
            "Age of the copy for reads",
            "Seconds since it was as the database. Nothing is shown without a copy.",
            "s",
            {"{{instance}}": "touchstone_copy_age_seconds >= 0"},
        ),
        Question(
            "Messages that NATS did not take",
            "Per second, by reason. They are sent again.",
            "short",
            {"{{reason}}": _rate("touchstone_nats_publish_failures_total", "reason")},
        ),
    ],
    "Processes": [
        Question(
            "Processor",
            "Cores in use.",
            "short",
            {"{{instance}}": 'rate(process_cpu_seconds_total{job="touchstone"}[$__rate_interval])'},
        ),
        Question("Memory", "Resident.", "bytes", {"{{instance}}": 'process_resident_memory_bytes{job="touchstone"}'}),
        Question(
            "Versions",
            "Processes of each version. Two of them: an upgrade is under way.",
            "short",
            {"{{service}} {{version}}": "count by (service, version) (touchstone_build_info)"},
        ),
    ],
}
BOARDS = {"work": ("Touchstone: work", WORK), "services": ("Touchstone: services", SERVICES)}


def built(name: str) -> str:
    """The file of a dashboard, as JSON."""
    title, rows = BOARDS[name]
    board = (
        dashboard.Dashboard(title)
        .uid(f"touchstone-{name}")
        .tags(["touchstone"])
        .time("now-6h", "now")
        .refresh("30s")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
    )
    for row, questions in rows.items():
        board = board.with_row(dashboard.Row(row))
        for question in questions:
            board = board.with_panel(_panel(question))
    return json.dumps(board.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _panel(question: Question) -> stat.Panel | timeseries.Panel:
    panel = (stat.Panel() if question.now else timeseries.Panel()).title(question.title).description(question.about)
    panel = panel.unit(question.unit).datasource(_SOURCE).min(0)
    panel = panel.height(4).span(_WIDTH // 4) if question.now else panel.height(8).span(_WIDTH // 2)
    if question.most is not None:
        panel = panel.max(question.most)
    if isinstance(panel, stat.Panel):
        panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    else:
        panel = panel.show_points(VisibilityMode.NEVER).fill_opacity(8)
        legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        panel = panel.legend(legend.show_legend(True))
    for place, (series, query) in enumerate(question.queries.items()):
        asked = prometheus.Dataquery().expr(query).legend_format(series or "__auto").ref_id(chr(ord("A") + place))
        panel = panel.with_target(asked.datasource(_SOURCE))
    return panel


def queries() -> Iterator[tuple[str, str]]:
    """Title and query of every panel."""
    for _, rows in BOARDS.values():
        for questions in rows.values():
            for question in questions:
                for query in question.queries.values():
                    yield question.title, query


if __name__ == "__main__":
    for name in BOARDS:
        (FOLDER / f"{name}.json").write_text(built(name))
