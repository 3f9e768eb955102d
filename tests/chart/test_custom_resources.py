"""Objects of KEDA and of the operator of Prometheus, against the schemas of their makers, with unknown fields refused.
npm fetches the schemas."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendered import Object, of_kind, render, values_files
from tests.chart.strict import CUSTOM

pytestmark = pytest.mark.stack

JAVASCRIPT = Path(__file__).parent / "custom_resources"
PARAMETERS = {
    *("natsServerMonitoringEndpoint", "account", "stream", "consumer"),
    *("lagThreshold", "activationLagThreshold", "useHttps"),
}
"""Of KEDA's scaler for NATS JetStream. The schema allows any."""

MISTAKES: dict[str, tuple[str, Sequence[str | int], Any]] = {
    "a number as a text": ("ScaledObject", ["spec", "minReplicaCount"], "1"),
    "a misspelt number": ("ScaledObject", ["spec", "minReplicas"], 1),
    "an unknown field deep inside": (
        *("ScaledObject", ["spec", "advanced", "horizontalPodAutoscalerConfig", "behavior", "scaleDown", "policy"]),
        "Max",
    ),
    "a parameter that is not a text": ("ScaledObject", ["spec", "triggers", 0, "metadata", "lagThreshold"], 1),
    "a trigger without a type": ("ScaledObject", ["spec", "triggers", 0], {"metadata": {}}),
    "a target without a name": ("ScaledObject", ["spec", "scaleTargetRef"], {"kind": "Deployment"}),
    "another version": ("ScaledObject", ["apiVersion"], "keda.sh/v1"),
    "a misspelt interval": ("ServiceMonitor", ["spec", "endpoints", 0, "intervall"], "30s"),
    "a selector that is a text": ("ServiceMonitor", ["spec", "selector"], "touchstone"),
    "a part that is not there": ("ServiceMonitor", ["speck"], {}),
    "a misspelt expression": ("PrometheusRule", ["spec", "groups", 0, "rules", 0, "expression"], "up == 0"),
    "a label that is a number": ("PrometheusRule", ["spec", "groups", 0, "rules", 0, "labels", "severity"], 1),
    "a group without a name": ("PrometheusRule", ["spec", "groups", 0], {"rules": []}),
}

Check = Callable[[list[Object]], list[list[str]]]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    """What the schemas refuse, by object."""
    work = tmp_path_factory.mktemp("js") / "custom_resources"
    shutil.copytree(JAVASCRIPT, work, ignore=shutil.ignore_patterns("node_modules"))
    subprocess.run(["npm", "ci", "--no-progress", "--loglevel=error"], cwd=work, check=True, timeout=120)

    def run(objects: list[Object]) -> list[list[str]]:
        command = ["node", "validate.mjs"]
        given = json.dumps(objects)
        ran = subprocess.run(command, cwd=work, input=given, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == 0, ran.stderr
        found: list[list[str]] = json.loads(ran.stdout)
        return found

    return run


def custom(values: Object) -> list[Object]:
    return [one for one in render(values) if one["apiVersion"] in CUSTOM]


def test_custom_resources_of_every_values_file_are_valid(check: Check) -> None:
    objects = [one for values in values_files().values() for one in custom(values)]
    assert {one["kind"] for one in objects} == {"ScaledObject", "ServiceMonitor", "PrometheusRule"}
    assert check(objects) == [[] for _ in objects]
    for one in of_kind(objects, "ScaledObject"):
        for trigger in one["spec"]["triggers"]:
            assert trigger["type"] == "nats-jetstream"
            assert trigger["metadata"].keys() <= PARAMETERS


def test_each_mistake_is_found(check: Check) -> None:
    objects = custom(values_files()["together"])
    planted = []
    for kind, path, value in MISTAKES.values():
        found: Any = deepcopy(of_kind(objects, kind)[0])
        planted.append(found)
        for step in path[:-1]:
            found = found[step]
        found[path[-1]] = value
    faults = dict(zip(MISTAKES, check(planted), strict=True))
    assert [mistake for mistake, said in faults.items() if not said] == []
