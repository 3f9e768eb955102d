"""The template environment: autoescaped, strict about unknown names, with the product's filters."""

from __future__ import annotations

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.gateway.http.static import ROOT, static_url
from services.gateway.pages.display import charts, formatting
from services.gateway.pages.display.work_words import dataset_of, is_scored, scorings_words, work_of
from services.gateway.pages.items import conditions
from services.gateway.pages.items.listing import item_address
from services.gateway.reads import jobs
from services.gateway.reads.datasets import what_stays
from services.gateway.reads.jobs import total_seconds
from services.words.enums import reading_name
from services.words.job_options import ALL
from services.words.jobs import is_finished, is_rescore, status_of
from services.words.sampling import PARAMETERS
from services.words.scorers import OPTIONS, SCORERS
from touchstone.v1 import endpoint_pb2, job_pb2


def environment() -> Environment:
    """Templates of `web/templates`. Nothing in them is marked safe except the output of `charts`."""
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
        ago=formatting.ago,
        size=formatting.size,
        gigabytes=formatting.gigabytes,
        ordinal=formatting.ordinal,
        plural=formatting.plural,
    )
    env.globals.update(
        Endpoint=endpoint_pb2.Endpoint,
        Job=job_pb2.Job,
        static=static_url,
        charts=charts,
        fmt=formatting,
        status_of=lambda job: status_of(job.state),
        work_of=work_of,
        dataset_of=dataset_of,
        readings=formatting.READINGS,
        reading_name=reading_name,
        scorers=SCORERS,
        scoring_options=OPTIONS,
        is_scored=is_scored,
        scorings_words=scorings_words,
        what_stays=what_stays,
        verdict_choices=conditions.VERDICT_CHOICES,
        is_finished=is_finished,
        is_rescore=is_rescore,
        total_seconds=total_seconds,
        item_address=item_address,
        options=ALL,
        parameters=PARAMETERS,
    )
    return env
