"""`make audit` against a vulnerability service on this machine, which may also be away or know nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy.local.ports import free_port
from tests import audit
from tests.unit.test_structure import ROOT

LOCK = """six==1.17.0 \\
    --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
    # via rouge-score
tqdm==4.70.1 \\
    --hash=sha256:26445eca388f82e72884e0d580d5464cd801a3ea01e63e5601bdff9ba6a48de2
"""


@contextmanager
def service(vulnerable: set[str]) -> Iterator[str]:
    """In the form of osv.dev."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = asked["package"]["name"]
            package = {"package": {"name": name, "ecosystem": "PyPI"}}
            known = {"vulns": [{"id": f"PYSEC-{name}", "affected": [package]}]}
            body = json.dumps(known if f"{name}=={asked['version']}" in vulnerable else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIP_AUDIT_VULNERABILITY_SERVICE", "osv")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "image.txt"
    file.write_text(LOCK)
    return file


def test_what_is_vulnerable_is_found(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with service({audit.KNOWN_BAD, "tqdm==4.70.1"}) as url:
        monkeypatch.setenv("PIP_AUDIT_OSV_URL", url)
        code = audit.main(lock, tmp_path / "dist", said.append)

    assert code == 1
    assert said[1] == "Known vulnerabilities in 1 of 2 packages:\n  tqdm==4.70.1: PYSEC-tqdm"
    (file,) = (tmp_path / "dist").iterdir()
    document = json.loads(file.read_text())
    assert said[0] == f"dist/{file.name}: 2 packages with their hashes"
    assert document["bomFormat"] == "CycloneDX"
    assert {one["purl"] for one in document["components"]} == {"pkg:pypi/six@1.17.0", "pkg:pypi/tqdm@4.70.1"}
    assert document["metadata"]["component"]["version"] == file.name.removeprefix("touchstone-").partition(".cdx")[0]


def test_none_is_found_only_where_the_service_knows_the_vulnerable_pin(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service({audit.KNOWN_BAD}) as url:
        monkeypatch.setenv("PIP_AUDIT_OSV_URL", url)
        knows = audit.audit(lock)
    with service(set()) as url:
        monkeypatch.setenv("PIP_AUDIT_OSV_URL", url)
        knows_nothing = audit.audit(lock)

    assert str(knows) == "Known vulnerabilities: none found in 2 packages."
    assert str(knows_nothing).startswith("Known vulnerabilities: NOT CHECKED. The service does not know that django")


def test_without_a_service_nothing_is_checked(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_AUDIT_OSV_URL", f"http://127.0.0.1:{free_port()}")

    assert str(audit.audit(lock)).startswith("Known vulnerabilities: NOT CHECKED. No vulnerability service answers: ")


def test_the_vulnerable_pin_is_in_no_lock() -> None:
    name = audit.KNOWN_BAD.partition("==")[0]

    assert len(audit.pins(audit.LOCK)) > 80
    for file in (ROOT / "requirements").glob("*.txt"):
        assert not [pin for pin in audit.pins(file) if pin.partition("==")[0].lower() == name]


def test_a_package_without_hashes_is_missing_in_a_bill() -> None:
    hashed = {"externalReferences": [{"type": "distribution", "hashes": [{"alg": "SHA-256", "content": "0"}]}]}
    six, tqdm = {"name": "six", "version": "1.17.0"}, {"name": "tqdm", "version": "4.70.1"}
    packages = ["six==1.17.0", "tqdm==4.70.1"]

    assert audit.missing_in({"components": [six | hashed, tqdm | hashed]}, packages) == []
    assert audit.missing_in({"components": [six | hashed, tqdm]}, packages) == ["tqdm==4.70.1"]
    assert audit.missing_in({"components": [six | hashed]}, packages) == ["tqdm==4.70.1"]
