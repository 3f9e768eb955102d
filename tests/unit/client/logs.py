"""Logs as lm_eval 0.4.13 and Inspect 0.3.285 write them, in their shapes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DATE = "2026-11-20T18-25-24.194910"
Row = Mapping[str, Any]


def choices(doc_id: int, row: Row, context: str, scored: Sequence[tuple[str, float]], **more: Any) -> dict[str, Any]:
    """A log-likelihood sample."""
    return sample(
        doc_id,
        row,
        {f"gen_args_{n}": {"arg_0": context, "arg_1": text} for n, (text, _) in enumerate(scored)},
        [[[str(value), "False"]] for _, value in scored],
        **more,
    )


def generated(doc_id: int, row: Row, prompt: Any, *responses: str, **more: Any) -> dict[str, Any]:
    """A text sample, with an answer a repeat."""
    arguments = {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n"], "temperature": 0.0}}}
    return sample(doc_id, row, arguments, [list(responses)], **more)


def sample(doc_id: int, row: Row, arguments: Any, resps: Any, **more: Any) -> dict[str, Any]:
    hashes = {f"{name}_hash": "0" * 64 for name in ("doc", "prompt", "target")}
    return {
        "doc_id": doc_id,
        "doc": dict(row),
        "target": "1",
        "arguments": arguments,
        "resps": resps,
        "filtered_resps": [answers[0] for answers in resps] if isinstance(resps, list) else resps,
        "filter": "none",
        "metrics": ["acc"],
        **hashes,
        "acc": 0.0,
        **more,
    }


def lm_eval(folder: Path, task: str, samples: Iterable[Any], shots: int | None = 0, **results: Any) -> Path:
    """A samples file, with the results beside it unless `shots` is None. A text among the samples is a line itself."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"samples_{task}_{DATE}.jsonl"
    lines = (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in samples)
    file.write_text("".join(f"{line}\n" for line in lines))
    if shots is not None:
        beside = folder / f"results_{DATE}.json"
        told = json.loads(beside.read_text()) if beside.exists() else {"configs": {}, "n-shot": {}}
        told["configs"][task] = {"doc_to_text": "{{text}}", "generation_kwargs": {"until": ["\n"]}}
        told["n-shot"][task] = shots
        told |= {"lm_eval_version": "0.4.13", "date": 1795198800.5, "config": {"gen_kwargs": {}}, **results}
        beside.write_text(json.dumps(told))
    return file


def header(task: str = "sst2", ids: Sequence[Any] = (1, 2), **spec: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": task,
            "created": "2026-11-20T18:26:56+00:00",
            "model": "openai/stub",
            "dataset": {"samples": len(ids), "sample_ids": list(ids), "shuffled": False},
            "config": {"epochs": 1},
            "packages": {"inspect_ai": "0.3.285"},
            "model_generate_config": {"max_connections": 16, "temperature": 0.0},
            **spec,
        },
        "plan": {"name": "plan", "steps": [{"solver": "generate"}], "config": {"max_tokens": 16}},
        "stats": {"completed_at": "2026-11-20T18:27:20+00:00"},
    }


def inspected(sample_id: Any, prompt: str, response: str, epoch: int = 1, **more: Any) -> dict[str, Any]:
    answer = {"role": "assistant", "content": response, "source": "generate"}
    return {
        "id": sample_id,
        "epoch": epoch,
        "input": prompt,
        "target": "x",
        "messages": [{"role": "user", "content": prompt, "source": "input"}, answer],
        "output": {
            "model": "stub",
            "choices": [{"message": answer, "stop_reason": "stop"}],
            "completion": response,
            "usage": {"input_tokens": 7, "output_tokens": 3, "input_tokens_cache_read": 2},
            "time": 0.25,
        },
        "metadata": {},
        "attachments": {},
        **more,
    }


def archive(
    file: Path,
    samples: Iterable[Mapping[str, Any]],
    head: Mapping[str, Any] | None = None,
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("_journal/start.json", json.dumps({"version": 2, **(head or header())}))
        for each in samples:
            made.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
        made.writestr("header.json", json.dumps(head or header()))
    return file
