"""What the address of rows side by side says, and the addresses that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlencode

from starlette.requests import Request

from services.errors import InvalidRequestError
from services.gateway.pages.items import conditions
from services.gateway.reads import jobs
from services.gateway.reads.questions import LEAST_JOBS, MOST_JOBS, OF_ONE_JOB
from services.words.enums import SIDE_BY_SIDE_FILTERS
from touchstone.v1 import results_service_pb2

LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class View:
    """What the address says. `only` is the letter of the run that `only_right` and `only_wrong` are about; `row` names
    the opened row, `field` the metadata in the list, `sort` the field that orders it, both as `conditions` reads them;
    `whole` has the letters of the texts that are shown whole."""

    job_ids: tuple[str, ...]
    filter: str
    only: str
    task: str
    query: str
    diff: bool
    conditions: dict[str, str]
    row: str = ""
    blind: bool = False
    field: str = ""
    sort: str = ""
    whole: str = ""

    @classmethod
    def of(cls, request: Request) -> View:
        """Unknown choices fall back to the defaults. Raises InvalidRequestError for another number of runs."""
        query = request.query_params
        named = [name.strip() for text in query.getlist("jobs") for name in text.split(",") if name.strip()]
        job_ids = tuple(dict.fromkeys(jobs.checked_id(name) for name in named))
        if not LEAST_JOBS <= len(job_ids) <= MOST_JOBS:
            raise InvalidRequestError(
                f"Select {LEAST_JOBS} to {MOST_JOBS} runs on the dataset's page to compare them. "
                f"Selected: {len(job_ids)}.",
                "jobs",
            )
        chosen = query.get("filter", "") if query.get("filter", "") in SIDE_BY_SIDE_FILTERS else "all"
        only = query.get("only", "") if query.get("only", "") in tuple(LETTERS[: len(job_ids)]) else ""
        if (chosen in OF_ONE_JOB) != bool(only):
            chosen, only = ("all" if chosen in OF_ONE_JOB else chosen), ""
        texts = {name: query.get(name, "").strip()[:200] for name in ("task", "q", "row", "whole")}
        field, sort = (query.get(name, "").strip()[: conditions.MOST_NAMED] for name in ("field", "sort"))
        ordered_by, descending = conditions.ordered_by(sort)
        if ordered_by:
            sort = ("-" if descending else "") + conditions.written(ordered_by)
        return cls(
            job_ids=job_ids,
            filter=chosen,
            only=only,
            task=texts["task"],
            query=texts["q"],
            diff="1" in query.getlist("diff") or "diff" not in query,
            conditions=conditions.read(query),
            row=texts["row"],
            blind="1" in query.getlist("blind"),
            field=field,
            sort=sort if ordered_by else "",
            whole=texts["whole"],
        )

    @property
    def ordered_by(self) -> str:
        """The field that orders the rows; empty without one."""
        return conditions.ordered_by(self.sort)[0]

    @property
    def narrowed(self) -> bool:
        """Whether some rows are left out."""
        return bool(self.filter != "all" or self.task or self.query or self.conditions)

    def address(self, page: str = "/side-by-side", **changes: str) -> str:
        """The page with some choices changed. A filter brings its own letter, or none; another row is as short as any
        other at first."""
        asked = {
            "filter": self.filter,
            "only": self.only,
            "task": self.task,
            "q": self.query,
            "diff": "" if self.diff else "0",
            "blind": "1" if self.blind else "",
            "field": self.field,
            "sort": self.sort,
        }
        asked |= self.conditions
        if "filter" in changes:
            asked["only"] = ""
        asked |= changes
        kept = {n: v for n, v in asked.items() if v and (n, v) != ("filter", "all")}
        return f"{page}?jobs={','.join(self.job_ids)}" + (f"&{urlencode(kept)}" if kept else "")

    def here(self, page: str = "/side-by-side", **changes: str) -> str:
        """The page on the same row with some choices changed."""
        return self.address(page, **({"filter": self.filter, "only": self.only, "row": self.row} | changes))

    @property
    def cleared(self) -> str:
        """The page without conditions."""
        kept = {"filter": self.filter, "only": self.only}
        return self.address(**kept, **dict.fromkeys(self.conditions, ""))

    def order_of(self, row: results_service_pb2.SideBySideRow) -> list[int]:
        """The places of the runs as the row shows them: in blind mode shuffled, each row by itself and always alike."""
        places = list(range(len(self.job_ids)))
        if not self.blind:
            return places
        key = f"{row.task} {row.item} {row.repeat} {row.custom_id}"
        return sorted(places, key=lambda place: sha256(f"{key} {self.job_ids[place]}".encode()).digest())

    @property
    def place(self) -> results_service_pb2.RowPlace:
        """The place that `row` names; one that no row has where it names none."""
        name, _, letter = self.row.partition("@")
        task, _, number = name.rpartition(":")
        item, _, repeat = number.partition(".")
        job_id = self.job_ids[LETTERS.index(letter)] if letter and letter in LETTERS[: len(self.job_ids)] else ""
        if not (task and item.isascii() and item.isdecimal() and len(item) < 10 and (not repeat or repeat.isdecimal())):
            return results_service_pb2.RowPlace(job_id=self.job_ids[0])
        return results_service_pb2.RowPlace(
            job_id=job_id or self.job_ids[0], task=task, item=int(item), repeat=int(repeat[:9] or 0)
        )

    def place_key(self, place: results_service_pb2.RowPlace) -> str:
        """How `row` names it."""
        return _key(place, self.job_ids.index(place.job_id))


def row_key(row: results_service_pb2.SideBySideRow) -> str:
    """How `row` of the address names it."""
    return _key(row, next((number for number, stored in enumerate(row.items) if stored.job_id), 0))


def _key(place: results_service_pb2.RowPlace | results_service_pb2.SideBySideRow, first: int) -> str:
    """By the letter of the first run that has an answer, if that is not A."""
    named = f"{place.task}:{place.item}" + (f".{place.repeat}" if place.repeat else "")
    return f"{named}@{LETTERS[first]}" if first else named
