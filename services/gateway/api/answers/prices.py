"""What a model's tokens cost and who says so, as answers give it."""

from __future__ import annotations

from typing import Any

from services.gateway.fields.schema import COUNT, NUMBER, STRING, about, enum, null, shape
from services.words.enums import PRICE_SOURCES
from touchstone.v1.endpoint_pb2 import Prices

_INPUT = about(NUMBER, "US dollars per million tokens of prompts.")
_OUTPUT = about(NUMBER, "US dollars per million generated tokens.")
PRICES = shape(
    {
        "input": _INPUT,
        "output": _OUTPUT,
        "long_prompts": about(
            null(
                shape(
                    {
                        "above_tokens": about(COUNT, "Prompts with more tokens have these prices."),
                        "input": _INPUT,
                        "output": _OUTPUT,
                    }
                )
            ),
            "The prices of long prompts. null if the length does not matter.",
        ),
        "batch_share": about(NUMBER, "What answers through the provider's batch API cost, as a share of the prices."),
        "source": about(
            null(enum(*PRICE_SOURCES)),
            "The source: the operator's endpoints file, the provider's list of models, or the table of list prices.",
        ),
        "as_of": about(null(STRING), "The date of list prices, YYYY-MM-DD. null for other sources."),
        "table_digest": about(null(STRING), "The SHA-256 of the table of list prices. null for other sources."),
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
        "source": PRICE_SOURCES.of(known.source) or None,
        "as_of": known.as_of or None,
        "table_digest": known.table_digest or None,
    }
