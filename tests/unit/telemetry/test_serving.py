"""What Prometheus gets: the metrics of the service, on an address of their own."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from deploy.local.ports import free_port
from services.errors import InvalidRequestError, UnavailableError
from services.telemetry import metrics
from services.telemetry.metrics import METRICS, RESULTS, SERVICES
from services.telemetry.serving import Settings, serve


def settings() -> Settings:
    return Settings(f"127.0.0.1:{free_port()}")


parsed: Any = text_string_to_metric_families
parsed_open: Any = open_metrics


async def scrape(at: Settings, accept: str = "") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://{at.listen}/metrics", headers={"Accept": accept})


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_shows_its_metrics_alone(service: str) -> None:
    async with serve(service, at := settings()):
        answer = await scrape(at)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    shown = {family.name for family in parsed(answer.text)}
    own = {metric.name.removesuffix("_total") for metric in METRICS if service in metric.services}
    assert {name for name in shown if name.startswith("touchstone_")} == own
    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= shown


async def test_prometheus_may_ask_for_open_metrics() -> None:
    async with serve(RESULTS, at := settings()):
        answer = await scrape(at, "application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in parsed_open(answer.text)}
    assert families["touchstone_items_stored"].type == "counter"


async def test_gauges_are_set_when_somebody_looks() -> None:
    sizes = iter((1, 2))

    async def look() -> None:
        metrics.DATABASE_BYTES.set(next(sizes), "log")

    async with serve(RESULTS, at := settings()) as shown:
        shown.look(look)
        for size in (1, 2):
            assert f'touchstone_database_size_bytes{{file="log"}} {size}.0' in (await scrape(at)).text


async def test_a_gauge_that_cannot_be_set_has_no_value(caplog: pytest.LogCaptureFixture) -> None:
    async def look() -> None:
        raise ConnectionError("NATS is away")

    async with serve(RESULTS, at := settings()) as shown:
        metrics.INGEST_PENDING.set(7, "RESULTS")
        shown.look(look, metrics.INGEST_PENDING)
        with caplog.at_level(logging.WARNING):
            text = (await scrape(at)).text
    assert "touchstone_ingest_pending_messages{" not in text
    assert "touchstone_items_stored_total" in text
    assert "NATS is away" in caplog.text


async def test_without_an_address_nothing_is_recorded() -> None:
    async with serve(RESULTS, Settings()):
        assert not any(metric.on for metric in METRICS)


async def test_an_address_in_use_is_named() -> None:
    async with serve(RESULTS, at := settings()):
        with pytest.raises(UnavailableError, match=f"{at.listen} cannot be used: .* set TOUCHSTONE_METRICS_LISTEN"):
            async with serve("gateway", at):
                pass
    assert not any(metric.on for metric in METRICS)


def test_local_mode_shows_metrics_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOUCHSTONE_METRICS_LISTEN", "0.0.0.0:9464")
    with pytest.raises(InvalidRequestError, match="TOUCHSTONE_METRICS_LISTEN must be an address of loopback"):
        Settings.from_env()
    monkeypatch.setenv("TOUCHSTONE_AUTH", "token")
    assert Settings.from_env().listen == "0.0.0.0:9464"
