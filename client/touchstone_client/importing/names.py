"""Which of our tasks a tool's task is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from services.words import refusals
from touchstone.v1 import suite_pb2
from touchstone_client.errors import InvalidError
from touchstone_client.importing import responses
from touchstone_client.importing.log import Log, Target

_GLUE = {name: name for name in ("cola", "sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "wnli")}
_GLUE["mnli_mismatch"] = "mnli_mismatched"
_SUPERGLUE = {name: name for name in ("boolq", "cb", "copa", "wic", "wsc")} | {"sglue_rte": "rte"}
_OTHERS = {
    "medqa_4options": Target("medical", "medqa"),
    "medmcqa": Target("medical", "medmcqa"),
    "arc_easy": Target("arc", "easy"),
    "arc_challenge": Target("arc", "challenge"),
    "hellaswag": Target("hellaswag", "hellaswag"),
    "gsm8k": Target("gsm8k", "gsm8k"),
}
_MMLU, _MMLU_PRO, _WHOLE_MMLU_PRO = "mmlu_", "mmlu_pro_", "leaderboard_mmlu_pro"
_SUBJECTS_IN = ("mmlu", "medical")
"""Six subjects are in both; the first suite counts unless another one is given."""


def resolve(
    logs: Sequence[Log], suites: Iterable[suite_pb2.Suite], suite: str, named: Mapping[str, str]
) -> tuple[str, dict[str, Sequence[Target]]]:
    """The one suite that all logs are about, and each log's tasks in it by the tool's name.

    `suite` may be empty; `named` are the user's own: a tool's task → "task" or "suite/task". Raises InvalidError.
    """
    known = {each.suite: {task.task for task in each.tasks} for each in suites}
    if unused := set(named) - {log.task for log in logs}:
        raise InvalidError.of(f"None of the logs is of {', '.join(sorted(unused))}, which --task names.")
    if suite and suite not in known and ":" not in suite:
        raise InvalidError.of(f"{refusals.not_found('Suite', suite)}. Suites: {', '.join(known)}.")
    found = {log.task: _candidates(log, known, suite, named.get(log.task, "")) for log in logs}
    chosen = suite or _common(found)
    targets: dict[str, Sequence[Target]] = {}
    for task, candidates in found.items():
        targets[task] = [target for target in candidates if target.suite == chosen]
        if not targets[task]:
            raise InvalidError.of(
                f"{task} is a task of {candidates[0].suite}, not of {chosen}. Import the logs of each suite separately."
            )
    taken: dict[str, str] = {}
    for task, each in targets.items():
        for target in each:
            if target.task in taken:
                raise InvalidError.of(f"{taken[target.task]} and {task} are both {target.task}. Import one of them.")
            taken[target.task] = task
    return chosen, targets


def _candidates(log: Log, known: Mapping[str, set[str]], suite: str, named: str) -> Sequence[Target]:
    if named:
        of, _, task = named.rpartition("/")
        of = of or suite
        if not of:
            raise InvalidError.of(f"--task {log.task}={named}: name the suite too, as in {log.task}=SUITE/{named}.")
        if ":" not in of and task not in known.get(of, set()):
            there = ", ".join(sorted(known.get(of, set()))) or "none"
            raise InvalidError.of(f"--task {log.task}={named}: suite {of} has no task {task}. Tasks: {there}.")
        return [Target(of, task)]
    found = [t for t in _table(log, known) if t.task in known.get(t.suite, set())]
    # A task with exactly this name in the suite that the user names.
    if not any(target.suite == suite for target in found) and log.task in known.get(suite, set()):
        found.append(Target(suite, log.task))
    if not found and log.tool == responses.TOOL:
        return [_only_task(log, known.get(suite, set()), suite)]
    if not found:
        raise InvalidError.of(
            f"{log.file.name} is of the task {log.task}, which is unknown here. If it has the rows of one of "
            f"Touchstone's tasks, name it: --task {log.task}=SUITE/TASK. Tasks: touchstone suites."
        )
    return found


def _only_task(log: Log, tasks: set[str], suite: str) -> Target:
    """For a file whose name is not a task's."""
    if not suite:
        raise InvalidError.of(f"Name what {log.file.name} answers: --suite NAME, or --dataset ID.")
    if len(tasks) != 1:
        there = ", ".join(sorted(tasks)) or "none"
        raise InvalidError.of(f"Name the task of {suite} that {log.file.name} answers: --task TASK. Tasks: {there}.")
    return Target(suite, *tasks)


def _table(log: Log, known: Mapping[str, set[str]]) -> Sequence[Target]:
    """Tasks of lm_eval 0.4.13 that are about the same rows."""
    name = log.task
    if log.tool != "lm_eval":
        return []
    if name in _GLUE:
        return [Target("glue", _GLUE[name])]
    if name in _SUPERGLUE:
        return [Target("superglue", _SUPERGLUE[name])]
    if name in _OTHERS:
        return [_OTHERS[name]]
    if name == _WHOLE_MMLU_PRO:
        return [Target("mmlu_pro", task, task.replace("_", " ")) for task in sorted(known.get("mmlu_pro", set()))]
    if name.startswith(_MMLU_PRO):
        return [Target("mmlu_pro", name.removeprefix(_MMLU_PRO))]
    if name.startswith(_MMLU):
        return [Target(suite, name.removeprefix(_MMLU)) for suite in _SUBJECTS_IN]
    return []


def _common(found: Mapping[str, Sequence[Target]]) -> str:
    """The first suite that every log has a task in."""
    suites = [dict.fromkeys(target.suite for target in candidates) for candidates in found.values()]
    for suite in suites[0]:
        if all(suite in each for each in suites):
            return suite
    several = ", ".join(sorted({next(iter(each)) for each in suites}))
    raise InvalidError.of(f"The logs are about several suites: {several}. Import the logs of each suite separately.")
