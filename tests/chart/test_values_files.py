"""Every values file gives objects that Kubernetes takes and that fit together."""

from __future__ import annotations

import helm_python as helm
import pytest
import yaml

from tests.chart.checks import faults
from tests.chart.rendered import (
    CHART,
    NAMESPACE,
    ROOT,
    environ,
    of_kind,
    process,
    processes,
    render,
    values_files,
)

FILES = values_files()


def test_there_is_a_file_for_each_way() -> None:
    assert {"default", "small", "gpu", "keda", "monitoring", "tls", "replica"} <= set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_a_values_file_has_no_faults(file: str) -> None:
    report = helm.lint(CHART, FILES[file], strict=True, namespace=NAMESPACE)
    assert report["errors"] == []
    assert [one for one in report["messages"] if one["severity"] > 1] == []
    assert list(faults(FILES[file])) == []


def test_alert_rules_are_those_of_prometheus() -> None:
    (rule,) = of_kind(render(FILES["monitoring"]), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    assert rule["metadata"]["labels"].items() >= FILES["monitoring"]["monitoring"]["labels"].items()
    assert of_kind(render({"monitoring": {"enabled": True}}), "PrometheusRule") == []


def test_clients_of_grpc_may_be_let_in() -> None:
    neighbours = [{"podSelector": {"matchLabels": {"app": "neighbour"}}}]
    assert list(faults({"grpcFrom": neighbours})) == [
        "a neighbour may reach StatefulSet trial-results at TCP 8052",
        "a neighbour may reach StatefulSet trial-scheduler at TCP 8051",
    ]
    with_copy = list(faults({**FILES["replica"], "grpcFrom": neighbours}))
    assert [one.rpartition(" ")[2] for one in with_copy] == ["8052", "8054", "8051"]


@pytest.mark.parametrize("service", ["gateway", "results"])
def test_a_service_may_be_let_out(service: str) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}], "ports": [{"protocol": "TCP", "port": 5432}]}
    (found,) = faults({service: {"egress": [rule]}})
    assert found.endswith(f"trial-{service} may reach the intranet at TCP 5432")


def test_settings_reach_every_service() -> None:
    name = "TOUCHSTONE_WRONG_TOKENS"
    values = {**FILES["replica"], "scheduler": {"settings": {"TOUCHSTONE_RUNNING_JOBS": "7"}}}
    objects = render({**values, "settings": {name: "50"}})
    given = {process(one): environ(one) for one in processes(objects)}
    assert {one for one, variables in given.items() if variables.get(name) == "50"} == given.keys() - {"nats"}
    assert given["scheduler"]["TOUCHSTONE_RUNNING_JOBS"] == "7"


def test_a_server_need_not_ask_for_certificates() -> None:
    assert list(faults({**FILES["together"], "tls": {"enabled": True, "clientCertificates": False}})) == []


def test_own_jobs_only_is_for_all_who_read() -> None:
    given = {process(one): environ(one) for one in processes(render({**FILES["replica"], "reads": "own"}))}
    assert {one for one, variables in given.items() if variables.get("TOUCHSTONE_READS") == "own"} == {
        *("scheduler", "results", "replica")
    }


def test_the_least_is_not_above_the_most() -> None:
    values = {**FILES["keda"], "gateway": {"replicas": 9}, "evaluatorDefaults": {"replicas": {"least": 7}}}
    for one in of_kind(render(values), "HorizontalPodAutoscaler"):
        assert (one["spec"]["minReplicas"], one["spec"]["maxReplicas"]) == (9, 9)
    counts = [
        (one["spec"]["minReplicaCount"], one["spec"]["maxReplicaCount"])
        for one in of_kind(render(values), "ScaledObject")
    ]
    assert counts == [(1, 8), (7, 7)]
