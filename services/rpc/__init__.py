"""gRPC as every service speaks it: identity, error mapping, server and channel. One way for all.

Identity travels in call metadata and is read by `IdentityInterceptor` only:

- `authorization: Bearer <token>` or `x-api-key: <token>` names a user;
- a service's token (role service) may add `touchstone-user` and `touchstone-role` to speak on behalf of a user;
- without tokens (local mode) every caller is `local`, an admin.
"""

from services.rpc.addresses import Balanced
from services.rpc.caller import (
    LOCAL,
    Authenticator,
    Failures,
    Identity,
    Settings,
    TokenLookup,
    check_request_id,
    identity,
    require_admin,
    token_digest,
    while_valid,
)
from services.rpc.client import channel, metadata, send
from services.rpc.process import DAMAGED_FILES, WRONG_SETTINGS, run
from services.rpc.server import MAX_MESSAGE_BYTES, IdentityInterceptor, Server, serve
from services.rpc.status import from_rpc_error, to_status
from services.rpc.tls import PLAIN, Tls

__all__ = [
    "DAMAGED_FILES",
    "LOCAL",
    "MAX_MESSAGE_BYTES",
    "PLAIN",
    "WRONG_SETTINGS",
    "Authenticator",
    "Balanced",
    "Failures",
    "Identity",
    "IdentityInterceptor",
    "Server",
    "Settings",
    "Tls",
    "TokenLookup",
    "channel",
    "check_request_id",
    "from_rpc_error",
    "identity",
    "metadata",
    "require_admin",
    "run",
    "send",
    "serve",
    "to_status",
    "token_digest",
    "while_valid",
]
