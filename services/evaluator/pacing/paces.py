"""How hard one endpoint and each of its models may be called from this process. Pure: callers bring the clock.

Most limits of providers are of one model. So a refusal slows the calls of its model only, and those of other models go
on. A limit of the whole account is met by each model in turn.
"""

from __future__ import annotations

from services.evaluator.pacing.pace import Pace

_REMEMBERED_S = 60.0


class Paces:
    """`whole` is the endpoint's own pace; models that are not slowed down have none. Times are monotonic seconds."""

    def __init__(self, concurrency: int) -> None:
        self.whole = Pace(concurrency)
        self._concurrency = concurrency
        self._models: dict[str, Pace] = {}

    @property
    def slowed(self) -> bool:
        """Whether any model is."""
        return bool(self._models)

    def of(self, model: str) -> Pace | None:
        """The pace of a model that is slowed down."""
        return self._models.get(model)

    def refused(self, model: str, sent: float, now: float, *, whole: bool) -> None:
        """A call sent at `sent` was refused; `whole`: for a reason that has nothing to do with its model."""
        pace = self.whole if whole else self._models.setdefault(model, Pace(self._concurrency))
        pace.refused(sent, now)

    def succeeded(self, model: str, now: float) -> None:
        self.whole.succeeded()
        pace = self._models.get(model)
        if pace is not None:
            pace.succeeded()
            if pace.slots == self._concurrency and not pace.limited_s(now):
                del self._models[model]

    def pause(self, model: str, delay_s: float, now: float, *, whole: bool) -> None:
        """The endpoint asked for a pause: no slot calls the model before, or any."""
        pace = self.whole if whole else self._models.setdefault(model, Pace(self._concurrency))
        pace.pause(delay_s, now)

    def room(self, model: str, busy: int, now: float) -> int:
        """Calls of the model that may go out beside `busy` others, under way or before another try."""
        pace = self._models.get(model)
        if pace is not None and pace.limited_s(now) > 0:
            return 0
        return max(0, (self._concurrency if pace is None else pace.slots) - busy)

    def detail(self, now: float) -> str:
        """What the endpoint's announcement says; empty when nothing is held back. Models that were not refused lately
        are forgotten: nobody may call them any more."""
        for model, pace in list(self._models.items()):
            if not pace.limited_s(now) and now - pace.refused_at > _REMEMBERED_S:
                del self._models[model]
        told = [self.whole.detail(now)]
        told += [f"{model}: {pace.detail(now)}" for model, pace in sorted(self._models.items()) if pace.detail(now)]
        return "; ".join(filter(None, told))
