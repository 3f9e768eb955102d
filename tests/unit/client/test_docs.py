"""What docs/grpc.md and docs/cli.md show can be typed as it stands."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from deploy.local.ports import free_port
from services import rpc
from tests.unit.client.fakes import SERVICES, Fakes, dataset, job, result
from touchstone.v1 import comparison_pb2, dataset_service_pb2, endpoint_pb2, results_service_pb2, scheduler_service_pb2
from touchstone_client import Client
from touchstone_client.command import exits, parser
from touchstone_client.command.gate import exits as gate_exits

DOCS = Path(__file__).parents[3] / "docs"
GRPC, CLI = (DOCS / "grpc.md").read_text(), (DOCS / "cli.md").read_text()
EXPERIMENTS = (DOCS / "experiments.md").read_text()
README = (DOCS.parent / "client/README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def commands(text: str, first: str) -> list[list[str]]:
    """Command lines of the shell blocks, without settings before them, comments and redirections."""
    joined = "\n".join(blocks(text, "sh")).replace("\\\n", " ")
    lines = (shlex.split(line, comments=True) for line in joined.splitlines())
    bare = ([word for word in words if not re.fullmatch(r"TOUCHSTONE_\w+=.*", word)] for words in lines)
    return [words[: words.index(">")] if ">" in words else words for words in bare if words[:1] == [first]]


@pytest.mark.parametrize("words", commands(CLI + GRPC + EXPERIMENTS + README, "touchstone"), ids=" ".join)
def test_every_command_shown_is_accepted(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompt.txt").write_text("{{question}}")
    monkeypatch.chdir(tmp_path)
    assert callable(parser().parse_args(words[1:]).do)


def test_the_pipeline_shown_is_accepted() -> None:
    (yaml,) = blocks(CLI, "yaml")
    (line,) = re.findall(r"- (touchstone .*)", yaml)
    assert callable(parser().parse_args(shlex.split(line)[1:]).do)


def test_every_verb_is_in_the_table() -> None:
    verbs = parser()._subparsers
    assert verbs is not None
    (choices,) = (action.choices for action in verbs._group_actions)
    assert choices
    named = {
        word.split()[0] for cell in re.findall(r"(?m)^\| (`.*?) \|", CLI) for word in re.findall(r"`([^`]+)`", cell)
    }
    assert {*choices} - named == set()


@pytest.mark.parametrize("module", [exits, gate_exits])
def test_every_exit_code_is_in_a_table(module: Any) -> None:
    codes = {value for name, value in vars(module).items() if name.isupper()}
    assert codes <= {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", CLI)}


@pytest.fixture
def answering(fakes: Fakes) -> Fakes:
    scheduler, results = scheduler_service_pb2, results_service_pb2
    fakes.answers |= {
        "CreateJob": scheduler.CreateJobResponse(job=job()),
        "CreateJobs": scheduler.CreateJobsResponse(jobs=[job()]),
        "WatchJob": [scheduler.WatchJobResponse(job=job())],
        "GetJobResult": results.GetJobResultResponse(result=result()),
        "ListItems": results.ListItemsResponse(items=[results.StoredItem(task="rte")]),
        "Export": [results.ExportResponse(data=b"PAR1")],
        "Compare": comparison_pb2.CompareResponse(recommendations=["Use majority."]),
        "Results.ListJobs": results.ResultsServiceListJobsResponse(jobs=[job()]),
        "CancelJob": scheduler.CancelJobResponse(job=job(state="CANCELLED")),
        "UploadDataset": dataset_service_pb2.UploadDatasetResponse(dataset=dataset()),
        "ListEndpoints": scheduler.ListEndpointsResponse(endpoints=[endpoint_pb2.Endpoint(endpoint="ollama")]),
        "ListModels": scheduler.ListModelsResponse(
            models=[endpoint_pb2.Model(model=name) for name in ("qwen2.5:7b", "mistral:latest")]
        ),
        "ListSideBySide": results.ListSideBySideResponse(rows=[results.SideBySideRow(custom_id="a")]),
        "AnnotateItem": results.AnnotateItemResponse(),
        "RunExperiment": scheduler.RunExperimentResponse(experiment="tip-bench", jobs=[job()]),
        "GetExperiment": results.GetExperimentResponse(rows=[results.ExperimentRow(model="m", prompt="v1")]),
        "ListExperimentRuns": results.ListExperimentRunsResponse(runs=[results.ExperimentRun(candidates=["Go."])]),
        "ListJudges": results.ListJudgesResponse(
            judges=[results.JudgeRun(job=job(), judgements=[results.Judgement(number=1, scores="{}")])]
        ),
    }
    return fakes


@pytest.mark.parametrize(
    ("number", "last"), [*enumerate(["Export", "CancelJob", "Export", "ListJudges", "ListExperimentRuns"])]
)
def test_the_python_shown_runs(
    answering: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, last: str
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(GRPC, "python")[number], "grpc.md", "exec"), {"__name__": "shown"})
    assert answering.heard[-1][0].endswith(last)


@pytest.fixture(scope="module")
def reflected() -> DescriptorPool:
    """What a caller without files learns from a server of ours."""
    address = f"127.0.0.1:{free_port()}"

    async def serve(ready: asyncio.Event, done: asyncio.Event) -> None:
        nothing = [(lambda servicer, server: None, None, service.full_name) for service in SERVICES]
        async with rpc.serve(address, rpc.Authenticator(None, ""), nothing, grace_s=0):
            ready.set()
            await done.wait()

    async def read() -> DescriptorPool:
        ready, done = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(serve(ready, done))
        await ready.wait()

        def look() -> DescriptorPool:
            with grpc.insecure_channel(address) as channel:
                pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
                for words in commands(GRPC, "grpcurl"):
                    for name in names(words):
                        pool.FindFileContainingSymbol(name)
            return pool

        pool = await asyncio.to_thread(look)
        done.set()
        await serving
        return pool

    return asyncio.run(read())


def names(words: list[str]) -> list[str]:
    """The service or message that a grpcurl call is about."""
    if "describe" in words:
        return [words[-1]]
    return [words[-1].partition("/")[0]] if "/" in words[-1] else []


CALLS = [words for words in commands(GRPC, "grpcurl") if "/" in words[-1]]


@pytest.mark.parametrize("words", CALLS, ids=lambda words: words[-1])
def test_every_grpcurl_call_shown_resolves_through_reflection(reflected: DescriptorPool, words: list[str]) -> None:
    service, _, method = words[-1].partition("/")
    found = reflected.FindServiceByName(service).methods_by_name[method]
    body = words[words.index("-d") + 1] if "-d" in words else "{}"
    asked = json_format.Parse(body, message_factory.GetMessageClass(found.input_type)())
    assert ("-d" in words) == bool(asked.ListFields())


def test_what_is_described_exists(reflected: DescriptorPool) -> None:
    described = [words[-1] for words in commands(GRPC, "grpcurl") if "describe" in words]
    assert described
    for name in described:
        assert reflected.FindMessageTypeByName(name)
    assert len(CALLS) >= 8


def test_every_method_of_the_client_is_listed() -> None:
    listed = {*re.findall(r"`(\w+)`", GRPC[GRPC.index("| what | how |") : GRPC.index("A call ends within")])}
    assert {name for name in dir(Client) if not name.startswith("_")} - {"close"} == listed
