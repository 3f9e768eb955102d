"""`touchstone import` and the clients' call behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services import errors
from tests.unit.client.fakes import JOB, Fakes, job, result
from tests.unit.client.logs import choices, lm_eval
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2, suite_pb2
from touchstone.v1.results_service_pb2 import ImportAnswersRequest, ImportAnswersResponse, ImportedAnswer
from touchstone_client import AsyncClient, Client, InvalidError
from touchstone_client.command import main

IMPORT = "33333333-3333-3333-3333-333333333333"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def told(fakes: Fakes) -> Fakes:
    suite = suite_pb2.Suite(suite="glue", tasks=[suite_pb2.TaskInfo(task="rte")])
    watched = [scheduler_service_pb2.WatchJobResponse(job=job())]
    fakes.answers |= {
        "ListSuites": scheduler_service_pb2.ListSuitesResponse(suites=[suite]),
        "ImportAnswers": ImportAnswersResponse(import_id=IMPORT, answers=2, repeats=1),
        "CreateJob": scheduler_service_pb2.CreateJobResponse(job=job(state="PENDING")),
        "WatchJob": watched,
        "Scheduler.GetJob": scheduler_service_pb2.GetJobResponse(job=job()),
        "GetJobResult": results_service_pb2.GetJobResultResponse(result=result()),
    }
    return fakes


@pytest.fixture
def log(tmp_path: Path) -> str:
    row, scored = {"sentence1": "A."}, [(" True", -1.0), (" False", -2.0)]
    return str(lm_eval(tmp_path, "rte", [choices(item, row, "A?", scored) for item in (0, 1)], shots=2))


def test_a_log_becomes_a_run_and_its_scores_are_printed(told: Fakes, log: str, capsys: Captured) -> None:
    assert main(["import", log, "--model", "mine", "--project-id", "7"]) == 0
    (sent,) = told.requests("ImportAnswers")
    assert (sent[0].run.tool, sent[0].run.model, sent[0].again) == ("lm_eval", "mine", False)
    assert [answer.item for request in sent for answer in request.answers] == [0, 1]
    spec = told.requests("CreateJob")[0].spec
    assert (spec.endpoint, spec.model, spec.suite.shots, spec.project_id) == ("lm_eval", "mine", 2, 7)
    assert (spec.reuse.import_id, spec.mode, list(spec.suite.tasks)) == (IMPORT, suite_pb2.MODE_LOGLIKELIHOOD, ["rte"])
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{JOB}\n")
    assert "0.8000" in printed.out
    assert "2 answers of 1 task imported." in printed.err


def test_what_was_imported_before_is_named_and_not_run_again(told: Fakes, log: str, capsys: Captured) -> None:
    told.answers["ImportAnswers"] = ImportAnswersResponse(import_id=IMPORT, answers=2, known=True, job_id=JOB)
    assert main(["import", log, "--model", "mine"]) == 0
    assert not told.requests("CreateJob")
    printed = capsys.readouterr()
    assert f"imported before, as job {JOB}. To import it again: --again." in printed.err
    assert "0.8000" in printed.out


def test_again_says_so_to_the_service(told: Fakes, log: str) -> None:
    assert main(["import", log, "--model", "mine", "--again", "--no-watch"]) == 0
    assert told.requests("ImportAnswers")[0][0].again


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_an_import_whose_run_failed_is_run_anew(told: Fakes, log: str, state: str) -> None:
    known = ImportAnswersResponse(import_id=IMPORT, answers=2, known=True, job_id=JOB, repeats=3)
    told.answers |= {
        "ImportAnswers": known,
        "Scheduler.GetJob": scheduler_service_pb2.GetJobResponse(job=job(state=state)),
    }
    assert main(["import", log, "--model", "mine"]) == 0
    assert told.requests("CreateJob")[0].spec.suite.repeats == 3


def test_a_bad_line_ends_the_import_with_its_number_and_no_job(told: Fakes, log: str, capsys: Captured) -> None:
    with Path(log).open("a") as opened:
        opened.write("{broken\n")
    assert main(["import", log, "--model", "mine"]) == 2
    assert not told.requests("CreateJob")
    said = capsys.readouterr().err
    assert "line 3: it is not JSON" in said
    assert len(said.splitlines()) == 1


def test_the_services_refusal_is_printed(told: Fakes, log: str, capsys: Captured) -> None:
    told.answers["ImportAnswers"] = errors.InvalidRequestError("Answer 1: no.", "answers")
    assert main(["import", log, "--model", "mine"]) == 2
    assert capsys.readouterr().err == "touchstone: Answer 1: no.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task", "rte="], "it must be TASK, NAME=TASK or NAME=SUITE/TASK"),
        (["--task", "rte"], "name the suite too"),
        (["--shots", "-1"], "it must be a whole number, 0 or more"),
        (["--task", "x=glue/rte"], "None of the logs is of x, which --task names."),
    ],
)
def test_arguments_that_cannot_be_are_refused(
    told: Fakes, log: str, capsys: Captured, arguments: list[str], said: str
) -> None:
    try:
        code = main(["import", log, "--model", "mine", *arguments])
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(told: Fakes, tmp_path: Path, capsys: Captured) -> None:
    assert main(["import", str(tmp_path / "samples_rte.jsonl"), "--model", "mine"]) == 2
    assert "samples_rte.jsonl" in capsys.readouterr().err


def requests(breaks: bool = False) -> Iterator[ImportAnswersRequest]:
    for item in range(50):
        yield ImportAnswersRequest(answers=[ImportedAnswer(task="rte", item=item)])
    if breaks:
        raise InvalidError.of("line 51: it is not JSON.")


async def test_both_clients_send_everything_and_raise_what_making_it_raises(told: Fakes) -> None:
    with Client(told.settings) as client:
        assert client.import_answers(requests()).import_id == IMPORT
        with pytest.raises(InvalidError, match="line 51"):
            client.import_answers(requests(breaks=True))
    async with AsyncClient(told.settings) as awaited:
        assert (await awaited.import_answers(requests())).import_id == IMPORT
        with pytest.raises(InvalidError, match="line 51"):
            await awaited.import_answers(requests(breaks=True))
    whole = [len(sent) for sent in told.requests("ImportAnswers")]
    assert whole[0] == 50


# -- files of answers --------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f'{{"id": {n}, "response": "x", "model": "mine"}}\n' for n in range(2)))
    return str(path)


def counted(told: Fakes) -> None:
    done = job()
    done.published_items = 3
    done.plan.add(items=2)
    done.receipt.import_counts.CopyFrom(
        job_pb2.ImportCounts(answers=5, unmatched=1, unmatched_example="id “9”", repeated=2)
    )
    told.answers |= {
        "WatchJob": [scheduler_service_pb2.WatchJobResponse(job=done)],
        "Scheduler.GetJob": scheduler_service_pb2.GetJobResponse(job=done),
    }


def test_a_file_of_answers_becomes_a_run_of_the_model_that_its_lines_name(
    told: Fakes, file: str, capsys: Captured
) -> None:
    counted(told)
    assert main(["import", file, "--suite", "glue", "--task", "rte"]) == 0
    (sent,) = told.requests("ImportAnswers")
    assert (sent[0].run.tool, sent[0].run.model, sent[0].run.suite) == ("imported", "mine", "glue")
    spec = told.requests("CreateJob")[0].spec
    assert (spec.endpoint, list(spec.suite.tasks), spec.reuse.import_id) == ("imported", ["rte"], IMPORT)
    said = capsys.readouterr().err
    assert "2 of 3 items have an answer." in said
    assert "1 line matches no item; the first one has id “9”." in said
    assert "2 lines answer an item that already has an answer; the first one counts." in said


def test_a_file_of_answers_to_a_dataset_names_it(told: Fakes, file: str) -> None:
    assert main(["import", file, "--dataset", "ds_1", "--model", "other", "--no-watch"]) == 0
    run = told.requests("ImportAnswers")[0][0].run
    assert (run.dataset_id, run.suite, run.model) == ("ds_1", "", "other")
    spec = told.requests("CreateJob")[0].spec
    assert (spec.dataset.dataset_id, spec.endpoint, spec.reuse.import_id) == ("ds_1", "imported", IMPORT)


@pytest.mark.parametrize(
    ("lines", "arguments", "said"),
    [
        ('{"id": 1, "response": "x"}', [], "Say which model answered: --model."),
        (
            '{"id": 1, "response": "x", "model": "a"}\n{"id": 2, "response": "x", "model": "b"}',
            [],
            "several models: a, b",
        ),
        ('{"id": 1, "response": "x", "model": "a"}', ["--suite", "glue"], "belongs to a suite or to a dataset"),
    ],
)
def test_what_a_file_of_answers_leaves_open_is_asked_for(
    told: Fakes, tmp_path: Path, capsys: Captured, lines: str, arguments: list[str], said: str
) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(lines)
    assert main(["import", str(path), "--dataset", "ds_1", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not told.requests("ImportAnswers")
