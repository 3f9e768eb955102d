"""The demo: the bundled suite on the three bundled baselines, through the REST API like any other client."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx

from deploy.local.settings import LaunchError
from deploy.local.terminal import SCALE, Terminal, duration, interval_bar, progress_bar, table
from services.words.refusals import counted

API = "/api/v1/benchmarking"
SUITE = "demo"
METRIC = "score"
PROVIDER = "baseline"
MODELS = ("majority", "random", "bag-of-words")
POLL_EVERY_S = 0.7
"""Below 100 requests per minute, the API's limit per user."""
TIME_LIMIT_S = 300.0
PATIENCE_S = 60.0
"""How long a service may be away, so that a crash and a restart in between do not matter."""
_PASSING = (429, 502, 503, 504)


@dataclass
class _Run:
    """One baseline's job as the API reports it."""

    model: str
    job_id: str
    began: float
    status: str = "pending"
    step: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    def line(self, width: int) -> str:
        share = self.done / self.total if self.total else float(self.status == "completed")
        items = f"{self.done:,} of {counted(self.total, 'item')}" if self.total else ""
        what = f"{self.status} in {duration(self.seconds)}" if self.finished else self.step or self.status
        return f"  {self.model.ljust(width)}  {progress_bar(share)} {share:4.0%}  {items:>20}  {what}"


class Demo:
    """A client of the gateway at `page_url`."""

    def __init__(self, page_url: str, terminal: Terminal) -> None:
        self._http = httpx.AsyncClient(base_url=page_url + API, trust_env=False, timeout=10)
        self._terminal = terminal

    async def __aenter__(self) -> Demo:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def show(self, *, again: bool) -> None:
        """Runs the suite unless its results are stored (or `again`), then prints the leaderboard.

        Raises LaunchError when a job does not complete.
        """
        board = await self._leaderboard()
        if again or not {*MODELS} <= {entry["model"] for entry in board["leaderboard"]}:
            await self._run()
            board = await self._leaderboard()
        else:
            self._terminal.say(f"The {SUITE} suite's results are stored from an earlier run.")
        self._print(board)

    async def _run(self) -> None:
        self._terminal.say()
        self._terminal.say(f"Running the {SUITE} suite on the bundled baselines, the floor of every leaderboard:")
        began = time.monotonic()
        runs = [await self._start(model) for model in MODELS]
        width = max(map(len, MODELS))
        while not all(run.finished for run in runs):
            for run in runs:
                if run.finished:
                    continue
                await asyncio.sleep(POLL_EVERY_S)
                await self._refresh(run)
                self._terminal.show([each.line(width) for each in runs])
                if run.finished and not self._terminal.live:
                    self._terminal.say(run.line(width))
            if time.monotonic() - began > TIME_LIMIT_S:
                raise LaunchError(
                    f"The demo did not finish within {duration(TIME_LIMIT_S)}. See the logs of the services."
                )
        self._terminal.keep()
        items = sum(run.total for run in runs)
        self._terminal.say(f"  {counted(items, 'item')} in {duration(time.monotonic() - began)}")

    async def _start(self, model: str) -> _Run:
        body = {
            "project_id": 1,
            "suite": SUITE,
            "config": {"provider": PROVIDER, "model": model},
            # So that a repeated call does not start a second job.
            "request_id": str(uuid.uuid4()),
        }
        answer = await self._call("POST", "/run", json=body)
        return _Run(model, answer["job_id"], time.monotonic())

    async def _refresh(self, run: _Run) -> None:
        answer = await self._call("GET", f"/results/{run.job_id}")
        progress = answer["progress"]
        run.status, run.step = answer["status"], progress["current_step"]
        run.done, run.total = progress["items_done"], progress["items_total"]
        run.seconds = time.monotonic() - run.began
        if run.status in ("failed", "cancelled"):
            raise LaunchError(f"The demo job of {run.model} {run.status}: {answer.get('error', 'see the logs')}")

    async def _leaderboard(self) -> Any:
        return await self._call("GET", "/leaderboard", params={"suite": SUITE, "metric": METRIC, "limit": 100})

    async def _call(self, method: str, path: str, **request: Any) -> Any:
        """One API call, repeated while a service is away or asks to wait. Raises LaunchError when it is refused."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            wait = POLL_EVERY_S
            try:
                answer = await self._http.request(method, path, **request)
            except httpx.HTTPError as error:
                passing, problem = True, str(error) or type(error).__name__
            else:
                if answer.is_success:
                    return answer.json()
                passing, problem = answer.status_code in _PASSING, _detail(answer)
                wait = max(wait, float(answer.headers.get("Retry-After", 0)))
            if not passing or time.monotonic() + wait > deadline:
                raise LaunchError(f"{method} {API}{path}: {problem}")
            await asyncio.sleep(wait)

    def _print(self, board: Any) -> None:
        self._terminal.say()
        self._terminal.say(f"Leaderboard of the {SUITE} suite by {METRIC}")
        for line in table(board_rows(board), right=frozenset({0, 2})):
            self._terminal.say(f"  {line}")


def board_rows(board: Any) -> list[tuple[str, ...]]:
    """The leaderboard as a table, its heading first; a baseline among models has a dash as its rank."""
    rows: list[tuple[str, ...]] = [("rank", "model", "score", "95 % interval", SCALE)]
    for entry in board["leaderboard"]:
        if entry["score"] is None or entry["ci95"] is None:
            continue
        score, (low, high) = entry["score"], entry["ci95"]
        bar = interval_bar(low, high, score)
        rows.append((str(entry["rank"] or "–"), entry["model"], f"{score:.3f}", f"{low:.3f}–{high:.3f}", bar))
    return rows


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code}"
