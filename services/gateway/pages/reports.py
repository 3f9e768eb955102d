"""Reports: a job or a comparison as one HTML file, which is read and printed without a server, a script or a network.

Their figures are those of the pages, from the same view models and templates.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from services.errors import ConflictError, InvalidRequestError
from services.gateway import context
from services.gateway.pages.compare.page import compared
from services.gateway.pages.compare.view import LEAST, MOST, View
from services.gateway.pages.display import formatting
from services.gateway.pages.display.charts import Axis
from services.gateway.pages.jobs import receipt
from services.gateway.pages.jobs.page import TaskLine, dataset_of, view
from services.gateway.pages.templates import STATIC
from services.gateway.reads import jobs
from services.words.job_options import command_of
from services.words.jobs import is_finished, status_of, suite_of
from touchstone.v1 import job_pb2, metric_pb2


async def job_report(request: Request) -> Response:
    """A finished job. Raises NotFoundError, and ConflictError before its end."""
    ctx, caller = context.of(request), context.identity(request)
    job = await jobs.find(ctx.backend, request.path_params["job_id"], caller)
    if not is_finished(job):
        raise ConflictError(
            f"Job {job.job_id} is {status_of(job.state)}. Its report is there once it is finished; its page shows the "
            "figures so far."
        )
    result, dataset = await asyncio.gather(
        jobs.result_of(ctx.backend, job.job_id, caller), dataset_of(ctx, job, caller)
    )
    values = view(job, result, caller, dataset)
    values |= {
        "in_report": True,
        "axis": Axis.around(_ends(values["lines"])),
        "facts": _facts(job),
        "command": command_of(job.spec),
        "intervals": _intervals(result),
    }
    name = f"{suite_of(job.spec)}-{job.spec.model}-{jobs.short_id(job.job_id)}"
    return _file(request, "jobs/report.html", ("app.css", "job.css", "report.css"), values, name)


async def comparison_report(request: Request) -> Response:
    """Two runs or more, chosen as on the compare page. Raises what that page refuses."""
    chosen = View.of(request)
    if len(chosen.job_ids) < LEAST:
        raise InvalidRequestError(f"Name {LEAST} to {MOST} jobs to compare, such as ?jobs=ID,ID.", "jobs")
    values = await compared(request, chosen)
    known_jobs, results = values["known_jobs"], values["results"]
    rows = {
        job_id: dict(_named(receipt.rows(job, results.get(job_id, metric_pb2.JobResult()))) | _facts(job))
        for job_id, job in known_jobs.items()
    }
    values |= {
        "in_report": True,
        "receipts": _side_by_side([rows.get(job_id, {}) for job_id in chosen.job_ids]),
        "commands": {job_id: command_of(job.spec) for job_id, job in known_jobs.items()},
    }
    ids = "-".join(jobs.short_id(job_id) for job_id in chosen.job_ids)
    return _file(request, "compare/report.html", ("app.css", "compare.css", "report.css"), values, f"comparison-{ids}")


def _file(request: Request, template: str, sheets: Sequence[str], values: Mapping[str, object], name: str) -> Response:
    """The template with its style sheets inside. Its policy allows nothing else, wherever it is opened."""
    styles = "\n".join((STATIC / sheet).read_text() for sheet in sheets)
    digest = base64.b64encode(hashlib.sha256(styles.encode()).digest()).decode()
    origin = str(request.base_url).rstrip("/")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'none'; base-uri {origin}"
    now = Timestamp()
    now.FromDatetime(datetime.now(UTC))
    # Style sheets are files of the product.
    html = (
        context.of(request)
        .templates.get_template(template)
        .render(**values, styles=Markup(styles), policy=policy, origin=origin, written=now)
    )
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    headers = {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        "Content-Disposition": f'inline; filename="touchstone-{safe}.html"',
    }
    return HTMLResponse(html, headers=headers)


def _ends(lines: Iterable[TaskLine]) -> list[float]:
    """What the axis of the tasks must hold, × 100."""
    metrics = [line.result.metrics[0] for line in lines if line.result and line.result.metrics]
    fields = ("mean", "ci95_low", "ci95_high", "bound_low", "bound_high")
    return [100 * getattr(one, name) for one in metrics for name in fields if one.HasField(name)]


def _facts(job: job_pb2.Job) -> dict[str, str]:
    """What pages shorten, in full; without unknown ones."""
    known = job.receipt
    found = {
        "Job": job.job_id,
        "Digest of the weights": known.model_digest,
        "Configuration, in full": known.configuration,
        "Items, in full": job.item_set,
        "Dataset": job.spec.dataset.dataset_id,
        "Digest of the dataset": job.spec.dataset.digest,
        "Digest of the prices": known.prices.table_digest,
        "Created": formatting.date_time(job.created_at),
        "Started": formatting.date_time(job.started_at),
        "Finished": formatting.date_time(job.finished_at),
        "Owner": job.owner,
    }
    return {name: text for name, text in found.items() if text and text != formatting.MISSING}


def _intervals(result: metric_pb2.JobResult) -> list[tuple[str, str]]:
    """(metrics, how their intervals were made), in the order of the tasks."""
    found: dict[str, dict[str, None]] = {}
    measured = [one for task in result.tasks for one in task.metrics]
    if result.HasField("suite_score"):
        measured.insert(0, result.suite_score)
    for one in measured:
        if one.method and one.HasField("ci95_low"):
            found.setdefault(one.method, {})[formatting.metric_name(one.metric)] = None
    return [(", ".join(names), formatting.INTERVALS.get(method, method)) for method, names in found.items()]


def _named(rows: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Rows of a receipt as texts by name. A row without a name continues the one above."""
    found: dict[str, str] = {}
    last = ""
    for name, what, code in rows:
        text = " ".join(filter(None, (what, code)))
        last = name or last
        found[last] = f"{found[last]}; {text}" if last in found else text
    return found


def _side_by_side(receipts: Sequence[Mapping[str, str]]) -> list[tuple[str, list[str], bool]]:
    """(name, the text of each run, whether they differ) for each row that any run has."""
    names = list(dict.fromkeys(name for one in receipts for name in one))
    rows = [(name, [one.get(name, formatting.MISSING) for one in receipts]) for name in names]
    return [(name, texts, len(set(texts)) > 1) for name, texts in rows]
