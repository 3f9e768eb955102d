"""The chart's objects, as Helm renders them, and how they refer to each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import helm_python as helm
import yaml

from services.bus import login, rights

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/chart"
RELEASE, NAMESPACE = "trial", "bench"
WORKLOADS = ("Deployment", "StatefulSet", "Job")
REPLICA = rights.REPLICA
"""The second container of the results service's pod."""

SEEDS = {user: login.new_seed() for user in rights.USERS}
"""Keys of users of NATS."""

Object = dict[str, Any]


def values_files() -> dict[str, Object]:
    """The values of every file by its name, those with users of NATS, and those of all files that fit together."""
    files = {
        path.stem: yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
        for path in sorted((CHART / "values").glob("*.yaml"))
    }
    files["rights"] = {
        "nats": {"users": rights.users({user: [login.public_key(seed)] for user, seed in SEEDS.items()})}
    }
    chosen = ("monitoring", "tls", "keda", "gpu", "rights", "replica")
    together = {name: value for one in chosen for name, value in files[one].items()}
    return {"default": {}, **files, "together": together}


def render(values: Object, chart: Path = CHART) -> list[Object]:
    """Raises HelmValuesError for values that the schema refuses, HelmRenderError for a broken template."""
    with helm.Chart.load(chart) as loaded:
        texts = loaded.render(values, name=RELEASE, namespace=NAMESPACE)
    found = [yaml.load_all(text, Loader=yaml.CSafeLoader) for name, text in texts.items() if name.endswith(".yaml")]
    return [one for documents in found for one in documents if one]


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [one for one in objects if one["kind"] in kinds]


def name(one: Object) -> str:
    return f"{one['kind']} {one['metadata']['name']}"


def pod(workload: Object) -> Object:
    """The specification of a workload's pods."""
    found: Object = workload["spec"]["template"]["spec"]
    return found


def labels(workload: Object) -> dict[str, str]:
    """The labels of a workload's pods."""
    found: dict[str, str] = workload["spec"]["template"]["metadata"]["labels"]
    return found


def component(workload: Object) -> str:
    return labels(workload)["app.kubernetes.io/component"]


def parts(workload: Object) -> Iterator[Object]:
    """The workload once for each container of its pods, as if it had that one alone."""
    for one in pod(workload)["containers"]:
        alone = deepcopy(workload)
        spec = pod(alone)
        spec["containers"] = [one]
        mounted = {mount["name"] for mount in one["volumeMounts"]}
        spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] in mounted]
        yield alone


def processes(objects: list[Object]) -> list[Object]:
    """The parts of all workloads."""
    return [part for one in of_kind(objects, *WORKLOADS) for part in parts(one)]


def container(part: Object) -> Object:
    """The only one."""
    (only,) = pod(part)["containers"]
    found: Object = only
    return found


def process(part: Object) -> str:
    """What runs in the only container: a component, or the reader of copies in the pod of results."""
    called = str(container(part)["name"])
    assert called in (component(part), REPLICA), called
    return called


def called(part: Object) -> str:
    """The workload's name, with that of a further container."""
    own = process(part)
    return name(part) if own == component(part) else f"{name(part)}'s {own}"


def fits(wanted: Mapping[str, str], given: Mapping[str, str]) -> bool:
    """Whether `matchLabels` finds something with these labels."""
    return wanted.items() <= given.items()


def selected(wanted: Mapping[str, str], objects: list[Object]) -> list[Object]:
    """The workloads whose pods a selector finds."""
    return [one for one in of_kind(objects, *WORKLOADS) if fits(wanted, labels(one))]


def ports(workload: Object) -> list[Object]:
    """Those of all containers."""
    return [port for one in pod(workload)["containers"] for port in one.get("ports", ())]


def port_number(workload: Object, port: int | str) -> int | None:
    """The number of a container's port, by its name or number; None if no container has such a port."""
    known: dict[int | str, int] = {}
    for one in ports(workload):
        known[one["name"]] = known[one["containerPort"]] = one["containerPort"]
    return known.get(port)


def environ(part: Object) -> dict[str, str]:
    """A container's variables as its process sees them. Values from secrets are `secret-NAME-KEY`, those from fields
    the field's path in dashes. Raises ValueError for `$(NAME)` of a variable that is not listed before."""
    found: dict[str, str] = {}
    for one in container(part).get("env", ()):
        if "value" in one:
            found[one["name"]] = _expanded(one, found)
        elif "secretKeyRef" in one["valueFrom"]:
            found[one["name"]] = "secret-{name}-{key}".format(**one["valueFrom"]["secretKeyRef"])
        else:
            found[one["name"]] = one["valueFrom"]["fieldRef"]["fieldPath"].replace(".", "-")
    return found


def _expanded(variable: Object, earlier: Mapping[str, str]) -> str:
    value: str = variable["value"]
    for known, text in earlier.items():
        value = value.replace(f"$({known})", text)
    if "$(" in value:
        raise ValueError(f"{variable['name']} uses a variable that is not listed before it: {value}")
    return value


def config_files(part: Object, objects: list[Object]) -> Iterator[tuple[Path, str]]:
    """Where each file of a container's ConfigMaps is mounted, and its text."""
    maps = {one["metadata"]["name"]: one["data"] for one in of_kind(objects, "ConfigMap")}
    volumes = {one["name"]: one["configMap"]["name"] for one in pod(part)["volumes"] if "configMap" in one}
    for mount in container(part)["volumeMounts"]:
        if mount["name"] in volumes:
            for file, text in maps.get(volumes[mount["name"]], {}).items():
                yield Path(mount["mountPath"]) / file, text
