"""What people think of answers: who may say so, what is kept, what holds."""

from __future__ import annotations

import pytest

from services.errors import ConflictError, InvalidRequestError, NotFoundError, PermissionDeniedError
from services.results.items import reads
from services.results.items.annotate import ANSWER_BYTES, NOTE_LENGTH, annotate
from services.results.storage.database import Connection
from services.results.visibility import EVERYTHING, Visibility
from services.rpc import Identity
from tests.unit.results.builders import ERROR, START, UNPARSED
from tests.unit.results.dataset_runs import row, stored
from touchstone.v1 import results_service_pb2 as pb
from touchstone.v1 import token_pb2
from touchstone.v1.results_service_pb2 import Annotation

NOW = START.replace(tzinfo=None)
ANN, BOB = Identity("ann", token_pb2.ROLE_USER), Identity("bob", token_pb2.ROLE_USER)
ADMIN = Identity("root", token_pb2.ROLE_ADMIN)
GOLDEN, FIX, WRONG = Annotation.VERDICT_GOLDEN, Annotation.VERDICT_FIX, Annotation.VERDICT_WRONG


@pytest.fixture
def answers(connection: Connection) -> Connection:
    """Job "j" of ann with five answers: of the last one the calls failed, the one before said nothing."""
    rows = [row(0), row(1), row(2), row(3, outcome=UNPARSED, response=""), row(4, outcome=ERROR)]
    stored(connection, "j", rows)
    return connection


def say(
    connection: Connection,
    item: int,
    verdict: int,
    answer: str = "",
    note: str = "",
    by: Identity = ANN,
    visible: Visibility = EVERYTHING,
    task: str = "rows",
) -> None:
    request = pb.AnnotateItemRequest(
        job_id="j",
        task=task,
        item=item,
        verdict=verdict,  # type: ignore[arg-type]
        corrected_answer=answer,
        note=note,
    )
    annotate(connection, request, by, NOW, visible)


def held(connection: Connection, item: int) -> Annotation:
    return reads.get_item(connection, pb.GetItemRequest(job_id="j", task="rows", item=item)).annotation


def listed(connection: Connection, *verdicts: int) -> list[int]:
    conditions = pb.ItemConditions(verdicts=verdicts)  # type: ignore[arg-type]
    page = reads.list_items(connection, pb.ListItemsRequest(job_id="j", conditions=conditions))
    return [one.result.item for one in page.items]


def history(connection: Connection) -> list[tuple[int, int, str]]:
    return connection.execute("SELECT item, verdict, author FROM annotations ORDER BY number").fetchall()


def test_an_annotation_is_read_with_its_item_in_lists_and_alone(answers: Connection) -> None:
    say(answers, 1, FIX, "what it should\nhave been", "nearly", by=ADMIN)
    found = held(answers, 1)
    assert (found.verdict, found.corrected_answer, found.note) == (FIX, "what it should\nhave been", "nearly")
    assert (found.author, found.annotated_at.ToDatetime()) == ("root", NOW)
    page = reads.list_items(answers, pb.ListItemsRequest(job_id="j"))
    assert [one.HasField("annotation") for one in page.items] == [False, True, False, False, False]
    assert page.items[1].annotation == found


def test_the_newest_holds_and_older_ones_stay(answers: Connection) -> None:
    say(answers, 0, GOLDEN)
    say(answers, 0, FIX, "better", by=ADMIN)
    say(answers, 0, WRONG)
    assert (held(answers, 0).verdict, held(answers, 0).corrected_answer) == (WRONG, "")
    assert history(answers) == [(0, GOLDEN, "ann"), (0, FIX, "root"), (0, WRONG, "ann")]


def test_one_is_taken_back_and_stays_in_the_history(answers: Connection) -> None:
    say(answers, 0, GOLDEN)
    say(answers, 0, 0)
    item = reads.get_item(answers, pb.GetItemRequest(job_id="j", task="rows"))
    assert not item.HasField("annotation")
    assert history(answers) == [(0, GOLDEN, "ann"), (0, 0, "ann")]
    assert listed(answers, GOLDEN) == []
    assert 0 in listed(answers, 0)


def test_saying_it_again_is_not_kept_twice(answers: Connection) -> None:
    for _ in range(3):
        say(answers, 0, GOLDEN, note="yes")
    say(answers, 1, 0)
    assert history(answers) == [(0, GOLDEN, "ann")]
    say(answers, 0, GOLDEN, note="yes", by=ADMIN)
    assert len(history(answers)) == 2, "another person says it"


def test_items_are_chosen_by_what_is_thought_of_them(answers: Connection) -> None:
    say(answers, 0, GOLDEN)
    say(answers, 1, FIX, "x")
    say(answers, 2, GOLDEN)
    say(answers, 2, WRONG)
    assert listed(answers, GOLDEN) == [0]
    assert listed(answers, FIX, WRONG) == [1, 2]
    assert listed(answers, 0) == [3, 4]
    assert listed(answers, 0, GOLDEN) == [0, 3, 4]
    stored(answers, "k", [row(0), row(1)])
    assert listed(answers, GOLDEN) == [0]


def test_the_owner_and_admins_annotate_and_nobody_else(answers: Connection) -> None:
    with pytest.raises(PermissionDeniedError, match="belongs to ann"):
        say(answers, 0, GOLDEN, by=BOB)
    with pytest.raises(NotFoundError, match="Benchmark job j not found"):
        say(answers, 0, GOLDEN, by=BOB, visible=Visibility("bob"))
    say(answers, 0, GOLDEN, visible=Visibility("ann"))
    say(answers, 1, GOLDEN, by=ADMIN)
    assert listed(answers, GOLDEN) == [0, 1]


def test_what_is_not_there_is_not_annotated(answers: Connection) -> None:
    for item, task in ((99, "rows"), (0, "other"), (-1, "rows")):
        with pytest.raises(NotFoundError):
            say(answers, item, GOLDEN, task=task)
    with pytest.raises(NotFoundError):
        annotate(answers, pb.AnnotateItemRequest(job_id="nobody", verdict=GOLDEN), ANN, NOW)
    assert history(answers) == []


def test_nothing_is_learned_from_what_has_no_answer(answers: Connection) -> None:
    for verdict, answer in ((GOLDEN, ""), (FIX, "x"), (WRONG, "")):
        with pytest.raises(ConflictError, match="Retry the job"):
            say(answers, 4, verdict, answer)
    with pytest.raises(ConflictError, match="Use fix"):
        say(answers, 3, GOLDEN)
    say(answers, 3, FIX, "x")
    answers.execute("UPDATE items SET prompt = '', response = '' WHERE item = 2")
    for verdict, answer in ((GOLDEN, ""), (FIX, "x")):
        with pytest.raises(ConflictError, match="were dropped"):
            say(answers, 2, verdict, answer)
    say(answers, 2, WRONG)


REFUSED = (
    (FIX, "", "", "corrected_answer"),
    (FIX, " \n\t", "", "corrected_answer"),
    (FIX, "ü" * (ANSWER_BYTES // 2) + "x", "", "corrected_answer"),
    (GOLDEN, "x", "", "corrected_answer"),
    (WRONG, "x", "", "corrected_answer"),
    (0, "x", "", "corrected_answer"),
    (GOLDEN, "", "x" * (NOTE_LENGTH + 1), "note"),
    (4, "", "", "verdict"),
    (-1, "", "", "verdict"),
)


def test_a_wrong_annotation_is_refused(answers: Connection) -> None:
    for verdict, answer, note, field in REFUSED:
        with pytest.raises(InvalidRequestError) as refused:
            say(answers, 0, verdict, answer, note)
        assert refused.value.field == field
    assert history(answers) == []


def test_texts_up_to_their_limits_are_kept_whole(answers: Connection) -> None:
    answer, note = "ü" * (ANSWER_BYTES // 2), "☃" * NOTE_LENGTH
    say(answers, 0, FIX, answer, note)
    assert (held(answers, 0).corrected_answer, held(answers, 0).note) == (answer, note)
    say(answers, 1, FIX, "a\x00b'); DROP TABLE annotations; --")
    assert held(answers, 1).corrected_answer == "a\x00b'); DROP TABLE annotations; --"


def test_what_is_thought_of_one_repeat_is_not_of_another(connection: Connection) -> None:
    stored(connection, "j", [row(0, repeat=0), row(0, repeat=1, position=1)])
    request = pb.AnnotateItemRequest(job_id="j", task="rows", repeat=1, verdict=GOLDEN)
    annotate(connection, request, ANN, NOW)
    page = reads.list_items(connection, pb.ListItemsRequest(job_id="j"))
    assert [one.HasField("annotation") for one in page.items] == [False, True]
