"""Runs lm_eval's own tasks on given files through its `local-completions`, in the environment of `make parity-env`.

`python run_lm_eval.py <plan.json> <found.json>`. The plan names the server, the model's directory, the numbers of
few-shot examples, and for each task lm_eval's name of it and the files that it reads in place of the Hub's splits:
`{"url", "model", "shots": [...], "tasks": {ours: {"task": name, "files": {split: file}}}}`. For each task and number of
examples it writes `{"task", "shots", "documents", "results"}`: every request's context, continuation, log-likelihood
and greediness by document with lm_eval's verdicts on it, and lm_eval's aggregates.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

ACCURACIES = ("acc", "acc_norm", "acc_bytes")
LONGEST = 8192
"""Longest input. lm_eval cuts what is longer, from its beginning."""
SHIPPED = ("glue", "super_glue", "mmlu/default", "medqa", "medmcqa", "arc", "hellaswag", "leaderboard/mmlu_pro")


def manager() -> TaskManager:
    """The shipped tasks of these families; reading them all takes half a minute."""
    folder = Path(sys.modules["lm_eval"].__path__[0]) / "tasks"
    return TaskManager(include_defaults=False, include_path=[str(folder / family) for family in SHIPPED])


def task_on(tasks: TaskManager, name: str, task: str, files: dict[str, str]) -> Any:
    """lm_eval's task under our name, its data replaced, its examples taken in order, and all accuracies measured."""
    entry = tasks.task_index[task]
    metrics = load_yaml(entry.yaml_path, resolve_func=True)["metric_list"]
    known = {metric["metric"] for metric in metrics}
    overrides = {
        "task": name,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
        "fewshot_config": {"sampler": "first_n"},
        "metric_list": metrics + [{"metric": more} for more in ACCURACIES if more not in known],
    }
    return tasks._factory.build(entry, overrides=overrides, registry=tasks.task_index)


def document(sample: dict[str, Any]) -> dict[str, Any]:
    answers = [answer[0] for answer in sample["resps"]]
    return {
        "contexts": [context for context, _ in sample["arguments"]],
        "continuations": [continuation for _, continuation in sample["arguments"]],
        "loglikelihoods": [float(answer[0]) for answer in answers],
        "greedy": [bool(answer[1]) for answer in answers],
        "verdicts": {metric: float(sample[metric]) for metric in ACCURACIES},
    }


def run(plan: dict[str, Any], shipped: TaskManager, shots: int) -> list[dict[str, Any]]:
    result = simple_evaluate(
        model="local-completions",
        model_args={
            "model": "parity",
            "base_url": f"{plan['url']}/completions",
            "tokenizer": plan["model"],
            "tokenizer_backend": "huggingface",
            # It sends token ids, so it must put first what the server puts before a text.
            "add_bos_token": True,
            "max_length": LONGEST,
            "batch_size": 8,
        },
        tasks=[task_on(shipped, name, each["task"], each["files"]) for name, each in plan["tasks"].items()],
        num_fewshot=shots,
        bootstrap_iters=0,
    )
    found = []
    for name in plan["tasks"]:
        samples = sorted(result["samples"][name], key=lambda sample: sample["doc_id"])
        # "acc,none" is the metric and the filter that its answers went through.
        results = {
            key.partition(",")[0]: value for key, value in result["results"][name].items() if "_stderr" not in key
        }
        found.append(
            {"task": name, "shots": shots, "documents": [document(sample) for sample in samples], "results": results}
        )
    return found


if __name__ == "__main__":
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    given = json.loads(Path(sys.argv[1]).read_text())
    known = manager()
    every = [found for shots in given["shots"] for found in run(given, known, shots)]
    Path(sys.argv[2]).write_text(json.dumps(every, default=str))
