"""The identity of a request: the hash by which a stored answer is found again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from services import further_fields
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.items.task import Item
from services.evaluator.providers.protocol.capabilities import Resolved, resolve
from services.words import chat
from services.words.enums import proto_name
from services.words.jobs import mode_of
from touchstone.v1 import job_pb2, suite_pb2
from touchstone.v1.endpoint_pb2 import Capabilities

_DIGITS = 32


def asked_with(
    spec: job_pb2.JobSpec,
    kind: str,
    capabilities: Capabilities,
    repeat: int = 0,
    sampling: job_pb2.Sampling | None = None,
) -> Resolved:
    """What the job's requests carry apart from the prompt, for one of the answers to an item; `sampling` is the item's
    own if it has one.

    A baseline receives at most a seed, an application what the job sets. In log-likelihood mode nothing is generated,
    so only further provider fields count. Raises a fatal ProviderError for a parameter that the model refuses.
    """
    sampling = spec.sampling if sampling is None else sampling
    asked = resolve(sampling, capabilities, repeat, max(1, spec.suite.repeats), spec.model)
    if spec.mode == suite_pb2.MODE_LOGLIKELIHOOD:
        return Resolved({}, asked.extra, stop=False)
    if kind == "baseline":
        return Resolved({name: value for name, value in asked.parameters.items() if name == "seed"}, stop=False)
    if kind == "http":
        chosen = {name: value for name, value in asked.parameters.items() if sampling.HasField(name)}
        return Resolved(chosen, asked.extra, asked.stop)
    return asked


def setup(endpoint: Endpoint, model: str) -> str:
    """What the endpoints file says about how a model is served or asked, if there is no digest of its weights: an
    engine's command, with its number format and template, an application's request and the path of its answer, or the
    options of a plug-in.
    """
    if endpoint.engine is not None:
        served = endpoint.engine.model(model)
        return _canonical({"command": [*endpoint.engine.command, *(served.args if served is not None else ())]})
    if endpoint.http is not None:
        asked = endpoint.http
        return _canonical({"asked": [asked.method, asked.path, asked.request, asked.answer.text]})
    return _canonical(dict(endpoint.options)) if endpoint.options else ""


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def setup_hash(endpoint: Endpoint, model: str) -> str:
    """`setup` as the receipt shows it: 16 hexadecimal digits, or empty."""
    text = setup(endpoint, model)
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


class Identity:
    """Identities of one unit's answers: `identity(item, repeat)`.

    SHA-256 over endpoint, its kind and `setup`, model, its digest, mode, parameters, prompt (log-likelihood: context
    and continuations), stop sequences and repeat. Whether the answer was streamed does not count. Texts go in with
    their lengths, so that no two different requests read the same. The order of names in further fields counts, and
    with one, answers of versions that did not keep the order are not reused. About 2 µs for a prompt of a thousand
    characters. Raises a fatal ProviderError for a parameter that the model refuses.
    """

    def __init__(
        self, spec: job_pb2.JobSpec, digest: str, kind: str, capabilities: Capabilities, setup: str = ""
    ) -> None:
        self._spec, self._digest, self._kind, self._capabilities = spec, digest, kind, capabilities
        self._setup = setup
        self._begun: dict[Any, tuple[Any, bool]] = {0: self._begin(0)}
        self._last: tuple[job_pb2.Sampling | None, bytes] = None, b""
        """An item's own sampling as bytes: most items in a row have the very same one."""

    def __call__(self, item: Item, repeat: int) -> str:
        sampling = item.sampling
        last = self._last
        if sampling is not None and sampling is not last[0]:
            # Read once and replaced whole: several threads may ask.
            self._last = last = sampling, sampling.SerializeToString(deterministic=True)
        key = repeat if sampling is None else (repeat, last[1])
        if key not in self._begun:
            self._begun[key] = self._begin(repeat, sampling)
        begun, stop = self._begun[key]
        texts = [item.context, *item.choices]
        if item.messages and self._spec.mode != suite_pb2.MODE_LOGLIKELIHOOD:
            texts = [text for message in item.messages for text in (message.role, message.content)]
            for message in item.messages:
                if message.more is not None:
                    texts += chat.marks(message.more)
        if stop:
            texts += ("stop", *item.stop)
        whole = begun.copy()
        whole.update("".join([f"{len(text)}:{text}" for text in texts]).encode("utf-8", "replace"))
        digits: str = whole.hexdigest()
        return digits[:_DIGITS]

    def _begin(self, repeat: int, sampling: job_pb2.Sampling | None = None) -> tuple[Any, bool]:
        spec = self._spec
        asked = asked_with(spec, self._kind, self._capabilities, repeat, sampling)
        mode = proto_name(suite_pb2.Mode, mode_of(spec))
        parts = [spec.endpoint, self._kind, self._setup, spec.model, self._digest, mode, asked.json, str(repeat)]
        if asked.extra and further_fields.is_ordered(spec.sampling if sampling is None else sampling):
            parts.append("in order")
        return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()), asked.stop
