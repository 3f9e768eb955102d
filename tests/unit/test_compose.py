"""deploy/compose: names that the code reads, values that it accepts, and containers without rights."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from deploy.local.stack import nats_binary
from services.bus.connection import Settings as NatsSettings
from services.evaluator.endpoints import endpoint
from services.evaluator.endpoints.kinds import KINDS, ollama_url
from services.evaluator.settings import Settings as EvaluatorSettings
from services.gateway.settings import Settings as GatewaySettings
from services.results.settings import Settings as ResultsSettings
from services.scheduler.settings import Settings as SchedulerSettings
from tests.chart.settings import READERS, variables_of
from tests.chart_schema import FURTHER
from tests.surface import surface
from tests.unit.test_structure import ROOT

FOLDER = ROOT / "deploy/compose"
FILES = ("compose.yml", "secured.yml")
DEFAULT = {"nats", "results", "scheduler", "evaluator", "gateway"}
OURS = {*DEFAULT, "replica", "evaluator-gpu"}
EVALUATORS = {"evaluator", "evaluator-gpu"}
SECRETS = {"TOUCHSTONE_SERVICE_TOKEN": "0123456789abcdef", "NATS_TOKEN": "1e9bcdef01234567"}
"""The second would be a number in NATS's configuration."""
S3_KEYS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
LEFT_OUT = (
    # Of a cluster.
    *("_NATS_REPLICAS",),
    # Limits and times that suit most installations: compose.override.yml sets them.
    *("_PER_USER", "_PER_MINUTE", "_PER_JOB", "_PER_ADDRESS", "_AT_ONCE", "_UNIT_SIZE", "_WRONG_TOKENS", "_TRIES"),
    *("_ERROR_SHARE", "_BATCH_JOBS", "_LOW_BYTES", "_UPLOAD_MAX_BYTES", "_MAX_RATIO", "_MAX_ROWS"),
    *("_RECEIVE_MAX_BYTES", "_PLUGIN_MEMORY_BYTES", "_AFTER_S", "_AGE_S", "_AGEING_S", "_DATA_S", "_GRACE_S"),
    *("_IDLE_S", "_IMPORT_S", "_OUTAGE_S", "_PERIOD_S", "_PLANNING_S", "_POLL_S", "_SCORE_S", "_SETTLE_S", "_SPAN_S"),
    *("_TIMEOUT_S", "_TIME_S", "_WAIT_S"),
    # Files and folders of the host, for which the same file mounts a volume.
    *("_OIDC_CA", "_SECRET_FILE", "_DATA_DIR"),
    # A gateway and a scheduler have none.
    "_STATE_DIR",
    # A gateway is no server of gRPC. Pages have the TLS of a proxy.
    *("_TLS_CERT", "_TLS_KEY", "_TLS_CLIENT_CA"),
    # On loopback, where only the container itself asks.
    "_EVALUATOR_LISTEN",
    # Reads of a copy need a container of their own.
    *("_REPLICA", "_REPLICA_S", "_REPLICA_LISTEN"),
    # Needs a package that the image lacks.
    "_LM_EVAL",
    # Seldom other than by default.
    *("_MLFLOW_HOST", "_AIRFLOW_DAG", "_AIRFLOW_TOKEN", "_WEBHOOKS_PRIVATE"),
)
"""How variables end that somebody sets in compose.override.yml alone."""
KEYS = {name for kind in KINDS.values() for name in kind.key_envs}
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
_STATE = "/var/lib/touchstone"


@cache
def compose(file: str = FILES[0]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / file).read_text())
    return found


def services(file: str = FILES[0]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose(file)["services"]
    return found


def example() -> dict[str, str]:
    lines = (FOLDER / ".env.example").read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


def filled(text: str, variables: Mapping[str, str]) -> str:
    """As compose replaces variables; raises KeyError for a required one that is empty."""

    def value(found: re.Match[str]) -> str:
        name, kind, word = found.groups()
        if variables.get(name):
            return variables[name]
        if kind == "?":
            raise KeyError(name)
        return word or ""

    return _VARIABLE.sub(value, text)


def environment(service: str, file: str = FILES[0], **variables: str) -> dict[str, str]:
    known = example() | SECRETS | variables
    return {name: filled(value, known) for name, value in services(file)[service].get("environment", {}).items()}


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the environment that of a service."""

    def become(service: str, **given: str) -> None:
        for name in list(os.environ):
            if name.startswith("TOUCHSTONE_"):
                monkeypatch.delenv(name)
        for name, value in (environment(service) | given).items():
            monkeypatch.setenv(name, value)

    return become


def test_every_name_is_one_that_the_code_reads() -> None:
    known = {line.removeprefix("setting ") for line in surface() if line.startswith("setting ")}
    outside = {"NATS_TOKEN", "HF_TOKEN", "OLLAMA_HOST", *FURTHER["gateway"], *S3_KEYS, *KEYS}
    used = {name for service in OURS for name in services()[service].get("environment", {})}

    assert len(used) > 15
    assert used - known - outside == set()
    assert {name for name in example() if name.startswith("TOUCHSTONE_")} - known == {
        "TOUCHSTONE_IMAGE",
        "TOUCHSTONE_GPU_IMAGE",
    }


@pytest.mark.parametrize("service", sorted(READERS))
def test_every_setting_can_be_chosen_or_is_known_to_be_left_out(service: str) -> None:
    given = set(environment(service)) | set(environment(service, file="secured.yml"))
    left_out = {name for name in variables_of(service) - given if not any(map(name.endswith, LEFT_OUT))}

    assert left_out == set()
    # Names of what is left out are needed.
    every = {name for known in READERS for name in variables_of(known)}
    assert [end for end in LEFT_OUT if not any(name.endswith(end) for name in every)] == []


def test_the_example_has_every_variable_and_no_other() -> None:
    used = {found[0] for file in FILES for found in _VARIABLE.findall((FOLDER / file).read_text())}

    assert {name for name in example() if not name.startswith("COMPOSE_")} == used


def test_nothing_starts_without_its_secrets() -> None:
    assert {name for name in SECRETS if example()[name]} == set()
    for service in DEFAULT:
        for missing in SECRETS:
            text = yaml.safe_dump(services()[service])
            if missing in text:
                with pytest.raises(KeyError, match=missing):
                    filled(text, SECRETS | {missing: ""})


def test_only_evaluators_have_keys_of_providers() -> None:
    for service in OURS - EVALUATORS:
        assert not KEYS & set(environment(service)), service
    assert {name for name in KEYS if name in environment("evaluator")} == {
        next(iter(kind.key_envs)) for kind in KINDS.values() if kind.key_envs
    }


def test_profiles_are_asked_for() -> None:
    profiles = {name: service["profiles"] for name, service in services().items() if "profiles" in service}

    assert set(services()) - set(profiles) == DEFAULT
    assert {profile for names in profiles.values() for profile in names} == {
        *("replica", "gpu", "ollama", "vllm", "mlflow", "monitoring")
    }


@pytest.mark.parametrize("service", sorted(yaml.safe_load((FOLDER / "compose.yml").read_text())["services"]))
def test_a_container_has_no_rights(service: str) -> None:
    made = services()[service]

    assert made["read_only"] is True
    assert made["cap_drop"] == ["ALL"]
    assert made["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in made
    assert not any("docker.sock" in volume for volume in made.get("volumes", ()))
    # Published on loopback unless somebody says otherwise.
    assert all(filled(port, {}).startswith("127.0.0.1:") for port in made.get("ports", ()))
    if service in OURS:
        assert made["user"] == "10001:10001"
        assert made["healthcheck"]["test"][:4] == ["CMD", "python", "-m", "deploy.probe"]


def test_services_accept_their_settings(variables: Any, tmp_path: Any) -> None:
    state = {"TOUCHSTONE_STATE_DIR": str(tmp_path)}
    variables("results", **state)
    results = ResultsSettings.from_env()
    variables("scheduler")
    scheduler = SchedulerSettings.from_env()
    variables("evaluator", **state)
    evaluator = EvaluatorSettings.from_env()
    variables("gateway")
    gateway = GatewaySettings.from_env()
    nats = NatsSettings.from_env()

    # Each address is one at which its service listens, and its probe asks there.
    assert results.listen == "0.0.0.0:8052"
    assert gateway.results == scheduler.results == evaluator.results == "results:8052"
    assert scheduler.listen == "0.0.0.0:8051"
    assert gateway.scheduler == "scheduler:8051"
    assert (gateway.host, gateway.port) == ("0.0.0.0", 8080)
    assert nats.url == f"nats://{SECRETS['NATS_TOKEN']}@nats:4222"
    probes = {name: services()[name]["healthcheck"]["test"][-1] for name in OURS}
    assert probes["results"] == "127.0.0.1:8052"
    assert probes["scheduler"] == "127.0.0.1:8051"
    assert probes["evaluator"] == probes["evaluator-gpu"] == evaluator.listen
    assert probes["gateway"] == "http://127.0.0.1:8080/readyz"
    # A scheduler or gateway with a state directory would take its read-only root for a full disk.
    assert scheduler.state_dir is gateway.state_dir is None
    # A container is stopped after the service has ended by itself.
    assert seconds("evaluator") > evaluator.grace_s + 10


def seconds(service: str) -> int:
    return int(services()[service]["stop_grace_period"].removesuffix("s"))


def test_prometheus_asks_every_service_where_it_listens() -> None:
    (job,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    (found,) = job["dns_sd_configs"]

    assert job["job_name"] == "touchstone"  # Alert rules need it.
    assert set(found["names"]) == OURS - {"nats"}
    for service in found["names"]:
        assert environment(service)["TOUCHSTONE_METRICS_LISTEN"] == f"0.0.0.0:{found['port']}"


def test_volumes_are_declared_and_files_are_there() -> None:
    for name, service in services().items():
        for volume in service.get("volumes", ()):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                assert (FOLDER / source).exists(), f"{name} mounts {source}"
                assert mode == ["ro"]
            else:
                assert source in compose()["volumes"]
                assert name not in OURS or target == _STATE
    # `touchstone restore` and `repair` need what NATS and the results service have.
    assert "state:/var/lib/touchstone" in services()["nats"]["volumes"]
    assert services()["results"]["volumes"] == ["state:/var/lib/touchstone"]


@pytest.mark.parametrize("file", ["gpu.toml", "vllm.toml"])
def test_the_endpoints_are_valid(file: str) -> None:
    names = {known.name for known in endpoint.load(FOLDER / "endpoints" / file)}

    assert file.removesuffix(".toml") in names
    assert environment("evaluator-gpu")["TOUCHSTONE_ENDPOINTS"] == "/etc/touchstone/endpoints/gpu.toml"


def test_the_example_names_the_servers_of_its_profiles() -> None:
    text = (FOLDER / ".env.example").read_text()

    assert ollama_url({"OLLAMA_HOST": "http://ollama:11434"}) == "http://ollama:11434"
    assert "http://ollama:11434" in text
    assert "http://mlflow:5000" in text
    assert "/etc/touchstone/endpoints/vllm.toml" in text
    assert 'base_url = "http://vllm:8000/v1"' in (FOLDER / "endpoints/vllm.toml").read_text()


def test_nats_syncs_every_write_and_takes_any_token() -> None:
    config = FOLDER / "nats.conf"
    binary = nats_binary(os.environ["PATH"])

    assert re.search(r"(?m)^  sync_interval: always$", config.read_text())
    assert re.search(r"(?m)^max_payload: 1MB$", config.read_text())
    for token in (environment("nats")["NATS_TOKEN"], environment("nats", NATS_TOKEN="12345678")["NATS_TOKEN"]):
        done = subprocess.run(
            [binary, "-t", "-c", str(config)], env={"NATS_TOKEN": token}, capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, done.stderr
