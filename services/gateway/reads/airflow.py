"""Runs an experiment: its jobs, or where the operator has set Airflow up, the DAG that starts them, by Airflow's REST
API (v2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import httpx
from google.protobuf import json_format

from services import rpc
from services.errors import AwayError, InvalidRequestError, UnavailableError
from services.gateway.backend import EXPERIMENT_S, Backend
from services.gateway.settings import Settings
from touchstone.v1.scheduler_service_pb2 import RunExperimentRequest, RunExperimentResponse

_TIMEOUT_S = 30.0
_MOST_DETAIL = 500
"""Characters of Airflow's own words."""
_RETRY_AFTER_S = 60
"""Somebody has to change a setting first."""


@dataclass(frozen=True, slots=True)
class DagRun:
    """A run of the DAG, and its page in Airflow."""

    run_id: str
    url: str


async def run_experiment(
    backend: Backend, settings: Settings, request: RunExperimentRequest, caller: rpc.Identity
) -> tuple[RunExperimentResponse, DagRun | None]:
    """Starts or continues it; with `check_only`, checks alone. Where Airflow is set up, the definition is checked, and
    then the DAG starts it: a run that would fail at once is not triggered. Raises as the scheduler and `_trigger`."""
    only_check, by_dag = request.check_only, bool(settings.airflow_url)
    request.check_only = only_check or by_dag
    made = await backend.ask(backend.scheduler.RunExperiment, request, caller, timeout_s=EXPERIMENT_S)
    if only_check or not by_dag:
        return made, None
    return made, await _trigger(settings, *_dag_run(request, caller))


def _dag_run(request: RunExperimentRequest, caller: rpc.Identity) -> tuple[str, Mapping[str, Any]]:
    """The id of the DAG's run, the same for a repeated request, and its conf."""
    asked = sha256(f"{caller.user} {request.request_id}".encode()).hexdigest()[:16]
    conf = {name: value for name, value in json.loads(request.definition).items() if value is not None}
    if "name" in conf:
        # Airflow shows the run's parameters, of which this is one.
        conf["experiment"] = conf.pop("name")
    judges = [json_format.MessageToDict(judge, preserving_proto_field_name=True) for judge in request.judges]
    return f"touchstone_{asked}", conf | {"judges": judges}


async def _trigger(settings: Settings, run_id: str, conf: Mapping[str, Any]) -> DagRun:
    """Starts a run with this id, once: if there is one, that one is meant. Raises InvalidRequestError where Airflow
    refuses `conf`, AwayError where it does not answer, and UnavailableError where it must be set up otherwise."""
    base = settings.airflow_url.rstrip("/")
    dag = quote(settings.airflow_dag, safe="")
    try:
        # No redirects: an answer must not choose where a token is sent.
        async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=_TIMEOUT_S) as client:
            answer = await client.post(
                f"/api/v2/dags/{dag}/dagRuns",
                json={"dag_run_id": run_id, "logical_date": None, "conf": conf},
                headers={"Authorization": f"Bearer {settings.airflow_token or await _token(client, settings)}"},
            )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise AwayError(f"Airflow at {base} does not answer. Check TOUCHSTONE_AIRFLOW_URL and Airflow.") from error
    if not answer.is_success and answer.status_code != httpx.codes.CONFLICT:
        raise _refusal(answer, settings)
    return DagRun(run_id, f"{base}/dags/{dag}/runs/{quote(run_id, safe='')}")


async def _token(client: httpx.AsyncClient, settings: Settings) -> str:
    """A token for the configured user. Raises as `_trigger`, and HTTPError."""
    user = {"username": settings.airflow_user, "password": settings.airflow_password}
    answer = await client.post("/auth/token", json=user)
    if not answer.is_success:
        raise _refusal(answer, settings)
    try:
        return str(answer.json()["access_token"])
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(answer) from error


def _refusal(answer: httpx.Response, settings: Settings) -> Exception:
    match answer.status_code:
        case httpx.codes.BAD_REQUEST | httpx.codes.UNPROCESSABLE_ENTITY:
            return InvalidRequestError(f"Airflow refuses the run: {_detail(answer)}")
        case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN:
            names = "TOUCHSTONE_AIRFLOW_TOKEN" if settings.airflow_token else "TOUCHSTONE_AIRFLOW_USER and _PASSWORD"
            sentence = f"Airflow does not let the gateway start the DAG. Check {names}, and what this user may do."
        case httpx.codes.NOT_FOUND:
            sentence = (
                f"Airflow has no DAG {settings.airflow_dag}. Install it as deploy/airflow/README.md says, or check "
                "TOUCHSTONE_AIRFLOW_URL and TOUCHSTONE_AIRFLOW_DAG."
            )
        case _:
            return _broken(answer)
    return UnavailableError(sentence, _RETRY_AFTER_S)


def _broken(answer: httpx.Response) -> Exception:
    return UnavailableError(f"Airflow failed with HTTP status {answer.status_code}: {_detail(answer)}")


def _detail(answer: httpx.Response) -> str:
    """Airflow's own words as one line."""
    try:
        found = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        found = answer.text
    return " ".join(str(found).split())[:_MOST_DETAIL] or "no reason given."
