"""secured.yml with the profile replica: from nothing to a completed demo with nkeys and TLS, reads while results is
away, strangers refused, and down."""

from __future__ import annotations

import json
import re
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.images.building import run
from tests.images.compose import HEALTHY_S, SERVICES, Compose
from tests.images.daemon import Daemon

pytestmark = pytest.mark.images

EVERY = (*SERVICES, "replica")
COPY_S = 2
AWAY_S = 20.0
REFUSED = re.compile("(?i)violation")
ASKING = """
import json, os, urllib.request
headers = {"Authorization": "Bearer " + os.environ["TOUCHSTONE_TOKEN"]}
asked = urllib.request.Request("http://127.0.0.1:8080/api/v1/benchmarking/leaderboard?suite=demo", headers=headers)
try:
    with urllib.request.urlopen(asked, timeout=20) as answer:
        print(json.dumps({"as_of": answer.headers.get("Touchstone-As-Of", ""), "rows": json.load(answer)}))
except OSError:
    print(json.dumps({"as_of": "", "rows": None}))
"""
STRANGER = """
import asyncio, json, ssl, sys
import nats
from services.bus.login import new_seed
url, ca, cert, key, seed = json.loads(sys.argv[1])
async def main():
    options = {"allow_reconnect": False, "max_reconnect_attempts": 0, "connect_timeout": 10}
    if ca:
        options["tls"] = ssl.create_default_context(cafile=ca)
    else:
        options["tls"] = ssl._create_unverified_context()
    if cert:
        options["tls"].load_cert_chain(cert, key)
    if seed:
        options["nkeys_seed_str"] = new_seed() if seed == "new" else open(seed).read().strip()
    try:
        connected = await asyncio.wait_for(nats.connect(url, **options), 20)
        await connected.flush()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "inside"
print(json.dumps(asyncio.run(main())))
"""


@pytest.fixture
def secured(compose: Compose, tree: Path) -> Path:
    """The folder `secured`, made as the documentation says."""
    folder = compose.folder / "secured"
    hosts = [word for name in ("nats", "results", "replica", "scheduler") for word in ("--host", name)]
    _python(tree, "deploy.certificates", str(folder), *hosts)
    _python(tree, "services.bus", "keys", str(folder))
    _write_users(folder, tree)
    run("chown", "-R", "10001", str(folder))
    compose.set("COMPOSE_FILE", "compose.yml:secured.yml")
    compose.set("COMPOSE_PROFILES", "replica")
    compose.set("TOUCHSTONE_REPLICA_S", str(COPY_S))
    compose.set("TOUCHSTONE_REPLICA", "replica:8054")
    return folder


def _write_users(folder: Path, tree: Path) -> None:
    (folder / "users.conf").write_text(_python(tree, "services.bus", "rights", str(folder)))


def _python(tree: Path, *words: str) -> str:
    return run("env", "--chdir", str(tree), sys.executable, "-m", *words)


def test_the_demo_completes_with_rights_and_tls(compose: Compose, secured: Path, tree: Path) -> None:
    compose.up(EVERY, ending=["setup"])
    compose.log_in()
    compose.run_demo()
    compose.check_rights(EVERY)
    assert not REFUSED.search(compose("logs", "--no-color", "nats"))

    _read_while_results_is_away(compose)
    _write_users_again(compose, secured, tree)
    _try_as_strangers(compose.daemon, secured, tree)
    compose.down()


def _read_while_results_is_away(compose: Compose) -> None:
    def asked() -> dict[str, Any]:
        given = ("exec", "-T", "-e", f"TOUCHSTONE_TOKEN={compose.token}", "gateway", "python", "-c", ASKING)
        found: dict[str, Any] = json.loads(compose(*given))
        return found

    live = asked()
    assert live["rows"]
    assert live["as_of"] == ""
    # Copies are made after what changed, and are small here.
    time.sleep(5 * COPY_S)
    compose("stop", "results")
    try:
        began = time.monotonic()
        copy = asked()
        while not copy["as_of"]:
            assert time.monotonic() - began < AWAY_S, copy
            copy = asked()
        print(f"The copy answered {time.monotonic() - began:.1f} s after results had ended")
        assert copy["rows"] == live["rows"]
        assert datetime.fromisoformat(copy["as_of"])
    finally:
        compose("start", "results")
    began = time.monotonic()
    while asked() != live:
        assert time.monotonic() - began < HEALTHY_S


def _write_users_again(compose: Compose, secured: Path, tree: Path) -> None:
    """As before an upgrade, whose services may need further rights."""
    board = compose.board()
    _write_users(secured, tree)
    compose("restart", "nats")
    compose("up", "-d", "--no-deps", "setup")
    compose.up(EVERY, ending=["setup"])
    assert compose.board() == board
    assert not REFUSED.search(compose("logs", "--no-color", "nats"))


def _try_as_strangers(daemon: Daemon, secured: Path, tree: Path) -> None:
    """On the network of the containers, with the certificates, keys and seeds that each may have got."""
    other = secured.parent / "other"
    _python(tree, "deploy.certificates", str(other))
    run("chown", "-R", "10001", str(other))
    places = ("--volume", f"{secured}:/own:ro", "--volume", f"{other}:/other:ro")
    stranger = ("run", "--rm", "--network", "touchstone_default", *places)

    def tried(url: str, ca: str = "", certificate: str = "", seed: str = "") -> str:
        key = certificate.replace(".pem", ".key")
        words = json.dumps([url, ca, certificate, key, seed])
        found: str = json.loads(daemon.docker(*stranger, "touchstone", "python", "-c", STRANGER, words))
        return found

    tls, ca, certificate, seed = "tls://nats:4222", "/own/ca.pem", "/own/evaluator.pem", "/own/evaluator.seed"
    assert tried(tls, ca, certificate, seed) == "inside"
    refused = {
        "nobody": tried("nats://nats:4222"),
        "a certificate alone": tried(tls, ca, certificate),
        "a certificate and an unknown key": tried(tls, ca, certificate, "new"),
        "a token": tried("tls://0123456789abcdef@nats:4222", ca, certificate),
        "a key alone": tried(tls, ca, seed=seed),
        "a key and another authority's certificate": tried(tls, ca, "/other/evaluator.pem", seed),
        "who trusts another authority": tried(tls, "/other/ca.pem", certificate, seed),
    }
    print(json.dumps(refused, indent=1))
    assert "inside" not in refused.values()
    for who in ("a certificate alone", "a certificate and an unknown key", "a token"):
        assert "authorization" in refused[who].lower(), refused

    def probed(address: str, *variables: str) -> str:
        given = [word for variable in variables for word in ("--env", variable)]
        script = f"python -m deploy.probe {address} && echo well || echo refused"
        return daemon.docker(*stranger, *given, "touchstone", "sh", "-c", script).split()[-1]

    trust = "TOUCHSTONE_TLS_CA=/own/ca.pem"
    own = [f"TOUCHSTONE_TLS_CLIENT_{name}=/own/client.{end}" for name, end in (("CERT", "pem"), ("KEY", "key"))]
    for address in ("scheduler:8051", "results:8052", "replica:8054"):
        assert probed(address, trust, *own) == "well", address
        assert probed(address, trust, *(one.replace("/own", "/other") for one in own)) == "refused", address
        assert probed(address, trust) == "refused", address
        assert probed(address) == "refused", address
