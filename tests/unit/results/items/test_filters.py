"""Pages of items beside a baseline's: what differs, what is counted, what is never matched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.errors import InvalidRequestError, NotFoundError
from services.results.intake import writes
from services.results.items import reads
from services.results.paging import MAX_PAGE_BYTES
from services.results.storage.database import Connection
from services.results.visibility import Visibility
from tests.unit.results.builders import CUT, ERROR, UNPARSED, answer, batch, event, job, plan
from tests.unit.results.dataset_runs import EXACT, calling, row, stored
from tests.unit.results.items.listed import found
from touchstone.v1 import item_result_pb2
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1.results_service_pb2 import ListItemsRequest
from touchstone.v1.results_service_pb2 import ListItemsRequest as Ask

REFUSED, CUT_PROMPT = item_result_pb2.OUTCOME_REFUSED, item_result_pb2.OUTCOME_INPUT_TRUNCATED

ODD = 'a.b/c~d "é"'
METADATA: list[dict[str, object]] = [
    {"name": "Ünal Demir", "team": "Red", "years": 3},
    {"name": "Ada", "team": "blue", "tags": ["red wine", "ü"], "active": True},
    {"name": "Bo", ODD: "needle", "team": None, "place": {"city": "Lyon"}},
    {"name": "", "years": 30},
]


def store(connection: Connection, job_id: str, *results: item_result_pb2.ItemResult, task: str = "t") -> None:
    """Results of a job; each item's input is told by its number unless it says otherwise."""
    for result in results:
        result.item_hash = result.item_hash or f"input {result.item}"
    number = "abcdefgh".index(job_id)
    writes.store_events(
        connection, [event(f"{number:04d}", job(job_id, plan("t", 10), plan("u", 10), owner=f"user {job_id}"))]
    )
    writes.store_items(connection, [batch(job_id, task, results)])


def ask(connection: Connection, choice: Ask.Filter = Ask.FILTER_UNSPECIFIED, **fields: object) -> pb.ListItemsResponse:
    fields.setdefault("baseline_job_id", "b")
    return reads.list_items(connection, Ask(job_id="a", filter=choice, **fields))  # type: ignore[arg-type]


def listed(connection: Connection, choice: Ask.Filter, **fields: object) -> list[int]:
    page = ask(connection, choice, **fields)
    assert page.total_size == len(page.items)
    return [stored.result.item for stored in page.items]


def pair(connection: Connection, here: Sequence[object], there: Sequence[object]) -> None:
    """Jobs a and b. An item is a prediction where "yes" is right, an outcome, or None where there is none."""
    for job_id, side in (("a", here), ("b", there)):
        results = [
            answer(i, one) if isinstance(one, str) else answer(i, outcome=int(str(one)))
            for i, one in enumerate(side)
            if one is not None
        ]
        store(connection, job_id, *results)


def test_items_are_told_apart_by_who_was_right(connection: Connection) -> None:
    pair(connection, ["yes", "no", "no", "yes", "no", UNPARSED], ["yes", "yes", "maybe", "no", "no", "yes"])
    assert listed(connection, Ask.FILTER_DIFFERENT) == [1, 3, 5]
    assert listed(connection, Ask.FILTER_REGRESSED) == [1, 5]
    assert listed(connection, Ask.FILTER_IMPROVED) == [3]
    page = ask(connection)
    assert (page.count_different, page.count_regressed, page.count_improved) == (3, 2, 1)


def test_an_error_or_a_missing_item_is_neither_right_nor_wrong(connection: Connection) -> None:
    pair(connection, ["no", ERROR, "no", "yes"], [ERROR, "yes", None, "no"])
    assert listed(connection, Ask.FILTER_DIFFERENT) == [3]
    assert listed(connection, Ask.FILTER_REGRESSED) == []
    assert [b.result.outcome for b in ask(connection).baselines] == [ERROR, 1, 0, 1]


def test_items_of_other_inputs_are_not_matched(connection: Connection) -> None:
    store(connection, "a", answer(0, "no"), answer(1, "no"), answer(2, "no", repeat=1))
    store(connection, "b", answer(0, "yes"), answer(1, "yes", item_hash="another input"), answer(2, "yes"))
    store(connection, "b", answer(3, "yes", item_hash="input 1"), task="u")
    page = ask(connection)
    assert [b.result.prediction for b in page.baselines] == ["yes", "", ""]
    assert [b.task for b in page.baselines] == ["t", "", ""]
    assert listed(connection, Ask.FILTER_REGRESSED) == [0]


def test_numbers_differ_where_they_are_not_the_same(connection: Connection) -> None:
    def said(item: int, text: str) -> item_result_pb2.ItemResult:
        return answer(item, text, "4.0", statistics={"value": float(text), "target": 4.0})

    store(connection, "a", said(0, "3.5"), said(1, "4.0"))
    store(connection, "b", said(0, "3.5"), said(1, "1.0"))
    assert listed(connection, Ask.FILTER_DIFFERENT) == [1]
    assert listed(connection, Ask.FILTER_REGRESSED) == listed(connection, Ask.FILTER_IMPROVED) == []


def test_cut_and_refused_items_are_listed_and_counted(connection: Connection) -> None:
    pair(connection, ["yes", CUT, REFUSED, CUT_PROMPT, ERROR], [])
    assert listed(connection, Ask.FILTER_TRUNCATED) == [1, 3]
    assert listed(connection, Ask.FILTER_REFUSED) == [2]
    page = ask(connection, baseline_job_id="")
    assert (page.count_truncated, page.count_refused, page.count_different) == (2, 1, 0)
    assert not page.baselines


def test_counts_are_those_of_the_text_and_the_task(connection: Connection) -> None:
    pair(connection, ["yes", "no", "no"], ["no", "yes", "yes"])
    store(connection, "a", answer(0, "no"), task="u")
    page = ask(connection, Ask.FILTER_REGRESSED, task="t", query="QUESTION 1")
    assert [s.result.item for s in page.items] == [1]
    assert (page.count_all, page.count_regressed, page.count_improved, page.total_size) == (1, 1, 0, 1)
    assert (ask(connection).count_all, ask(connection, task="u").count_all) == (4, 1)


def test_pages_of_what_differs_walk_every_item_once(connection: Connection) -> None:
    here = ["no" if i % 3 else "yes" for i in range(50)]
    pair(connection, here, ["yes"] * 50)
    token, found = "", []
    while True:
        page = ask(connection, Ask.FILTER_DIFFERENT, page_size=7, page_token=token)
        found += [s.result.item for s in page.items]
        assert [b.result.item for b in page.baselines] == [s.result.item for s in page.items]
        token = page.next_page_token
        if not token:
            break
    assert found == [i for i in range(50) if i % 3]
    token = ask(connection, page_size=7).next_page_token
    with pytest.raises(InvalidRequestError, match="page_token is not valid for this request"):
        ask(connection, page_token=token, baseline_job_id="a")


def test_a_page_with_its_baselines_fits_one_message(connection: Connection) -> None:
    long = "x" * 10_000
    for job_id in "ab":
        store(connection, job_id, *[answer(i, response=long, reasoning=long, prompt=long) for i in range(500)])
    page = ask(connection, page_size=500)
    assert 100 < len(page.items) < 500
    assert page.ByteSize() < MAX_PAGE_BYTES * 1.01
    assert page.next_page_token
    assert page.items[0].result.response.endswith("…")


def test_a_choice_beside_a_baseline_needs_one(connection: Connection) -> None:
    pair(connection, ["yes"], ["no"])
    for choice in (Ask.FILTER_DIFFERENT, Ask.FILTER_REGRESSED, Ask.FILTER_IMPROVED):
        with pytest.raises(InvalidRequestError, match="Set baseline_job_id") as refused:
            ask(connection, choice, baseline_job_id="")
        assert refused.value.field == "baseline_job_id"
    with pytest.raises(NotFoundError, match="Benchmark job nobody"):
        ask(connection, baseline_job_id="nobody")


def test_items_of_hidden_jobs_are_not_found(connection: Connection) -> None:
    pair(connection, ["yes"], ["no"])
    own = Visibility("user a")
    request = Ask(job_id="a")
    assert reads.list_items(connection, request, own).items
    with pytest.raises(NotFoundError):
        reads.list_items(connection, Ask(job_id="a", baseline_job_id="b"), own)
    with pytest.raises(NotFoundError):
        reads.list_items(connection, Ask(job_id="b"), own)
    with pytest.raises(NotFoundError):
        reads.get_item(connection, pb.GetItemRequest(job_id="b", task="t"), own)


def test_a_task_that_the_job_has_not_is_named_with_those_it_has(connection: Connection) -> None:
    pair(connection, ["yes"], ["no"])
    with pytest.raises(NotFoundError, match=r"Job a has no task 'nope'\. Its tasks: t, u\."):
        ask(connection, task="nope")
    writes.store_events(connection, [event("9999", job("c"))])
    assert not reads.list_items(connection, Ask(job_id="c", task="nope")).items, "the job is not planned yet"


def people(connection: Connection) -> None:
    stored(connection, "j", [row(i, metadata=one) for i, one in enumerate(METADATA)] + [row(4)])


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


def test_final_items_are_all_but_errors(connection: Connection) -> None:
    stored(connection, "j", [row(0), row(1, outcome=ERROR), row(2, outcome=UNPARSED)])
    page = reads.list_items(connection, ListItemsRequest(job_id="j", filter=ListItemsRequest.FILTER_FINAL))
    assert [one.result.item for one in page.items] == [0, 2]
    assert (page.total_size, page.count_all, page.count_errors) == (2, 3, 1)


def test_conditions_join_and_pages_hold_to_them(connection: Connection) -> None:
    stored(connection, "j", [row(i, float(i % 2), metadata={"team": "ab"[i % 3 == 0]}) for i in range(60)], EXACT)
    asked = pb.ItemConditions(metadata_field="team", metadata_value="b", score_low=1)
    request = ListItemsRequest(job_id="j", conditions=asked, page_size=4)
    seen: list[int] = []
    while True:
        page = reads.list_items(connection, request)
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
        reads.list_items(connection, ListItemsRequest(job_id="j", conditions=conditions))
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
    items = reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert [one.result.metadata for one in items] == ["", "", "", "", "", '{"a": "b"}']


def test_metadata_and_messages_come_back_as_they_were(connection: Connection) -> None:
    made = row(0, metadata={"name": "Ünal", "n": 1.50, "deep": {"a": [None, True]}})
    made.messages = '[{"role":"system","content":"s"},{"role":"user","content":"ü"}]'
    stored(connection, "j", [made])
    item = reads.get_item(connection, pb.GetItemRequest(job_id="j", task="rows"))
    assert (item.result.metadata, item.result.messages) == (made.metadata, made.messages)
    (listed,) = reads.list_items(connection, ListItemsRequest(job_id="j")).items
    assert (listed.result.metadata, listed.result.messages) == (made.metadata, made.messages)


def test_a_text_is_found_in_what_the_provider_said_when_it_refused(connection: Connection) -> None:
    people(connection)
    refused = row(5, outcome=item_result_pb2.OUTCOME_REFUSED, response="", error="The prompt was flagged for violence")
    writes.store_items(connection, [batch("j", "rows", [refused])])
    assert found(connection, "FLAGGED for") == [5]


def test_names_and_arguments_of_tool_calls_are_searched_as_they_are_written(connection: Connection) -> None:
    stored(
        connection, "j", [row(0), calling(1, '{"city": "Rom"}'), calling(2, '{"city": "Lyon"}', '{"city": "Zürich"}')]
    )
    assert found(connection, 'weather({"CITY": "rom"') == [1]
    assert found(connection, "zürich") == [2]
    assert found(connection, "weather(") == [1, 2]
    assert found(connection, "call_1_0") == []


def classes(page: pb.ListItemsResponse) -> dict[tuple[str, str | None], int]:
    return {(c.reference, c.prediction if c.HasField("prediction") else None): c.items for c in page.classes}


def test_classes_count_the_items_that_their_cells_list(connection: Connection) -> None:
    said = ["yes", "no", "no", "", "perhaps", "yes", "yes", "no"]
    results = [answer(i, one) for i, one in enumerate(said)]
    for result in results[5:]:
        result.reference = "no"
    store(connection, "a", *results)
    page = reads.list_items(connection, Ask(job_id="a", task="t", with_classes=True))
    assert classes(page) == {
        ("yes", "yes"): 1,
        ("yes", "no"): 2,
        ("yes", ""): 1,
        ("yes", None): 1,
        ("no", "yes"): 2,
        ("no", "no"): 1,
    }
    for (reference, prediction), items in classes(page).items():
        if prediction is not None:
            asked = pb.ItemConditions(reference=reference, prediction=prediction)
            assert len(reads.list_items(connection, Ask(job_id="a", conditions=asked)).items) == items
    assert not reads.list_items(connection, Ask(job_id="a", task="t")).classes


def test_texts_that_rarely_repeat_are_no_classes(connection: Connection) -> None:
    results = [answer(i, str(i)) for i in range(6)]
    for result in results:
        result.reference = result.prediction
    store(connection, "a", *results)
    assert not reads.list_items(connection, Ask(job_id="a", task="t", with_classes=True)).classes


def test_items_come_slowest_or_longest_first_over_pages(connection: Connection) -> None:
    results = [answer(i, "yes") for i in range(4)]
    for result, latency, tokens in zip(results, (5.0, 9.5, 9.5, 1.25), (7, 1, 3, 9), strict=True):
        result.latency_ms, result.output_tokens = latency, tokens
    store(connection, "a", *results)
    for order, expected in ((Ask.ORDER_SLOWEST, [1, 2, 0, 3]), (Ask.ORDER_LONGEST, [3, 0, 2, 1])):
        listed: list[int] = []
        token = ""
        while len(listed) < 4:
            page = reads.list_items(connection, Ask(job_id="a", order=order, page_size=1, page_token=token))
            listed += [one.result.item for one in page.items]
            token = page.next_page_token
        assert (listed, token) == (expected, "")
