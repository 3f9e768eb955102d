"""The kinds of endpoints and the defaults of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

from services.words.endpoints import LABELS

OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
GROK_URL = "https://api.x.ai/v1"
ANTHROPIC_URL = "https://api.anthropic.com/v1"
OLLAMA_URL = "http://127.0.0.1:11434"
_OLLAMA_PORT = 11434


@dataclass(frozen=True, slots=True)
class Kind:
    """One wire protocol. `label` is the provider's own name; `key_envs` the usual variables of its key, of which the
    first that is set counts. The usual key is sent to the usual host only. `addressed` kinds need a base_url.
    """

    label: str
    base_url: str = ""
    key_envs: tuple[str, ...] = ()
    concurrency: int = 8
    exclusive: bool = False
    timeout_s: float = 300.0
    addressed: bool = True

    def usual_key_env(self, base_url: str, environ: Mapping[str, str]) -> str:
        """The variable that holds the key when none is named; empty for hosts that are not the provider's own."""
        if not self.key_envs or _host(base_url) != _host(self.base_url):
            return ""
        return next((name for name in self.key_envs if environ.get(name, "").strip()), self.key_envs[0])


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "baseline": Kind(LABELS["baseline"], addressed=False),
        "ollama": Kind(LABELS["ollama"], OLLAMA_URL, concurrency=1, exclusive=True),
        "openai": Kind(LABELS["openai"], OPENAI_URL, ("OPENAI_API_KEY",)),
        "vllm": Kind(LABELS["vllm"]),
        # Its reasoning models think for minutes; xAI's own advice is an hour.
        "grok": Kind(LABELS["grok"], GROK_URL, ("XAI_API_KEY", "GROK_API_KEY"), timeout_s=900.0),
        # In the order in which Google's own client looks.
        "gemini": Kind(LABELS["gemini"], GEMINI_URL, ("GOOGLE_API_KEY", "GEMINI_API_KEY")),
        "anthropic": Kind(LABELS["anthropic"], ANTHROPIC_URL, ("ANTHROPIC_API_KEY",)),
        "http": Kind(LABELS["http"]),
        "engine": Kind(LABELS["engine"], exclusive=True, addressed=False),
    }
)


def ollama_url(environ: Mapping[str, str]) -> str:
    """OLLAMA_HOST as Ollama itself reads it: host, host:port or URL; 0.0.0.0 listens everywhere and is called on this
    machine."""
    host = environ.get("OLLAMA_HOST", "").strip()
    if not host:
        return OLLAMA_URL
    parts = urlsplit(host if "://" in host else f"http://{host}")
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)
    default = {"http": 80, "https": 443}[parts.scheme] if "://" in host and parts.scheme in ("http", "https") else None
    try:
        port = parts.port or default or _OLLAMA_PORT
    except ValueError:
        port = _OLLAMA_PORT
    return f"{parts.scheme}://{f'[{name}]' if ':' in name else name}:{port}{parts.path.rstrip('/')}"


def _host(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
