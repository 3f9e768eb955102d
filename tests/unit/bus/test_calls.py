"""The answer of a call on its way to the gateway."""

from __future__ import annotations

from services.bus import Outbox


async def taken(outbox: Outbox) -> list[tuple[str, bytes]]:
    found = [await outbox.take()]
    while found[-1][0] not in ("end", "wait"):
        found.append(await outbox.take())
    return found


async def test_the_newest_piece_waits_where_it_must() -> None:
    outbox = Outbox(holds_last=True)
    outbox.begin(200, {})
    await outbox.write(b"one ")
    await outbox.write(b"two ")
    await outbox.write(b"x" * 600_000)
    assert [(kind, data) for kind, data in await taken(outbox) if kind == "piece"] == [("piece", b"one two ")]
    outbox.end()
    assert [len(data) for kind, data in await taken(outbox) if kind == "piece"] == [524_288, 75_712]
