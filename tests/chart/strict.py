"""Kubernetes' own schemas, with unknown fields refused."""

from __future__ import annotations

import functools
import re

import kubernetes_validate
import yaml
from kubernetes_validate import utils

from tests.chart.rendered import CHART, Object, name

# It reads a megabyte of definitions for each object.
utils.schema_contents = functools.cache(utils.schema_contents)

CUSTOM = ("keda.sh/v1alpha1", "monitoring.coreos.com/v1")


def _oldest() -> str:
    allowed = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"]
    match = re.fullmatch(r">=(\d+\.\d+)\.0-0", allowed)
    assert match
    return match[1]


VERSIONS = (_oldest(), kubernetes_validate.latest_version())
"""The oldest version of Kubernetes that the chart allows, and the newest with a schema."""


def faults(objects: list[Object], version: str) -> list[str]:
    """What a version of Kubernetes would refuse. Custom resources have tests of their own."""
    found = []
    for one in objects:
        if one["apiVersion"] in CUSTOM:
            continue
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"{name(one)}: {'.'.join(map(str, error.path))}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError as error:
            found.append(f"{name(one)}: {error.message}")
    return found
