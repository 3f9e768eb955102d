"""Refusals that several services say, one template for each kind, and the parts that sentences share. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

OVER_LIMIT = "Job execution failed: Resource limits exceeded."
"""How a job's reason begins when it passed a limit of time or memory (spec: "Resource Limit Errors")."""
GENERATE_ONLY = "Datasets run in generate mode only. Set mode to generate."
MODE = "mode must be generate or loglikelihood."
PAGE_TOKEN = "page_token is not valid for this request. Leave it out to start at the first page."
_MOST_SHOWN = 80
"""Characters of a value in a sentence."""


def between(field: str, low: float, high: float, *, zero: str = "") -> str:
    """A number is outside its limits. `zero` says what 0 means, where that is not the number 0."""
    if low == high:
        return f"{field} must be {bound(low)}."
    return f"{field} must be between {bound(low)} and {bound(high)}.{_zero_means(zero)}"


def at_least(field: str, low: float, *, zero: str = "") -> str:
    """A number is below its limit."""
    return f"{field} must be {bound(low)} or more.{_zero_means(zero)}"


def not_valid(value: object, field: str, allowed: Iterable[str]) -> str:
    """A field takes a few values, and this is not one of them."""
    return f"{shown(value)} is not a valid {field}. Use one of: {', '.join(allowed)}."


def not_found(kind: str, name: str) -> str:
    """Nothing has this name or id. The API document ends it without a full stop; a further sentence needs one."""
    return f"{kind} {shown(name)} not found"


def too_large(what: str, size: int, most: int, unit: str) -> str:
    """`size` and `most` are in `unit`, a plural such as bytes."""
    return f"{what} has {size:,} {unit}; at most {most:,} are allowed."


def id_used(request_id: str, made: str) -> str:
    """The id of an earlier request came with different content."""
    return f"request_id {request_id} was already used for {made} with a different request. Use a new id."


def not_yours(kind: str, name: str, owner: str, act: str) -> str:
    """`act` is what the caller asked for, such as "cancel it"."""
    return f"{kind} {name} belongs to {owner}. Only its owner or an admin may {act}."


def quota(most: int, things: str) -> str:
    """A user has the most of something that is allowed. `things` is a plural that ends in s."""
    if not most:
        return f"This installation does not allow users to have {things}."
    return f"You have {counted(most, things.removesuffix('s'))}, the most that one user may have. Delete one."


def open_already(most: int, things: str) -> str:
    """A user has the most of something open that is allowed. `things` is a plural, each noun of which ends in s."""
    are = f"1 {things.replace('s and ', ' or ').removesuffix('s')} is" if most == 1 else f"{most:,} {things} are"
    return f"{are} open, the most that one user may have. Close one, then try again."


def counted(number: float, noun: str) -> str:
    """1 row, 2 rows."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def entries(field: str, least: int, most: int, characters: int) -> str:
    """A list of texts is too short or too long, or one of its texts is."""
    return f"{field} must hold {least} to {most} entries of 1 to {characters} characters."


def pattern(fault: ValueError, field: str = "answer_pattern") -> str:
    """`fault` is that of services.patterns."""
    return f"{field} {fault}. Correct it, or leave it out."


def busy(at_once: int, things: str) -> str:
    """The allowed number is already running. `things` is a plural that ends in s."""
    running = f"1 {things.removesuffix('s')} is" if at_once == 1 else f"{at_once:,} {things} are"
    return f"{running} running, the most allowed at once. Try again in a moment."


def weights_unknown(endpoint: str, model: str) -> str:
    """Answers of other jobs were requested, but nothing shows that they come from the same weights."""
    return (
        f"{endpoint} does not report which weights serve {model}, so answers of other jobs may come from another "
        "model. Run without reuse.any_job, or set reuse.without_digest to accept that the model may have changed."
    )


REUSED_WITHOUT_DIGEST = "Stored answers were reused without a digest of the weights. The model may have changed since."


def prices_unknown(endpoint: str, model: str) -> str:
    """A budget was requested without prices."""
    return (
        f"The prices of {model} at {endpoint} are unknown, so a budget cannot be enforced. Set prices in the endpoints "
        "file, or leave budget_usd out."
    )


def no_loglikelihood(name: str) -> str:
    """`name` is an endpoint, or a model at one."""
    return (
        f"{name} does not return log-likelihoods of given texts. Set mode to generate, or choose an endpoint that "
        "returns them, such as vLLM."
    )


def no_batch_api(endpoint: str, kind: str, kinds: Iterable[str]) -> str:
    """The endpoint's kind is not one of `kinds`, which have a supported batch API."""
    return (
        f"Touchstone does not support a batch API for {endpoint}, which is of kind {kind}. Choose an endpoint of kind "
        f"{' or '.join(kinds)}, or leave provider_batch out."
    )


def bound(number: float) -> str:
    """A limit in a sentence, with all digits of a whole number."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.15g}"


def shown(value: object) -> str:
    """A caller's value in a sentence: shortened, and quoted unless it is a single word."""
    text = str(value)[:_MOST_SHOWN]
    return text if re.fullmatch(r"[\w.:/@+-]+", text) else repr(text)


def _zero_means(meaning: str) -> str:
    return f" 0 means {meaning}." if meaning else ""
