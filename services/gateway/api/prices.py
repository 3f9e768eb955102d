"""What a model's tokens cost and who says so, as answers give it."""

from __future__ import annotations

from typing import Any

from services.gateway.api.schema import COUNT, NUMBER, STRING, about, enum, null, shape
from touchstone.v1.endpoint_pb2 import Prices

_SOURCES = {
    Prices.SOURCE_ENDPOINTS_FILE: "endpoints_file",
    Prices.SOURCE_PROVIDER: "provider",
    Prices.SOURCE_LIST: "list",
}
PRICES = shape(
    {
        "input": about(NUMBER, "US dollars per million tokens."),
        "output": NUMBER,
        "long_prompts": about(
            null(shape({"above_tokens": COUNT, "input": NUMBER, "output": NUMBER})),
            "Prices of prompts above so many tokens; null where their length does not matter.",
        ),
        "batch_share": about(NUMBER, "Share of the prices that answers through the provider's batch API cost."),
        "source": about(
            null(enum(*_SOURCES.values())),
            "endpoints_file: the operator's own; provider: of its list of models; list: public list prices.",
        ),
        "as_of": about(null(STRING), "Day on which the provider listed them, YYYY-MM-DD; null for other sources."),
        "table_digest": about(null(STRING), "SHA-256 of the table of list prices; null for other sources."),
    },
    name="Prices",
)


def prices(known: Prices) -> dict[str, Any]:
    longer = known.long_prompts
    return {
        "input": known.input,
        "output": known.output,
        "long_prompts": {"above_tokens": longer.above_tokens, "input": longer.input, "output": longer.output}
        if known.HasField("long_prompts")
        else None,
        "batch_share": known.batch_share,
        "source": _SOURCES.get(known.source),
        "as_of": known.as_of or None,
        "table_digest": known.table_digest or None,
    }
