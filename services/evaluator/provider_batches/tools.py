"""What all units of one endpoint's batch API share."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.bus import Bus
from services.evaluator.provider_batches.base import BatchApi
from services.evaluator.responses import KnownAnswers
from services.evaluator.settings import Settings
from services.evaluator.units.doubts import Doubts
from services.evaluator.units.load import Loader


@dataclass(frozen=True, slots=True)
class Tools:
    """The API, and where units, rows and answers come from and go to."""

    api: BatchApi
    bus: Bus
    loader: Loader
    answers: KnownAnswers
    settings: Settings
    doubts: Doubts = field(default_factory=Doubts)
