"""`python -m services.bus` sets NATS up: it checks every node, creates what is missing, and makes the copies that
TOUCHSTONE_NATS_REPLICAS asks for. It may run at any time, also again.

`keys FOLDER` makes a key for each user of NATS, and `rights FOLDER` writes these users for NATS's configuration.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from services import rpc
from services.bus.connection import Settings, connect, require_sync
from services.bus.login import is_public_key, new_seed, public_key
from services.bus.rights import USERS, users
from services.bus.streams import replicate
from services.errors import InvalidRequestError, TouchstoneError

_COPYING_S = 3600.0
"""Most seconds for the copies of one stream."""


async def main(stop: asyncio.Event) -> None:
    """Ends when everything is in place, or when `stop` is set. Raises TouchstoneError."""
    setting_up = asyncio.create_task(_set_up(Settings.from_env()))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((setting_up, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if setting_up.done():
        setting_up.result()
    setting_up.cancel()


async def _set_up(settings: Settings) -> None:
    if not settings.monitor_url:
        raise InvalidRequestError("Set TOUCHSTONE_NATS_MONITOR_URL to the monitoring address of each node of NATS.")
    bus = await connect(settings.url, "setup", settings.login)
    try:
        await require_sync(settings.monitor_url, all_nodes=True)
        await bus.ensure(settings.results_max_bytes, settings.replicas)
        await replicate(bus.js, settings.replicas, print, _COPYING_S)
    finally:
        await bus.close()
    print(f"NATS is set up: every stream is there with {settings.replicas} copies or more.")


def make_keys(folder: Path) -> None:
    """Writes USER.seed, which only this account may read, and USER.pub. Raises InvalidRequestError for a seed that is
    there already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if there := [user for user in USERS if (folder / f"{user}.seed").exists()]:
        raise InvalidRequestError(f"{folder} already has the seed of {', '.join(there)}. Choose another folder.")
    for user in USERS:
        seed = new_seed()
        with os.fdopen(os.open(folder / f"{user}.seed", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{seed}\n")
        (folder / f"{user}.pub").write_text(f"{public_key(seed)}\n")


def read_users(folder: Path) -> str:
    """The users whose public keys are in the folder: USER.pub, and USER-ANYTHING.pub for a further key. Raises
    InvalidRequestError."""
    keys: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*.pub")):
        user, public = file.stem.partition("-")[0], file.read_text().strip()
        if user not in USERS or not is_public_key(public):
            raise InvalidRequestError(f"{file} must have the public key of an nkey user, and be named after a service.")
        keys.setdefault(user, []).append(public)
    if missing := [user for user in USERS if user not in keys]:
        raise InvalidRequestError(f"{folder} has no public key of {', '.join(missing)}.")
    return users(keys)


def _folder(command: str, words: list[str]) -> Path:
    parser = argparse.ArgumentParser(prog=f"python -m services.bus {command}")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    found: Path = parser.parse_args(words).folder
    return found


if __name__ == "__main__":
    try:
        if sys.argv[1:2] == ["keys"]:
            make_keys(_folder("keys", sys.argv[2:]))
        elif sys.argv[1:2] == ["rights"]:
            print(read_users(_folder("rights", sys.argv[2:])), end="")
        else:
            rpc.run(main)
    except TouchstoneError as error:
        sys.exit(f"touchstone: {error.message}")
