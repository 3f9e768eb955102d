"""How answers to uploaded rows are scored, against the field's own implementations where there are some."""

from __future__ import annotations

import collections
import json
import re
import string
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sklearn.metrics import accuracy_score

from services.errors import InvalidRequestError
from services.evaluator.answers import rouge, words
from services.evaluator.answers.scorers.choosing import SCORERS, canonical, check_scoring, scorer
from touchstone.v1.scoring_pb2 import ANSWER_MATCH_FIRST, ANSWER_MATCH_LAST, Scoring
from touchstone.v1.suite_pb2 import MetricSpec

TEXTS = st.text(
    st.sampled_from("ab the. The, A an-\n\t'\"3.5Ünıß中") | st.characters(codec="utf-8"), max_size=60
) | st.lists(st.sampled_from(["the", "cat", "Cat.", "sat", "on", "a", "mat", "3.5"]), max_size=30).map(" ".join)


def statistics(scoring: Scoring, response: str, *rights: Any) -> dict[str, float]:
    """Of a response against right answers given as JSON values; 0 each where nothing was read."""
    chosen = scorer(scoring)
    found = chosen.read(response, False)
    if not found.answer:
        return dict.fromkeys(chosen.statistics, 0.0)
    return dict(chosen.judge(found.answer, [chosen.right(right) for right in rights]))


def correct(name: str, response: str, *rights: Any, **options: Any) -> float:
    return statistics(Scoring(scorer=name, **options), response, *rights)["correct"]


# -- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("Paris", "paris"),
        (" the  Eiffel\nTower. ", "Eiffel Tower"),
        ("**Paris**, “France”", "paris france"),
        ("<think>Rome?</think>Paris!", "Paris"),
        ("3.50", "3.50"),
        ("A", "a"),
        ("Straße", "STRASSE"),
        ("e\u0301te\u0301", "été"),
        ("true", True),
        ("7", 7.0),
    ],
)
def test_exact_match_is_blind_to_case_blanks_marks_and_articles(response: str, right: Any) -> None:
    assert correct("exact_match", response, right) == 1


@pytest.mark.parametrize(
    ("response", "right"),
    [
        *(("35", "3.5"), ("-5", "5"), ("C", "C#"), ("the", "a"), ("Paris, Texas", "Paris"), ("not true", True)),
        *(("!", "?"), ("[]", "()"), ("", "?")),
    ],
)
def test_exact_match_tells_different_answers_apart(response: str, right: Any) -> None:
    assert correct("exact_match", response, right) == 0


def test_the_best_of_several_right_answers_counts() -> None:
    assert correct("exact_match", "colour", "color", "colour") == 1
    assert correct("contains", "It is the colour.", "color", "colour") == 1
    assert correct("regex", "colour", "^color$", "^colou?r$") == 1
    assert correct("numeric", "7", 6, 7) == 1
    assert correct("choice", "B", "A", "B") == 1
    assert statistics(Scoring(scorer="token_f1"), "a red car", "blue bus", "red car")["token_f1"] == 1
    assert statistics(Scoring(scorer="rouge_l"), "red car", "blue bus", "red car")["rouge_l"] == 1
    assert statistics(Scoring(scorer="json"), '{"a": 1}', {"a": 2}, {"a": 1})["json_match"] == 1


def test_contains_finds_the_answer_within_words_and_across_lines() -> None:
    assert correct("contains", "I think it is\nNEW  york.", "New York") == 1
    assert correct("contains", "unknown", "know") == 1
    assert correct("contains", "York", "New York") == 0


@pytest.mark.parametrize(
    ("response", "right", "found"),
    [
        *(("know", "no", 0), ("I know: no.", "no", 1), ("No", "no", 1), ("15 or 51", 5, 0), ("It is 5.", 5, 1)),
        *(("a b", "b", 1), ("ab", "b", 0), ("C++ and C", "C#", 0), ("in C#.", "C#", 1), ("e\u0301t\u0331", "t", 0)),
        *(("know", "kno", 1), ("答案是北京。", "北京", 1), ("是5。", 5, 1), ("snake_no", "no", 0)),
    ],
)
def test_an_answer_of_one_or_two_characters_counts_as_a_whole_word_only(response: str, right: Any, found: int) -> None:
    assert correct("contains", response, right) == found


def squad_f1(prediction: str, truth: str) -> float:
    """As the evaluation script of SQuAD 2.0 computes it, written down from its description."""

    def tokens(text: str) -> list[str]:
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", text, flags=re.UNICODE).split()

    given_, expected = tokens(prediction), tokens(truth)
    if not given_ or not expected:
        return float(given_ == expected)
    common = sum((collections.Counter(given_) & collections.Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(given_), common / len(expected)
    return 2 * precision * recall / (precision + recall)


@given(TEXTS, TEXTS)
def test_token_f1_is_squads(response: str, right: str) -> None:
    ours = words.token_f1(words.squad(response).split(), words.squad(right).split())
    assert ours == pytest.approx(squad_f1(response, right), abs=1e-9)


@given(TEXTS, TEXTS)
def test_rouge_l_is_the_packages(response: str, right: str) -> None:
    expected = RougeScorer(["rougeL"]).score(right, response)["rougeL"].fmeasure
    assert rouge.rouge_l(rouge.tokens(response), rouge.tokens(right)) == pytest.approx(expected, abs=1e-9)


def test_rouge_l_of_long_texts_takes_no_seconds() -> None:
    first = " ".join(f"w{number % 997}" for number in range(60_000))
    second = " ".join(f"w{number % 991}" for number in range(60_000))
    began = time.process_time()
    assert 0 < statistics(Scoring(scorer="rouge_l"), first, second)["rouge_l"] < 1
    assert time.process_time() - began < 3


def test_rouge_l_refuses_a_reference_whose_words_it_does_not_count() -> None:
    with pytest.raises(ValueError, match="token_f1"):
        scorer(Scoring(scorer="rouge_l")).right("東京")


# -- patterns --------------------------------------------------------------------------------------------------------


def test_regex_searches_and_minds_case_unless_told() -> None:
    assert correct("regex", "It is No. 5", r"\bNo\. \d") == 1
    assert correct("regex", "it is no. 5", r"\bNo\. \d") == 0
    assert correct("regex", "it is no. 5", r"(?i)\bNo\. \d") == 1
    assert correct("regex", "\udcff é", r"é$") == 1


def test_patterns_that_would_explode_are_linear() -> None:
    began = time.process_time()
    assert correct("regex", "x" * 1_000_000, r"(x+x+)+y") == 0
    scoring = Scoring(scorer="exact_match", answer_pattern=r"x*y|(x)")
    assert statistics(scoring, "x" * 1_000_000, "x") == {"correct": 1.0}
    assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "a" * 1001, "(a{1000}){1000}"])
def test_a_pattern_that_cannot_be_used_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match="answer pattern") as refused:
        check_scoring(Scoring(answer_pattern=pattern))
    assert refused.value.message.endswith("Correct it, or leave it out.")
    with pytest.raises(ValueError, match=r"is none that RE2 takes|characters"):
        scorer(Scoring(scorer="regex")).right(pattern)


@pytest.mark.parametrize("value", ["\ud800", "", 5, None, ["a"]])
def test_a_reference_that_is_no_pattern_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"is no (pattern|text)"):
        scorer(Scoring(scorer="regex")).right(value)


def test_the_answer_pattern_takes_the_first_group_of_the_last_match() -> None:
    scoring = Scoring(answer_pattern=r"(?i)final answer: *(.+)")
    assert statistics(scoring, "Final answer: Rome\nNo: final answer: Paris.\nDone", "Paris") == {"correct": 1.0}
    assert statistics(Scoring(answer_pattern=r"\d+"), "Of 12, 30 are left", "30") == {"correct": 1.0}
    assert scorer(scoring).read("I do not know", False).answer == ""
    assert scorer(scoring).read("<think>final answer: Rome</think>Hm", False).answer == ""


def test_the_answer_pattern_may_take_the_first_match() -> None:
    text = "Final answer: A\nAnother question has the final answer: B"
    last = Scoring(answer_pattern=r"(?i)final answer: *(.+)")
    first = Scoring(answer_pattern=last.answer_pattern, answer_match=ANSWER_MATCH_FIRST)
    assert (statistics(last, text, "B"), statistics(first, text, "A")) == ({"correct": 1.0}, {"correct": 1.0})
    assert scorer(first).read(text, False).how == "first match of the answer pattern"
    named = Scoring(answer_pattern=last.answer_pattern, answer_match=ANSWER_MATCH_LAST)
    assert canonical(named) == canonical(last) != canonical(first)
    assert canonical(Scoring(answer_match=ANSWER_MATCH_FIRST)) == canonical(Scoring())


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is (A).\n\nQuestion: What next?\nThe answer is (B).", "A"),
        ("The answer is (A).<|eot_id|>user\nThe answer is (B).", "A"),
        ("Question: What is it?\nThe answer is (A).\nQ: And this?\nThe answer is (B).", "A"),
        ("I see.\nQuestion: What is it?\nThe answer is (A).", "A"),
        ("The answer is (A). No, the answer is (B).", "B"),
        ("The answer\nQ: is (C).", ""),
    ],
)
def test_the_answer_pattern_stops_at_an_invented_next_question(text: str, answer: str) -> None:
    assert scorer(Scoring(answer_pattern=r"answer is \((.)\)")).read(text, False).answer == answer
    across = scorer(Scoring(answer_pattern=r"(?s)answer.*is \((.)\)")).read("The answer\nQ: is (C).", False)
    assert across.answer == "C", "what matches in no part may match in the whole"


def test_the_answer_pattern_serves_every_scorer() -> None:
    found = {"answer_pattern": r"=> *(.*)"}
    assert correct("numeric", "5 => 1,200.0 apples", 1200, **found) == 0
    assert correct("numeric", "5 => 1,200.0", 1200, **found) == 1
    assert correct("numeric", "5 => 1.2e3", 1200, **found) == 1
    assert correct("choice", "A or B => (b).", "B", **found) == 1
    assert correct("json", 'x => {"a": 1}', {"a": 1.0}, **found) == 1
    assert correct("contains", "red => blue", "red", **found) == 0
    assert correct("regex", "red => blue", "^blue$", **found) == 1


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "right", "options", "is_right"),
    [
        ("Answer: 1,234.50", 1234.5, {}, True),
        ("So it is 5.\nAnswer: $18", "18", {}, True),
        ("1.1", 1, {"tolerance": 0.1}, True),
        ("1.11", 1, {"tolerance": 0.1}, False),
        ("0.9", 1, {"tolerance": 0.1}, True),
        ("102", "100", {"tolerance": 0.02, "tolerance_is_relative": True}, True),
        ("97.9", "100", {"tolerance": 0.02, "tolerance_is_relative": True}, False),
        ("-102", -100, {"tolerance": 0.02, "tolerance_is_relative": True}, True),
        ("0.0001", 0, {"tolerance": 0.5, "tolerance_is_relative": True}, False),
        ("0.30000000000000004", 0.3, {}, False),
        ("Answer: 18 apples", "18 apples", {}, True),
        ("I think 5", 5, {}, True),
        ("Answer: .5 apples", "$.50", {}, True),
        ("Answer: 3 or .5", 3, {}, False),
    ],
)
def test_numbers_are_right_within_the_tolerance(
    response: str, right: Any, options: dict[str, Any], is_right: bool
) -> None:
    assert correct("numeric", response, right, **options) == is_right


@pytest.mark.parametrize("value", ["five", True, None, {}, [], "1e999999999", "9" * 400, float("1e300")])
def test_a_reference_that_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="is no number"):
        scorer(Scoring(scorer="numeric")).right(value)


@pytest.mark.parametrize(
    ("response", "read"),
    [
        *((".5", "0.5"), ("Answer: -.5", "-0.5"), ("50%", "50"), ("12.5 %.", "12.5"), ("-$1,234.50", "-1234.5")),
        *(("1.5e3", "1500"), ("The answer is 1e-7.", "0.0000001"), ("−5", "-5"), ("$1{,}234$", "1234")),
        *(("1,2", ""), ("1, 2, 3", ""), ("Answer: 1.234,5", "1234.5"), ("--5", ""), ("1e999", ""), ("1 234", "1234")),
    ],
)
def test_a_number_is_read_as_it_is_written_or_not_at_all(response: str, read: str) -> None:
    assert scorer(Scoring(scorer="numeric")).read(response, False).answer == read


def test_a_number_that_the_limit_may_have_cut_is_not_read() -> None:
    assert not scorer(Scoring(scorer="numeric")).read("1.5e3", True).answer


@pytest.mark.parametrize("value", ["3,5", "1, 2", "3 or 4"])
def test_a_reference_that_may_be_two_numbers_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="no number"):
        scorer(Scoring(scorer="numeric")).right(value)


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(InvalidRequestError, match="tolerance"):
        check_scoring(Scoring(scorer="numeric", tolerance=tolerance))


# -- choices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "right", "is_right"),
    [
        (">", "> )", False),
        ("> )", "> )", True),
        ("([)", "([", False),
        ("f(x", "f(x)", False),
        (".", "'.'", True),
        ("',,,?'", ",,,?", True),
        ("!", "'?'", False),
        (")", "')'", True),
        ("')'", "']'", False),
        ("(Paris)", "Paris", True),
        ("Answer: Paris", "Paris", True),
        ("The answer is Paris.", "paris", True),
        ("\\boxed{Paris}", "Paris", True),
        ("It is a long story about Paris.", "Paris", False),
    ],
)
def test_exact_match_keeps_what_the_answer_is_about(response: str, right: str, is_right: bool) -> None:
    assert correct("exact_match", response, right) == is_right


def test_letters_are_read_as_suites_read_them() -> None:
    assert correct("choice", "It could be A. Answer: (B) because", "B") == 1
    assert correct("choice", "b", "B") == 1
    assert correct("choice", "J", "j") == 1
    assert correct("choice", "Answer: A or B", "A") == 0
    assert correct("choice", "The K", "A", choices=["A", "B"]) == 0


def test_choices_may_be_texts() -> None:
    options = ["entailment", "not entailment", "unknown"]
    assert correct("choice", "Answer: Not_Entailment.", "not entailment", choices=options) == 1
    assert correct("choice", "Answer: not entailment", "entailment", choices=options) == 0
    assert correct("choice", "unknown", "Unknown", choices=options) == 1
    with pytest.raises(ValueError, match="is none of the choices entailment, not entailment, unknown"):
        scorer(Scoring(scorer="choice", choices=options)).right("maybe")


@pytest.mark.parametrize(
    "choices", [["one"], ["yes", "Yes"], ["a", "?"], ["x" * 81, "y"], [str(n) for n in range(201)]]
)
def test_choices_that_cannot_be_told_apart_are_refused(choices: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="choices"):
        check_scoring(Scoring(scorer="choice", choices=choices))


def test_accuracy_of_choices_is_scikit_learns() -> None:
    rights = ["A", "B", "C", "D", "A", "B"]
    responses = ["Answer: A", "C", "Answer: C.", "none", "Answer: B", "b) B Answer: B"]
    chosen = scorer(Scoring(scorer="choice"))
    predicted = [chosen.read(response, False).answer for response in responses]
    ours = [correct("choice", response, right) for response, right in zip(responses, rights, strict=True)]
    assert sum(ours) / len(ours) == pytest.approx(accuracy_score(rights, predicted), abs=1e-9)
    assert accuracy_score(rights, predicted) == pytest.approx(0.5)


# -- json ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "share"),
    [
        ('{"name": "Ada", "born": {"year": 1815.0, "city": "London"}, "tags": ["a", 1]}', 1.0),
        ('Here:\n```json\n{"name": "Ada", "born": {"year": 1815}, "tags": ["a", 1], "more": 1}\n```\nDone.', 0.75),
        ('```\n{"name": "x"}\n```\nNo:\n```\n{"name": "Ada"}\n```', 0.25),
        ('It is {"name": "Ada", "tags": [1, "a"]}.', 0.25),
        ('<think>{"name": "Ada"}</think>{"name": "Bob"}', 0.0),
        ('{"name": "ada", "born": 1815}', 0.0),
        ("[]", 0.0),
        ("Ada", 0.0),
    ],
)
def test_json_counts_equal_fields(response: str, share: float) -> None:
    right = {"name": "Ada", "born": {"year": 1815, "city": "London"}, "tags": ["a", 1.0]}
    found = statistics(Scoring(scorer="json"), response, right)
    assert found == {"json_match": pytest.approx(share), "correct": float(share == 1)}


def test_json_fields_are_dotted_paths_which_may_hold_dots() -> None:
    right = {"a.b": {"c": 1}, "list": [{"x": True}], "left": None}
    fields = Scoring(scorer="json", fields=["a.b.c", "list.0.x", "absent"])
    assert statistics(fields, '{"a": {"b": {"c": 1}}, "list": [{"x": true}]}', right)["json_match"] == 1
    assert statistics(fields, '{"a.b": {"c": 2}, "list": [{"x": 1}]}', right)["json_match"] == 0
    assert statistics(Scoring(scorer="json", fields=["left"]), "{}", right)["json_match"] == 0
    with pytest.raises(ValueError, match="has none of the fields absent"):
        scorer(Scoring(scorer="json", fields=["absent"])).right(right)


def test_json_given_as_a_text_is_taken_as_json() -> None:
    assert correct("json", '{"a": 1}', '{"a": 1.0}') == 1


@pytest.mark.parametrize("value", ["B", '"B"', "[1]", "{", 5, True, ["a"]])
def test_what_holds_no_json_object_is_no_reference_for_json(value: Any) -> None:
    with pytest.raises(ValueError, match="is no JSON object"):
        scorer(Scoring(scorer="json")).right(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_any_json_object_equals_itself(value: dict[str, Any]) -> None:
    chosen = scorer(Scoring(scorer="json"))
    found = chosen.read(json.dumps(value), False)
    right = chosen.right(value)
    assert found.answer == right
    assert chosen.judge(found.answer, [right]) == {"json_match": 1.0, "correct": 1.0}


# -- all of them -----------------------------------------------------------------------------------------------------

ORACLE: dict[str, Any] = {
    "exact_match": "Paris",
    "contains": "Paris",
    "regex": "Paris",
    "choice": "B",
    "numeric": 3,
    "token_f1": "the red car",
    "rouge_l": "the red car",
    "json": {"a": 1},
}


@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_has_a_version_of_its_own_and_statistics_that_its_metrics_read(name: str) -> None:
    chosen = scorer(Scoring(scorer=name))
    assert chosen.name == name
    grown = {"contains": 2, "choice": 2, "exact_match": 2, "numeric": 3}
    assert chosen.version == f"{name}-{grown.get(name, 1)}"
    read = {spec.statistic or "correct" for spec in chosen.metrics}
    assert read == set(chosen.statistics)
    assert all(spec.rule == MetricSpec.RULE_MEAN or spec.metric == "accuracy" for spec in chosen.metrics)
    assert [spec.beside for spec in chosen.metrics] == [False, True][: len(chosen.metrics)]
    right = chosen.right(ORACLE[name])
    found = chosen.read(right, False)
    assert chosen.judge(found.answer, [right]) == dict.fromkeys(chosen.statistics, 1.0)


@pytest.mark.parametrize("name", SCORERS)
@given(response=TEXTS)
def test_every_scorer_takes_any_response(name: str, response: str) -> None:
    for value in statistics(Scoring(scorer=name), response, ORACLE[name]).values():
        assert 0 <= value <= 1


def test_an_unknown_scorer_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequestError, match=r"There is no scorer 'bleu'\. Choose one of exact_match, contains"):
        check_scoring(Scoring(scorer="bleu"))


def test_the_usual_scorer_is_exact_match() -> None:
    assert scorer(Scoring()).name == "exact_match"


def test_scorings_that_score_alike_read_alike() -> None:
    assert canonical(Scoring()) == canonical(Scoring(scorer="exact_match", tolerance=0.1, choices=["A", "B"]))
    different = [
        Scoring(),
        Scoring(scorer="numeric"),
        Scoring(scorer="numeric", tolerance=0.1),
        Scoring(scorer="numeric", tolerance=0.1, tolerance_is_relative=True),
        Scoring(scorer="choice"),
        Scoring(scorer="choice", choices=["yes", "no"]),
        Scoring(scorer="json", fields=["a"]),
        Scoring(reference_field="gold"),
        Scoring(answer_pattern="a"),
    ]
    assert len({canonical(scoring) for scoring in different}) == len(different)
