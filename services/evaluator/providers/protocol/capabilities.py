"""What a model is and supports: its size, its capabilities, and the parameters that are therefore sent. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from services import further_fields, numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.pricing import prices
from services.evaluator.providers.protocol.provider import ProviderError
from services.evaluator.providers.protocol.sampling import extra, recorded
from services.words.sampling import PARAMETERS
from touchstone.v1 import endpoint_pb2, job_pb2
from touchstone.v1.endpoint_pb2 import Capabilities


def billions(parameters: int) -> float:
    """Billions in a count of parameters; 0 for an impossible count."""
    return numbers.real(round(parameters / 1e9, 3), 0.0, numbers.MOST_PARAMETERS_B) or 0.0


def known_b(endpoint: Endpoint, model: str) -> float:
    """What the endpoints file or the name says; 0 when neither does."""
    entry = endpoint.entry(model)
    return (entry.parameters_b if entry is not None else 0.0) or numbers.parameters_b(model)


def refuse_larger(endpoint: str, model: str, size_b: float, max_model_b: float) -> None:
    """Raises a fatal ProviderError when the model is larger than the endpoint takes; an unknown size passes."""
    if max_model_b and size_b > max_model_b:
        raise ProviderError(
            f"{model} has {size_b:g} billion parameters; {endpoint} takes at most {max_model_b:g}. "
            "Choose a smaller model or raise max_model_b.",
            fatal=True,
            status=400,
        )


def refuse_larger_than_experiment(spec: job_pb2.JobSpec, size_b: float) -> None:
    """Raises a fatal ProviderError when the model is larger than the job's experiment takes; an unknown size passes."""
    if spec.max_model_b and size_b > spec.max_model_b:
        limit = "max_judge_b" if spec.HasField("judging") else "max_model_b"
        raise ProviderError(
            f"{spec.model} at {spec.endpoint} has {size_b:g} billion parameters; its experiment takes at most "
            f"{spec.max_model_b:g}. Run the experiment again with a higher {limit}; 0 means any.",
            fatal=True,
            status=400,
        )


_SAMPLING = [name for name in PARAMETERS if name not in ("max_tokens", "context_length", "seed")]
_NO_LOGLIKELIHOOD = ("ollama", "grok", "gemini", "anthropic", "http", "baseline")
_OPEN_WEIGHTS = ("openai", "vllm", "engine", "ollama")

# Kinds, the pattern of the model's name, and its capabilities. The first row that fits counts.
_FAMILIES: tuple[tuple[tuple[str, ...], re.Pattern[str], Capabilities], ...] = (
    # OpenAI, "Reasoning models" and "Using GPT-5": temperature and top_p only with effort "none", stop not at all. The
    # chat variants are not reasoning models.
    (
        ("openai",),
        re.compile(r"(?:^|/)(?:o[1-9](?:-|$)|gpt-(?:[5-9]|\d\d)(?![^/]*chat))"),
        Capabilities(greedy=False, reasoning=True, stop=False, sampling=False, loglikelihood=False),
    ),
    # OpenAI, "Completions": echo with logprobs is left to its two base models.
    (("openai",), re.compile(r"(?:^|/)(?:gpt-[3-9]|chatgpt-)"), Capabilities(loglikelihood=False)),
    # xAI, "Reasoning" and "Best Practices Guide": reasoning models refuse stop and penalties; temperature 0.7.
    (("grok",), re.compile(r"non-reasoning|^grok-(?:2|3(?!-mini))"), Capabilities(reasoning=False)),
    (("grok",), re.compile(r"^grok"), Capabilities(greedy=False, reasoning=True, stop=False)),
    # Google, "Gemini 3 Developer Guide": keep temperature at 1.0, lower ones may loop. The aliases point there.
    (
        ("gemini",),
        re.compile(r"gemini-(?:[3-9]|\d\d)|gemini-(?:pro|flash|flash-lite)-latest"),
        Capabilities(greedy=False, reasoning=True),
    ),
    (("gemini",), re.compile(r"gemini-2\.5"), Capabilities(reasoning=True)),
    # Anthropic, "Migration guide": up to Opus 4.6, Sonnet 4.6 and Haiku 4.5 sampling parameters are taken; later models
    # refuse them.
    (
        ("anthropic",),
        re.compile(r"claude-(?:[1-3](?!\d)|instant|(?:opus|sonnet|haiku)-4(?:-[0-6])?(?:-\d{6,}|@|-v|-latest|$))"),
        Capabilities(),
    ),
    (("anthropic",), re.compile(r"claude"), Capabilities(greedy=False, sampling=False)),
    # Model cards: greedy decoding makes the thinking of these loop (Qwen3, DeepSeek-R1, QwQ, Magistral).
    (_OPEN_WEIGHTS, re.compile(r"qwen3[^/]*(?:instruct|base|coder|embed|rerank)"), Capabilities()),
    (_OPEN_WEIGHTS, re.compile(r"qwen3|qwq|deepseek-r1|magistral"), Capabilities(greedy=False, reasoning=True)),
    (_OPEN_WEIGHTS, re.compile(r"gpt-oss"), Capabilities(reasoning=True)),
)


def of_protocol(endpoint: Endpoint) -> Capabilities:
    """Capabilities of every model of the endpoint, unless its listing or the endpoints file says otherwise."""
    found = Capabilities()
    if endpoint.kind in _NO_LOGLIKELIHOOD:
        found.loglikelihood = False
    if endpoint.kind == "vllm" or (endpoint.engine is not None and endpoint.engine.api == "vllm"):
        found.loglikelihood = True
    if endpoint.kind == "anthropic":
        found.seed = False
    if endpoint.kind == "grok" and endpoint.api != "chat":
        found.stop = False
    return found


def capabilities(endpoint: Endpoint, model: str, listed: Capabilities | None = None) -> Capabilities:
    """What the model supports: configured before listed before known here. An absent field is unknown."""
    found = of_protocol(endpoint)
    name = model.lower()
    known = (row for kinds, pattern, row in _FAMILIES if endpoint.kind in kinds and pattern.search(name))
    found.MergeFrom(next(known, Capabilities()))
    if listed is not None:
        found.MergeFrom(listed)
    entry = endpoint.entry(model)
    if entry is not None:
        found.MergeFrom(entry.capabilities)
    return found


def complete(endpoint: Endpoint, model: endpoint_pb2.Model) -> endpoint_pb2.Model:
    """Adds capabilities, prices and the endpoints file's entry to a listed model, in place."""
    found = capabilities(endpoint, model.model, model.capabilities)
    model.capabilities.CopyFrom(found)
    entry = endpoint.entry(model.model)
    if entry is not None:
        model.context_length = entry.context_length or model.context_length
        model.parameters_b = entry.parameters_b or model.parameters_b
        model.digest = entry.digest or model.digest
    known = prices.of(endpoint, model.model, model)
    if known is not None:
        model.prices.CopyFrom(known)
        model.input_price, model.output_price = known.input, known.output
    return model


@dataclass(frozen=True, slots=True)
class Resolved:
    """The parameters of one answer under Touchstone's names, as they will be sent.

    `extra` are further provider fields. `stop`: the task's stop sequences are sent.
    """

    parameters: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    stop: bool = True

    @property
    def json(self) -> str:
        """JSON of parameters and extra, for receipts and identities: names of fields sorted, values as they are
        sent."""
        further_ones = {"extra": dict(sorted(self.extra.items()))} if self.extra else {}
        return recorded({**self.parameters, **further_ones})


def resolve(
    sampling: job_pb2.Sampling, capabilities: Capabilities, repeat: int = 0, repeats: int = 1, model: str = "The model"
) -> Resolved:
    """Applies the policy to a job's sampling for answer `repeat` of `repeats` to an item: its seed is `seed + repeat`.

    Raises a fatal ProviderError for a parameter that the model refuses.
    """
    parameters: dict[str, Any] = {
        entry.name: value for entry, value in sampling.ListFields() if entry.name not in further_fields.FIELDS
    }
    refused = [name for name in _SAMPLING if name in parameters] if _no(capabilities, "sampling") else []
    if "seed" in parameters and _no(capabilities, "seed"):
        refused.append("seed")
    if refused:
        which = "it" if len(refused) == 1 else "them"
        raise ProviderError(
            f"{model} does not take {' and '.join(refused)}. Leave {which} out of the job's parameters.",
            fatal=True,
            status=400,
        )
    if "seed" in parameters:
        parameters["seed"] += repeat
    more = extra(sampling, ())
    open_ended = _no(capabilities, "greedy") or _no(capabilities, "sampling") or repeats > 1
    if not open_ended and not further_fields.samples(sampling, more):
        parameters["temperature"] = 0.0
    # Where this is unknown, a stop sequence might end the thinking before the answer has begun.
    stop = capabilities.stop if capabilities.HasField("stop") else not capabilities.reasoning
    return Resolved(further_fields.whole(parameters), more, stop)


def _no(capabilities: Capabilities, name: Literal["greedy", "seed", "sampling"]) -> bool:
    return capabilities.HasField(name) and not getattr(capabilities, name)
