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
    REPLICA,
    SEEDS,
    Object,
    called,
    config_files,
    container,
    environ,
    name,
    of_kind,
    pod,
    port_number,
    process,
    processes,
)

READERS: dict[str, Callable[[], Any]] = {
    "gateway": gateway.Settings.from_env,
    "scheduler": scheduler.Settings.from_env,
    "results": results.Settings.from_env,
    "evaluator": evaluator.Settings.from_env,
}
COMMANDS = {
    **{service: [f"services.{service}"] for service in READERS},
    REPLICA: ["services.results", "--replica"],
    "setup": ["services.bus"],
}
"""What containers start, by their processes."""
_LISTENS = {
    "scheduler": "TOUCHSTONE_SCHEDULER_LISTEN",
    "results": "TOUCHSTONE_RESULTS_LISTEN",
    REPLICA: "TOUCHSTONE_REPLICA_LISTEN",
    "evaluator": "TOUCHSTONE_EVALUATOR_LISTEN",
}
_SECRET = re.compile(r"TOKEN|PASSWORD|SECRET|API_KEY")


def service_of(part: Object) -> str:
    """Whose settings the process reads."""
    own = process(part)
    return "results" if own == REPLICA else own


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
    yield from _copies(objects)
    for one in processes(objects):
        yield from _secrets(one)
        if process(one) in COMMANDS:
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


def _copies(objects: list[Object]) -> Iterator[str]:
    """One process writes copies, one reads them, and gateways ask that one: all or none."""
    given = {process(one): environ(one) for one in processes(objects)}
    reads = REPLICA in given
    if ("TOUCHSTONE_REPLICA_S" in given["results"]) is not reads:
        yield f"Copies are {'read, and nobody writes them' if reads else 'written, and nobody reads them'}"
    if ("TOUCHSTONE_REPLICA" in given["gateway"]) is not reads:
        yield f"Copies are {'read, and no gateway asks for them' if reads else 'asked for, and nobody reads them'}"


def _secrets(workload: Object) -> Iterator[str]:
    for one in container(workload)["env"]:
        given = one.get("value", "").replace("$(NATS_TOKEN)", "")
        if _SECRET.search(one["name"]) and given.strip('"'):
            yield f"{called(workload)} has the secret {one['name']} as a text"
        reference = one.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None and not (reference.get("name") and reference.get("key")):
            yield f"{called(workload)} names no secret for {one['name']}"
    for volume in pod(workload)["volumes"]:
        items = volume.get("secret", {}).get("items", [])
        if volume["name"].endswith("seed") and [one["key"] for one in items] != [f"{process(workload)}.seed"]:
            yield f"{called(workload)} has the seeds of others"


def _variables(workload: Object, objects: list[Object]) -> Iterator[str]:
    service, given = service_of(workload), environ(workload)
    if container(workload)["command"] != ["python", "-m", *COMMANDS[process(workload)]]:
        yield f"{called(workload)} starts {container(workload)['command']}"
    for unknown in sorted({one for one in given if one.startswith("TOUCHSTONE_")} - variables_of(service)):
        yield f"{called(workload)} has {unknown}, which its code does not read"
    # What is mounted in the container is below this folder.
    with TemporaryDirectory() as folder:
        here = {one: folder + value if value.startswith("/") else value for one, value in given.items()}
        for variable in given.keys() & {"TOUCHSTONE_STATE_DIR", "TOUCHSTONE_DATA_DIR"}:
            Path(here[variable]).mkdir(parents=True)
        files = {str(path): text for path, text in config_files(workload, objects)}
        files |= {path: text for path, text in _from_secrets(process(workload)).items() if path in given.values()}
        for path, text in files.items():
            Path(folder + path).parent.mkdir(parents=True, exist_ok=True)
            Path(folder + path).write_text(text)
        try:
            with _recorded(here):
                _read(service)
                if service == "evaluator":
                    for known in endpoint.load(environment.file("TOUCHSTONE_ENDPOINTS", "")):
                        if known.problem:
                            yield f"{called(workload)}: {known.unusable}"
        except InvalidRequestError as error:
            yield f"{called(workload)} does not start: {error.message}"
    if service in READERS:
        yield from _ports(workload, given)


def _from_secrets(own_process: str) -> dict[str, str]:
    """Files that a process may have from secrets."""
    own, key, authority = certificate()
    folder = "/etc/touchstone"
    return {
        f"{folder}/nats/seed": SEEDS[own_process],
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
    own = process(workload)
    # Within a pod, names of ports are different.
    door = {"gateway": "http", REPLICA: REPLICA}.get(own, "grpc")
    listens = given.get("TOUCHSTONE_HTTP_PORT" if own == "gateway" else _LISTENS[own], "").rpartition(":")[2]
    metrics = f"{REPLICA}-metrics" if own == REPLICA else "metrics"
    expected = {metrics: given.get("TOUCHSTONE_METRICS_LISTEN", "").rpartition(":")[2], door: listens}
    actual = {port["name"]: str(port["containerPort"]) for port in container(workload)["ports"]}
    if actual != expected:
        yield f"{called(workload)} has the ports {actual}, and its settings {expected}"
    if "readinessProbe" not in container(workload):
        return
    asked = probed_port(container(workload)["readinessProbe"])
    if str(port_number(workload, asked)) != listens:
        yield f"{called(workload)} is asked for its health at {asked}"
