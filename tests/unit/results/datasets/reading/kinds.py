"""Rows as other projects' documentation has them, with values of our own."""

from __future__ import annotations

from typing import Any

_USER = {"role": "user", "content": "Which gas glows red?"}
_RIGHT = {"role": "assistant", "content": "Neon."}
_WRONG = {"role": "assistant", "content": "Iron."}
_ASKED = {"question": "Which gas glows red?", "answer": "B"}

KINDS: dict[str, dict[str, Any]] = {
    "alpaca": {"instruction": "Name the planet.", "input": "It has rings.", "output": "Saturn"},
    "llama_factory_preference": {"instruction": "Name it.", "input": "Rings.", "chosen": "Saturn", "rejected": "Mars"},
    "llama_factory_kto": {"instruction": "Name it.", "input": "", "output": "Mars", "kto_tag": False},
    "dolly": {"instruction": "Who?", "context": "Ann sang.", "response": "Ann", "category": "closed_qa"},
    "sharegpt": {"conversations": [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}], "tools": "[]"},
    "sharegpt_preference": {
        "conversations": [{"from": "human", "value": "2 + 2?"}],
        "chosen": {"from": "gpt", "value": "4"},
        "rejected": {"from": "gpt", "value": "5"},
    },
    "evals": {"input": [{"role": "system", "content": "One word."}, _USER], "ideal": ["neon", "Neon"]},
    "fine_tuning": {"prompt": "The sky is", "completion": " blue."},
    "fine_tuning_chat": {"messages": [_USER]},
    "openai_preference": {
        "input": {"messages": [_USER], "tools": [], "parallel_tool_calls": True},
        "preferred_output": [_RIGHT],
        "non_preferred_output": [_WRONG],
    },
    "trl_prompt_completion": {"prompt": [_USER], "completion": [_RIGHT]},
    "trl_unpaired": {"prompt": "The sky is", "completion": " green.", "label": False},
    "trl_preference": {"prompt": [_USER], "chosen": [_RIGHT], "rejected": [_WRONG]},
    "trl_implicit": {"chosen": [_USER, _RIGHT], "rejected": [_USER, _WRONG]},
    "anthropic_hh": {
        "chosen": "\n\nHuman: Red gas?\n\nAssistant: A guess?\n\nHuman: Yes.\n\nAssistant: Neon: it glows.",
        "rejected": "\n\nHuman: Red gas?\n\nAssistant: No.",
    },
    "orca_preference": {"system": "Be brief.", "question": "Red gas?", "chosen": "Neon", "rejected": "Iron"},
    "ultrafeedback": {
        "prompt": "Red gas?",
        "chosen": [_USER, _RIGHT],
        "rejected": [_USER, _WRONG],
        "messages": [_USER, _RIGHT],
        "score_chosen": 8.5,
    },
    "inspect": {"input": "Pick a gas.", "choices": ["iron", "neon"], "target": "B", "sandbox": None},
    "promptfoo": {"vars": {"question": "Red gas?"}, "assert": [{"type": "contains", "value": "neon"}]},
    "promptfoo_table": {"question": "Red gas?", "__expected": "icontains: neon"},
    "gsm8k": {"question": "How many?", "answer": "2 + 2 = 4\n#### 4"},
    "squad": {"context": "Ann sang.", "question": "Who?", "answers": {"text": ["Ann"], "answer_start": [0]}},
    "boolq": {"question": "did ann sing", "passage": "Ann sang.", "answer": True},
    "triviaqa": {"question": "Who?", "answer": {"value": "Ann", "aliases": ["Ann", "Anne"]}},
    "mmlu": {"question": "Which?", "subject": "gas", "choices": ["iron", "neon", "tin", "lead"], "answer": 1},
    "arc": {"question": "Which?", "choices": {"text": ["iron", "neon"], "label": ["1", "2"]}, "answerKey": "2"},
    "medqa": {"question": "Which?", "options": {"A": "iron", "B": "neon"}, "answer": "neon", "answer_idx": "B"},
    "lettered": _ASKED | {"A": "iron", "B": "neon", "C": "tin", "D": ""},
    "option_columns": _ASKED | {"option_a": "iron", "option_b": "neon"},
}
"""A row of each kind by a name."""
