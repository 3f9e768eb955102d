"""The part of MLflow's REST API that runs are written by."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from services.results.mlflow.settings import MlflowSettings

MOST_TAG = 8_000
"""Characters of a tag. Servers refuse or cut longer ones."""
MOST_PARAM = 6_000
_TIMEOUT_S = 30.0
_RUNS_A_PAGE = 100
_API = "/api/2.0/mlflow"
_ARTIFACTS = "mlflow-artifacts"
_SHOWN = 300


class MlflowError(Exception):
    """A sentence. `passes`: the same request may succeed later, once the server is back or set up."""

    def __init__(self, message: str, passes: bool) -> None:
        super().__init__(message)
        self.message, self.passes = message, passes


@dataclass(frozen=True, slots=True)
class Record:
    """What one run says. Times are in milliseconds since 1970. `files` are stored as artifacts where the server takes
    them."""

    name: str
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    started_ms: int
    ended_ms: int
    failed: bool = False
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """A run that the server has."""

    run_id: str
    artifact_uri: str
    tags: Mapping[str, str]


class Mlflow:
    """One server. Every method raises MlflowError."""

    def __init__(self, settings: MlflowSettings) -> None:
        self._shown = settings.url.rpartition("@")[2].removeprefix("http://").removeprefix("https://")
        headers = {"Host": settings.host} if settings.host else {}
        if settings.token:
            headers["Authorization"] = f"Bearer {settings.token}"
        self._http = httpx.AsyncClient(base_url=settings.url, headers=headers, timeout=_TIMEOUT_S, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def experiment(self, name: str) -> str:
        """The id of the experiment with this name, which is created if there is none."""
        known = await self._ask("GET", f"/experiments/get-by-name?experiment_name={quote(name, safe='')}", absent=True)
        if known is None:
            try:
                return str((await self._ask("POST", "/experiments/create", {"name": name}))["experiment_id"])
            except MlflowError:
                # Somebody else may have created it in the meantime.
                known = await self._ask("GET", f"/experiments/get-by-name?experiment_name={quote(name, safe='')}")
        found = known["experiment"]
        if found.get("lifecycle_stage") == "deleted":
            raise MlflowError(
                f"MLflow at {self._shown} has deleted its experiment {name}. Restore it there, or delete it for good.",
                passes=True,
            )
        return str(found["experiment_id"])

    async def runs(self, experiment_id: str, tag: str, value: str) -> AsyncIterator[Run]:
        """The runs of an experiment in which this tag has this value."""
        token = ""
        while True:
            page = await self._ask(
                "POST",
                "/runs/search",
                {
                    "experiment_ids": [experiment_id],
                    "filter": f"tags.`{tag}` = '{value}'",
                    "max_results": _RUNS_A_PAGE,
                    **({"page_token": token} if token else {}),
                },
            )
            for run in page.get("runs", ()):
                yield _run(run)
            token = page.get("next_page_token", "")
            if not token:
                return

    async def start(self, experiment_id: str, record: Record, tags: Mapping[str, str]) -> Run:
        """A new run with these tags. `write` adds what it says."""
        begun = {
            "experiment_id": experiment_id,
            "run_name": record.name[:250],
            "start_time": record.started_ms,
            "tags": _pairs(tags),
        }
        return _run((await self._ask("POST", "/runs/create", begun))["run"])

    async def write(self, run: Run, record: Record, last_tags: Mapping[str, str]) -> None:
        """Writes everything that the run says, and ends it. `last_tags` are written when all else is. The newest
        value of a metric counts."""
        now_ms = int(time.time() * 1000)
        metrics = [
            {"key": key, "value": value, "timestamp": now_ms, "step": 0} for key, value in record.metrics.items()
        ]
        await self._ask(
            "POST",
            "/runs/log-batch",
            {
                "run_id": run.run_id,
                "params": _pairs(record.params, MOST_PARAM),
                "metrics": metrics,
                "tags": _pairs(record.tags),
            },
        )
        for name, text in record.files.items():
            await self._store(run, name, text)
        status = "FAILED" if record.failed else "FINISHED"
        await self._ask("POST", "/runs/update", {"run_id": run.run_id, "status": status, "end_time": record.ended_ms})
        await self._ask("POST", "/runs/log-batch", {"run_id": run.run_id, "tags": _pairs(last_tags)})

    async def _store(self, run: Run, name: str, text: str) -> None:
        """Stores an artifact through the server. Where its store is elsewhere, such as in a folder of its machine, or
        refuses, the run's tags have the text alone."""
        place = urlsplit(run.artifact_uri)
        if place.scheme != _ARTIFACTS:
            return
        path = f"/api/2.0/{_ARTIFACTS}/artifacts{quote(place.path)}/{quote(name)}"
        await self._send("PUT", path, content=text.encode("utf-8", "replace"))

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, absent: bool = False) -> Any:
        """The server's answer as JSON. With `absent`, None where the server does not have what is asked for."""
        reply = await self._send(method, _API + path, json=body)
        if reply.status_code == httpx.codes.OK:
            try:
                return reply.json()
            except ValueError:
                raise MlflowError(f"What answers at {self._shown} is not MLflow.", passes=True) from None
        told = _fields(reply)
        if absent and told.get("error_code") == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise self._refused(reply, str(told.get("message") or reply.text))

    async def _send(
        self, method: str, path: str, json: Mapping[str, Any] | None = None, content: bytes | None = None
    ) -> httpx.Response:
        try:
            return await self._http.request(method, path, json=json, content=content)
        except httpx.HTTPError as error:
            why = str(error).rstrip(".") or type(error).__name__
            raise MlflowError(f"MLflow at {self._shown} does not answer: {why}.", passes=True) from error

    def _refused(self, reply: httpx.Response, why: str) -> MlflowError:
        status = reply.status_code
        if status == httpx.codes.FORBIDDEN and "Host header" in why:
            return MlflowError(
                f"MLflow at {self._shown} does not allow this name of its host. Add it to the server's "
                "--allowed-hosts, or set TOUCHSTONE_MLFLOW_HOST to a name that the server allows.",
                passes=True,
            )
        words = " ".join(why.split())[:_SHOWN]
        # What is wrong with a run stays wrong; the rest is up to the server and those who run it.
        return MlflowError(f"MLflow at {self._shown} answers {status}: {words}", passes=status != 400)


def _fields(reply: httpx.Response) -> dict[str, Any]:
    try:
        found = reply.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pairs(values: Mapping[str, str], most: int = MOST_TAG) -> list[dict[str, str]]:
    return [{"key": key, "value": value[:most]} for key, value in values.items()]


def _run(run: Mapping[str, Any]) -> Run:
    info, data = run["info"], run.get("data", {})
    return Run(
        str(info["run_id"]),
        str(info.get("artifact_uri", "")),
        {tag["key"]: tag.get("value", "") for tag in data.get("tags", ())},
    )
