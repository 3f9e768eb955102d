"""`python -m services.gateway token`: makes, lists and revokes users' tokens."""

from __future__ import annotations

import argparse
import asyncio
import re
import secrets
import time
from collections.abc import Sequence

from services import bus, rpc
from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.words.enums import ROLES
from touchstone.v1 import token_pb2

PREFIX = "ts_"
GIVEN = ("user", "admin")
"""Roles of users' tokens."""
_DIGEST = re.compile("[0-9a-f]{64}")


async def create(nats_bus: bus.Bus, user: str, role: str, label: str, expires_days: int = 0) -> str:
    """Stores a token's hash and returns its text, which nothing keeps."""
    if not user or not user.isprintable() or not user.isascii():
        raise InvalidRequestError("A user name must have printable ASCII characters, such as alice.", "user")
    text = PREFIX + secrets.token_urlsafe(32)
    token = token_pb2.Token(user=user, role=ROLES[role], label=label)
    token.created_at.GetCurrentTime()
    if expires_days:
        token.expires_at.FromSeconds(int(time.time()) + expires_days * 24 * 3600)
    await nats_bus.kv_put(bus.TOKENS, rpc.token_digest(text), token.SerializeToString())
    return text


async def stored(nats_bus: bus.Bus) -> list[tuple[str, token_pb2.Token]]:
    """(digest, token), oldest first."""
    pairs = [(key, token_pb2.Token.FromString(msg.data)) async for key, msg in nats_bus.kv_all(bus.TOKENS)]
    return sorted(pairs, key=lambda pair: pair[1].created_at.ToNanoseconds())


async def revoke(nats_bus: bus.Bus, name: str) -> token_pb2.Token:
    """Deletes the only token with this label or, if none has it, with this start of its digest.

    Raises NotFoundError for none, ConflictError for several.
    """
    pairs = await stored(nats_bus)
    found = [pair for pair in pairs if pair[1].label == name] or [pair for pair in pairs if pair[0].startswith(name)]
    if not found:
        raise NotFoundError(f"No token has the label or prefix {name!r}. `token list` shows them.")
    if len(found) > 1:
        prefixes = ", ".join(key[:8] for key, _ in found)
        raise ConflictError(f"{name!r} matches several tokens: {prefixes}. Use one of these prefixes.")
    key, token = found[0]
    await nats_bus.kv_delete(bus.TOKENS, key)
    return token


async def end(nats_bus: bus.Bus, digest: str, caller: rpc.Identity) -> None:
    """Revokes the token with this digest. Raises NotFoundError, and PermissionDeniedError for another user's."""
    token = await nats_bus.token(digest) if _DIGEST.fullmatch(digest) else None
    if token is None:
        raise NotFoundError("This token no longer exists. It may have been revoked.")
    if not caller.is_admin and caller.user != token.user:
        raise PermissionDeniedError("The token belongs to another user. Only that user or an admin may revoke it.")
    await nats_bus.kv_delete(bus.TOKENS, digest)


async def _run(arguments: argparse.Namespace) -> None:
    settings = bus.Settings.from_env()
    nats_bus = await bus.connect(settings.url, "tokens", settings.login, timeout_s=5)
    try:
        await nats_bus.ensure(settings.results_max_bytes, settings.replicas)
        if arguments.action == "create":
            text = await create(nats_bus, arguments.user, arguments.role, arguments.label, arguments.expires_days)
            print(text)
            print(f"This is {arguments.user}'s token. It is shown only now; keep it in a safe place.")
        elif arguments.action == "list":
            print(f"{'prefix':<10}{'user':<20}{'role':<8}{'label':<20}{'created':<22}expires")
            for key, token in await stored(nats_bus):
                expires = _time(token.expires_at.ToSeconds()) if token.HasField("expires_at") else "never"
                role = ROLES.of(token.role, "user")
                created = _time(token.created_at.ToSeconds())
                print(f"{key[:8]:<10}{token.user:<20}{role:<8}{token.label:<20}{created:<22}{expires}")
        else:
            token = await revoke(nats_bus, arguments.name)
            print(f"Revoked {token.user}'s token {token.label}. It ends within seconds.")
    finally:
        await nats_bus.close()


def _time(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 36500:
        raise argparse.ArgumentTypeError("must be a whole number of days, 1 or more")
    return int(text)


def main(arguments: Sequence[str]) -> None:
    """The command line after `token`."""
    parser = argparse.ArgumentParser(prog="python -m services.gateway token", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    new = actions.add_parser("create", help="create a token and print it once")
    new.add_argument("--user", required=True)
    new.add_argument("--role", choices=GIVEN, default="user")
    new.add_argument("--label", default="", help="what it is for, e.g. ci")
    new.add_argument("--expires-days", type=_days, default=0)
    actions.add_parser("list", help="list tokens, without their text")
    old = actions.add_parser("revoke", help="revoke a token")
    old.add_argument("name", help="its label, or the start of its prefix in the list")
    asyncio.run(_run(parser.parse_args(arguments)))
