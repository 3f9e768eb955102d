"""How many parameters a model has, according to names and listings."""

from __future__ import annotations

import re

from services import numbers
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.providers.protocol.provider import ProviderError

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


def parameters_b(text: str) -> float:
    """Billions of parameters in "7.6B", "qwen2.5:7b", "8x7b" or "smollm-135M-instruct"; 0 when it does not say."""
    sizes = []
    for experts, number, unit in _SIZE.findall(text):
        billions = float(number) * float(experts or 1)
        sizes.append(numbers.real(billions if unit in "bB" else billions / 1000, 0.0, numbers.MOST_PARAMETERS_B))
    return max(filter(None, sizes), default=0.0)


def billions(parameters: int) -> float:
    """Billions in a count of parameters; 0 for an impossible count."""
    return numbers.real(round(parameters / 1e9, 3), 0.0, numbers.MOST_PARAMETERS_B) or 0.0


def known_b(endpoint: Endpoint, model: str) -> float:
    """What the endpoints file or the name says; 0 when neither does."""
    entry = endpoint.entry(model)
    return (entry.parameters_b if entry is not None else 0.0) or parameters_b(model)


def refuse_larger(endpoint: str, model: str, size_b: float, max_model_b: float) -> None:
    """Raises a fatal ProviderError when the model is larger than the endpoint takes; an unknown size passes."""
    if max_model_b and size_b > max_model_b:
        raise ProviderError(
            f"{model} has {size_b:g} billion parameters; {endpoint} takes at most {max_model_b:g}. "
            "Choose a smaller model or raise max_model_b.",
            fatal=True,
            status=400,
        )
