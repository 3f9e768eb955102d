"""Three hosts with everything and one of models, in network namespaces: what each fault costs running jobs."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from services import bus
from tests.hosts.network import Network, NoNamespacesError, can_lose_packets
from tests.hosts.processes import Hosts
from tests.hosts.work import Work, working
from tests.nats_server import NatsCluster
from tests.stack import endpoints_file

pytestmark = pytest.mark.hosts

PLACES = {
    "a": ("scheduler-1", "evaluator-1", "gateway-1"),
    "b": ("scheduler-2", "evaluator-2", "gateway-2"),
    "c": ("results", "evaluator-3"),
    "d": ("evaluator-4",),
}
"""Processes by host. The first three also have a node of NATS; the last has the models."""
NODES = ("a", "b", "c")
MODELS = [f"stub-{number}" for number in range(200)]
LATENCY_S, CONCURRENCY = 0.1, 4
"""Slow enough that jobs last while something fails, also on two cores: 160 items a second of four evaluators."""
LIMIT_S = 30.0
FAULT_S = 20.0
"""How long a host is cut off, or loses packets."""


class Spaces(Hosts):
    """The processes in the namespaces."""

    def __init__(self, folder: Path, cluster: NatsCluster, network: Network, endpoints: Path) -> None:
        names = sorted((name for names in PLACES.values() for name in names), key=lambda name: "gateway" in name)
        super().__init__(folder, cluster, names, {"TOUCHSTONE_ENDPOINTS": str(endpoints)})
        self.network = network

    def place(self, name: str) -> str:
        return next(host for host, names in PLACES.items() if name in names)

    def host(self, name: str) -> str:
        return self.network.address(self.place(name))

    def inside(self, name: str) -> Sequence[str]:
        return self.network.inside(self.place(name))


class World:
    def __init__(self, network: Network, cluster: NatsCluster, hosts: Spaces) -> None:
        self.network, self.cluster, self.hosts = network, cluster, hosts
        self.models = iter(MODELS)
        self.token = ""
        self.times: list[str] = []

    async def node_that_leads(self) -> int:
        """The node of NATS that leads the stream of results, from 0."""
        connection = await bus.connect(",".join(self.cluster.urls), "test")
        try:
            info = await connection.js.stream_info(bus.RESULTS)
        finally:
            await connection.close()
        assert info.cluster is not None
        return int(str(info.cluster.leader).removeprefix("n")) - 1

    async def until_well(self) -> None:
        await self.hosts.until_ready(*self.hosts.names)
        for node in self.cluster.nodes:
            await asyncio.to_thread(node.until_healthy)

    async def during_jobs(
        self, what: str, fault: Callable[[Work], Awaitable[None]], most_s: float | None = LIMIT_S
    ) -> None:
        """`fault` returns when it is over; the jobs go on, and are checked."""
        await self.until_well()
        async with working(self.hosts, self.token, self.models) as work:
            work.begin()
            began = time.monotonic()
            await fault(work)
            lasted = time.monotonic() - began
            await work.until_moved(300)
            found = (work.items.longest_s, work.results.longest_s, work.gateways.longest_s)
        line = (
            f"{what:45} {lasted:7.1f} s  without items {found[0]:5.1f} s  results {found[1]:5.1f} s  "
            f"gateways {found[2]:5.1f} s  {len(work.jobs)} jobs, {len(work.failed)} calls failed"
        )
        print(f"\n{line}", *sorted(set(work.failed)), sep="\n  ", flush=True)
        self.times.append(line)
        if most_s is not None:
            assert found[0] <= most_s, line


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("hosts")
    with ExitStack() as stack:
        # A test that is stopped cleans up as one that is interrupted.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        stack.callback(signal.signal, signal.SIGTERM, before)
        try:
            network = Network(list(PLACES))
        except NoNamespacesError as error:
            pytest.skip(str(error))
        stack.callback(network.close)
        cluster = NatsCluster(folder / "nats", [(network.address(host), network.inside(host)) for host in NODES])
        stack.callback(cluster.stop)
        hosts = Spaces(folder / "processes", cluster, network, _endpoints(folder, network.address("d")))
        stack.callback(hosts.close)
        models = _model_server(folder, network)
        stack.callback(models.wait)
        stack.callback(models.kill)
        cluster.begin()
        hosts.start(*hosts.names)
        made = World(network, cluster, hosts)
        asyncio.run(made.until_well())
        made.token = hosts.token()
        yield made
        print("\nTimes of each fault, and the longest time without", *made.times, sep="\n")


def _endpoints(folder: Path, address: str) -> Path:
    table = {"name": "stub", "kind": "openai", "base_url": f"http://{address}:8000/v1", "concurrency": CONCURRENCY}
    return endpoints_file(folder / "endpoints.toml", [table])


def _model_server(folder: Path, network: Network) -> subprocess.Popen[bytes]:
    command = [*network.inside("d"), sys.executable, "-m", "tests.servers.openai_server", "--port", "8000"]
    command += ["--host", network.address("d"), "--models", ",".join(MODELS), "--latency", str(LATENCY_S)]
    with (folder / "models.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


async def test_the_nats_leader_is_killed(world: World) -> None:
    node = world.cluster.nodes[await world.node_that_leads()]

    async def fault(work: Work) -> None:
        node.kill()
        await work.until_moved(300)
        node.begin()

    await world.during_jobs("the leader of NATS is killed", fault)


async def test_the_leading_scheduler_is_killed(world: World) -> None:
    async def fault(work: Work) -> None:
        leader = await world.hosts.leader()
        world.hosts.end(leader)
        await work.until_moved(300)
        world.hosts.start(leader)

    await world.during_jobs("the leading scheduler is killed", fault)


async def test_results_is_killed(world: World) -> None:
    async def fault(work: Work) -> None:
        world.hosts.end("results")
        # As its supervisor would.
        world.hosts.start("results")
        await world.hosts.until_ready("results")

    await world.during_jobs("results is killed and started", fault)


async def test_an_evaluator_is_killed(world: World) -> None:
    async def fault(work: Work) -> None:
        world.hosts.end("evaluator-1")
        await work.until_moved(300)
        world.hosts.start("evaluator-1")

    await world.during_jobs("an evaluator is killed", fault)


@pytest.mark.parametrize("with_", ["scheduler", "results"])
async def test_a_host_is_cut_off_and_healed(world: World, with_: str) -> None:
    async def fault(work: Work) -> None:
        host = world.hosts.place("results" if with_ == "results" else await world.hosts.leader())
        world.network.cut(host)
        try:
            await asyncio.sleep(FAULT_S)
        finally:
            world.network.heal(host)
        await world.until_well()

    await world.during_jobs(f"the host of the {with_} is cut off", fault)


async def test_a_host_loses_packets(world: World) -> None:
    if not can_lose_packets():
        pytest.skip("Neither nft nor iptables is installed, so no packets can be lost.")

    async def fault(work: Work) -> None:
        with world.network.losing(world.hosts.place(await world.hosts.leader()), percent=20):
            await asyncio.sleep(FAULT_S)

    await world.during_jobs("20 % of the packets to a host are lost", fault)


async def test_every_process_is_rolled(world: World) -> None:
    """One after the other, as for an upgrade: each ends by itself, starts anew, and is waited for."""

    async def fault(work: Work) -> None:
        for node in world.cluster.nodes:
            node.stop()
            node.begin()
            await world.until_well()
        for name in world.hosts.names:
            await asyncio.to_thread(world.hosts.end, name, signal.SIGTERM)
            world.hosts.start(name)
            await world.hosts.until_ready(name)

    await world.during_jobs("every process is rolled", fault)
