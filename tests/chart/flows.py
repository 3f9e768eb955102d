"""Which connections the NetworkPolicies allow, and which the settings need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from tests.chart.rendered import (
    NAMESPACE,
    WORKLOADS,
    Object,
    config_files,
    environ,
    fits,
    labels,
    name,
    of_kind,
    port_number,
    ports,
    processes,
    selected,
)

_SPACE = "kubernetes.io/metadata.name"
_ADDRESS = re.compile(r"(?:^|[@/\"])([a-z0-9-]+(?:\.[a-z0-9-]+)*):(\d+)")
_NAMING = (
    *("TOUCHSTONE_NATS_URL", "TOUCHSTONE_NATS_MONITOR_URL"),
    *("TOUCHSTONE_SCHEDULER", "TOUCHSTONE_RESULTS", "TOUCHSTONE_REPLICA"),
)
OTHER_PORTS = ("TCP 22", "TCP 53", "UDP 53", "TCP 80", "TCP 443", "TCP 4318", "TCP 5432", "TCP 8000")
"""Ports that nothing of the chart listens at."""


@dataclass(frozen=True)
class Place:
    """One end of a connection: a pod with labels in a namespace, or an address outside the cluster."""

    name: str
    labels: dict[str, str] = field(default_factory=dict, hash=False)
    namespace: str = NAMESPACE
    address: str = ""


Flow = tuple[str, str, str]
"""From a place, to a place, at a port such as `TCP 53`."""

KEDA = Place("KEDA", {"app": "keda-operator"}, "keda")
PROMETHEUS = Place("Prometheus", {"app": "prometheus"}, "monitoring")
BROWSERS = Place("browsers", {"app": "ingress-nginx"}, "ingress-nginx")
NEIGHBOUR = Place("a neighbour", {"app": "neighbour"})
NAMES = Place("DNS", {"k8s-app": "kube-dns"}, "kube-system")
MODELS = Place("models", {"app": "vllm"}, "models")
COLLECTOR = Place("the collector", {"app.kubernetes.io/name": "collector"}, "telemetry")
PROVIDER = Place("a provider", address="203.0.113.7")
INTRANET = Place("the intranet", address="10.9.8.7")
METADATA = Place("the cloud's metadata", address="169.254.169.254")
OUTSIDE = (KEDA, PROMETHEUS, BROWSERS, NEIGHBOUR, NAMES, MODELS, COLLECTOR, PROVIDER, INTRANET, METADATA)


def allowed(objects: list[Object]) -> set[Flow]:
    """Every connection that the policies allow, with what is outside and within."""
    policies = [one["spec"] for one in of_kind(objects, "NetworkPolicy")]
    workloads = {name(one): one for one in of_kind(objects, *WORKLOADS)}
    inside = [Place(one, labels(workload)) for one, workload in workloads.items()]
    own = {f"TCP {port['containerPort']}" for one in workloads.values() for port in ports(one)}
    places = [*inside, *OUTSIDE]
    egress = {one.name: _rules(policies, one, "egress", "to") for one in places}
    ingress = {one.name: _rules(policies, one, "ingress", "from") for one in places}
    return {
        (source.name, target.name, port)
        for source in places
        for target in places
        if source in inside or target in inside
        for port in (*own, *OTHER_PORTS)
        if _may(egress[source.name], target, port) and _may(ingress[target.name], source, port)
    }


Rules = list[tuple[list[Object], list[Object]]]
"""Peers and ports of rules; an empty list means any."""


def _rules(policies: list[Object], own: Place, way: str, side: str) -> Rules | None:
    """What a pod may call (egress), or who may call it (ingress). None: there is no policy, and so no limit."""
    if own.namespace != NAMESPACE or own.address:
        return None
    concerned = [
        spec
        for spec in policies
        if fits(spec["podSelector"].get("matchLabels", {}), own.labels) and way.capitalize() in spec["policyTypes"]
    ]
    rules = [rule for spec in concerned for rule in spec.get(way, ())]
    return [(rule.get(side, []), rule.get("ports", [])) for rule in rules] if concerned else None


def _may(rules: Rules | None, peer: Place, port: str) -> bool:
    if rules is None:
        return True
    return any(
        (not ports or port in [f"{one.get('protocol', 'TCP')} {one['port']}" for one in ports])
        and (not peers or any(_is(one, peer) for one in peers))
        for peers, ports in rules
    )


def _is(given: Object, place: Place) -> bool:
    if "ipBlock" in given:
        if not place.address:
            return False
        address, block = ip_address(place.address), ip_network(given["ipBlock"]["cidr"])
        return address in block and not any(address in ip_network(one) for one in given["ipBlock"].get("except", ()))
    if place.address:
        return False
    space = given.get("namespaceSelector")
    there = (
        place.namespace == NAMESPACE if space is None else fits(space.get("matchLabels", {}), {_SPACE: place.namespace})
    )
    return there and fits(given.get("podSelector", {}).get("matchLabels", {}), place.labels)


def needed(objects: list[Object]) -> set[Flow]:
    """Connections that the settings name. Raises ValueError for an address that leads nowhere."""
    found = set()
    for one in processes(objects):
        texts = [value for variable, value in environ(one).items() if variable in _NAMING]
        texts += [line for _, text in config_files(one, objects) for line in text.splitlines() if "nats://" in line]
        for host, port in (match for text in texts for match in _ADDRESS.findall(text.replace(",", "\n@"))):
            for target, number in _resolved(objects, host, int(port)):
                found.add((name(one), name(target), f"TCP {number}"))
    for one in of_kind(objects, "ScaledObject"):
        for trigger in one["spec"]["triggers"]:
            host, _, port = trigger["metadata"]["natsServerMonitoringEndpoint"].partition(":")
            found |= {
                (KEDA.name, name(target), f"TCP {number}") for target, number in _resolved(objects, host, int(port))
            }
    for one in of_kind(objects, "ServiceMonitor"):
        read = {endpoint["port"] for endpoint in one["spec"]["endpoints"]}
        for service in of_kind(objects, "Service"):
            if fits(one["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]):
                ends = [
                    _resolved(objects, service["metadata"]["name"], port["port"])
                    for port in service["spec"]["ports"]
                    if port["name"] in read
                ]
                found |= {(PROMETHEUS.name, name(target), f"TCP {number}") for end in ends for target, number in end}
    return found


def _resolved(objects: list[Object], host: str, port: int) -> Iterator[tuple[Object, int]]:
    """The workloads behind a name and port of a service, or of one pod of a StatefulSet."""
    first, *rest = host.split(".")
    services = {one["metadata"]["name"]: one for one in of_kind(objects, "Service")}
    if first not in services and rest and rest[0] in services:
        (workload,) = selected(services[rest[0]]["spec"]["selector"], objects)
        set_name, _, ordinal = first.rpartition("-")
        if set_name != workload["metadata"]["name"] or int(ordinal) >= workload["spec"]["replicas"]:
            raise ValueError(f"There is no pod {first}.")
        first, rest = rest[0], rest[1:]
    if first not in services or rest not in ([], [NAMESPACE, "svc"]):
        raise ValueError(f"{host} is not the name of a service.")
    targets = [one["targetPort"] for one in services[first]["spec"]["ports"] if one["port"] == port]
    if not targets:
        raise ValueError(f"The service {first} has no port {port}.")
    for workload in selected(services[first]["spec"]["selector"], objects):
        number = port_number(workload, targets[0])
        if number is not None:
            yield workload, number


def faults(objects: list[Object], opened: set[Flow]) -> Iterator[str]:
    """`opened` are the connections with the outside that values open."""
    try:
        wanted = needed(objects) | opened
    except ValueError as error:
        yield str(error)
        return
    may = allowed(objects)
    for source, target, port in sorted(wanted - may):
        yield f"{source} may not reach {target} at {port}"
    for source, target, port in sorted(may - wanted):
        yield f"{source} may reach {target} at {port}"
