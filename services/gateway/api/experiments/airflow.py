"""Airflow's REST API (v2): triggers the DAG that runs an experiment, where the operator has set Airflow up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from services.errors import AwayError, InvalidRequestError, UnavailableError
from services.gateway.settings import Settings

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


async def trigger(settings: Settings, run_id: str, conf: Mapping[str, Any]) -> DagRun:
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
    """A token for the configured user. Raises as `trigger`, and HTTPError."""
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
