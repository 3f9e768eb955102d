"""Certificates for trials: private keys, nothing overwritten, and renewal under the same authority."""

from __future__ import annotations

import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import certificates
from deploy.local.settings import ROOT

NAMES = ("results", "client")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_keys_are_private_and_each_certificate_is_from_the_authority(tmp_path: Path) -> None:
    certificates.make(tmp_path, NAMES, ("127.0.0.1", "results.example"))
    assert sorted(contents(tmp_path)) == ["ca.key", "ca.pem", "client.key", "client.pem", "results.key", "results.pem"]
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == (0o600 if file.suffix == ".key" else 0o644)
    for name in NAMES:
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        context.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        told = _openssl("verify", "-x509_strict", "-CAfile", str(tmp_path / "ca.pem"), str(tmp_path / f"{name}.pem"))
        assert told.endswith("OK")
    text = _openssl("x509", "-in", str(tmp_path / "results.pem"), "-noout", "-ext", "subjectAltName")
    assert "IP Address:127.0.0.1, DNS:results.example" in text


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    certificates.make(tmp_path, NAMES)
    before = contents(tmp_path)
    with pytest.raises(certificates.CertificatesError, match=r"already has ca\.pem, ca\.key, results\.pem"):
        certificates.make(tmp_path, NAMES)
    assert contents(tmp_path) == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "client.key").write_text("mine")
    with pytest.raises(certificates.CertificatesError, match=r"already has client\.key"):
        certificates.make(tmp_path / "other", NAMES)
    assert contents(tmp_path / "other") == {"client.key": b"mine"}


def test_renewal_replaces_all_but_the_authority(tmp_path: Path) -> None:
    with pytest.raises(certificates.CertificatesError, match=r"has no ca\.pem and ca\.key"):
        certificates.renew(tmp_path, NAMES)
    certificates.make(tmp_path, NAMES)
    before = contents(tmp_path)
    certificates.renew(tmp_path, NAMES)
    after = contents(tmp_path)
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] == after[name]} == {"ca.pem", "ca.key"}


def test_without_openssl_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(certificates.CertificatesError, match="apt install openssl"):
        certificates.make(tmp_path / "made")
    assert contents(tmp_path / "made") == {}


def test_the_command_says_what_it_made(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "deploy.certificates", str(tmp_path / "made"), "--host", "10.0.0.1")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "certificates of nats, scheduler, results, evaluator, gateway, client for 90 days" in done.stdout
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 1
    assert again.stderr.startswith("touchstone: ")


def _openssl(*arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()
