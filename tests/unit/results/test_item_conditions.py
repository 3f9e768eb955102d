"""Which items conditions choose, and what is found by text among ids and metadata."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.results import duckdb_store, item_reads
from services.results.database import Connection
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, event, job, plan
from tests.unit.results.dataset_runs import EXACT, TOKEN_F1, row, stored
from touchstone.v1 import item_result_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest

ODD = 'a.b/c~d "é"'
METADATA: list[dict[str, object]] = [
    {"name": "Ünal Demir", "team": "Red", "years": 3},
    {"name": "Ada", "team": "blue", "tags": ["red wine", "ü"], "active": True},
    {"name": "Bo", ODD: "needle", "team": None, "place": {"city": "Lyon"}},
    {"name": "", "years": 30},
]


def people(connection: Connection) -> None:
    stored(connection, "j", [row(i, metadata=one) for i, one in enumerate(METADATA)] + [row(4)])


def found(connection: Connection, query: str = "", **conditions: object) -> list[int]:
    request = ListItemsRequest(job_id="j", query=query, conditions=pb.ItemConditions(**conditions))  # type: ignore[arg-type]
    page = item_reads.list_items(connection, request)
    assert page.total_size == page.count_all == len(page.items)
    return [one.result.item for one in page.items]


FOUND: tuple[tuple[str, str, list[int]], ...] = (
    ("name", "ünal", [0]),
    ("team", "RED", [0]),
    ("team", "", [0, 1]),
    ("years", "3", [0, 3]),
    ("active", "true", [1]),
    ("tags", "wine", [1]),
    ("tags", "ü", [1]),
    (ODD, "NEEDLE", [2]),
    ("place.city", "lyon", [2]),
    ("place", "lyon", [2]),
    ("", "red", [0, 1]),
    ("", "name", []),
    ("nobody", "", []),
    ("nobody", "x", []),
    ("", "", [0, 1, 2, 3, 4]),
)


def test_metadata_are_found_by_field_and_value(connection: Connection) -> None:
    people(connection)
    for field, value, items in FOUND:
        assert found(connection, metadata_field=field, metadata_value=value) == items, (field, value)


def test_a_text_is_found_in_custom_ids_and_values_of_metadata_too(connection: Connection) -> None:
    people(connection)
    assert found(connection, "CANDIDATE-3") == [3]
    assert found(connection, "ünal") == [0]
    assert found(connection, "lyon") == [2]
    assert found(connection, "question 4") == [4]
    assert found(connection, "team") == [], "names of fields are no content"


def test_a_custom_id_is_found_exactly(connection: Connection) -> None:
    stored(connection, "j", [row(0, custom_id="a"), row(1, custom_id="ab"), row(2, custom_id="A")])
    assert found(connection, custom_id="a") == [0]
    assert found(connection, custom_id="' OR 1=1 --") == []


def test_length_is_in_characters_both_ends_included(connection: Connection) -> None:
    texts = ["", "a", "é☃😀", "abcd"]
    stored(connection, "j", [row(i, response=text) for i, text in enumerate(texts)])
    assert found(connection, length_low=1, length_high=3) == [1, 2]
    assert found(connection, length_high=0) == [0]
    assert found(connection, length_low=3) == [2, 3]
    assert found(connection, length_low=5, length_high=1) == []


def test_scores_are_those_of_the_first_metric(connection: Connection) -> None:
    rows = [row(0, 0.25, TOKEN_F1), row(1, 1.0, TOKEN_F1), row(2, 0.5, TOKEN_F1, outcome=UNPARSED), row(3)]
    stored(connection, "j", [*rows, row(4, 1.0, TOKEN_F1, outcome=ERROR)], TOKEN_F1, EXACT)
    page = item_reads.list_items(connection, ListItemsRequest(job_id="j"))
    assert [one.score if one.HasField("score") else None for one in page.items] == [0.25, 1.0, 0.5, None, None]
    assert found(connection, score_low=0.25, score_high=0.5) == [0, 2]
    assert found(connection, score_low=float("-inf")) == [0, 1, 2]
    assert found(connection, score_high=0.2) == []


def test_of_a_suite_each_task_has_its_own_score(connection: Connection) -> None:
    tasks = (plan("class", 2), plan("table", 2, "f1"), plan("numbers", 2, "pearson"))
    duckdb_store.store_events(connection, [event("1", job("j", *tasks))])
    right, wrong, unread = answer(0), answer(1, "no"), answer(2, outcome=CUT)
    number = answer(0, "1.0", "2.0", statistics={"value": 1.0, "target": 2.0})
    batches = [
        batch("j", "class", [right, wrong, unread]),
        batch("j", "table", [right]),
        batch("j", "numbers", [number]),
    ]
    duckdb_store.store_items(connection, batches)
    page = item_reads.list_items(connection, ListItemsRequest(job_id="j"))
    scores = {(one.task, one.result.item): one.score for one in page.items if one.HasField("score")}
    assert scores == {("class", 0): 1.0, ("class", 1): 0.0, ("class", 2): 0.0}
    whole = item_reads.get_item(connection, pb.GetItemRequest(job_id="j", task="class", item=1))
    assert (whole.HasField("score"), whole.score) == (True, 0.0)


def test_a_statistic_that_is_no_number_counts_as_nothing_reached(connection: Connection) -> None:
    stored(connection, "j", [row(0, float("nan"), TOKEN_F1), row(1, float("inf")), row(2)], TOKEN_F1)
    page = item_reads.list_items(connection, ListItemsRequest(job_id="j"))
    assert [one.score if one.HasField("score") else None for one in page.items] == [0.0, 0.0, None]


def test_final_items_are_all_but_errors(connection: Connection) -> None:
    stored(connection, "j", [row(0), row(1, outcome=ERROR), row(2, outcome=UNPARSED)])
    page = item_reads.list_items(connection, ListItemsRequest(job_id="j", filter=ListItemsRequest.FILTER_FINAL))
    assert [one.result.item for one in page.items] == [0, 2]
    assert (page.total_size, page.count_all, page.count_errors) == (2, 3, 1)


def test_conditions_join_and_pages_hold_to_them(connection: Connection) -> None:
    stored(connection, "j", [row(i, float(i % 2), metadata={"team": "ab"[i % 3 == 0]}) for i in range(60)], EXACT)
    asked = pb.ItemConditions(metadata_field="team", metadata_value="b", score_low=1)
    request = ListItemsRequest(job_id="j", conditions=asked, page_size=4)
    seen: list[int] = []
    while True:
        page = item_reads.list_items(connection, request)
        seen += [one.result.item for one in page.items]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    assert seen == [i for i in range(60) if i % 3 == 0 and i % 2]
    assert page.total_size == 10


@pytest.mark.parametrize(
    ("conditions", "field"),
    [
        (pb.ItemConditions(score_low=float("nan")), "conditions.score_low"),
        (pb.ItemConditions(score_high=float("nan")), "conditions.score_high"),
        (pb.ItemConditions(verdicts=[9]), "conditions.verdicts"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_condition_is_refused(connection: Connection, conditions: pb.ItemConditions, field: str) -> None:
    stored(connection, "j", [row(0, 1.0)], EXACT)
    with pytest.raises(InvalidRequestError) as refused:
        item_reads.list_items(connection, ListItemsRequest(job_id="j", conditions=conditions))
    assert refused.value.field == field


def test_hostile_texts_are_only_texts(connection: Connection) -> None:
    stored(connection, "j", [row(i, metadata={"name": f"n{i}"}) for i in range(3)])
    for text in (
        "'",
        '"',
        "\\",
        "%",
        "$job_id",
        "{condition}",
        "\x00",
        "a\nb",
        "/",
        "$.name",
        "🙃" * 500,
        "x" * 100_000,
    ):
        assert found(connection, text) == []
        assert found(connection, metadata_field=text, metadata_value=text) == []
        assert found(connection, metadata_value=text) == []


def test_metadata_that_are_no_object_are_not_kept(connection: Connection) -> None:
    bad = [row(i) for i in range(5)]
    for one, text in zip(bad, ("{", "[1]", "7", '{"a":"\\ud800"}', "null"), strict=True):
        one.metadata = one.messages = text
    stored(connection, "j", [*bad, row(5, metadata={"a": "b"})])
    assert found(connection, metadata_value="b") == [5]
    items = item_reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert [one.result.metadata for one in items] == ["", "", "", "", "", '{"a": "b"}']


def test_metadata_and_messages_come_back_as_they_were(connection: Connection) -> None:
    made = row(0, metadata={"name": "Ünal", "n": 1.50, "deep": {"a": [None, True]}})
    made.messages = '[{"role":"system","content":"s"},{"role":"user","content":"ü"}]'
    stored(connection, "j", [made])
    item = item_reads.get_item(connection, pb.GetItemRequest(job_id="j", task="rows"))
    assert (item.result.metadata, item.result.messages) == (made.metadata, made.messages)
    (listed,) = item_reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert (listed.result.metadata, listed.result.messages) == (made.metadata, made.messages)


def test_in_lists_long_metadata_stay_an_object_and_long_messages_are_left_out(connection: Connection) -> None:
    made = row(0, metadata={"name": "Ada", "cv": "word " * 5000, "years": 3, "rest": list(range(2000)), "end": 1})
    made.messages = f'[{{"role":"user","content":"{"x" * 3000}"}}]'
    stored(connection, "j", [made])
    (listed,) = item_reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert listed.result.metadata.startswith('{"name": "Ada", "cv": "word word ')
    assert listed.result.metadata.endswith('…", "years": 3}')
    assert listed.result.messages == ""
    whole = item_reads.get_item(connection, pb.GetItemRequest(job_id="j", task="rows"))
    assert (whole.result.metadata, whole.result.messages) == (made.metadata, made.messages)


def test_a_text_is_found_in_what_the_provider_said_when_it_refused(connection: Connection) -> None:
    people(connection)
    refused = row(5, outcome=item_result_pb2.OUTCOME_REFUSED, response="", error="The prompt was flagged for violence")
    duckdb_store.store_items(connection, [batch("j", "rows", [refused])])
    assert found(connection, "FLAGGED for") == [5]
