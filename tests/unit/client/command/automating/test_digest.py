"""Digests from the command line."""

from __future__ import annotations

import json

import pytest

from services.words.digests import NOTHING_BEFORE
from tests.unit.client.fakes import JOB, OTHER, Fakes
from touchstone.v1 import comparison_pb2, digest_pb2, results_service_pb2, suite_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def digesting(fakes: Fakes) -> Fakes:
    found = digest_pb2.Digest(
        series=[
            digest_pb2.DigestSeries(
                model="m",
                endpoint="e",
                suite="demo",
                mode=suite_pb2.MODE_LOGLIKELIHOOD,
                part_items=100,
                runs=3,
                verdict=comparison_pb2.VERDICT_WORSE,
                items=200,
                became_right=4,
                became_wrong=60,
                before=digest_pb2.DigestRun(job_id=JOB, score=0.9, server="vllm 1"),
                after=digest_pb2.DigestRun(job_id=OTHER, score=0.6, server="vllm 2"),
            )
        ],
        turned=[
            digest_pb2.TurnedVerdict(
                a="m@e",
                b="n@e",
                suite="demo",
                before=comparison_pb2.VERDICT_BETTER,
                after=comparison_pb2.VERDICT_NO_DIFFERENCE_SHOWN,
            )
        ],
    )
    fakes.answers |= {"GetDigest": results_service_pb2.GetDigestResponse(digest=found)}
    return fakes


def test_a_digest_says_what_changed(digesting: Fakes, capsys: Captured) -> None:
    assert main(["digest", "--days", "2", "--to", "2026-11-30T06:00"]) == 0
    (request,) = digesting.requests("GetDigest")
    assert request.begin_at.ToJsonString() == "2026-11-28T06:00:00Z"
    assert request.end_at.ToJsonString() == "2026-11-30T06:00:00Z"
    said = " ".join(capsys.readouterr().out.split())
    assert "m e demo 100 items, log-likelihood 3 200 0.9000 0.6000 worse 4 60" in said
    assert "m@e on demo: the server was vllm 1 and is vllm 2." in said
    assert "m@e against n@e on demo: the verdict was better and is no difference shown." in said


def test_a_digest_says_why_runs_are_not_compared(digesting: Fakes, capsys: Captured) -> None:
    lost, new = (digest_pb2.DigestSeries(model=name, endpoint="e", suite="demo") for name in ("m", "n"))
    lost.words, new.words = "The archive has lost the items of job x, so nothing is compared.", NOTHING_BEFORE
    found = digest_pb2.Digest(series=[lost, new])
    digesting.answers["GetDigest"] = results_service_pb2.GetDigestResponse(digest=found)
    assert main(["digest"]) == 0
    said = capsys.readouterr().out
    assert f"m@e on demo: {lost.words}" in said
    assert NOTHING_BEFORE not in said


def test_a_digest_without_runs_says_so(digesting: Fakes, capsys: Captured) -> None:
    digesting.answers["GetDigest"] = results_service_pb2.GetDigestResponse(digest=digest_pb2.Digest())
    assert main(["digest"]) == 0
    assert "No run has completed in this time." in capsys.readouterr().out
    assert main(["digest", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["series"] == []


@pytest.mark.parametrize("date", ["yesterday", "0001-01-02", "9999-12-31T23:59-10:00"])
def test_a_wrong_date_is_refused(digesting: Fakes, capsys: Captured, date: str) -> None:
    with pytest.raises(SystemExit):
        main(["digest", "--to", date])
    assert f"{date} is not a date. Write it as 2026-11-30" in capsys.readouterr().err
