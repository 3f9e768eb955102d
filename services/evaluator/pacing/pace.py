"""How many calls one endpoint and each of its models get from this process, adjusted by their own answers.

Pure: callers bring the clock. Most limits of providers apply to one model. So a refusal slows only the calls of its
model. A limit of the whole account slows each model in turn.
"""

from __future__ import annotations

import math

from services.words.refusals import counted

_REMEMBERED_S = 60.0
_DENIED_S = 3600.0
_MOST_DENIED = 3
"""Models that are named with what the endpoint said; more are counted."""

_WINDOW_S = 0.5


class Pace:
    """A pause that the endpoint asked for, and how many calls may run at a time.

    A refusal (status 429) halves the calls at a time; each window of as many successes allows one more, up to
    `concurrency` (additive increase, multiplicative decrease: Chiu and Jain, 1989). Times are monotonic seconds.
    """

    def __init__(self, concurrency: int) -> None:
        self.slots = concurrency
        """Calls at a time, 1 to `concurrency`."""
        self._concurrency = concurrency
        self._successes = 0
        self._halved_at = float("-inf")
        self._limited_until = float("-inf")
        self.refused_at = float("-inf")
        """The time of the last refusal."""

    def refused(self, sent: float, now: float) -> None:
        """A call sent at `sent` was refused. Calls that were under way at the last halving do not count."""
        self._successes = 0
        self.refused_at = now
        if sent >= self._halved_at:
            self.slots = max(1, self.slots // 2)
            self._halved_at = now

    def succeeded(self) -> None:
        if self.slots == self._concurrency:
            return
        self._successes += 1
        if self._successes >= self.slots:
            self.slots += 1
            self._successes = 0

    def pause(self, delay_s: float, now: float) -> None:
        """The endpoint asked for a pause: no slot calls it before."""
        self._limited_until = max(self._limited_until, now + delay_s)

    def limited_s(self, now: float) -> float:
        """Seconds until the next call may go out after a refusal; 0 when not limited."""
        return max(0.0, self._limited_until - now)

    def detail(self, now: float) -> str:
        """The text for the endpoint's announcement; empty when nothing is held back."""
        parts = []
        if self.limited_s(now) > 0:
            parts.append(f"next call in {math.ceil(self.limited_s(now))} s")
        if self.slots < self._concurrency:
            parts.append(f"{self.slots} of {self._concurrency} calls at once")
        return f"rate limit, {', then '.join(parts)}" if parts else ""


class Paces:
    """`whole` is the endpoint's own pace; models that are not slowed down have none. Times are monotonic seconds."""

    def __init__(self, concurrency: int) -> None:
        self.whole = Pace(concurrency)
        self._concurrency = concurrency
        self._models: dict[str, Pace] = {}
        self._denied: dict[str, tuple[str, float]] = {}

    @property
    def slowed(self) -> bool:
        """Whether any model is slowed down."""
        return bool(self._models)

    def of(self, model: str) -> Pace | None:
        """The pace of a model that is slowed down."""
        return self._models.get(model)

    def refused(self, model: str, sent: float, now: float, *, whole: bool) -> None:
        """A call sent at `sent` was refused; `whole`: for a reason unrelated to its model."""
        pace = self.whole if whole else self._models.setdefault(model, Pace(self._concurrency))
        pace.refused(sent, now)

    def denied(self, model: str, words: str, now: float) -> None:
        """The endpoint refused the key for a call of the model, as `words` say. Other models may still be called: a key
        may be for some of them alone."""
        self._denied.pop(model, None)
        self._denied[model] = words, now

    def succeeded(self, model: str, now: float) -> None:
        self._denied.pop(model, None)
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

    def limited_s(self, model: str, now: float) -> float:
        """Seconds until the model may be called after a refusal; 0 when it may."""
        pace = self._models.get(model)
        return max(self.whole.limited_s(now), 0.0 if pace is None else pace.limited_s(now))

    def room(self, model: str, busy: int, now: float) -> int:
        """Calls of the model that may go out in addition to `busy` others, under way or before another try."""
        pace = self._models.get(model)
        if pace is not None and pace.limited_s(now) > 0:
            return 0
        return max(0, (self._concurrency if pace is None else pace.slots) - busy)

    def detail(self, now: float) -> str:
        """The text for the endpoint's announcement, which names each model that is slowed down or denied; empty when
        nothing is held back. Models without a recent refusal are forgotten: perhaps nobody calls them any more."""
        for model, pace in list(self._models.items()):
            if not pace.limited_s(now) and now - pace.refused_at > _REMEMBERED_S:
                del self._models[model]
        told = [self.whole.detail(now)]
        told += [f"{model}: {pace.detail(now)}" for model, pace in sorted(self._models.items()) if pace.detail(now)]
        self._denied = {model: one for model, one in self._denied.items() if now - one[1] <= _DENIED_S}
        newest = list(reversed(self._denied.items()))
        told += [f"{model}: {words}" for model, (words, _) in newest[:_MOST_DENIED]]
        if len(newest) > _MOST_DENIED:
            told.append(f"the key is also refused for {counted(len(newest) - _MOST_DENIED, 'more model')}")
        return "; ".join(filter(None, told))


class Rate:
    """Events per second in the last complete window of half a second."""

    def __init__(self) -> None:
        self.per_second = 0.0
        self._count = 0
        self._since = float("-inf")

    def count(self, now: float) -> None:
        """Notes one event at `now`, in seconds."""
        self._count += 1
        span = now - self._since
        if span >= _WINDOW_S:
            # After a pause the rate is unknown.
            self.per_second = self._count / span if span < 4 * _WINDOW_S else 0.0
            self._count, self._since = 0, now
