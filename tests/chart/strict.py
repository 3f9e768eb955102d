"""Kubernetes' own schemas, with unknown fields refused."""

from __future__ import annotations

import functools
import json
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
    given = [one for one in objects if one["apiVersion"] not in CUSTOM]
    return [f"{name(one)}: {fault}" for one in given if (fault := _fault(json.dumps(one), version))]


@functools.cache
def _fault(text: str, version: str) -> str:
    """Of one object, as JSON. Most of the charts with a mistake have the same objects."""
    try:
        kubernetes_validate.validate(json.loads(text), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        return str(error.message)
    return ""
