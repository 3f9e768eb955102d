"""What would start, and then lose data, let strangers in or stand still: whose name is whose, where data are, NATS,
TLS, GPUs, and what an eviction takes away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml

from tests.chart.rendered import (
    CHART,
    REPLICA,
    Object,
    called,
    component,
    config_files,
    container,
    environ,
    labels,
    name,
    of_kind,
    pod,
    process,
    processes,
    selected,
)

_NAMES = {"scheduler": "TOUCHSTONE_SCHEDULER_NAME", "evaluator": "TOUCHSTONE_EVALUATOR_NAME"}
_SERVERS = ("scheduler", "results", REPLICA, "evaluator")
_CALLERS = (*_SERVERS, "gateway")
_EVERYWHERE = "0.0.0.0"
_MOST_COPIES = 3


def faults(objects: list[Object], values: Object) -> Iterator[str]:
    whole = _merged(_defaults(), values)
    for check in (_names, _listening, _kept, _nats, _copies, _tls, _secrets, _gpus, _evicted, _asked):
        yield from check(objects, whole)


@cache
def _defaults() -> Object:
    found: Object = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def _merged(below: Object, above: Object) -> Object:
    """As Helm does."""
    both = {key: _merged(below[key], above[key]) for key in below.keys() & above.keys() if _groups(below, above, key)}
    return below | above | both


def _groups(below: Object, above: Object, key: str) -> bool:
    return isinstance(below[key], dict) and isinstance(above[key], dict)


def _names(objects: list[Object], _: Object) -> Iterator[str]:
    """Two schedulers of one name would both lead, and of two such evaluators one would count."""
    for one in processes(objects):
        variable = _NAMES.get(process(one))
        if variable and environ(one).get(variable) != "metadata-name":
            yield f"{called(one)} has no {variable} of its own"


def _listening(objects: list[Object], _: Object) -> Iterator[str]:
    for one in processes(objects):
        for variable, value in environ(one).items():
            host = value if variable == "TOUCHSTONE_HTTP_HOST" else value.rpartition(":")[0]
            if (variable == "TOUCHSTONE_HTTP_HOST" or variable.endswith("_LISTEN")) and host != _EVERYWHERE:
                yield f"{called(one)} listens at {value} alone, where other pods do not reach it"


def _kept(objects: list[Object], _: Object) -> Iterator[str]:
    """Data are on volumes that stay when the pod goes."""
    for one in processes(objects):
        if process(one) not in ("nats", "results", REPLICA):
            continue
        claims = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", ())}
        places = [mount["mountPath"] for mount in container(one)["volumeMounts"] if mount["name"] in claims]
        data = environ(one).get("TOUCHSTONE_STATE_DIR", "")
        if process(one) == "nats":
            data = "".join(re.findall(r'store_dir: "([^"]+)"', _configuration(one, objects)))
        if data not in places:
            yield f"{called(one)} has its data at {data!r}, and its volume at {places}"


def _configuration(node: Object, objects: list[Object]) -> str:
    return next(text for path, text in config_files(node, objects) if path.name == "nats.conf")


def _nats(objects: list[Object], values: Object) -> Iterator[str]:
    (node,) = [one for one in processes(objects) if process(one) == "nats"]
    own, _, cluster = _configuration(node, objects).partition("\ncluster {")
    encrypted, certificates = values["tls"]["enabled"], values["tls"]["clientCertificates"]
    several = node["spec"]["replicas"] > 1
    (service,) = [one for one in of_kind(objects, "Service") if name(one) == f"Service {node['spec']['serviceName']}"]
    rules = {
        "acknowledges what is not on disk": "sync_interval: always" in own,
        "lets in who has no key": bool(
            re.search(r'(?m)^(authorization \{ token: \$QUOTED_TOKEN \}|include "users.conf")$', own)
        ),
        "has another TLS for clients than the values": _verified(own) == ([certificates] if encrypted else []),
        "has another TLS for nodes than the values": _verified(cluster) == ([True] if encrypted and several else []),
        "starts its first node alone, which waits for the others": not several
        or node["spec"].get("podManagementPolicy") == "Parallel",
        "has nodes that do not find each other before they are ready": service["spec"].get("publishNotReadyAddresses"),
    }
    for fault, kept in rules.items():
        if not kept:
            yield f"{name(node)} {fault}"


def _verified(text: str) -> list[bool]:
    """Of each block of TLS, whether it asks who connects."""
    return ["verify: true" in block for block in re.findall(r"\btls \{([^}]*)\}", text)]


def _copies(objects: list[Object], values: Object) -> Iterator[str]:
    expected = str(min(_MOST_COPIES, values["nats"]["replicas"]))
    for one in processes(objects):
        if process(one) != "nats" and environ(one).get("TOUCHSTONE_NATS_REPLICAS") != expected:
            yield f"{called(one)} keeps another number of copies than {expected}"


def _tls(objects: list[Object], values: Object) -> Iterator[str]:
    encrypted, certificates = values["tls"]["enabled"], values["tls"]["clientCertificates"]
    for one in processes(objects):
        own, given = process(one), environ(one)
        expected: set[str] = set()
        if encrypted and own != "nats":
            ends = {"NATS_TLS_CA", *(("NATS_TLS_CERT", "NATS_TLS_KEY") if certificates else ())}
            ends |= {"TLS_CA"} if own in _CALLERS else set()
            ends |= {"TLS_CLIENT_CERT", "TLS_CLIENT_KEY"} if own in _CALLERS and certificates else set()
            ends |= {"TLS_CERT", "TLS_KEY"} if own in _SERVERS else set()
            ends |= {"TLS_CLIENT_CA"} if own in _SERVERS and certificates else set()
            expected = {f"TOUCHSTONE_{end}" for end in ends}
        if wrong := sorted(expected ^ {variable for variable in given if "_TLS_" in variable}):
            yield f"{called(one)} has too many or too few settings of TLS: {', '.join(wrong)}"
        scheme = "tls" if encrypted else "nats"
        for url in filter(None, given.get("TOUCHSTONE_NATS_URL", "").split(",")):
            if not url.startswith(f"{scheme}://"):
                yield f"{called(one)} does not connect to NATS by {scheme}"
        for volume in pod(one)["volumes"]:
            if volume["name"] == "tls" and volume["secret"]["secretName"] != values["tls"]["secrets"][component(one)]:
                yield f"{called(one)} has the certificate of another"


def _secrets(objects: list[Object], values: Object) -> Iterator[str]:
    wanted = {"TOUCHSTONE_SERVICE_TOKEN": "serviceToken", "NATS_TOKEN": "natsToken"}
    for one in processes(objects):
        given = environ(one)
        for variable, secret in wanted.items():
            if variable in given and given[variable] != "secret-{name}-{key}".format(**values["secrets"][secret]):
                yield f"{called(one)} takes {variable} from another secret"


def _gpus(objects: list[Object], values: Object) -> Iterator[str]:
    groups: dict[str, Any] = {one["name"]: one.get("gpu") or {} for one in values["evaluators"]}
    for one in processes(objects):
        gpu = groups[labels(one)["touchstone/group"]] if process(one) == "evaluator" else {}
        expected = {values["gpuClasses"][gpu["class"]]["resource"]: gpu["count"]} if gpu else {}
        limits = container(one)["resources"].get("limits", {})
        if {key: value for key, value in limits.items() if key not in ("cpu", "memory")} != expected:
            yield f"{called(one)} has other devices than {expected}"
        repository = values["gpuImage" if gpu else "image"]["repository"]
        if re.split("[:@]", container(one)["image"])[0] != re.split("[:@]", repository)[0]:
            yield f"{called(one)} has another image than {repository}"


def _evicted(objects: list[Object], _: Object) -> Iterator[str]:
    least = {}
    for one in of_kind(objects, "HorizontalPodAutoscaler", "ScaledObject"):
        spec = one["spec"]
        fewest, most = (
            spec.get("minReplicas", spec.get("minReplicaCount")), spec.get("maxReplicas", spec.get("maxReplicaCount")),
        )  # fmt: skip
        least[spec["scaleTargetRef"]["name"]] = fewest
        if fewest > most:
            yield f"{name(one)} has more pods at least than at most"
    budgets = of_kind(objects, "PodDisruptionBudget")
    for one in of_kind(objects, "Deployment", "StatefulSet"):
        count = one["spec"].get("replicas", least.get(one["metadata"]["name"]))
        own = [b for b in budgets if selected(b["spec"]["selector"]["matchLabels"], objects) == [one]]
        if count > 1 and not own:
            yield f"{name(one)} may lose all its pods at a time"
        for budget in own:
            if budget["spec"].get("maxUnavailable") != 1:
                yield f"{name(budget)} must let one pod go, and only one"


def _asked(objects: list[Object], _: Object) -> Iterator[str]:
    """A gateway that cannot reach the others gets no requests, and is not started again."""
    (gateway,) = [one for one in processes(objects) if process(one) == "gateway"]
    asked = {kind: probe["httpGet"]["path"] for kind, probe in container(gateway).items() if kind.endswith("Probe")}
    expected = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for kind in expected:
        if asked.get(kind) != expected[kind]:
            yield f"{name(gateway)} is asked for {asked.get(kind)} in its {kind}, and not for {expected[kind]}"
