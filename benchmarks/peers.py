"""The peers on the same items: whole processes of lm_eval and Inspect, in an environment of their own.

Each is asked as its own documentation does it: `lm_eval --model local-chat-completions` with a task over a local file,
`inspect eval` with a dataset of a local file. Neither stores what it computed more durably than in a log at the end.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.endpoint import MODEL

LIMIT_S = 240.0

_LM_EVAL_TASK = """\
task: bench
dataset_path: json
dataset_kwargs: {{data_files: {{test: "{rows}"}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{target}}}}"
generation_kwargs: {{until: ["\\n\\n"], max_gen_toks: 16, temperature: 0}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""

_INSPECT_TASK = """\
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate


@task
def bench():
    fields = FieldSpec(input="prompt", target="target")
    return Task(dataset=json_dataset("{rows}", fields), solver=generate(), scorer=match())
"""


@dataclass(frozen=True, slots=True)
class PeerRun:
    """A whole process from its start to its end. `cpu_s` is its user and system time, children included."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Peer:
    """`prepare` writes what the command needs into a folder and returns the command's arguments. `right` reads from
    what it left there how many items it answered rightly; its exit status tells nothing of that.
    """

    name: str
    package: str
    prepare: Callable[[Path, str, int], Sequence[str]]
    right: Callable[[Path, Path], int]


def write_rows(folder: Path, prompts: Sequence[str], targets: Sequence[str]) -> Path:
    """The items as both peers read them."""
    rows = folder / "rows.jsonl"
    pairs = zip(prompts, targets, strict=True)
    rows.write_text("".join(json.dumps({"prompt": prompt, "target": target}) + "\n" for prompt, target in pairs))
    return rows


def _lm_eval(folder: Path, url: str, concurrency: int) -> Sequence[str]:
    tasks = folder / "lm_eval_tasks"
    tasks.mkdir(exist_ok=True)
    (tasks / "bench.yaml").write_text(_LM_EVAL_TASK.format(rows=folder / "rows.jsonl"))
    model = f"model={MODEL},base_url={url}/chat/completions,num_concurrent={concurrency},tokenized_requests=False"
    return (
        *("lm_eval", "--model", "local-chat-completions", "--model_args", model, "--include_path", str(tasks)),
        *("--tasks", "bench", "--apply_chat_template", "--output_path", str(folder / "lm_eval"), "--log_samples"),
    )


def _inspect(folder: Path, url: str, concurrency: int) -> Sequence[str]:
    task = folder / "inspect_bench.py"
    task.write_text(_INSPECT_TASK.format(rows=folder / "rows.jsonl"))
    return (
        *("inspect", "eval", task.name, "--model", f"openai/{MODEL}", "--model-base-url", url),
        *("--max-connections", str(concurrency), "--max-samples", str(concurrency), "--display", "none"),
        *("--log-dir", str(folder / "inspect"), "--temperature", "0", "--max-tokens", "16"),
        # Else it takes OpenAI's other protocol, which the endpoint does not speak.
        *("-M", "responses_api=false"),
    )


def _lm_eval_right(folder: Path, environment: Path) -> int:
    (file,) = (folder / "lm_eval").rglob("results_*.json")
    results = json.loads(file.read_text())
    share = float(results["results"]["bench"]["exact_match,none"])
    return round(share * int(results["n-samples"]["bench"]["effective"]))


def _inspect_right(folder: Path, environment: Path) -> int:
    (file,) = (folder / "inspect").glob("*.eval")
    command = [str(environment / "bin" / "inspect"), "log", "dump", str(file), "--header-only"]
    header = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if header["status"] != "success":
        return 0
    results = header["results"]
    return round(float(results["scores"][0]["metrics"]["accuracy"]["value"]) * int(results["completed_samples"]))


PEERS = (
    Peer("lm_eval", "lm_eval", _lm_eval, _lm_eval_right),
    Peer("Inspect", "inspect_ai", _inspect, _inspect_right),
)


def run(peer: Peer, environment: Path, folder: Path, url: str, concurrency: int, items: int) -> PeerRun:
    """`environment` is the peers' virtual environment. Raises RuntimeError when the peer takes too long or does not
    answer all items rightly."""
    program, *arguments = peer.prepare(folder, url, concurrency)
    command = [str(environment / "bin" / program), *arguments]
    variables = {
        **os.environ,
        "PATH": f"{environment / 'bin'}:{os.environ.get('PATH', '')}",
        "OPENAI_API_KEY": "none",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_CACHE": str(folder / "cache"),
    }
    variables.pop("PYTHONPATH", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    with (folder / f"{peer.package}.log").open("wb") as log:
        try:
            code = subprocess.run(
                command, cwd=folder, env=variables, stdout=log, stderr=log, timeout=LIMIT_S, check=False
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{peer.name} did not end within {LIMIT_S:g} s") from error
    wall_s = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        tail = (folder / f"{peer.package}.log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{peer.name} failed with status {code}:\n{tail}")
    if (right := peer.right(folder, environment)) != items:
        raise RuntimeError(f"{peer.name} answered {right} of {items} items rightly")
    return PeerRun(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def version(peer: Peer, environment: Path) -> str:
    """The installed version of the peer's package."""
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    done = subprocess.run([str(environment / "bin" / "python"), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
