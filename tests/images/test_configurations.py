"""docker-compose takes compose.yml and secured.yml with each profile, and makes of them what they say."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.images.building import ROOT, run

pytestmark = pytest.mark.images

FOLDER = ROOT / "deploy/compose"
FILES = ("compose.yml", "compose.yml:secured.yml")
PROFILES = ("replica", "gpu", "ollama", "vllm", "mlflow", "monitoring")


@pytest.mark.parametrize("profiles", ["", *PROFILES, ",".join(PROFILES)])
@pytest.mark.parametrize("files", FILES)
def test_compose_takes_every_profile(files: str, profiles: str, tmp_path: Path) -> None:
    found = _config(files, profiles, tmp_path)["services"]

    made = yaml.safe_load((FOLDER / "compose.yml").read_text())["services"]
    expected = {name for name, service in made.items() if set(service.get("profiles", ())) <= set(profiles.split(","))}
    assert expected | ({"setup"} if "secured" in files else set()) <= set(found)
    for name, service in found.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        secured = "secured" in files and name in {*_secured(), "setup"} - {"nats"}
        variables = service.get("environment", {})
        assert (variables.get("TOUCHSTONE_NATS_URL") == "tls://nats:4222") is secured, name
    assert not any(service["restart"] != "unless-stopped" for name, service in found.items() if name != "setup")


def test_a_missing_secret_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="NATS_TOKEN"):
        _config(FILES[0], "", tmp_path, without="NATS_TOKEN")


def _secured() -> set[str]:
    return set(yaml.safe_load((FOLDER / "secured.yml").read_text())["services"])


def _config(files: str, profiles: str, folder: Path, without: str = "") -> dict[str, Any]:
    command = ("docker-compose",) if shutil.which("docker-compose") else ("docker", "compose")
    if shutil.which(command[0]) is None:
        pytest.skip("Needs docker-compose. On Debian: apt install docker-compose")
    here = folder / "compose"
    shutil.copytree(FOLDER, here, ignore=shutil.ignore_patterns(".env", "secured"))
    lines = (here / ".env.example").read_text().splitlines()
    given = {"COMPOSE_FILE": files, "COMPOSE_PROFILES": profiles}
    given |= {name: "0123456789abcdef" for name in ("TOUCHSTONE_SERVICE_TOKEN", "NATS_TOKEN") if name != without}
    kept = [line for line in lines if line.partition("=")[0] not in given]
    (here / ".env").write_text("\n".join([*kept, *(f"{name}={value}" for name, value in given.items())]) + "\n")
    # A variable of the environment would go before the file.
    unset = [word for name in os.environ if name.startswith(("COMPOSE_", "TOUCHSTONE_")) for word in ("-u", name)]
    found: dict[str, Any] = yaml.safe_load(run("env", *unset, "--chdir", str(here), *command, "config"))
    return found
