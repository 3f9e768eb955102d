"""The compare page: its figures are those of REST, and each count is the number of rows that its link lists."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx
import pytest

from tests.contract.backends import Backend
from tests.contract.things import FLOOR, MODEL, new_project, run
from tests.stack import API

_ROW = re.compile(r'<tr class="(whole|shown|open)">(.*?)</tr>', re.DOTALL)
_CELL = re.compile(r'<(t[dh])[^>]*class="([^"]*)"[^>]*>(.*?)</\1>', re.DOTALL)


class Compared:
    """A model's and a baseline's run on demo, as the page and as REST have them."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        project = new_project()
        self.job_ids = [run(backend, project, config, limit=30) for config in (MODEL, FLOOR)]
        for job_id in self.job_ids:
            backend.finish(job_id)
        self.page = self.get(f"/compare?jobs={','.join(self.job_ids)}")
        address = f"{API}/compare?job_ids={','.join(self.job_ids)}"
        self.rest: dict[str, Any] = backend.client.get(address).json()["comparison"]

    def get(self, address: str) -> str:
        # Not by the backend's client, which knows what REST declares.
        answer = httpx.get(f"{str(self.backend.client.base_url).rstrip('/')}{address}", trust_env=False, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.text


@pytest.fixture(scope="module")
def compared(backend: Backend) -> Compared:
    return Compared(backend)


def points(value: float | None, *, sign: bool = False) -> str:
    if value is None:
        return "–"
    text = f"{value * 100:.1f}".replace("-0.0", "0.0").replace("-", "−")
    return f"+{text}" if sign and value > 0 and text != "0.0" else text


def chance(p: float | None) -> str:
    return "–" if p is None else "< 0.0001" if p < 0.0001 else "1" if p > 0.9995 else f"{p:.{4 if p < 0.001 else 3}f}"


def test_every_figure_of_the_page_is_that_of_rest(compared: Compared) -> None:
    focus, reference = compared.job_ids
    told = [("", one) for one in compared.rest["differences"]]
    told += [(task["title"], one) for task in compared.rest["tasks"] for one in task["differences"]]
    shown = []
    for _, row in _ROW.findall(compared.page):
        found = [(name.removeprefix("num ").split()[0], text) for _, name, text in _CELL.findall(row)]
        cells: dict[str, Any] = {name: html.unescape(re.sub("<[^>]*>", "", text)).strip() for name, text in found}
        shown.append(cells | {"sides": [text for name, text in found if name == "own-score"]})
    assert len(shown) == len(told)
    for title, one in told:
        (cells,) = [row for row in shown if row["task"] == title or (not title and row["task"].endswith(" score"))]
        turned = 1 if one["a"] == focus else -1
        ends = one["interval"] and sorted(turned * end for end in one["interval"])
        assert cells["change"] == points(one["difference"] and turned * one["difference"], sign=True)
        assert cells["ci"] == (" to ".join(map(points, ends)) if ends else "–")
        assert (cells["p"], cells["holm"]) == (
            chance(one["p_value"]),
            chance(one["p_adjusted"]),
        )
        assert (cells["n"], cells["reach"]) == (f"{one['n']:,}", points(one["smallest_difference"]))
        scores = {run["subject"]: run["scores"] for run in compared.rest["models"]}
        values: dict[str, Any] = next((task["values"] for task in compared.rest["tasks"] if task["title"] == title), {})
        means = [(values or {job: scores[job]["score"] for job in scores})[job]["mean"] for job in (focus, reference)]
        assert cells["sides"] == list(map(points, means))


def test_each_count_is_the_number_of_rows_that_its_link_lists(compared: Compared) -> None:
    links = re.findall(r'<a class="count" href="([^"]*)">([\d,]+)</a>', compared.page)
    assert len(links) >= 4
    total = re.search(r"([\d,]+) items?; each count opens them", compared.page)
    assert total
    assert sum(int(count.replace(",", "")) for _, count in links[:4]) == int(total[1].replace(",", ""))
    for address, count in links:
        rows, more = 0, html.unescape(address)
        while more:
            text = compared.get(more)
            rows += text.count('<a class="row"')
            found = re.search(r'<a class="page" href="([^"]*)"[^>]*>Rows after<', text)
            more = html.unescape(found[1]) if found else ""
        assert rows == int(count.replace(",", "")), address


def test_a_comparison_is_a_file_too(compared: Compared) -> None:
    address = html.unescape(re.search(r'href="(/api/[^"]*format=csv)"', compared.page)[1])  # type: ignore[index]
    answer = compared.backend.client.get(address)
    head, *lines = answer.text.splitlines()
    assert answer.headers["content-disposition"] == 'attachment; filename="touchstone-comparison.csv"'
    assert head.startswith("task,title,metric,a,b,value_a,value_b,difference,low,high,p_value")
    told = [*compared.rest["differences"], *(one for task in compared.rest["tasks"] for one in task["differences"])]
    assert len(lines) == len(told)
    for line, one in zip(lines, told, strict=True):
        assert line.split(",")[3:5] == [one["a"], one["b"]]
        assert line.split(",")[7] == ("" if one["difference"] is None else str(one["difference"]))
