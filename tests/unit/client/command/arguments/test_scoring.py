"""How answers are to be scored, from the command line."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import DATASET, Fakes
from touchstone.v1 import dataset_service_pb2, scoring_pb2
from touchstone_client.command import main

Captured = pytest.CaptureFixture[str]
RUN = ["run", "--dataset", DATASET, "--model", "one", "--model", "two@right"]


def test_another_scorer_keeps_the_datasets_reference(pair: Fakes) -> None:
    known = dataset_service_pb2.GetDatasetResponse()
    known.dataset.scoring.reference_field = "label"
    pair.answers["GetDataset"] = known
    assert main([*RUN, "--scorer", "numeric", "--tolerance", "1%", "--no-watch"]) == 0
    scoring = pair.specs()[0].dataset.scoring
    assert (scoring.scorer, scoring.reference_field) == ("numeric", "label")
    assert (scoring.tolerance, scoring.tolerance_is_relative) == (0.01, True)


def test_layers_and_the_match_that_counts_are_chosen(pair: Fakes, capsys: Captured) -> None:
    pair.answers["GetDataset"] = dataset_service_pb2.GetDatasetResponse()
    pattern = ["--answer-pattern", "is (.)", "--answer-match", "first"]
    assert main([*RUN, "--scorer", "choice", *pattern, "--no-watch"]) == 0
    assert main([*RUN, "--scorer", "choice", "--reading", "strict", "--no-watch"]) == 0
    assert main(["run", "--suite", "glue", "--model", "one", "--reading", "marked", "--no-watch"]) == 0
    by_pattern, strict, suite = pair.specs()[0], pair.specs()[2], pair.specs()[-1]
    assert (by_pattern.reading, by_pattern.dataset.scoring.answer_match) == (0, scoring_pb2.ANSWER_MATCH_FIRST)
    assert (strict.reading, suite.reading) == (scoring_pb2.READING_STRICT, scoring_pb2.READING_MARKED)
    with pytest.raises(SystemExit):
        main([*RUN, "--answer-match", "second"])
    assert "invalid choice: 'second' (choose from" in capsys.readouterr().err


@pytest.mark.parametrize("tolerance", ["-1", "-1%", "nan", "inf", "1e13", "1%%", "much"])
def test_a_tolerance_out_of_its_range_is_refused(tolerance: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main([*RUN, "--scorer", "numeric", f"--tolerance={tolerance}"])
    assert "or a share of the reference such as 1%" in capsys.readouterr().err


def test_an_empty_reference_field_is_one_that_is_given(pair: Fakes) -> None:
    known = dataset_service_pb2.GetDatasetResponse()
    known.dataset.scoring.reference_field = "label"
    pair.answers["GetDataset"] = known
    assert main([*RUN, "--reference-field", "", "--no-watch"]) == 0
    spec = pair.specs()[0]
    assert spec.dataset.HasField("scoring")
    assert spec.dataset.scoring.reference_field == ""


def test_further_scorers_are_names_or_json(pair: Fakes, capsys: Captured) -> None:
    near = '{"scorer": "numeric", "tolerance": 0.5, "answer_pattern": "is (.)", "answer_match": "first"}'
    assert main([*RUN, "--further-scorer", "contains", "--further-scorer", near, "--no-watch"]) == 0
    work = pair.specs()[0].dataset
    assert not work.HasField("scoring")
    assert list(work.further) == [
        scoring_pb2.Scoring(scorer="contains"),
        scoring_pb2.Scoring(
            scorer="numeric", tolerance=0.5, answer_pattern="is (.)", answer_match="ANSWER_MATCH_FIRST"
        ),
    ]
    for wrong, sentence in (
        ('{"scorer": "numeric", "near": 1}', "near is not an option of scorers. Use scorer, reference_field"),
        ('{"tolerance": "much"}', "'much' is not a valid tolerance"),
        ('{"answer_match": "second"}', "'second' is not a valid answer_match"),
        ("{", "it is not JSON"),
    ):
        with pytest.raises(SystemExit):
            main([*RUN, "--further-scorer", wrong])
        assert sentence in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "--suite", "glue", "--model", "one", "--further-scorer", "contains"])
    assert "the scoring options are for datasets only" in capsys.readouterr().err
