"""The template environment: autoescaped, strict about unknown names, with the product's filters.

Templates address static files with a hash of their content, so that browsers may keep them.
"""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

import web
from services.gateway.pages.decisions.drawing import swatch
from services.gateway.pages.display import charts, formatting
from services.gateway.pages.display.work_words import dataset_of, is_scored, scorings_words, work_of
from services.gateway.pages.experiments.listing import address as experiment_address
from services.gateway.pages.items import conditions
from services.gateway.pages.items.listing import MOST_SHOWN, ORDERS
from services.gateway.pages.items.opinions import LONG
from services.gateway.pages.items.rows import item_address
from services.gateway.reads import jobs
from services.gateway.reads.datasets import what_stays
from services.gateway.reads.jobs import total_seconds
from services.words.enums import reading_name
from services.words.job_options import ALL
from services.words.jobs import is_finished, is_rescore, stage_of, status_of
from services.words.sampling import PARAMETERS
from services.words.scorers import MOST_FURTHER, OPTIONS, SCORERS
from touchstone.v1 import endpoint_pb2, job_pb2

ROOT = Path(web.__file__).parent
STATIC = ROOT / "static"


class Static(StaticFiles):
    """`web/static`; a request that names the content's hash may be cached for ever."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if response.status_code == 200 and b"v=" in scope["query_string"]:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        else:
            response.headers["Cache-Control"] = "no-cache"
        return response


def static_url(name: str) -> str:
    """The address of a static file, with its hash."""
    path = STATIC / name
    return f"/static/{name}?v={_digest(path, path.stat().st_mtime_ns)}"


@lru_cache(maxsize=256)
def _digest(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


@cache
def environment() -> Environment:
    """Templates of `web/templates`, compiled once. Nothing in them is marked safe except the output of `charts`."""
    env = Environment(
        loader=FileSystemLoader(ROOT / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        number=formatting.number,
        hundredths=formatting.hundredths,
        change=formatting.change,
        mean=formatting.mean,
        bounds=formatting.bounds,
        interval=formatting.interval,
        rate=formatting.rate,
        duration=formatting.duration,
        rough=formatting.rough,
        ms=formatting.milliseconds,
        clock=formatting.clock,
        short_id=jobs.short_id,
        stamp=formatting.stamp,
        date_time=formatting.date_time,
        ago=formatting.ago,
        size=formatting.size,
        gigabytes=formatting.gigabytes,
        ordinal=formatting.ordinal,
        plural=formatting.plural,
        field_name=conditions.written,
        shown=formatting.shown,
    )
    env.globals.update(
        Endpoint=endpoint_pb2.Endpoint,
        Job=job_pb2.Job,
        static=static_url,
        charts=charts,
        swatch=swatch,
        fmt=formatting,
        status_of=lambda job: status_of(job.state),
        stage_of=stage_of,
        work_of=work_of,
        dataset_of=dataset_of,
        readings=formatting.READINGS,
        reading_name=reading_name,
        scorers=SCORERS,
        scoring_options=OPTIONS,
        most_further=MOST_FURTHER,
        is_scored=is_scored,
        scorings_words=scorings_words,
        what_stays=what_stays,
        verdict_choices=conditions.VERDICT_CHOICES,
        is_finished=is_finished,
        is_rescore=is_rescore,
        total_seconds=total_seconds,
        item_address=item_address,
        experiment_address=experiment_address,
        orders=ORDERS,
        most_shown=MOST_SHOWN,
        long_words=LONG,
        options=ALL,
        parameters=PARAMETERS,
    )
    return env
