"""How a process proves to NATS who it is, and which NATS it trusts."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services import environment, pem
from services.errors import InvalidRequestError

_SEED = "TOUCHSTONE_NATS_NKEY_SEED_FILE"
_CA, _CERT, _KEY = "TOUCHSTONE_NATS_TLS_CA", "TOUCHSTONE_NATS_TLS_CERT", "TOUCHSTONE_NATS_TLS_KEY"
_NO_SEED = f"{_SEED} must name a readable file with the seed of an nkey user, which begins with SU."
_INBOX = "_INBOX"


@dataclass(frozen=True, slots=True)
class Login:
    """An nkey's `seed`, and PEM files of TLS; empty where there is none.

    The process trusts `ca`, and shows `cert` to servers that ask for a certificate.
    """

    seed: str = field(default="", repr=False)
    ca: str = ""
    cert: str = ""
    key: str = ""

    @classmethod
    def from_env(cls) -> Login:
        """Raises InvalidRequestError for files that are invalid, and for one that is set without another."""
        seed_file = environment.text(_SEED)
        made = cls(
            seed=_seed(seed_file) if seed_file else "",
            ca=environment.text(_CA),
            cert=environment.text(_CERT),
            key=environment.text(_KEY),
        )
        pem.require_together(
            (
                (made.cert, made.key, _CERT, _KEY),
                (made.key, made.cert, _KEY, _CERT),
                (made.cert, made.ca, _CERT, _CA),
            )
        )
        if made.ca:
            made.context()
        return made

    def options(self) -> dict[str, Any]:
        """For nats-py. With an nkey, inboxes begin with the public key, so that only its holder may listen there."""
        if not self.seed:
            return {}
        return {"nkeys_seed_str": self.seed, "inbox_prefix": inbox(public_key(self.seed))}

    def context(self) -> ssl.SSLContext:
        """Reads the files: a connection made after they were renewed uses the new ones. Raises InvalidRequestError."""
        pem.authority(self.ca, _CA)
        made = ssl.create_default_context(cafile=self.ca)
        if self.cert:
            pem.pair(self.cert, self.key, _CERT, _KEY)
            made.load_cert_chain(self.cert, self.key, password="")
        return made


PLAIN = Login()
"""No key and no TLS."""


def inbox(public: str) -> str:
    """The subjects at which the holder of a key receives answers begin so."""
    return f"{_INBOX}.{public}"


def public_key(seed: str) -> str:
    """Of a user's seed. Raises InvalidRequestError, without the seed, for anything else."""
    # Only installations with nkeys need it.
    import nkeys

    try:
        if not seed.startswith("SU"):
            raise ValueError("not the seed of a user")
        pair = nkeys.from_seed(bytearray(seed.encode()))
        return str(pair.public_key.decode())
    except (ValueError, nkeys.NkeysError) as error:
        raise InvalidRequestError(_NO_SEED) from error


def is_public_key(text: str) -> bool:
    """Whether it may be that of a user."""
    return re.fullmatch("U[A-Z2-7]{55}", text) is not None


def new_seed() -> str:
    """The seed of a new user."""
    import nkeys

    return str(nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode())


def _seed(path: str) -> str:
    try:
        seed = Path(path).read_text().strip()
    except (OSError, ValueError) as error:
        # Without what was given: it may be the seed itself.
        raise InvalidRequestError(_NO_SEED) from error
    public_key(seed)
    return seed
