"""Pages of lists."""

from __future__ import annotations

import pytest

from services.errors import InvalidRequestError
from services.scheduler.requests.paging import paged

ENTRIES = ["a", "b", "c", "ü", "ž"]


def test_pages_walk_every_entry_once() -> None:
    token, walked = "", list[str]()
    for _ in range(3):
        page, token = paged(ENTRIES, 2, token, 10, 50, str)
        walked += page
    assert (walked, token) == (ENTRIES, "")


def test_without_a_size_a_page_has_the_usual_one() -> None:
    assert len(paged(ENTRIES, 0, "", 3, 50, str)[0]) == 3


def test_an_entry_that_went_away_between_two_pages_hides_no_other() -> None:
    _, token = paged(ENTRIES, 2, "", 10, 50, str)
    assert paged(["a", "c"], 2, token, 10, 50, str) == (["c"], "")


@pytest.mark.parametrize("size", [-1, 51])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(InvalidRequestError, match="between 0 and 50") as refused:
        paged(ENTRIES, size, "", 10, 50, str)
    assert refused.value.field == "page_size"


@pytest.mark.parametrize("token", ["a", "_w==", "ü", "YQ==!"])
def test_a_token_that_nobody_gave_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        paged(ENTRIES, 2, token, 10, 50, str)
    assert refused.value.field == "page_token"
