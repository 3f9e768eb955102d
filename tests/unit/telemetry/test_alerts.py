"""Alert rules and queries of the guide: of metrics and labels that exist, and each rule is tried both ways."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.telemetry.metrics import METRICS
from tests.metric_tables import PAGE

FOLDER = Path(__file__).parents[3] / "deploy/prometheus"
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
TESTS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
LABELS = {metric.name: {label.name for label in metric.labels} for metric in METRICS}
GIVEN = {"job", "instance", "le"}
"""Labels that Prometheus adds."""


def queries() -> list[str]:
    written = re.findall(r"(?m)^\| [^|`]+ \| `([^`]*touchstone_[^`]*)` \|$", PAGE.read_text())
    assert len(written) > 5
    return [*(rule["expr"] for rule in RULES.values()), *written]


@pytest.mark.parametrize("query", queries())
def test_metrics_and_labels_of_queries_exist(query: str) -> None:
    for found in re.finditer(r"(touchstone_\w+?)(?:_bucket|_count|_sum)?\b(?!\w)(?:\{([^}]*)\})?", query):
        assert found[1] in LABELS, found[1]
        asked = set(re.findall(r"(\w+)\s*[=!]", found[2] or ""))
        assert asked <= LABELS[found[1]] | GIVEN, found[0]
    grouped = {label.strip() for labels in re.findall(r"(?:by|on) \(([^)]*)\)", query) for label in labels.split(",")}
    assert grouped <= set().union(*LABELS.values()) | GIVEN


def test_each_rule_is_tried_with_what_sets_it_off_and_with_what_does_not() -> None:
    for quiet in (True, False):
        tried = {
            one["alertname"]
            for test in TESTS
            for one in test["alert_rule_test"]
            if bool(one.get("exp_alerts")) is not quiet
        }
        assert tried == {*RULES}


def test_each_rule_says_how_bad_it_is_and_what_to_do() -> None:
    for name, rule in RULES.items():
        assert rule["labels"]["severity"] in ("critical", "warning"), name
        assert rule["annotations"].keys() == {"summary", "description"}, name


def test_promtool_finds_the_rules_right() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt install prometheus)")
    for arguments in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run([promtool, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
