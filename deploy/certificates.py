"""`python -m deploy.certificates FOLDER` makes certificates for trials: an authority, and one certificate each for
NATS, the services and their users. `--renew` replaces all but the authority. Needs the `openssl` command.

Each certificate is for servers and for clients. Use your own authority where others rely on it: the key of this one is
a file next to the certificates.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

NAMES: Final = ("nats", "scheduler", "results", "evaluator", "gateway", "client")
AUTHORITY: Final = "ca"
HOSTS: Final = ("127.0.0.1", "localhost")
DAYS: Final = 90
_AUTHORITY_DAYS = 3650
_CONFIG = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[certificate]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = {hosts}
"""
# Elliptic curves are quick to make.
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class CertificatesError(Exception):
    """Nothing was made or replaced; the message says why."""


def make(folder: Path, names: Sequence[str] = NAMES, hosts: Iterable[str] = HOSTS, days: int = DAYS) -> None:
    """Makes ca.pem, ca.key, and NAME.pem and NAME.key for each name, valid for these hosts and this number of days.
    Raises CertificatesError, also for a file that is there already."""
    if there := [file.name for one in (AUTHORITY, *names) for file in _files(folder, one) if file.exists()]:
        raise CertificatesError(f"{folder} already has {', '.join(there)}. Choose another folder, or use --renew.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = Path(place)
        _write_config(made, hosts)
        subject = ("-subj", "/CN=Touchstone trial authority")
        signed = ("-x509", "-config", "config", "-extensions", "authority", "-days", str(_AUTHORITY_DAYS))
        _openssl(made, "req", *signed, *_NEW_KEY, *subject, "-out", "ca.pem", "-keyout", "ca.key")
        _sign(made, made, names, days)
        _place(made, folder, (AUTHORITY, *names))


def renew(folder: Path, names: Sequence[str] = NAMES, hosts: Iterable[str] = HOSTS, days: int = DAYS) -> None:
    """Replaces the certificates and their keys, and keeps the authority. Each file is replaced whole. Raises
    CertificatesError."""
    if missing := [file.name for file in _files(folder, AUTHORITY) if not file.exists()]:
        raise CertificatesError(f"{folder} has no {' and '.join(missing)}. Make them first, without --renew.")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = Path(place)
        _write_config(made, hosts)
        _sign(made, folder.absolute(), names, days)
        _place(made, folder, names)


def _sign(made: Path, authority: Path, names: Sequence[str], days: int) -> None:
    by = ("-CA", str(authority / "ca.pem"), "-CAkey", str(authority / "ca.key"))
    extensions = ("-extfile", "config", "-extensions", "certificate")
    for name in names:
        asked = ("-config", "config", *_NEW_KEY, "-subj", f"/CN={name}", "-out", "request")
        _openssl(made, "req", *asked, "-keyout", f"{name}.key")
        serial = ("-set_serial", f"0x{secrets.token_hex(16)}", "-days", str(days))
        _openssl(made, "x509", "-req", "-in", "request", *by, *extensions, *serial, "-out", f"{name}.pem")


def _place(made: Path, folder: Path, names: Iterable[str]) -> None:
    for name in names:
        certificate, key = _files(made, name)
        certificate.chmod(0o644)
        key.chmod(0o600)
        for file in (key, certificate):
            os.replace(file, folder / file.name)


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.pem", folder / f"{name}.key"


def _write_config(folder: Path, hosts: Iterable[str]) -> None:
    names = ", ".join(f"{'IP' if _is_address(host) else 'DNS'}:{host}" for host in hosts)
    (folder / "config").write_text(_CONFIG.format(hosts=names))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _openssl(folder: Path, *arguments: str) -> None:
    if shutil.which("openssl") is None:
        raise CertificatesError("The command openssl is missing. On Debian and Ubuntu: apt install openssl")
    done = subprocess.run(
        ["openssl", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False, umask=0o077
    )
    if done.returncode:
        raise CertificatesError(f"openssl failed: {done.stderr.strip()[-500:]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deploy.certificates", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--host", action="append", default=[], help="a name or address of a server; may be repeated")
    parser.add_argument("--days", type=int, default=DAYS, help="how long they are valid (default: %(default)s)")
    parser.add_argument("--renew", action="store_true", help="replace all but the authority")
    options = parser.parse_args()
    hosts = dict.fromkeys([*HOSTS, *NAMES, *options.host])
    try:
        (renew if options.renew else make)(options.folder, NAMES, hosts, options.days)
    except CertificatesError as error:
        sys.exit(f"touchstone: {error}")
    print(f"{options.folder} has certificates of {', '.join(NAMES)} for {options.days} days.")


if __name__ == "__main__":
    main()
