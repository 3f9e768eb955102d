"""Rules of the public contract: what callers may rely on from one release to the next."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from touchstone.v1 import results_internal_service_pb2, results_service_pb2, scheduler_service_pb2

PROTOS = Path(__file__).parents[3] / "protos"
BUF = Path(sys.executable).with_name("buf")
SERVICES = (
    scheduler_service_pb2.DESCRIPTOR.services_by_name["SchedulerService"],
    results_service_pb2.DESCRIPTOR.services_by_name["ResultsService"],
    results_internal_service_pb2.DESCRIPTOR.services_by_name["ResultsInternalService"],
)
WITHOUT_PAGES = {
    "ListJudges": "at most 100 judges, and the judgements of one answer",
    "ListTrends": "bounded by its own limit of 64 series of 500 points",
    "ListStoredItems": "between services: positions of one job, which has at most as many as one message holds",
}


def against_the_release(protos: Path) -> subprocess.CompletedProcess[str]:
    command = [str(BUF), "breaking", "--against", str(PROTOS / "released.txtpb")]
    return subprocess.run(command, cwd=protos, capture_output=True, text=True, timeout=180, check=False)


def test_what_was_released_still_holds() -> None:
    made = against_the_release(PROTOS)
    assert made.returncode == 0, f"{made.stdout}{made.stderr}"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("job.proto", "  string owner = 2;\n", "", 'field "2" with name "owner"'),
        ("job.proto", "  string owner = 2;\n", "  string owner = 99;\n", 'field "2" with name "owner"'),
        ("job.proto", "  string owner = 2;\n", "  int64 owner = 2;\n", 'changed type from "string" to "int64"'),
        (
            "scheduler_service.proto",
            "  rpc GetQueue(GetQueueRequest) returns (GetQueueResponse);\n",
            "",
            'RPC "GetQueue"',
        ),
        (
            "item_result.proto",
            "  OUTCOME_REFUSED = 4;",
            "  OUTCOME_DECLINED = 4;",
            '"OUTCOME_REFUSED" to "OUTCOME_DECLINED"',
        ),
    ],
)
def test_taking_something_away_fails_the_check(tmp_path: Path, file: str, old: str, new: str, said: str) -> None:
    shutil.copytree(PROTOS, tmp_path / "protos", ignore=shutil.ignore_patterns("gen"))
    changed = tmp_path / "protos/touchstone/v1" / file
    assert old in changed.read_text()
    changed.write_text(changed.read_text().replace(old, new))
    made = against_the_release(tmp_path / "protos")
    assert made.returncode == 100
    assert said in made.stdout


def test_every_list_has_pages_or_is_a_stream() -> None:
    lists = [method for service in SERVICES for method in service.methods if method.name.startswith("List")]
    assert len(lists) > 10
    without = set()
    for method in lists:
        asked, told = method.input_type.fields_by_name, method.output_type.fields_by_name
        paged = {"page_size", "page_token"} <= {*asked} and "next_page_token" in told
        if not paged and not method.server_streaming:
            without.add(method.name)
        elif paged:
            assert asked["page_token"].type == told["next_page_token"].type == asked["page_token"].TYPE_STRING, (
                method.name
            )
    assert without == {*WITHOUT_PAGES}


def test_every_answer_with_many_parts_is_paged_bounded_or_streamed() -> None:
    """A repeated message that grows with the store would outgrow a gRPC message some day."""
    bounded = {
        "GetLeaderboard": "limit", "ListTrends": "limit", "Compare": "at most 20 runs", "FindResponses": "3 MB",
        "ListStoredItems": "one job", "GetImport": "500 tasks", "CreateJobs": "100 jobs",
        "GetOverview": "one mean for each suite and mode", "GetCallUsage": "at most 500",
        "CloseRecordedRun": "100 jobs", "ListJudges": "at most 100",
        "RunExperiment": "100 jobs", "GetExperiment": "2,000 rows", "StartDecision": "20 jobs",
    }  # fmt: skip
    growing = {
        method.name
        for service in SERVICES
        for method in service.methods
        if any(field.is_repeated and field.message_type for field in method.output_type.fields)
        and "next_page_token" not in method.output_type.fields_by_name
        and not method.server_streaming
    }
    assert growing == {*bounded}


def test_creates_carry_a_request_id() -> None:
    creates = {m.name: m for service in SERVICES for m in service.methods if m.name.startswith("Create")}
    with_id = {name for name, m in creates.items() if "request_id" in m.input_type.fields_by_name}
    # A webhook's secret is shown once: a repeated request could not show it again.
    assert {*creates} - with_id == {"CreateWebhook"}


def test_what_only_services_call_is_in_a_service_of_its_own() -> None:
    """Its calls that were released among the public ones are deprecated there."""
    _, public, internal = SERVICES
    deprecated = {method.name for method in public.methods if method.GetOptions().deprecated}
    called = {method.name for method in internal.methods}
    assert called & {method.name for method in public.methods} == deprecated
