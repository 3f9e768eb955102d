"""Turns logs into the messages of ImportAnswers, and the job over them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from services.words.enums import MODES
from touchstone.v1 import job_pb2
from touchstone.v1.results_service_pb2 import ImportAnswersRequest, ImportedAnswer, ImportedRun
from touchstone_client.errors import InvalidError
from touchstone_client.importing import responses
from touchstone_client.importing.log import Log, Sample, Target, wrong
from touchstone_client.specs import dataset_spec, suite_spec

_MOST_ANSWERS = 1000
_MOST_BYTES = 2_000_000
"""Bytes of a message before the answer that exceeds them; one answer may have 650 KB."""
_FORM = "1"
"""The version of the conversion: another version makes another import of the same files."""


class Import:
    """One import: the logs with the tasks that they are about, for one model. `dataset_id` replaces `suite`."""

    def __init__(
        self,
        logs: Sequence[Log],
        model: str,
        suite: str,
        targets: Mapping[str, Sequence[Target]],
        dataset_id: str = "",
    ) -> None:
        self._logs = logs
        self._targets = targets
        self._suite = suite
        self._dataset_id = dataset_id
        self.run = self._run(model)

    def _run(self, model: str) -> ImportedRun:
        first = self._logs[0]
        parameters = [dict(log.parameters) for log in self._logs]
        same = all(each == parameters[0] for each in parameters)
        asked = parameters[0] if same else dict(zip([log.task for log in self._logs], parameters, strict=True))
        run = ImportedRun(
            tool=first.tool,
            tool_version=next((log.version for log in self._logs if log.version), ""),
            model=model,
            suite=self._suite,
            dataset_id=self._dataset_id,
            mode=MODES[first.mode],
            # Lines of answers do not say what was sent.
            parameters="" if first.tool == responses.TOOL else json.dumps(asked, sort_keys=True, default=str),
            template=", ".join(dict.fromkeys(log.template for log in self._logs)),
        )
        for log in self._logs:
            for target in self._targets[log.task]:
                if log.prompt_hash:
                    run.prompt_hashes[target.task] = log.prompt_hash
        if dates := [log.completed_at for log in self._logs if log.completed_at is not None]:
            run.completed_at.FromDatetime(max(dates))
        run.digest = self._digest(run)
        return run

    def _digest(self, run: ImportedRun) -> str:
        told = ImportedRun()
        told.CopyFrom(run)
        # A file that was copied has another time.
        told.ClearField("completed_at")
        tasks = sorted((task, [(t.suite, t.task) for t in targets]) for task, targets in self._targets.items())
        files = sorted((log.task, _sha256(log.file)) for log in self._logs)
        parts = [_FORM, told.SerializeToString(deterministic=True).hex(), tasks, files, self._logs[0].shots]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def requests(self, again: bool = False) -> Iterator[ImportAnswersRequest]:
        """Messages in order. Raises InvalidError for an invalid line."""
        request = ImportAnswersRequest(run=self.run, again=again)
        size = 0
        yield request
        request = ImportAnswersRequest()
        for answer in self._answers():
            more = answer.ByteSize()
            if request.answers and (len(request.answers) == _MOST_ANSWERS or size + more > _MOST_BYTES):
                yield request
                request, size = ImportAnswersRequest(), 0
            request.answers.append(answer)
            size += more
        if request.answers:
            yield request

    def _answers(self) -> Iterator[ImportedAnswer]:
        for log in self._logs:
            seen: set[int] = set()
            tell = _Tasks(log, self._targets[log.task])
            for sample in log.samples():
                key = sample.item << 8 | min(sample.answer.repeat, 255)
                if key in seen:
                    again = f"row {sample.item:,} has answer {sample.answer.repeat + 1} twice."
                    raise wrong(log.file, sample.place, again)
                seen.add(key)
                answer = sample.answer
                answer.task, answer.item = tell(sample)
                yield answer

    def spec(self, import_id: str, repeats: int, project_id: int = 0) -> job_pb2.JobSpec:
        """The job over the import."""
        if self._dataset_id:
            spec = dataset_spec(self._dataset_id, endpoint=self.run.tool, model=self.run.model, project_id=project_id)
            spec.reuse.import_id = import_id
            return spec
        tasks = sorted({target.task for targets in self._targets.values() for target in targets})
        spec = suite_spec(
            self._suite,
            endpoint=self.run.tool,
            model=self.run.model,
            mode=self._logs[0].mode,
            tasks=tasks,
            shots=self._logs[0].shots or 0,
            repeats=repeats,
            project_id=project_id,
        )
        spec.reuse.import_id = import_id
        return spec


class _Tasks:
    """Which of our tasks a sample belongs to, and its row number there."""

    def __init__(self, log: Log, targets: Sequence[Target]) -> None:
        self._log = log
        self._only = targets[0].task if not targets[0].category else ""
        self._by_category = {target.category: target.task for target in targets}
        self._rows: Counter[str] = Counter()
        self._next = 0
        self._last: tuple[str, int] = ("", 0)

    def __call__(self, sample: Sample) -> tuple[str, int]:
        if self._only:
            return self._only, sample.item
        if sample.answer.repeat == 0:
            if sample.item != self._next:
                raise wrong(
                    self._log.file,
                    sample.place,
                    f"it is row {sample.item:,}, not {self._next:,}. Rows of several tasks are numbered by task, so "
                    "the file must have all of them in order from the first.",
                )
            category = str(sample.row.get("category"))
            if category not in self._by_category:
                raise wrong(self._log.file, sample.place, f"its category {category!r} is not a task of Touchstone.")
            self._last = self._by_category[category], self._rows[category]
            self._rows[category] += 1
            self._next += 1
        return self._last


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise InvalidError.of(f"{file.name} cannot be read: {error.strerror}.") from None
