"""What objects of the chart name in each other must be there, and fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chart.rendered import (
    REPLICA,
    WORKLOADS,
    Object,
    called,
    container,
    environ,
    fits,
    labels,
    name,
    of_kind,
    parts,
    pod,
    port_number,
    ports,
    process,
    processes,
    selected,
)

RUNNING = ("Deployment", "StatefulSet")
"""What runs until it is stopped."""


def faults(objects: list[Object]) -> Iterator[str]:
    for check in (_duplicates, _selectors, _services, _doors, _targets, _volumes, _ports, _probes):
        yield from check(objects)


def _duplicates(objects: list[Object]) -> Iterator[str]:
    for one, count in Counter(map(name, objects)).items():
        if count > 1:
            yield f"{one} is there {count} times"


def _selectors(objects: list[Object]) -> Iterator[str]:
    for one in of_kind(objects, *RUNNING):
        found = selected(one["spec"]["selector"]["matchLabels"], objects)
        if found != [one]:
            yield f"{name(one)} selects pods of {list(map(name, found))}"
        for spread in pod(one)["topologySpreadConstraints"]:
            if selected(spread["labelSelector"]["matchLabels"], objects) != [one]:
                yield f"{name(one)} spreads other pods"
        if not fits(one["metadata"]["labels"], labels(one)):
            yield f"{name(one)} has other labels than its pods"
    for one in of_kind(objects, "PodDisruptionBudget"):
        found = selected(one["spec"]["selector"]["matchLabels"], objects)
        if len(found) != 1:
            yield f"{name(one)} selects pods of {list(map(name, found))}"
    for one in of_kind(objects, "NetworkPolicy"):
        if not selected(one["spec"]["podSelector"].get("matchLabels", {}), objects):
            yield f"{name(one)} selects no pods"


def _services(objects: list[Object]) -> Iterator[str]:
    for one in of_kind(objects, "Service"):
        found = selected(one["spec"]["selector"], objects)
        if not found:
            yield f"{name(one)} selects no pods"
        apart = any(len(pod(workload)["containers"]) > 1 for workload in found)
        # Of several containers, one may be ready and another one not.
        if apart and not one["spec"].get("publishNotReadyAddresses"):
            yield f"{name(one)} leaves out pods of which a container is not ready"
        for port in one["spec"]["ports"]:
            numbers = {port_number(workload, port["targetPort"]) for workload in found}
            if None in numbers:
                yield f"{name(one)} names the port {port['targetPort']}, which some of its pods lack"
            if one["spec"].get("clusterIP") == "None" and numbers != {port["port"]}:
                yield f"{name(one)} has no address, so its port must be that of its pods: {port['port']}"
    for one in of_kind(objects, "StatefulSet"):
        governing = [
            service
            for service in of_kind(objects, "Service")
            if service["metadata"]["name"] == one["spec"]["serviceName"]
        ]
        if not governing or selected(governing[0]["spec"]["selector"], objects) != [one]:
            yield f"{name(one)} has no service"


def _doors(objects: list[Object]) -> Iterator[str]:
    for one in of_kind(objects, "Ingress"):
        for rule in one["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                if not _has_port(objects, backend["name"], backend["port"]["name"]):
                    yield f"{name(one)} leads to {backend['name']}, which is not there or lacks the port"
    for one in of_kind(objects, "ServiceMonitor"):
        found = [
            service
            for service in of_kind(objects, "Service")
            if fits(one["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        ]
        for endpoint in one["spec"]["endpoints"]:
            if not found or not all(_has_port(objects, s["metadata"]["name"], endpoint["port"]) for s in found):
                yield f"{name(one)} finds no service with the port {endpoint['port']}"
        if [s for s in found if not s["spec"].get("publishNotReadyAddresses")]:
            yield f"{name(one)} misses processes that are not ready"


def _has_port(objects: list[Object], service: str, port: str) -> bool:
    return any(
        one["metadata"]["name"] == service and any(known["name"] == port for known in one["spec"]["ports"])
        for one in of_kind(objects, "Service")
    )


def _targets(objects: list[Object]) -> Iterator[str]:
    """A number of pods has one owner."""
    known = {one["metadata"]["name"]: one for one in of_kind(objects, "Deployment")}
    scaled = []
    for one in of_kind(objects, "HorizontalPodAutoscaler", "ScaledObject"):
        target = one["spec"]["scaleTargetRef"]
        workload = known.get(target["name"]) if target["kind"] == "Deployment" else None
        if workload is None:
            yield f"{name(one)} scales {target['kind']} {target['name']}, which is not there"
            continue
        scaled.append(target["name"])
        if "replicas" in workload["spec"]:
            yield f"{name(workload)} sets the number of pods that {name(one)} changes"
        if labels(workload)["app.kubernetes.io/component"] not in ("gateway", "evaluator"):
            yield f"{name(one)} scales what must not be scaled"
    for target, count in Counter(scaled).items():
        if count > 1:
            yield f"Deployment {target} is scaled {count} times"
    for workload in known.values():
        if "replicas" not in workload["spec"] and workload["metadata"]["name"] not in scaled:
            yield f"{name(workload)} has no number of pods"


def _volumes(objects: list[Object]) -> Iterator[str]:
    maps = {one["metadata"]["name"] for one in of_kind(objects, "ConfigMap")}
    for one in of_kind(objects, *WORKLOADS):
        claims = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", ())}
        known = {volume["name"] for volume in pod(one)["volumes"]} | claims
        used = {mount["name"] for part in parts(one) for mount in container(part)["volumeMounts"]}
        if used != known:
            yield f"{name(one)} mounts {sorted(used)} and has {sorted(known)}"
        for volume in pod(one)["volumes"]:
            if "configMap" in volume and volume["configMap"]["name"] not in maps:
                yield f"{name(one)} names the ConfigMap {volume['configMap']['name']}, which is not there"
    for part in processes(objects):
        try:
            variables = environ(part)
        except ValueError as error:
            yield f"{called(part)}: {error}"
            continue
        paths = [value for value in variables.values() if value.startswith("/")]
        mounts = [mount["mountPath"] for mount in container(part)["volumeMounts"]]
        for path in paths:
            if not any(f"{path}/".startswith(f"{mount}/") for mount in mounts):
                yield f"{called(part)} has a setting {path} where nothing is mounted"


def _ports(objects: list[Object]) -> Iterator[str]:
    """The containers of a pod share its address."""
    for one in of_kind(objects, *WORKLOADS):
        for port, count in Counter(port["containerPort"] for port in ports(one)).items():
            if count > 1:
                yield f"{name(one)} has two containers at port {port}"


def _probes(objects: list[Object]) -> Iterator[str]:
    for one in processes(of_kind(objects, *RUNNING)):
        given = container(one)
        kinds = {kind for kind in ("startupProbe", "livenessProbe", "readinessProbe") if kind in given}
        expected = {"startupProbe", "livenessProbe"}
        if process(one) == REPLICA:
            if "readinessProbe" in kinds:
                yield f"{called(one)} takes the results service away while there is no copy: it has a readinessProbe"
        else:
            expected.add("readinessProbe")
        for missing in sorted(expected - kinds):
            yield f"{called(one)} has no {missing}"
        for kind in sorted(kinds):
            port = probed_port(given[kind])
            if port_number(one, port) is None:
                yield f"{called(one)} has a {kind} at a port {port} that it lacks"
        if "grpc" in given.get("livenessProbe", {}):
            yield f"{called(one)} is restarted while NATS is away: its health also says that"


def probed_port(probe: Object) -> int | str:
    """Where a probe asks: over HTTP, over gRPC, or by a command whose last argument is an address."""
    if "exec" in probe:
        return int(probe["exec"]["command"][-1].rpartition(":")[2])
    found: int | str = (probe.get("httpGet") or probe["grpc"])["port"]
    return found
