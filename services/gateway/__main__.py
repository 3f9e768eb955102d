"""Starts the gateway, or runs `token …`."""

from __future__ import annotations

import sys

from services import rpc
from services.errors import TouchstoneError
from services.gateway import server
from services.gateway.access import tokens

if sys.argv[1:2] == ["token"]:
    try:
        tokens.main(sys.argv[2:])
    except TouchstoneError as error:
        sys.exit(f"touchstone: {error.message}")
else:
    rpc.run(server.main)
