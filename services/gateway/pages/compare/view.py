"""What the address of the compare page says, and the addresses that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from starlette.requests import Request

from services.errors import InvalidRequestError, NotFoundError
from services.gateway.reads import jobs
from services.words.fields import decimal

LEAST, MOST = 2, 10
MARGINS = (0.002, 0.005, 0.01, 0.02, 0.05)
DEFAULT_MARGIN = 0.01
_MOST_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class View:
    """The runs by job. The others are compared with `baseline`; without one every pair is, and the last run is what the
    page compares with. `focus` is the run that the table is about, empty for the best one. `margin` is δ in the
    metric's own range. `choosing` shows the list to add runs from, of one `suite` where that is named.
    """

    job_ids: tuple[str, ...]
    baseline: str = ""
    focus: str = ""
    margin: float = DEFAULT_MARGIN
    choosing: bool = False
    suite: str = ""

    @classmethod
    def of(cls, request: Request) -> View:
        """Choices that do not fit fall back to the defaults. Raises NotFoundError for an impossible id, and
        InvalidRequestError for too many runs."""
        query = request.query_params
        named = [name.strip() for text in query.getlist("jobs") for name in text.split(",") if name.strip()]
        job_ids = tuple(dict.fromkeys(jobs.checked_id(name) for name in named))
        if len(job_ids) > MOST:
            raise InvalidRequestError(
                f"{len(job_ids)} runs are selected. Select at most {MOST} to compare them.", "jobs"
            )
        margin = decimal(query.get("margin", ""))
        return cls(
            job_ids=job_ids,
            baseline=_one_of(query.get("baseline", ""), job_ids),
            focus=_one_of(query.get("focus", ""), job_ids),
            margin=margin if margin is not None and 0 < margin <= _MOST_MARGIN else DEFAULT_MARGIN,
            choosing="choose" in query,
            suite=query.get("suite", ""),
        )

    @property
    def reference(self) -> str:
        """The run that the page compares with."""
        return self.baseline or self.job_ids[-1]

    @property
    def address(self) -> str:
        asked = {"baseline": self.baseline, "focus": self.focus, "suite": self.suite}
        asked |= {"margin": "" if self.margin == DEFAULT_MARGIN else f"{self.margin:g}"}
        asked |= {"choose": "1" if self.choosing else ""}
        kept = urlencode({name: value for name, value in asked.items() if value})
        named = [f"jobs={quote(','.join(self.job_ids), safe=',')}"] if self.job_ids else []
        return "/compare" + ("?" if named or kept else "") + "&".join([*named, *([kept] if kept else [])])

    def without(self, job_id: str) -> str:
        """The page without a run."""
        kept = tuple(one for one in self.job_ids if one != job_id)
        baseline, focus = (one if one in kept else "" for one in (self.baseline, self.focus))
        return replace(self, job_ids=kept, baseline=baseline, focus=focus).address

    def against(self, job_id: str) -> str:
        """The page with another baseline; every pair is compared without one."""
        return replace(self, baseline=job_id, focus="" if self.focus == job_id else self.focus).address

    def about(self, job_id: str) -> str:
        """The page with the details of another run."""
        return replace(self, focus=job_id).address

    def pair(self, job_id: str, other: str) -> str:
        """The page of two of the runs alone, the second one as the baseline."""
        return replace(self, job_ids=(job_id, other), baseline="", focus="").address

    @property
    def adding(self) -> str:
        """The list to add a run from."""
        return replace(self, choosing=True).address

    @property
    def report(self) -> str:
        """The comparison as one HTML file."""
        path, question, query = replace(self, choosing=False).address.partition("?")
        return f"{path}/report.html{question}{query}"

    def export(self, form: str) -> str:
        """The comparison as a file."""
        asked = {"job_ids": ",".join(self.job_ids), "baseline": self.baseline, "margin": f"{self.margin:g}"}
        asked |= {"format": form}
        kept = {name: value for name, value in asked.items() if value}
        return f"/api/v1/benchmarking/compare?{urlencode(kept, safe=',')}"


def report_of(job_ids: Sequence[str]) -> str:
    """The report of the first runs against each other, or of a single one; empty without any."""
    if len(job_ids) < LEAST:
        return f"/jobs/{job_ids[0]}/report.html" if job_ids else ""
    return View(tuple(job_ids[:MOST])).report


def _one_of(name: str, job_ids: tuple[str, ...]) -> str:
    try:
        found = jobs.checked_id(name) if name else ""
    except NotFoundError:
        return ""
    return found if found in job_ids else ""
