"""What all services of a running installation tell: Prometheus scrapes them, and a collector gets their traces."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from deploy.local.ports import free_port
from services.telemetry.metrics import METRICS, SERVICES
from tests import dashboards
from tests.servers.collector import Collector, Received, collector
from tests.servers.openai_server import OpenAIServer
from tests.servers.stub import Behaviour
from tests.stack import Endpoint, Stack, running, successive_ports, until
from tests.stub_thread import stub_thread
from touchstone.v1 import scheduler_service_pb2

pytestmark = pytest.mark.stack

PROCESSES = ("gateway", "scheduler", "results", "evaluator-1")
HOSTILE = ('x"} 1', "a\nb", "evil", "{job_id}", "é" * 200, "../../etc", "%00")
parsed: Any = text_string_to_metric_families


class Scraped:
    """An installation whose metrics are read as Prometheus reads them."""

    def __init__(self, stack: Stack, first: int, collected: Collector) -> None:
        self.stack, self.collected = stack, collected
        self.addresses = {name: f"http://127.0.0.1:{first + place}/metrics" for place, name in enumerate(PROCESSES)}

    def text(self, process: str) -> str:
        answer = httpx.get(self.addresses[process], trust_env=False, timeout=30)
        assert answer.status_code == 200
        return answer.text

    def samples(self) -> Mapping[str, list[tuple[str, Sample]]]:
        """By name: the process and its sample, of all processes."""
        found: dict[str, list[tuple[str, Sample]]] = defaultdict(list)
        for process in PROCESSES:
            for family in parsed(self.text(process)):
                for sample in family.samples:
                    found[sample.name].append((process, sample))
        return found

    def value(self, name: str, **labels: str) -> float:
        """The sum over all processes and series with these labels."""
        return sum(sample.value for _, sample in self.samples()[name] if labels.items() <= sample.labels.items())


@pytest.fixture(scope="module")
def scraped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    first = successive_ports(len(PROCESSES))
    with stub_thread() as stubs, collector() as collected:
        stub = stubs.start(OpenAIServer(Behaviour()))
        endpoint: Endpoint = {"name": "stub", "kind": "openai", "base_url": stub.url, "concurrency": 4}
        folder = tmp_path_factory.mktemp("metrics")
        environment = {
            "TOUCHSTONE_METRICS_PORT": str(first),
            "TOUCHSTONE_TRACES_URL": collected.url,
            "TOUCHSTONE_TRACED_CALLS": "0.2",
            # The age of copies is shown once there is one.
            "TOUCHSTONE_REPLICA_S": "1",
            "TOUCHSTONE_REPLICA_PORT": str(free_port()),
        }
        with running(Stack(folder, [endpoint], environment=environment), request) as stack:
            stack.completed(stack.run("baseline", "majority", "demo"))
            yield Scraped(stack, first, collected)


def test_every_metric_has_a_value_after_a_job(scraped: Scraped) -> None:
    found = scraped.samples()
    missing = []
    for metric in METRICS:
        name = f"{metric.name}_count" if metric.kind == "histogram" else metric.name
        shown_by = {process.partition("-")[0] for process, _ in found[name]}
        missing += [(metric.name, service) for service in metric.services if service not in shown_by]
    assert missing == []
    assert {process.partition("-")[0] for process in PROCESSES} == {*SERVICES}


def test_figures_are_those_of_the_job(scraped: Scraped) -> None:
    assert scraped.value("touchstone_items_stored_total", result="answer") >= 1600
    assert scraped.value("touchstone_provider_call_duration_seconds_count", endpoint="baseline") >= 1600
    assert scraped.value("touchstone_jobs_ended_total", state="completed") >= 1
    assert scraped.value("touchstone_nats_connected") == len(PROCESSES)
    assert scraped.value("touchstone_scheduler_leading") == 1
    assert scraped.value("touchstone_live_evaluators", endpoint="baseline") == 1
    assert scraped.value("touchstone_evaluator_slots", endpoint="stub") == 4
    until(lambda: scraped.value("touchstone_ingest_pending_messages") == 0)
    assert scraped.value("touchstone_ingest_lag_seconds") == 0
    assert scraped.value("touchstone_database_size_bytes", file="database") > 0
    route = {"route": "/api/v1/benchmarking/run", "method": "POST", "status": "200"}
    assert scraped.value("touchstone_http_requests_total", **route) >= 1
    assert scraped.value("touchstone_rpc_requests_total", method="SchedulerService/CreateJob", code="OK") >= 1


def test_names_that_users_invent_make_no_label_values(scraped: Scraped) -> None:
    stack = scraped.stack

    def labels() -> set[str]:
        return {value for found in scraped.samples().values() for _, one in found for value in one.labels.values()}

    def attack() -> None:
        for name in HOSTILE:
            with stack.client() as client:
                body = {"project_id": 1, "suite": name, "config": {"provider": name, "model": name}}
                client.post("/run", json=body)
                client.get(f"/status/{name.encode().hex()}")
                client.request("EVIL", "/run")
                httpx.get(f"{stack.url}/{name.encode().hex()}", trust_env=False, timeout=30)
                client.post(f"{stack.url}/v1/chat/completions", json={"model": name, "messages": []})
            channel: Any = stack.channel(stack.scheduler_port)
            with pytest.raises(grpc.RpcError):
                channel.unary_unary(f"/touchstone.v1.SchedulerService/{name.encode().hex()}")(b"", timeout=30)
            with pytest.raises(grpc.RpcError):
                stack.scheduler.GetJob(scheduler_service_pb2.GetJobRequest(job_id=name), timeout=30)

    attack()
    before = labels()
    attack()
    assert labels() == before
    invented = {*HOSTILE, *(name.encode().hex() for name in HOSTILE), "EVIL"}
    assert not before & invented


def test_promtool_finds_nothing_to_improve(scraped: Scraped) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt install prometheus)")
    for process in PROCESSES:
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=scraped.text(process), capture_output=True, text=True, timeout=60
        )
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, ""), process


def test_a_real_prometheus_scrapes_every_process(scraped: Scraped, tmp_path: Path) -> None:
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("prometheus is not installed (Debian: apt install prometheus)")
    targets = ", ".join(f'"{url.split("/")[2]}"' for url in scraped.addresses.values())
    (tmp_path / "prometheus.yml").write_text(
        "scrape_configs:\n  - job_name: touchstone\n    scrape_interval: 1s\n    scrape_timeout: 1s\n"
        f"    static_configs:\n      - targets: [{targets}]\n"
    )
    address = f"127.0.0.1:{free_port()}"
    server = subprocess.Popen(
        [
            prometheus,
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address={address}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answer(query: str) -> list[dict[str, Any]]:
        try:
            told = httpx.get(
                f"http://{address}/api/v1/query", params={"query": query}, trust_env=False, timeout=10
            ).json()
        except (httpx.HTTPError, ValueError):
            return []
        found: list[dict[str, Any]] = told.get("data", {}).get("result", [])
        return found

    try:
        until(lambda: len(answer("up == 1")) == len(PROCESSES))
        assert {float(one["value"][1]) for one in answer("sum(touchstone_nats_connected)")} == {float(len(PROCESSES))}
        queries = [f"{metric.name}_count" if metric.kind == "histogram" else metric.name for metric in METRICS]
        assert [query for query in queries if not answer(query)] == []
        asked = {title: query.replace("$__rate_interval", "1m") for title, query in dashboards.queries()}

        def empty() -> list[str]:
            return [title for title, query in asked.items() if not answer(query)]

        # A rate needs two scrapes.
        with suppress(AssertionError):
            until(lambda: not empty())
        assert empty() == []
    finally:
        server.terminate()
        server.wait(30)


def test_a_job_gives_one_trace_through_all_services(scraped: Scraped) -> None:
    stack, caller = scraped.stack, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    config = {"provider": "stub", "model": "stub"}
    with stack.client() as client:
        body = {"project_id": 1, "suite": "demo", "config": config, "tasks": ["sentiment", "entailment"], "limit": 64}
        started = client.post("/run", json=body, headers={"traceparent": caller})
    assert started.status_code == 200, started.text
    job_id = started.json()["job_id"]
    stack.completed(job_id)

    def spans() -> dict[str, list[Received]]:
        found: dict[str, list[Received]] = defaultdict(list)
        for one in scraped.collected.spans:
            if one.trace == job_id.replace("-", ""):
                found[one.name].append(one)
        return found

    request = "POST /api/v1/benchmarking/run"
    names = {request, "job", "waiting", "planning", "running", "scoring", "plan", "unit", "call", "store", "score"}

    def items(name: str) -> int:
        return sum(int(one.attributes["touchstone.items"]) for one in spans()[name])

    # Each process sends its spans every few seconds: those of a job may come in several parts.
    until(lambda: spans().keys() >= names and items("unit") >= 128 and items("store") >= 128)
    found = spans()
    assert found.keys() == names
    assert {one.service for kept in found.values() for one in kept} == {f"touchstone-{name}" for name in SERVICES}
    [job] = found["job"]
    assert job.attributes["touchstone.items"] == items("unit") == items("store") == 128
    units = {one.id for one in found["unit"]}
    assert 5 < len(found["call"]) < 60
    assert {one.parent for one in found["call"]} <= units
    assert {one.parent for name in names - {"call", "job"} for one in found[name]} == {job.id}
    [asked] = found[request]
    assert [link.span_id.hex() for link in asked.span.links] == [caller.split("-")[2]]
    first, last = job.span.start_time_unix_nano, job.span.end_time_unix_nano
    for name in ("waiting", "planning", "running", "scoring"):
        [one] = found[name]
        assert first <= one.span.start_time_unix_nano <= one.span.end_time_unix_nano <= last, name
        first = one.span.start_time_unix_nano
    told = str([(one.name, one.attributes) for kept in found.values() for one in kept])
    assert "prompt" not in told
