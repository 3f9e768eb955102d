"""The variables of containers, read by the services' own code."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from services import bus, environment, rpc
from services.bus import operations
from services.errors import InvalidRequestError
from services.evaluator import settings as evaluator
from services.evaluator.endpoints import endpoint
from services.gateway import settings as gateway
from services.results import settings as results
from services.scheduler import settings as scheduler
from services.telemetry import logs
from tests import certificates
from tests.chart.references import probed_port
from tests.chart.rendered import (
    SEEDS,
    WORKLOADS,
    Object,
    component,
    config_files,
    container,
    environ,
    name,
    of_kind,
    pod,
    port_number,
)

READERS: dict[str, Callable[[], Any]] = {
    "gateway": gateway.Settings.from_env,
    "scheduler": scheduler.Settings.from_env,
    "results": results.Settings.from_env,
    "evaluator": evaluator.Settings.from_env,
}
MODULES = {**{service: f"services.{service}" for service in READERS}, "setup": "services.bus"}
"""What containers start."""
_LISTENS = ("TOUCHSTONE_SCHEDULER_LISTEN", "TOUCHSTONE_RESULTS_LISTEN", "TOUCHSTONE_EVALUATOR_LISTEN")
_SECRET = re.compile(r"TOKEN|PASSWORD|SECRET|API_KEY")


@contextmanager
def _recorded(variables: Mapping[str, str]) -> Iterator[set[str]]:
    """Names of the variables that are read inside the context, where only these are set."""
    seen: set[str] = set()
    read = environment.text

    def text(name: str, default: str = "", environ: Mapping[str, str] | None = None) -> str:
        seen.add(name)
        return read(name, default, environ)

    with mock.patch.dict(os.environ, variables, clear=True), mock.patch.object(environment, "text", text):
        yield seen


def _read(service: str) -> None:
    """Raises InvalidRequestError, as the service would when it starts."""
    bus.Settings.from_env()
    logs.formatter()
    if service in READERS:
        READERS[service]()
        rpc.Settings.from_env()
        rpc.Tls.from_env()
    if service == "results":
        # The other services have no disk to watch.
        bus.Room.from_env(Path(), "")


@cache
def variables_of(service: str) -> frozenset[str]:
    """What the service's code reads."""
    with _recorded({}) as seen:
        _read(service)
    return frozenset(seen)


def faults(objects: list[Object]) -> Iterator[str]:
    for one in of_kind(objects, "Secret"):
        yield f"{name(one)} holds a secret"
    yield from _consumers(objects)
    for one in of_kind(objects, *WORKLOADS):
        yield from _secrets(one)
        if component(one) in MODULES:
            yield from _variables(one, objects)


def _consumers(objects: list[Object]) -> Iterator[str]:
    """Evaluators are scaled by the consumers of their own endpoints."""
    for one in of_kind(objects, "ScaledObject"):
        (target,) = [
            w for w in of_kind(objects, "Deployment") if w["metadata"]["name"] == one["spec"]["scaleTargetRef"]["name"]
        ]
        for path, text in config_files(target, objects):
            named = [known["name"] for known in tomllib.loads(text)["endpoint"]]
            expected = [(bus.WORK, operations._work_name(endpoint), "$G") for endpoint in named]
            triggers = [trigger["metadata"] for trigger in one["spec"]["triggers"]]
            if [(given["stream"], given["consumer"], given["account"]) for given in triggers] != expected:
                yield f"{name(one)} looks at other consumers than those of {path.name}: {expected}"


def _secrets(workload: Object) -> Iterator[str]:
    for one in container(workload)["env"]:
        given = one.get("value", "").replace("$(NATS_TOKEN)", "")
        if _SECRET.search(one["name"]) and given.strip('"'):
            yield f"{name(workload)} has the secret {one['name']} as a text"
        reference = one.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None and not (reference.get("name") and reference.get("key")):
            yield f"{name(workload)} names no secret for {one['name']}"
    for volume in pod(workload)["volumes"]:
        if volume["name"] == "seed" and [one["key"] for one in volume["secret"]["items"]] != [
            f"{component(workload)}.seed"
        ]:
            yield f"{name(workload)} has the seeds of others"


def _variables(workload: Object, objects: list[Object]) -> Iterator[str]:
    service, given = component(workload), environ(workload)
    if container(workload)["command"] != ["python", "-m", MODULES[service]]:
        yield f"{name(workload)} starts {container(workload)['command']}"
    for unknown in sorted({one for one in given if one.startswith("TOUCHSTONE_")} - variables_of(service)):
        yield f"{name(workload)} has {unknown}, which its code does not read"
    # What is mounted in the container is below this folder.
    with TemporaryDirectory() as folder:
        here = {one: folder + value if value.startswith("/") else value for one, value in given.items()}
        for variable in given.keys() & {"TOUCHSTONE_STATE_DIR", "TOUCHSTONE_DATA_DIR"}:
            Path(here[variable]).mkdir(parents=True)
        files = {str(path): text for path, text in config_files(workload, objects)}
        files |= {path: text for path, text in _from_secrets(service).items() if path in given.values()}
        for path, text in files.items():
            Path(folder + path).parent.mkdir(parents=True, exist_ok=True)
            Path(folder + path).write_text(text)
        try:
            with _recorded(here):
                _read(service)
                if service == "evaluator":
                    for known in endpoint.load(environment.file("TOUCHSTONE_ENDPOINTS", "")):
                        if known.problem:
                            yield f"{name(workload)}: {known.unusable}"
        except InvalidRequestError as error:
            yield f"{name(workload)} does not start: {error.message}"
    if service in READERS:
        yield from _ports(workload, given)


def _from_secrets(service: str) -> dict[str, str]:
    """Files that a service may have from secrets."""
    own, key, authority = certificate()
    folder = "/etc/touchstone"
    return {
        f"{folder}/nats/seed": SEEDS[service],
        f"{folder}/tls/tls.crt": own,
        f"{folder}/tls/tls.key": key,
        f"{folder}/tls/ca.crt": authority,
    }


@cache
def certificate() -> tuple[str, str, str]:
    """A certificate of this machine, its key, and its authority."""
    with TemporaryDirectory() as folder:
        made = certificates.make(Path(folder))
        own, key, authority = (Path(made.path(one)).read_text() for one in ("server.pem", "server.key", "ca.pem"))
        return own, key, authority


def _ports(workload: Object, given: Mapping[str, str]) -> Iterator[str]:
    expected = {"metrics": given.get("TOUCHSTONE_METRICS_LISTEN", "").rpartition(":")[2]}
    if component(workload) == "gateway":
        expected["http"] = given.get("TOUCHSTONE_HTTP_PORT", "")
    else:
        expected["grpc"] = next((given[one].rpartition(":")[2] for one in _LISTENS if one in given), "")
    actual = {port["name"]: str(port["containerPort"]) for port in container(workload)["ports"]}
    if actual != expected:
        yield f"{name(workload)} has the ports {actual}, and its settings {expected}"
    asked = probed_port(container(workload)["readinessProbe"])
    if str(port_number(workload, asked)) != expected.get("grpc", expected.get("http")):
        yield f"{name(workload)} is asked for its health at {asked}"
