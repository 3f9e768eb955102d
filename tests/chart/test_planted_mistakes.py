"""Each mistake in values or in the chart is found by one of the checks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.chart.checks import faults
from tests.chart.rendered import CHART, Object, values_files
from tests.chart.strict import VERSIONS

FILES = values_files()
TOKEN = (
    "valueFrom: {secretKeyRef: {name: {{ $values.secrets.serviceToken.name }}, "
    "key: {{ $values.secrets.serviceToken.key }}}}"
)
UNKNOWN_KIND = '[[endpoint]]\nname = "a"\nkind = "opnai"'

# The values file, where in it, what is there instead, and what is said of it.
VALUES: dict[str, tuple[str, Sequence[str | int], Any, str]] = {
    "a misspelt value": ("default", ["gateway", "replica"], 3, "'replica' not allowed"),
    "a misspelt value of a group": ("gpu", ["evaluators", 1, "gpus"], {}, "'gpus' not allowed"),
    "a text for a number": ("default", ["scheduler", "replicas"], "2", "'/scheduler/replicas'"),
    "a number for a text": ("default", ["settings", "TOUCHSTONE_WRONG_TOKENS"], 9_000_000, "got number"),
    "a misspelt setting": (
        "default", ["scheduler", "settings", "TOUCHSTONE_RUNING_JOBS"], "5",
        "'TOUCHSTONE_RUNING_JOBS'",
    ),
    "a setting of another service": (
        "default", ["gateway", "settings", "TOUCHSTONE_UNIT_SIZE"], "8", "'TOUCHSTONE_UNIT_SIZE'",
    ),
    "a secret as a setting": (
        "default", ["gateway", "settings", "TOUCHSTONE_AIRFLOW_TOKEN"], "x",
        "'TOUCHSTONE_AIRFLOW_TOKEN'",
    ),
    "a setting outside its range": (
        "default", ["scheduler", "settings", "TOUCHSTONE_RUNNING_JOBS"], "0", "TOUCHSTONE_RUNNING_JOBS must be",
    ),
    "a secret without a name": ("default", ["secrets", "natsToken", "name"], "", "'/secrets/natsToken/name'"),
    "a secret of no known setting": (
        "default", ["results", "fromSecrets"], [{"variable": "TOUCHSTONE_MLFLOW", "name": "a", "key": "b"}],
        "'/results/fromSecrets/0",
    ),
    "two nodes of NATS": ("default", ["nats", "replicas"], 2, "'/nats/replicas'"),
    "no group of evaluators": ("default", ["evaluators"], [], "'/evaluators'"),
    "a group without an evaluator": ("keda", ["evaluators", 0, "replicas", "least"], 0, "replicas/least'"),
    "two groups of one name": ("keda", ["evaluators", 1, "name"], "public", "is there 2 times"),
    "an unknown class of GPUs": ("gpu", ["evaluators", 1, "gpu", "class"], "h200", "the GPU class h200"),
    "an unknown kind of endpoint": (
        "default", ["evaluators"], [{"name": "public", "public": True, "endpoints": UNKNOWN_KIND}], "opnai",
    ),
    "an ingress without a host": ("tls", ["gateway", "ingress", "host"], "", "'/gateway/ingress/host'"),
    "a disk that several nodes write": ("default", ["results", "volume", "accessMode"], "ReadWriteMany", "accessMode'"),
    "a group that may call everything": ("keda", ["evaluators", 1, "egress"], [{}], "vllm may reach the intranet"),
    "a time between copies as a text": (
        "replica", ["results", "replica", "everyS"], "30", "'/results/replica/everyS'",
    ),
    "a setting that the chart has": (
        "default", ["results", "settings", "TOUCHSTONE_REPLICA_S"], "30", "'TOUCHSTONE_REPLICA_S'",
    ),
    "a door that nobody may enter": (
        "default", ["gateway", "from"], [{"podSelector": {"matchLabels": {"app": "x"}}}], "browsers may not reach",
    ),
}  # fmt: skip

# The values file, the template, what is in it, what is there instead, and what is said of it.
TEMPLATES: dict[str, tuple[str, str, str, str, str]] = {
    "traces that cannot be sent": (
        "monitoring", "networkpolicies.yaml", "with $.Values.traces.egress", "with false",
        "may not reach the collector",
    ),
    "a misspelt field": ("default", "gateway.yaml", "maxSurge: 1", "maxSurges: 1", "maxSurges"),
    "a misspelt field of a pod": (
        "default", "_helpers.tpl", "runAsNonRoot: true", "runAsNonroot: true",
        "runAsNonroot",
    ),
    "a field of the wrong type": ("default", "results.yaml", "replicas: 1", 'replicas: "1"', "is not of type"),
    "an API that newer versions lack": (
        "default", "gateway.yaml", "autoscaling/v2", "autoscaling/v2beta2",
        "find schema",
    ),
    "a selector that finds nothing": (
        "default", "scheduler.yaml", "  clusterIP: None\n  selector:\n", "  clusterIP: None\n  selector:\n    app: x\n",
        "Service trial-scheduler selects no pods",
    ),
    "a selector of other pods": (
        "default", "gateway.yaml", '{{- $this := dict "root" . "component" "gateway" }}',
        '{{- $this := dict "root" . "component" "scheduler" }}', "is there 2 times",
    ),
    "a port that the pods lack": (
        "default", "results.yaml", "targetPort: grpc", "targetPort: http", "names the port http",
    ),
    "a port that no setting names": (
        "default", "results.yaml", "{name: grpc, containerPort: {{ $ports.results }}}",
        "{name: grpc, containerPort: 8051}",
        "that it lacks",
    ),
    "a health check at another port": (
        "default", "scheduler.yaml", '(dict "port" $ports.scheduler)', '(dict "port" $ports.metrics)',
        "for its health at",
    ),
    "a misspelt variable": (
        "default", "gateway.yaml", "TOUCHSTONE_SCHEDULER\n", "TOUCHSTONE_SCHEDULERS\n", "which its code does not read",
    ),
    "a secret as a text": (
        "default", "_helpers.tpl",
        TOKEN,
        "value: changeme", "as a text",
    ),
    "a missing secret": (
        "default", "_helpers.tpl",
        f"- name: TOUCHSTONE_SERVICE_TOKEN\n  {TOKEN}\n",
        "", "does not start",
    ),
    "a variable that is used before it is there": (
        "default", "nats.yaml", '\'"$(NATS_TOKEN)"\'', '\'"$(TOKEN)"\'', "uses a variable",
    ),
    "a volume that is not mounted": (
        "default", "results.yaml", "            - {name: state, mountPath: /var/lib/touchstone}\n", "", "mounts",
    ),
    "a second writer": ("default", "results.yaml", "replicas: 1", "replicas: 2", "more than one writer"),
    "a short time to stop": (
        "default", "evaluators.yaml", "{{ add .graceS 15 }}", "30", "is killed after 30 s, and takes up to 60 s",
    ),
    "a restart while NATS is away": (
        "default", "_helpers.tpl", "livenessProbe:\n  httpGet: {path: /metrics, port: metrics}",
        "livenessProbe:\n  grpc: {port: {{ .port }}}", "is restarted while NATS is away",
    ),
    "rights of root": (
        "default", "_helpers.tpl", "capabilities: {drop: [ALL]}", "capabilities: {}",
        "keeps capabilities",
    ),
    "variables of services": (
        "default", "_helpers.tpl", "enableServiceLinks: false", "enableServiceLinks: true",
        "gets variables of services",
    ),
    "an address that leads nowhere": (
        "default", "_helpers.tpl", "-results.{{ .root.Release.Namespace }}", "-result.{{ .root.Release.Namespace }}",
        "trial-result.bench.svc is not the name",
    ),
    "a node of NATS that is not there": (
        "default", "_helpers.tpl", "until (int .root.Values.nats.replicas)", "until 4", "no pod trial-nats-3",
    ),
    "a flow without a policy": (
        "default", "networkpolicies.yaml", '(list "gateway" "scheduler" "evaluator") "to" "results"',
        '(list "gateway" "scheduler") "to" "results"', "evaluator-public may not reach StatefulSet trial-results",
    ),
    "a policy without a flow": (
        "default",
        "networkpolicies.yaml", '(list "gateway") "to" "scheduler"', '(list "gateway" "evaluator") "to" "scheduler"',
        "evaluator-public may reach StatefulSet trial-scheduler at TCP 8051",
    ),
    "a setting with another port": (
        "default", "gateway.yaml", "value: {{ $ports.http | quote }}", 'value: "8081"', "has the ports",
    ),
    "no limit of what is called": (
        "default", "networkpolicies.yaml", "policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]",
        "trial-results may reach the intranet",
    ),
    "no names of hosts": (
        "default", "networkpolicies.yaml", "{protocol: UDP, port: 53}, ", "",
        "may not reach DNS at UDP 53",
    ),
    "private addresses as public ones": (
        "default", "networkpolicies.yaml", "10.0.0.0/8, ", "", "trial-scheduler may reach the intranet at TCP 443",
    ),
    "two owners of a number": (
        "keda", "evaluators.yaml", "  {{- if not $.Values.keda.enabled }}\n", "  {{- if true }}\n",
        "sets the number of pods",
    ),
    "a scaled object without its target": (
        "keda", "evaluators.yaml", 'kind: Deployment, name: {{ include "touchstone.name" $this }}',
        'kind: Deployment, name: {{ .name }}', "which is not there",
    ),
    "a consumer of no endpoint": (
        "keda", "evaluators.yaml", "consumer: work-{{ .name }}", "consumer: {{ .name }}",
        "consumers",
    ),
    "a monitor that finds nothing": (
        "monitoring", "monitoring.yaml", "    - {port: metrics,", "    - {port: metric,",
        "finds no service with the port",
    ),
    "the key of another service": (
        "rights", "_helpers.tpl", "key: {{ .component }}.seed", "key: setup.seed", "has the seeds of others",
    ),
    "a job that nobody lets in": (
        "rights", "networkpolicies.yaml", '(dict "from" $clients "to" "nats"', '(dict "from" $callers "to" "nats"',
        "may not reach StatefulSet trial-nats",
    ),
    "a token and a key": (
        "rights", "_helpers.tpl", "{{- $before = printf",
        "{{- end }}\n{{- if true }}\n{{- $before = printf", "does not start",
    ),
    "a copy that nobody writes": (
        "replica", "results.yaml", "            - name: TOUCHSTONE_REPLICA_S\n"
        "              value: {{ .replica.everyS | quote }}\n", "",
        "read, and nobody writes them",
    ),
    "a copy that nobody asks for": (
        "replica", "gateway.yaml", "- name: TOUCHSTONE_REPLICA\n"
        '              value: {{ include "touchstone.replicaAddress" $this }}\n', "",
        "no gateway asks for them",
    ),
    "a reader of copies that takes its pod away": (
        "replica", "results.yaml", "startupProbe:\n            httpGet: {path: /metrics, port: replica-metrics}",
        "readinessProbe:\n            grpc: {port: {{ $ports.replica }}}\n          startupProbe:\n"
        "            httpGet: {path: /metrics, port: replica-metrics}",
        "takes the results service away",
    ),
    "a reader that is reached only with its writer": (
        "replica", "results.yaml",
        "and so neither is the pod.\n  publishNotReadyAddresses: true\n", "and so neither is the pod.\n",
        "Service trial-replica leaves out pods",
    ),
    "a writer that is reached only with its reader": (
        "replica", "results.yaml",
        "its reader of copies starts.\n  publishNotReadyAddresses: true\n", "its reader of copies starts.\n",
        "Service trial-results leaves out pods",
    ),
    "a reader that may write": (
        "replica", "results.yaml", "mountPath: /var/lib/touchstone, readOnly: true", "mountPath: /var/lib/touchstone",
        "trial-results's replica may write the database",
    ),
    "a reader at its writer's port": (
        "replica", "_helpers.tpl", "replicaMetrics: 9465", "replicaMetrics: 9464", "has two containers at port 9464",
    ),
    "a reader that starts as a writer": (
        "replica", "results.yaml", "services.results, --replica]", "services.results]", "replica starts ['python'",
    ),
    "a reader with the key of its writer": (
        "together", "results.yaml", "key: replica.seed", "key: results.seed", "replica has the seeds of others",
    ),
    "a copy that no policy lets be asked": (
        "replica", "networkpolicies.yaml", '"ports" (list $p.replica)', '"ports" (list $p.results)',
        "trial-gateway may not reach StatefulSet trial-results at TCP 8054",
    ),
    "a copy that everybody may ask": (
        "replica", "networkpolicies.yaml", '(dict "from" (list "gateway") "to" "results" "ports" (list $p.replica))',
        '(dict "from" (list "gateway" "evaluator") "to" "results" "ports" (list $p.replica))',
        "evaluator-public may reach StatefulSet trial-results at TCP 8054",
    ),
    "metrics of a copy that nobody may read": (
        "together", "networkpolicies.yaml", '"port" $p.replicaMetrics', '"port" $p.metrics',
        "Prometheus may not reach StatefulSet trial-results at TCP 9465",
    ),
    "a certificate that is not mounted": (
        "tls", "_helpers.tpl", "mountPath: /etc/touchstone/tls", "mountPath: /etc/tls", "where nothing is mounted",
    ),
}  # fmt: skip


def changed(values: Object, path: Sequence[str | int], value: Any) -> Object:
    found: Any = (whole := deepcopy(values))
    for step in path[:-1]:
        found = found.setdefault(step, {}) if isinstance(found, dict) else found[step]
    found[path[-1]] = value
    return whole


def assert_found(values: Object, chart: Path, said: str) -> None:
    others = []
    for fault in faults(values, chart, VERSIONS[-1:]):
        if said in fault:
            return
        others.append(fault)
    raise AssertionError(f"Not found: {said!r}, but {others}")


def assert_found_in_template(file: str, template: str, right: str, wrong: str, said: str, folder: Path) -> None:
    chart = folder / CHART.name
    shutil.copytree(CHART, chart)
    path = chart / "templates" / template
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    assert_found(FILES[file], chart, said)


@pytest.mark.parametrize("mistake", VALUES)
def test_a_mistake_in_values_is_found(mistake: str) -> None:
    file, path, value, said = VALUES[mistake]
    assert_found(changed(FILES[file], path, value), CHART, said)


@pytest.mark.parametrize("mistake", TEMPLATES)
def test_a_mistake_in_a_template_is_found(mistake: str, tmp_path: Path) -> None:
    assert_found_in_template(*TEMPLATES[mistake], tmp_path)
