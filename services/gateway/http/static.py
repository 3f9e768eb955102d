"""Static files, addressed with a hash of their content, so that browsers may keep them."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

import web

ROOT = Path(web.__file__).parent
STATIC = ROOT / "static"


class Static(StaticFiles):
    """`web/static`; a request that names the content's hash may be cached for ever."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if response.status_code == 200 and b"v=" in scope["query_string"]:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        else:
            response.headers["Cache-Control"] = "no-cache"
        return response


def static_url(name: str) -> str:
    """The address of a static file, with its hash."""
    path = STATIC / name
    return f"/static/{name}?v={_digest(path, path.stat().st_mtime_ns)}"


@lru_cache(maxsize=256)
def _digest(path: Path, _changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
