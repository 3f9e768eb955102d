"""The measurements. Each prints what it finds as it goes, and returns its findings."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks import bare, job, peers, processes, report, rows
from benchmarks.endpoint import ANSWER, LATENCY_S, endpoint, first_call
from benchmarks.report import Finding
from tests.servers.collector import collector
from tests.stack import Stack, successive_ports

ITEMS, CONCURRENCY, ROUNDS = 5_000, 64, 5
LIMIT_S = ITEMS / CONCURRENCY * LATENCY_S
MANY_ITEMS, MANY_CONCURRENCY, MANY_ROUNDS = 12_000, 256, 3
LARGE_ITEMS = 100_000
METRICS_ROUNDS = 15
_WARM_UP = 256
_SCRAPE_S, _SCRAPED = 5.0, 4
_SAMPLE_S = 0.1


def stack(folder: Path) -> list[Finding]:
    """5,000 items at 64 calls at once, beside the bare loop, in turns."""
    mirror, prompts = _sentiment(folder, ITEMS)
    bare_s: list[float] = []
    runs: list[job.Run] = []
    with endpoint() as url, job.stack(folder / "stack", url, mirror, concurrency=CONCURRENCY) as on:
        _warm_up(on)
        for number in range(ROUNDS):
            bare_s.append(bare.bare_loop(url, prompts, CONCURRENCY))
            runs.append(job.run(on, ITEMS, rows.SUITE, tasks=[rows.TASK]))
            print(f"  round {number + 1}: bare loop {bare_s[-1]:.2f} s, job {runs[-1].wall_s:.2f} s", flush=True)
    walls = [run.wall_s for run in runs]
    print(f"  bare loop: {report.spread(bare_s, 's')}")
    print(f"  job:       {report.spread(walls, 's')}")
    print(f"  {report.cpu([run.cpu_us for run in runs])}")
    share = statistics.median(loop / wall for loop, wall in zip(bare_s, walls, strict=True))
    return [
        report.shown(f"limit of {ITEMS:,} calls of 50 ms, {CONCURRENCY} at once", LIMIT_S, "s"),
        report.shown("bare loop, median", statistics.median(bare_s), "s"),
        report.at_most("POST /run to completed, every item durable, median", statistics.median(walls), "s", 4.6),
        report.at_least("rate of the bare loop that is reached, median", 100 * share, "%", 92),
    ]


def many(folder: Path) -> list[Finding]:
    """256 calls at once."""
    mirror, prompts = _sentiment(folder, MANY_ITEMS)
    with endpoint() as url, job.stack(folder / "stack", url, mirror, concurrency=MANY_CONCURRENCY) as on:
        _warm_up(on)
        loop_s = bare.bare_loop(url, prompts, MANY_CONCURRENCY)
        runs = [job.run(on, MANY_ITEMS, rows.SUITE, tasks=[rows.TASK]) for _ in range(MANY_ROUNDS)]
    walls = [run.wall_s for run in runs]
    print(f"  {MANY_ITEMS:,} items: {report.spread(walls, 's')}")
    print(f"  {report.cpu([run.cpu_us for run in runs])}")
    return [
        report.shown(f"bare loop at {MANY_CONCURRENCY} calls at once", MANY_ITEMS / loop_s, "calls/s"),
        report.at_least(
            f"whole job at {MANY_CONCURRENCY} calls at once, median",
            MANY_ITEMS / statistics.median(walls),
            "items/s",
            3_000,
        ),
    ]


def metrics(folder: Path) -> list[Finding]:
    """256 calls at once, so that the processor is the limit, in two installations in turns: one sends traces, shows
    metrics and is scraped three times as often as usual. Which of them is first changes with each round."""
    mirror, _ = _sentiment(folder, ITEMS)
    first = successive_ports(_SCRAPED)
    runs: dict[str, list[job.Run]] = {"without": [], "with": []}
    with (
        endpoint() as url,
        collector() as collected,
        job.stack(folder / "without", url, mirror, concurrency=MANY_CONCURRENCY) as plain,
        job.stack(
            folder / "with",
            url,
            mirror,
            concurrency=MANY_CONCURRENCY,
            TOUCHSTONE_METRICS_PORT=str(first),
            TOUCHSTONE_TRACES_URL=collected.url,
        ) as measured,
        _scraping(first),
    ):
        stacks = {"without": plain, "with": measured}
        for on in stacks.values():
            _warm_up(on)
        for number in range(METRICS_ROUNDS):
            for kind in sorted(stacks, reverse=bool(number % 2)):
                runs[kind].append(job.run(stacks[kind], ITEMS, rows.SUITE, tasks=[rows.TASK]))
            took = ", ".join(f"{kind} {each[-1].wall_s:.2f} s" for kind, each in runs.items())
            print(f"  round {number + 1}: {took}", flush=True)
    for kind, each in runs.items():
        print(f"  {kind}: {report.spread([run.wall_s for run in each], 's')}")
        print(f"  {kind}: {report.cpu([run.cpu_us for run in each])}")
    pairs = list(zip(runs["without"], runs["with"], strict=True))
    share = statistics.median(plain.wall_s / shown.wall_s for plain, shown in pairs)
    more = statistics.median(sum(shown.cpu_us.values()) / sum(plain.cpu_us.values()) for plain, shown in pairs)
    return [
        report.shown("spans sent", len(collected.spans), ""),
        report.shown("CPU with metrics and traces to without, median of the rounds", more, ""),
        report.at_least("items/s with metrics and traces to without, median of the rounds", share, "", 0.97),
    ]


@contextmanager
def _scraping(first: int) -> Iterator[None]:
    """Reads the metrics of all processes again and again."""
    over = threading.Event()

    def scrape() -> None:
        # One client: each new one reads the machine's certificates, which takes longer than an answer.
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not over.wait(_SCRAPE_S):
                for port in range(first, first + _SCRAPED):
                    client.get(f"http://127.0.0.1:{port}/metrics").raise_for_status()

    thread = threading.Thread(target=scrape, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def beside_peers(folder: Path, environment: Path) -> list[Finding]:
    """The same items through lm_eval and Inspect, as whole processes."""
    mirror, prompts = _sentiment(folder, ITEMS)
    texts = json.loads(prompts.read_text())
    peers.write_rows(folder, texts, [ANSWER] * len(texts))
    findings: list[Finding] = []
    with endpoint() as url, job.stack(folder / "stack", url, mirror, concurrency=CONCURRENCY) as on:
        _warm_up(on)
        ours = [job.run(on, ITEMS, rows.SUITE, tasks=[rows.TASK]).wall_s for _ in range(MANY_ROUNDS)]
        for peer, parts in zip(peers.PEERS, (3, 12), strict=True):
            theirs = peers.run(peer, environment, folder, url, CONCURRENCY, ITEMS)
            name = f"{peer.name} {peers.version(peer, environment)}"
            print(f"  {name}: {theirs.wall_s:.2f} s, {1e6 * theirs.cpu_s / ITEMS:,.0f} µs CPU an item", flush=True)
            times = theirs.wall_s / statistics.median(ours)
            findings += [
                report.shown(f"{name}, whole process", theirs.wall_s, "s"),
                report.at_least(f"{peer.name}'s time over Touchstone's, median", times, "times", parts),
            ]
    print(f"  Touchstone: {report.spread(ours, 's')}")
    return findings


def large(folder: Path) -> list[Finding]:
    """100,000 questions over the 57 subjects of MMLU, in an evaluator that has run nothing before."""
    mirror = rows.write_mmlu(folder / "data", LARGE_ITEMS)
    with endpoint() as url, job.stack(folder / "stack", url, mirror, concurrency=MANY_CONCURRENCY) as on:
        time.sleep(1)
        evaluator = processes.pids(on.state_dir)["evaluator-1"]
        idle = processes.resident_bytes(evaluator)
        with _peak(evaluator) as peak:
            sent = time.time()
            run = job.run(on, LARGE_ITEMS, "mmlu")
        first_call_s = first_call(url) - sent
    print(f"  {LARGE_ITEMS:,} items in {run.wall_s:.1f} s ({LARGE_ITEMS / run.wall_s:,.0f} a second)")
    print(f"  {report.cpu([run.cpu_us])}")
    grown = (peak[0] - idle) / 1e6
    return [
        report.shown("evaluator's memory when idle", idle / 1e6, "MB"),
        report.at_most("evaluator's memory, growth over idle", grown, "MB", 100),
        report.shown("POST /run to planned", run.running_s, "s"),
        report.at_most("POST /run to the first call", first_call_s, "s", 2),
    ]


def two_evaluators(folder: Path) -> list[Finding]:
    """Two evaluators with half the calls each against one with all of them."""
    mirror, _ = _sentiment(folder, ITEMS)
    walls: dict[int, float] = {}
    with endpoint() as url:
        for count in (1, 2):
            concurrency = CONCURRENCY // count
            with job.stack(folder / f"stack-{count}", url, mirror, concurrency=concurrency, evaluators=count) as on:
                _warm_up(on)
                runs = [job.run(on, ITEMS, rows.SUITE, tasks=[rows.TASK]) for _ in range(MANY_ROUNDS)]
            walls[count] = statistics.median(run.wall_s for run in runs)
            print(f"  {count}: {report.spread([run.wall_s for run in runs], 's')}", flush=True)
            print(f"     {report.cpu([run.cpu_us for run in runs])}", flush=True)
    return [
        report.shown("one evaluator with 64 calls at once, median", walls[1], "s"),
        report.at_most("two with 32 each: their time over that of the one", walls[2] / walls[1], "times", 1.15),
    ]


def _sentiment(folder: Path, items: int) -> tuple[Path, Path]:
    """A mirror, and the file of its prompts."""
    mirror = rows.write_sentiment(folder / "data", items)
    prompts = folder / "prompts.json"
    prompts.write_text(json.dumps(rows.prompts(mirror)))
    return mirror, prompts


def _warm_up(on: Stack) -> None:
    """Connections, imports and data, as in an installation that has run before."""
    job.run(on, _WARM_UP, rows.SUITE, tasks=[rows.TASK], limit=_WARM_UP)


@contextmanager
def _peak(pid: int) -> Iterator[list[int]]:
    """The most resident bytes of a process while the block runs."""
    peak, over = [0], threading.Event()

    def sample() -> None:
        while not over.wait(_SAMPLE_S):
            peak[0] = max(peak[0], processes.resident_bytes(pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield peak
    finally:
        over.set()
        sampler.join()
