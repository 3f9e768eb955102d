"""Sampling parameters, each declared once: words, range, the providers that take it, and other names. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Annotated, Any, TypedDict

from services.words.endpoints import LABELS, not_taken
from services.words.fields import INT64_MAX, Number, declared

_CHAT = ("ollama", "openai", "vllm", "engine", "grok", "gemini", "anthropic", "http")
_OPEN_WEIGHTS = ("ollama", "vllm", "engine")
_TOP_K = (*_OPEN_WEIGHTS, "gemini", "anthropic")
_SEEDED = ("ollama", "openai", "vllm", "engine", "grok", "gemini", "http", "baseline")


@dataclass(frozen=True)
class Parameter(Number):
    """`kinds` are the kinds of providers that take it. REST uses Ollama's names, and also takes `aliases`; rows of
    datasets take `rows`."""

    kinds: tuple[str, ...]
    _: KW_ONLY
    place: str = "sampling"
    aliases: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Those of Ollama's parameters also begin with --ollama, as in the product's first document."""
        ollama = (f"--ollama-{self.rest.replace('_', '-')}",) if "ollama" in self.kinds else ()
        return (*super().flags, *ollama)

    @property
    def judge_flag(self) -> str:
        """By which `bench collect` gives it to one of several judges."""
        return f"--judge-{self.flags[0].removeprefix('--')}"


class SamplingParameters(TypedDict, total=False):
    """Named as in `touchstone.v1.Sampling`. An absent or None value is not sent, so the provider's default applies."""

    temperature: Annotated[float | None, Parameter("The sampling temperature.", "Temperature", 0, 2, _CHAT)]
    top_p: Annotated[
        float | None,
        Parameter("Samples from the most probable tokens that together have this probability.", "Top P", 0, 1, _CHAT),
    ]
    top_k: Annotated[int | None, Parameter("Samples from this many most probable tokens.", "Top K", 0, 100, _TOP_K)]
    min_p: Annotated[
        float | None,
        Parameter(
            "Samples from tokens that have at least this share of the highest probability.",
            "Min P",
            0,
            1,
            _OPEN_WEIGHTS,
        ),
    ]
    repeat_penalty: Annotated[
        float | None, Parameter("The penalty on repeated tokens.", "Repeat penalty", 0, 2, _OPEN_WEIGHTS)
    ]
    max_tokens: Annotated[
        int | None,
        Parameter(
            "The most tokens to generate per answer.",
            "Max tokens",
            1,
            1_000_000,
            _CHAT,
            unit="tokens",
            rest="num_predict",
            aliases=("max_tokens",),
            rows=("max_completion_tokens",),
        ),
    ]
    context_length: Annotated[
        int | None,
        Parameter(
            "The context window in tokens.", "Context window", 1, 10_000_000, ("ollama",), unit="tokens", rest="num_ctx"
        ),
    ]
    seed: Annotated[
        int | None,
        Parameter(
            "The random seed. With several answers per item, answer r is asked with seed + r.",
            "Seed",
            -INT64_MAX - 1,
            INT64_MAX,
            _SEEDED,
        ),
    ]


_OLLAMAS = frozenset(("options", "num_ctx", "num_predict", "keep_alive", "think"))
_GEMINIS = frozenset(("generationConfig", "safetySettings", "thinkingConfig", "thinkingBudget", "thinkingLevel"))
_OPENAIS = frozenset(
    (
        *("n", "best_of", "logit_bias", "max_completion_tokens", "reasoning_effort", "verbosity", "user"),
        *("prediction", "modalities", "stop"),
    )
)
_PENALTIES = frozenset(("frequency_penalty", "presence_penalty"))
_SERVERS = frozenset(("repetition_penalty", "repeat_penalty", "min_p", "chat_template_kwargs", "guided_json"))
NEVER_TAKEN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "anthropic": _OLLAMAS | _GEMINIS | _OPENAIS | _PENALTIES | _SERVERS | {"seed", "format", "logprobs"},
        # Its JSON also has the names of its protos, such as frequency_penalty.
        "gemini": _OLLAMAS | _OPENAIS | _SERVERS | {"thinking", "max_tokens", "format"},
        # Of parameters that belong into `options`, it ignores those next to it.
        "ollama": _OPENAIS | _GEMINIS | _PENALTIES | {"thinking", "max_tokens", "chat_template_kwargs"},
        "grok": _OLLAMAS | _GEMINIS | _SERVERS | {"thinking", "top_k", "best_of", "format"},
        "vllm": _OLLAMAS | _GEMINIS,
        "engine": _OLLAMAS | _GEMINIS,
        # Any server may be behind these, and a baseline takes part with the parameters of a model.
        "openai": frozenset(),
        "http": frozenset(),
        "baseline": frozenset(),
    }
)
"""Further fields that no model of a kind takes, as its API's documentation has them: it refuses or ignores them."""
_WRITTEN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"anthropic": ("system",), "gemini": ("systemInstruction",), "ollama": ("truncate", "shift")}
)
RESERVED = ("model", "messages", "prompt", "input", "contents", "stream")
"""Body fields that the evaluator writes; custom JSON may not replace them."""


def further_problem(kind: str, endpoint: str, values: Mapping[str, Any], path: str) -> str:
    """Why a job at an endpoint of this kind cannot send one of its further fields, as a sentence that names it by
    `path`; empty if it can send all."""
    for name, value in values.items():
        field = f"{path}.{name}"
        if kind == "http" or (name == "logprobs" and not value):
            continue
        if name in RESERVED or name in _WRITTEN.get(kind, ()):
            return f"{field} is set by Touchstone itself. Leave it out."
        if name in NEVER_TAKEN.get(kind, ()):
            return not_taken(endpoint, field)
        if kind in NEVER_TAKEN and name in ("n", "candidateCount") and (value != 1 or isinstance(value, bool)):
            return f"{field} must be 1: each call gives one answer. To ask several times, set repeats."
    return ""


def offered(kinds: Collection[str]) -> list[Parameter]:
    """The parameters that some of the kinds of providers take. A plug-in's kind is offered what OpenAI's API takes."""
    if any(kind not in LABELS for kind in kinds):
        kinds = {*kinds, "openai"}
    return [one for one in PARAMETERS.values() if not {*kinds}.isdisjoint(one.kinds)]


PARAMETERS = declared(SamplingParameters, Parameter)
"""By their names in the protos."""
RAISED = ("max_tokens", "context_length")
"""Those that a re-run may raise: an answer that ended on its own below a lower limit also ends below a higher one."""
BY_REST_NAME = {name: one for one in PARAMETERS.values() for name in (one.rest, *one.aliases)}
BY_ROW_NAME = {name: one for one in PARAMETERS.values() for name in (one.name, *one.rows)}
