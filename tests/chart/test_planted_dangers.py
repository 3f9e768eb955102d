"""Each mistake with which everything would start, and then lose data, let strangers in or stand still, is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.test_planted_mistakes import assert_found_in_template

NAMED = "valueFrom: {fieldRef: {fieldPath: metadata.name}}"
STATE = "            - name: TOUCHSTONE_STATE_DIR\n              value: /var/lib/touchstone\n            {{- if"

# The values file, the template, what is in it, what is there instead, and what is said of it.
DANGERS: dict[str, tuple[str, str, str, str, str]] = {
    "an installation without tokens": (
        "default", "_helpers.tpl", "- name: TOUCHSTONE_AUTH\n  value: token\n", "", "must be an address of loopback",
    ),
    "schedulers of one name": (
        "default", "scheduler.yaml", NAMED, "value: scheduler", "no TOUCHSTONE_SCHEDULER_NAME of its own",
    ),
    "evaluators of one name": (
        "default", "evaluators.yaml", NAMED, NAMED.replace("metadata.name", "metadata.namespace"),
        "no TOUCHSTONE_EVALUATOR_NAME of its own",
    ),
    "a service that only its pod reaches": (
        "default", "scheduler.yaml", '"0.0.0.0:%v" $ports.scheduler', '"127.0.0.1:%v" $ports.scheduler',
        "trial-scheduler listens at 127.0.0.1:8051 alone",
    ),
    "metrics that only their pod reaches": (
        "monitoring", "_helpers.tpl", '"0.0.0.0:%v" (ternary', '"127.0.0.1:%v" (ternary',
        "listens at 127.0.0.1:9464 alone",
    ),
    "pages that only their pod reaches": (
        "default", "gateway.yaml", "value: 0.0.0.0", "value: 127.0.0.1", "trial-gateway listens at 127.0.0.1 alone",
    ),
    "results that go with their pod": (
        "default", "results.yaml", STATE, STATE.replace("/var/lib/touchstone", "/tmp"), "has its data at '/tmp'",
    ),
    "results at no place": ("default", "results.yaml", STATE, "            {{- if", "has its data at ''"),
    "streams that go with their pod": (
        "default", "nats.yaml", 'store_dir: "/var/lib/nats"', 'store_dir: "/run/nats"', "has its data at '/run/nats'",
    ),
    "streams that are not synced": (
        "default", "nats.yaml", ", sync_interval: always", "", "acknowledges what is not on disk",
    ),
    "streams with one copy": (
        "default", "_helpers.tpl", "{{ min 3 $values.nats.replicas | quote }}", '"1"',
        "another number of copies than 3",
    ),
    "NATS without a token": (
        "default", "nats.yaml", "authorization { token: $QUOTED_TOKEN }", "", "lets in who has no key",
    ),
    "NATS without its users": (
        "rights", "nats.yaml", 'include "users.conf"\n', "no_auth_user: x\n", "lets in who has no key",
    ),
    "NATS without certificates of clients": (
        "tls", "nats.yaml", "verify: {{ $.Values.tls.clientCertificates }}", "verify: false",
        "another TLS for clients than the values",
    ),
    "nodes of NATS without certificates": (
        "tls", "nats.yaml", ", verify: true }", ", verify: false }", "another TLS for nodes than the values",
    ),
    "nodes of NATS in the clear": (
        "tls", "nats.yaml", "      {{- if $.Values.tls.enabled }}\n      tls {", "      {{- if false }}\n      tls {",
        "another TLS for nodes than the values",
    ),
    "calls of NATS in the clear": (
        "tls", "_helpers.tpl", 'ternary "tls://" "nats://"', 'ternary "nats://" "nats://"',
        "does not connect to NATS by tls",
    ),
    "servers without certificates of callers": (
        "tls", "_helpers.tpl", "- name: TOUCHSTONE_TLS_CLIENT_CA\n  value: /etc/touchstone/tls/ca.crt\n", "",
        "few settings of TLS: TOUCHSTONE_TLS_CLIENT_CA",
    ),
    "a certificate of another": (
        "tls", "_helpers.tpl", "index .root.Values.tls.secrets .component", 'index .root.Values.tls.secrets "nats"',
        "has the certificate of another",
    ),
    "a secret of another": (
        "default", "_helpers.tpl", "key: {{ $values.secrets.serviceToken.key }}",
        "key: {{ $values.secrets.natsToken.key }}", "takes TOUCHSTONE_SERVICE_TOKEN from another secret",
    ),
    "nodes of NATS one after another": (
        "default", "nats.yaml", "podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady",
        "starts its first node alone",
    ),
    "nodes of NATS without names": (
        "default", "nats.yaml", "  publishNotReadyAddresses: true\n", "", "do not find each other",
    ),
    "an engine without a GPU": (
        "gpu", "evaluators.yaml", "(merge (dict $class.resource $gpu.count) ($resources.limits | default dict))",
        "($resources.limits | default dict)", "trial-evaluator-h100 has other devices",
    ),
    "an engine without its image": (
        "gpu", "evaluators.yaml", "(ternary $.Values.gpuImage $.Values.image (not (empty $gpu)))", "$.Values.image",
        "trial-evaluator-h100 has another image than touchstone-gpu",
    ),
    "the image of engines for all": (
        "gpu", "evaluators.yaml", "(not (empty $gpu))", "true", "trial-evaluator-providers has another image",
    ),
    "a node that cannot be emptied": (
        "default", "scheduler.yaml", "maxUnavailable: 1", "maxUnavailable: 0", "must let one pod go, and only one",
    ),
    "all nodes of NATS at a time": (
        "default", "nats.yaml", "gt (int .replicas) 1 }}\n---", "gt (int .replicas) 9 }}\n---",
        "trial-nats may lose all its pods",
    ),
    "less at most than at least": (
        "default", "gateway.yaml", "{{ max .replicas .autoscaling.most }}", "1", "more pods at least than at most",
    ),
    "requests to a gateway without its services": (
        "default", "gateway.yaml", "path: /readyz", "path: /healthz", "and not for /readyz",
    ),
    "restarts while others are away": (
        "default", "gateway.yaml", "livenessProbe:\n            httpGet: {path: /healthz",
        "livenessProbe:\n            httpGet: {path: /readyz", "and not for /healthz",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", DANGERS)
def test_a_danger_is_found(mistake: str, tmp_path: Path) -> None:
    assert_found_in_template(*DANGERS[mistake], tmp_path)
