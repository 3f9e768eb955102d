"""Events of a streamed answer: server-sent events ("data:" lines) or one JSON text a line (Ollama)."""

from __future__ import annotations

from services.evaluator.providers.base import ProviderError

MAX_LINE_BYTES = 8 * 1024 * 1024


class EventLines:
    """Takes bytes as they arrive and gives the texts of whole events. Names, ids and comments are left out.

    Server-sent events as in the HTML standard: several data lines of one event are joined, an empty line ends it.
    """

    def __init__(self, name: str, *, lines: bool) -> None:
        self._name = name
        self._lines = lines
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Raises ProviderError when a line does not end."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise ProviderError(f"{self._name} sent an answer that does not end. Lower max_tokens.")
        return [event for line in whole if (event := self._line(line.decode("utf-8", "replace").rstrip("\r")))]

    def end(self) -> list[str]:
        """What a last line without its end still says."""
        return [event for event in (*self.feed(b"\n"), "" if self._lines else self._line("")) if event]

    def _line(self, line: str) -> str:
        if self._lines:
            return line.strip()
        if not line:
            event, self._data = "\n".join(self._data), []
            return event
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        return ""
