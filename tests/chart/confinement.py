"""What pods may do, how long they may take to stop, and that one process writes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from services import rpc
from services.gateway import server as gateway_server
from tests.chart.rendered import (
    REPLICA,
    WORKLOADS,
    Object,
    called,
    component,
    container,
    environ,
    name,
    of_kind,
    parts,
    pod,
    process,
    processes,
)

LEAST_SPARE_S = 10


def faults(objects: list[Object]) -> Iterator[str]:
    for one in processes(objects):
        yield from _restricted(one)
        yield from _grace(one)
    yield from _one_writer(objects)


def _restricted(workload: Object) -> Iterator[str]:
    """Kubernetes' restricted standard, and more."""
    spec, only = pod(workload), container(workload)
    whole, own = spec["securityContext"], only["securityContext"]
    rules = {
        "runs as root": whole.get("runAsNonRoot") is True and whole.get("runAsUser", 0) > 0,
        "has no seccomp profile": whole.get("seccompProfile") == {"type": "RuntimeDefault"},
        "may gain rights": own.get("allowPrivilegeEscalation") is False,
        "keeps capabilities": own.get("capabilities") == {"drop": ["ALL"]},
        "may write to its image": own.get("readOnlyRootFilesystem") is True,
        "has a token of Kubernetes": spec.get("automountServiceAccountToken") is False,
        "gets variables of services": spec.get("enableServiceLinks") is False,
        "uses its host": not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        and not any("hostPath" in volume for volume in spec["volumes"]),
        "has no limit of memory": "memory" in only["resources"].get("limits", {}),
        "has no requests": {"cpu", "memory"} <= only["resources"].get("requests", {}).keys(),
    }
    for fault, kept in rules.items():
        if not kept:
            yield f"{called(workload)} {fault}"


def own_grace_s(workload: Object) -> float:
    """Seconds that the process itself takes at most to stop, after the pause before the signal."""
    match process(workload):
        case "evaluator":
            return float(environ(workload)["TOUCHSTONE_GRACE_S"])
        case "gateway":
            found = re.search(r"timeout_graceful_shutdown=(\d+)", inspect.getsource(gateway_server))
            assert found
            return float(found[1])
        case "nats":
            return 30
        case _:
            return float(inspect.signature(rpc.serve).parameters["grace_s"].default)


def _grace(workload: Object) -> Iterator[str]:
    given = pod(workload)["terminationGracePeriodSeconds"]
    before = container(workload).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])
    pause = float(before[1]) if before[:1] == ["sleep"] else 0
    if given < pause + own_grace_s(workload) + LEAST_SPARE_S:
        yield f"{called(workload)} is killed after {given} s, and takes up to {pause + own_grace_s(workload):g} s"


def _one_writer(objects: list[Object]) -> Iterator[str]:
    (results,) = [one for one in of_kind(objects, *WORKLOADS) if component(one) == "results"]
    if results["kind"] != "StatefulSet" or results["spec"]["replicas"] != 1:
        yield f"{name(results)} has more than one writer"
    modes = [claim["spec"]["accessModes"] for claim in results["spec"]["volumeClaimTemplates"]]
    if modes not in ([["ReadWriteOncePod"]], [["ReadWriteOnce"]]):
        yield f"{name(results)} has volumes that several pods may write: {modes}"
    claims = {claim["metadata"]["name"] for claim in results["spec"]["volumeClaimTemplates"]}
    for part in parts(results):
        writes = {mount["name"] for mount in container(part)["volumeMounts"] if not mount.get("readOnly")}
        if process(part) == REPLICA and writes & claims:
            yield f"{called(part)} may write the database"
