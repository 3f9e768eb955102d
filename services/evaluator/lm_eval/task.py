"""A task of lm_eval as a Touchstone task: its documents, prompts, filters and verdicts are lm_eval's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from services.errors import InvalidRequestError
from services.evaluator.answers import scoring
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.prose.cleaning import strip_reasoning
from services.evaluator.data.reader import Source
from services.evaluator.items.hashing import text_hash
from services.evaluator.items.task import Item, Message, Response, Scored
from services.evaluator.lm_eval import data, library
from services.evaluator.lm_eval.configuration import Configuration
from touchstone.v1 import item_result_pb2, suite_pb2

_SEED = 1234
"""lm_eval's seed for few-shot examples."""
_INVALID = "[invalid]"
"""What lm_eval's filters give where they find no answer."""


class LmEvalTask:
    """Implements `Task`. `shots` of 0 means as many examples as the task itself sets.

    lm_eval draws examples from one stream, item by item; here every item's draw begins with the same seed, so that an
    item does not depend on those before it.
    """

    scale: tuple[float, float] | None = None
    reading: Layer | None = None
    grouped = False

    def __init__(
        self, configuration: Configuration, data_dir: Path | None, mode: suite_pb2.Mode, shots: int, version: str
    ) -> None:
        configuration.check(mode, shots)
        self.info = configuration.info()
        self.metrics = configuration.metrics
        self.shots = shots or configuration.usual_shots
        self.mode = mode
        self.plugin = ""
        self.executor: Executor | None = None
        self.scorer_version = f"lm_eval {version}"
        stated = (configuration.raw.get("metadata") or {}).get("version", "")
        self.version = f"{self.scorer_version}, {stated}"
        choices = configuration.raw.get("doc_to_choice")
        self.labels = tuple(choices) if isinstance(choices, list) else ()
        self._configuration = configuration
        self._data_dir = data_dir
        self._source = Source(self.info.data.dataset, self.info.data.config)
        self._lock = threading.RLock()
        self._built: tuple[Any, str] | None = None

    # -- data ----------------------------------------------------------------------------------------------------

    def size(self) -> int:
        return len(self._task().task_docs)

    def revision(self) -> str:
        self._task()
        assert self._built is not None
        return self._built[1]

    def prompt_hash(self) -> str:
        stated = {
            key: value for key, value in self._configuration.raw.items() if key not in ("metadata", "num_fewshot")
        }
        return text_hash(json.dumps([self.version, stated, self.shots], sort_keys=True, default=_named))

    def hashes(self, indexes: Sequence[int]) -> Iterator[str]:
        documents = self._task().task_docs
        return (self._hash(documents[index]) for index in indexes)

    def train(self) -> Sequence[Item]:
        return ()

    def answer(self, label: str) -> str:
        return label

    def _task(self) -> Any:
        with self._lock:
            if self._built is None:
                self._built = self._build()
            return self._built[0]

    def _build(self) -> tuple[Any, str]:
        stated = dict(self._configuration.raw)
        place = data.Place(self._source, stated.get("dataset_name"), self._data_dir)
        examples = self._configuration.example_split if self.shots else ""
        needed = [split for split in (self._configuration.split, examples) if split]
        found, revision = place.load(needed, self._configuration.splits)
        # A missing split other than the evaluated one could only provide examples.
        for use in ("training", "validation", "test", "fewshot"):
            if stated.get(f"{use}_split") not in found:
                stated[f"{use}_split"] = None
        stated |= {"custom_dataset": lambda **_: found, "dataset_kwargs": None, "num_fewshot": self.shots}
        task = library.build(stated)
        if task.multiple_input:
            raise InvalidRequestError(
                f"lm_eval's task {self.info.task} cannot be run here: its choices come before the text that is scored.",
                "suite",
            )
        return task, revision

    def _hash(self, document: Mapping[str, Any]) -> str:
        return text_hash(json.dumps([self.info.task, self.version, document], sort_keys=True, default=str))

    # -- rendering -----------------------------------------------------------------------------------------------

    def items(self, indexes: Sequence[int]) -> Iterator[Item]:
        for index in indexes:
            yield self._item(index)

    def _item(self, index: int) -> Item:
        task = self._task()
        document = task.task_docs[index]
        asked = self._asked(task, document)
        reference = self._reference(task, document)
        digest = self._hash(document)
        if self.mode == suite_pb2.MODE_GENERATE:
            ((messages, settings),) = asked
            until = settings.get("until") or ()
            return Item(
                index=index,
                messages=tuple(Message(each["role"], each["content"]) for each in messages),
                reference=reference,
                hash=digest,
                prompt_hash=text_hash(json.dumps(messages)),
                stop=(until,) if isinstance(until, str) else tuple(until),
            )
        contexts = {context for context, _ in asked}
        (context,) = contexts
        choices = tuple(continuation for _, continuation in asked)
        prompt_hash = text_hash("\x1e".join((context, *choices)))
        return Item(
            index, (), reference, digest, prompt_hash, context=context, choices=choices, labels=self._offered(choices)
        )

    def _asked(self, task: Any, document: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """lm_eval's requests: contexts and continuations, or messages and generation parameters."""
        chats = self.mode == suite_pb2.MODE_GENERATE
        with self._lock:
            task.set_fewshot_seed(_SEED)
            context = task.fewshot_context(
                doc=document,
                num_fewshot=self.shots,
                apply_chat_template=chats,
                fewshot_as_multiturn=chats,
                chat_template=_as_messages if chats else None,
                gen_prefix=task.doc_to_prefix(document),
            )
        made = task.construct_requests(document, context, metadata=(self.info.task, 0, 1))
        return [each.args for each in (made if isinstance(made, list) else [made])]

    def _offered(self, choices: Sequence[str]) -> tuple[str, ...]:
        return () if self.labels else tuple(choice.strip() for choice in choices)

    def _reference(self, task: Any, document: Mapping[str, Any]) -> str:
        target = task.doc_to_target(document)
        if isinstance(target, list):
            target = target[0] if target else ""
        if isinstance(target, int) and task.config.doc_to_choice is not None:
            target = task.doc_to_choice(document)[target]
        return str(target).strip()

    # -- scoring -------------------------------------------------------------------------------------------------

    def score(self, item: Item, response: Response) -> Scored:
        wrong = {"correct": 0.0} | self._statistics({})
        if (end := scoring.unanswered(response, wrong)) is not None:
            return end
        if self.mode == suite_pb2.MODE_GENERATE:
            return self._score_text(item, response)
        if len(response.continuations) != len(item.choices):
            how = f"none: {len(response.continuations)} continuations were scored instead of {len(item.choices)}"
            return Scored(item_result_pb2.OUTCOME_UNPARSED, "", wrong, how)
        answers = [(each.loglikelihood, each.greedy) for each in response.continuations]
        verdicts, _ = self._verdicts(item, "loglikelihood", answers)
        best = max(range(len(answers)), key=lambda place: answers[place][0])
        prediction = (item.labels or self.labels)[best].strip()
        statistics = {"correct": float(prediction == item.reference)} | self._statistics(verdicts)
        return Scored(item_result_pb2.OUTCOME_ANSWERED, prediction, statistics, "lm_eval's verdict on log-likelihoods")

    def _score_text(self, item: Item, response: Response) -> Scored:
        text = strip_reasoning(response.text)
        for stop in item.stop:
            text = text.partition(stop)[0]
        verdicts, filtered = self._verdicts(item, "generate_until", [text])
        first = self._configuration.filters[0]
        found = filtered[first] if isinstance(filtered[first], str) else str(filtered[first])
        answer = "" if found.strip() == _INVALID else found.strip()
        how = f"lm_eval's filter {first}" if answer else f"none: lm_eval's filter {first} finds no answer"
        return scoring.scored(response, Extraction(answer, how), self._statistics(verdicts))

    def _verdicts(
        self, item: Item, kind: str, answers: Sequence[Any]
    ) -> tuple[dict[str, Mapping[str, Any]], dict[str, Any]]:
        """lm_eval's verdicts by filter, and the first request's filtered answer by filter."""
        task = self._task()
        document = task.task_docs[item.index]
        requests = [library.instance(kind, document, (), place, answer) for place, answer in enumerate(answers)]
        for each in task._filters:
            each.apply(requests)
        verdicts = {
            used: task.process_results(document, [request.filtered_resps[used] for request in requests])
            for used in requests[0].filtered_resps
        }
        return verdicts, requests[0].filtered_resps

    def _statistics(self, verdicts: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """The metrics that are means, and "correct": the first of them, where there is one."""
        found = {
            shown: float(verdicts.get(used, {}).get(name, 0.0))
            for shown, (name, used) in self._configuration.means.items()
        }
        return found | ({"correct": next(iter(found.values()))} if found else {})


def _named(value: Any) -> Any:
    """A function of the configuration by its name: lm_eval's version determines what it does."""
    if isinstance(value, partial):
        return [_named(value.func), value.args, value.keywords]
    return getattr(value, "__qualname__", None) or str(value)


def _as_messages(messages: Sequence[Mapping[str, str]], **_: Any) -> Sequence[Mapping[str, str]]:
    """Replaces a chat template: the endpoint has one."""
    return messages
