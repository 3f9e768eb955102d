"""Weights of a model that changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.listing.listing import EndpointListing
from services.evaluator.stored.responses import Identify, KnownAnswers
from services.evaluator.units.units_in_hand import FaultError
from tests.unit.evaluator.stored.answered import ITEMS, held, newest
from touchstone.v1 import endpoint_pb2


def test_other_weights_than_were_planned_end_the_job_before_they_are_asked() -> None:
    def identity(listed: str, planned: str) -> Identify:
        model = endpoint_pb2.Model(model="m", digest=listed)
        listing = SimpleNamespace(endpoint=Endpoint("stub", "ollama"), models=(model,))
        answers = KnownAnswers(None, {"stub": cast(EndpointListing, listing)}, newest)
        return answers.identity(held(digest=planned).unit)

    with pytest.raises(FaultError, match="The weights of m at stub have changed since the job was planned"):
        identity("sha256:b", "sha256:a")
    for listed, planned in (("sha256:a", "sha256:a"), ("", "sha256:a"), ("sha256:a", "")):
        assert identity(listed, planned)(ITEMS[0], 0)
