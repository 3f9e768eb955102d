"""Members that many answers have, each described once; what a model's tokens cost, and who says so."""

from __future__ import annotations

from typing import Any

from services.gateway.fields.schema import BOOLEAN, COUNT, NUMBER, STRING, TIME, UUID, about, array, enum, null, shape
from services.words.enums import MODES, PRICE_SOURCES, PRIORITIES, READINGS, WEIGHTINGS
from services.words.jobs import PHASES, STATUSES
from touchstone.v1.endpoint_pb2 import Prices

JOB_ID = about(UUID, "The job's id.")
MODEL = about(STRING, "The model's id at its endpoint.")
PROVIDER = about(STRING, "The endpoint's name.")
OWNER = about(STRING, "The user who created it.")
PROJECT_ID = about(COUNT, "The project's number. 0 means none.")
CREATED_AT = about(null(TIME), "When it was created.")
COMPLETED_AT = about(null(TIME), "When the job ended. null before that.")
STATUS = about(enum(*STATUSES), "The job's state.")
PHASE = about(
    enum(*PHASES),
    "The status as pages show it: `scoring` instead of `running` once all items are done, until the metrics are there.",
)
PRIORITY = about(
    null(enum(*PRIORITIES)), "The job's place in the queue. Within one priority, first come, first served."
)
MODE = about(enum(*MODES), "Whether the model wrote its answers or each choice was scored.")
SHOTS = about(COUNT, "The number of worked examples in each prompt.")
REPEATS = about(COUNT, "The number of answers per item.")
READING = enum(*READINGS)
WEIGHTING = null(enum(*WEIGHTINGS))
SUITE = about(STRING, "The suite, or the id of a dataset.")
TASK = about(STRING, "The task's name.")
METRIC_NAME = about(STRING, "The metric's name.")
BASELINE = about(BOOLEAN, "Whether the model is a bundled baseline.")
SUBSET = about(BOOLEAN, "Whether there are fewer items than in the published suite.")
PUBLISHED_ITEMS = about(null(COUNT), "The number of items in the published suite. null if unknown.")
ITEM_SET = about(STRING, "A hash of the items and their scoring. Runs rank only within one item set.")
CONFIGURATION = about(STRING, "A hash of model, digest, endpoint, sampling, template, mode, shots and prompts.")
CONFIGURATION_NAME = about(null(STRING), "The configuration's name.")
ALIAS = about(null(STRING), 'A role that moves between configurations of a suite, such as "prod".')
NOT_RANKED_REASON = about(STRING, "Why the run has no rank.")
REPEAT = about(COUNT, "Which of the item's answers this is, from 0.")
ITEM = about(COUNT, "The row in the published split, from 0.")
INPUT_TOKENS = about(null(COUNT), "Tokens of the prompts. null if the provider does not report them.")
OUTPUT_TOKENS = about(null(COUNT), "Generated tokens. null if the provider does not report them.")
INPUT_UNTOLD = about(COUNT, "Answers whose provider does not report the tokens of the prompt.")
OUTPUT_UNTOLD = about(COUNT, "Answers whose provider does not report the generated tokens.")
COST_USD = about(null(NUMBER), "The cost in US dollars. null if no price is known.")
MESSAGE = about(STRING, "What was done, as a sentence.")
TASKS = about(array(STRING), "The tasks. An empty list means all.")
TOOL_CALLS = about(
    array(
        shape(
            {
                "id": about(STRING, "By which the result names the call. Empty if the provider gives none."),
                "type": about(enum("function"), "`function`."),
                "function": about(
                    shape(
                        {
                            "name": about(STRING, "The function's name."),
                            "arguments": about(STRING, "The arguments as JSON, as the model wrote them."),
                        },
                        name="CalledFunction",
                    ),
                    "What is called.",
                ),
            },
            name="ToolCall",
        )
    ),
    "The tools that are called, in the model's order. Absent if there are none.",
)


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
