"""All checks of what values and a chart give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import helm_python as helm

from tests.chart import confinement, dangers, flows, references, settings, strict
from tests.chart.rendered import CHART, WORKLOADS, Object, component, labels, name, of_kind, render

HTTP = "TCP 8080"


def faults(values: Object, chart: Path = CHART, versions: Sequence[str] = strict.VERSIONS) -> Iterator[str]:
    """What is wrong with the objects, if anything: what these versions of Kubernetes refuse, then what does not fit
    together."""
    try:
        objects = render(values, chart)
    except helm.HelmError as error:
        yield str(error)
        return
    refused = [f"Kubernetes {one}: {fault}" for one in versions for fault in strict.faults(objects, one)]
    yield from refused or references.faults(objects)
    if refused or any(references.faults(objects)):
        return
    yield from confinement.faults(objects)
    yield from flows.faults(objects, opened(objects, values))
    yield from settings.faults(objects)
    yield from dangers.faults(objects, values)


def opened(objects: list[Object], values: Object) -> set[flows.Flow]:
    """Connections with the outside that the chart means to open."""
    workloads = {name(one): one for one in of_kind(objects, *WORKLOADS)}
    found = {(one, flows.NAMES.name, port) for one in workloads for port in ("TCP 53", "UDP 53")}
    for one, workload in workloads.items():
        match component(workload):
            case "gateway":
                found |= {(place.name, one, HTTP) for place in flows.OUTSIDE}
            case "scheduler":
                found |= {(one, flows.PROVIDER.name, port) for port in ("TCP 80", "TCP 443")}
            case "evaluator":
                found |= set(_egress(one, _group(values, labels(workload)["touchstone/group"])))
        if values.get("traces") and component(workload) in settings.READERS:
            found.add((one, flows.COLLECTOR.name, "TCP 4318"))
    return found


def _group(values: Object, group: str) -> Object:
    groups: list[Object] = values.get("evaluators", [{"name": "public", "public": True}])
    (found,) = [one for one in groups if one["name"] == group]
    return found


def _egress(workload: str, group: Object) -> Iterator[flows.Flow]:
    if group.get("public"):
        yield workload, flows.PROVIDER.name, "TCP 443"
    if group.get("egress"):
        yield workload, flows.MODELS.name, "TCP 8000"
