"""The template environment: autoescaped, strict about unknown names, with the product's filters."""

from __future__ import annotations

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.gateway import charts, jobs
from services.gateway.api.datasets.body import what_stays
from services.gateway.api.datasets.scoring import SCORERS
from services.gateway.api.figures import reading_name
from services.gateway.api.job import total_seconds
from services.gateway.pages import conditions, formatting
from services.gateway.pages.datasets.about import scorer_name, scoring_words
from services.gateway.pages.items import item_address
from services.gateway.pages.work import dataset_of, work_of
from services.gateway.static import ROOT, static_url


def environment() -> Environment:
    """Templates of `web/templates`. Nothing in them is marked safe but what `charts` draws."""
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
        static=static_url,
        charts=charts,
        fmt=formatting,
        status_of=lambda job: jobs.STATUS[job.state],
        work_of=work_of,
        dataset_of=dataset_of,
        readings=formatting.READINGS,
        reading_name=reading_name,
        scorers=SCORERS,
        scorer_name=scorer_name,
        scoring_words=scoring_words,
        what_stays=what_stays,
        verdict_choices=conditions.VERDICT_CHOICES,
        is_finished=jobs.is_finished,
        is_rescore=jobs.is_rescore,
        total_seconds=total_seconds,
        item_address=item_address,
    )
    return env
