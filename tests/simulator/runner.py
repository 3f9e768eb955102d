"""Runs seeds in several processes, or one of them with its trace."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.simulator.kinds import has_datasets, has_decisions, has_experiments, has_judges, has_races
from tests.simulator.planted import EXPERIMENT_BUGS, JUDGE_BUGS, planted
from tests.simulator.planted_datasets import DATASET_BUGS
from tests.simulator.planted_decisions import DECISION_BUGS, RACE_BUGS
from tests.simulator.simulation import report, simulate

HASH_SEED = "0"
_WORLDS = (
    (DATASET_BUGS, has_datasets),
    (EXPERIMENT_BUGS, has_experiments),
    (JUDGE_BUGS, has_judges),
    (DECISION_BUGS, has_decisions),
    (RACE_BUGS, has_races),
)
"""Bugs, and the only worlds in which they can be found."""


def main() -> int:
    """The exit code: 1 when an invariant is broken."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="replay this one with its trace")
    parser.add_argument("--bug", default="", help="plant this bug first, to see it found")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        # Sets of texts have the order of their hashes, which Python draws anew for every process.
        arguments = [sys.executable, "-m", "tests.simulator", *sys.argv[1:]]
        os.execve(sys.executable, arguments, os.environ | {"PYTHONHASHSEED": HASH_SEED})
    if options.seed is not None:
        return _one(options.seed, options.bug)
    seeds = range(options.first, options.first + options.seeds)
    worlds = next((has for bugs, has in _WORLDS if options.bug in bugs), None)
    return _many([seed for seed in seeds if worlds is None or worlds(seed)], options.processes, options.bug)


def _one(seed: int, bug: str) -> int:
    with planted(bug):
        outcome = simulate(seed, verbose=True)
    outcome.trace.clear()
    print(report(outcome) if outcome.broken else f"seed {seed}: every invariant holds")
    return 1 if outcome.broken else 0


def _work(task: tuple[int, str]) -> tuple[int, str, dict[str, int], float]:
    seed, bug = task
    began = time.process_time()
    with planted(bug):
        outcome = simulate(seed)
    return seed, report(outcome) if outcome.broken else "", outcome.states, time.process_time() - began


def _many(seeds: Sequence[int], processes: int, bug: str) -> int:
    began = time.monotonic()
    failed: list[int] = []
    states: Counter[str] = Counter()
    used = 0.0
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=gc.freeze, maxtasksperchild=2000) as pool:
        for seed, words, ended, seconds in pool.imap_unordered(_work, [(seed, bug) for seed in seeds], chunksize=4):
            states.update(ended)
            used += seconds
            if words:
                failed.append(seed)
                print(words, flush=True)
                if bug:
                    break
    took = time.monotonic() - began
    ends = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    print(f"{len(seeds):,} seeds in {took:.0f} s, {1000 * used / len(seeds):.0f} ms of a processor each; jobs: {ends}")
    if failed:
        print(f"{len(failed)} failed: {', '.join(map(str, sorted(failed)[:50]))}")
    return 1 if failed else 0
