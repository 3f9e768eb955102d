"""Rows of our own in the schemas of the data sets beyond GLUE: invented texts under the Hub's column names.

The texts are awkward on purpose: blanks at the ends, doubled blanks, missing full stops, letters of several bytes,
unequal numbers of options, answers named twice. Rows of a split differ from each other.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from services.evaluator.tasks.medical import TEST_IDS

Row = dict[str, Any]
Make = Callable[[random.Random, int], Row]

_PEOPLE = ("Ada", "Boris", "Chiara", "Deniz", "Émeka", "Freya", "Gorän", "Hana")
_THINGS = ("kettle", "ladder", "violin", "compass", "lantern", "bicycle", "telescope", "anvil")
_PLACES = ("harbour", "orchard", "attic", "workshop", "station", "greenhouse")
_DEEDS = ("mended", "painted", "sold", "found", "carried", "borrowed")
_ENDS = (".", "", " .", "!", ". ", "…")
_PUBMEDQA_TEST = sorted(TEST_IDS)
_COUNTS = ("two", "three", "seven", "eleven", "fourteen")


def write(root: Path, dataset: str, config: str, split: str, count: int) -> Path:
    """Writes `count` rows of a split into a data mirror and returns the file."""
    path = root / dataset / config / f"{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows(dataset, config, split, count)))
    return path


def rows(dataset: str, config: str, split: str, count: int) -> list[Row]:
    """The same rows at each call. `config` counts only where a data set has several schemas."""
    make = MAKERS.get((dataset, config)) or MAKERS[dataset, ""]
    chance = random.Random(f"{dataset}/{config}/{split}")
    return [make(chance, index) for index in range(count)]


def _pick(chance: random.Random, words: Sequence[str], count: int) -> list[str]:
    return chance.sample(words, count)


def _line(chance: random.Random, index: int) -> str:
    """A sentence, with some end or none; no two indexes give the same."""
    person, thing, place = chance.choice(_PEOPLE), chance.choice(_THINGS), chance.choice(_PLACES)
    return f"{person} {chance.choice(_DEEDS)} the {thing} in the {place} on day {index + 1}{chance.choice(_ENDS)}"


# -- SuperGLUE -------------------------------------------------------------------------------------------------


def _boolq(chance: random.Random, index: int) -> Row:
    thing, place = chance.choice(_THINGS), chance.choice(_PLACES)
    passage = f"{thing.title()} (history) --  {_line(chance, index)} {_line(chance, index)}"
    question = f"did the {thing} stay in the {place}{chance.choice(('', '', '?'))}"
    return {"question": question, "passage": passage, "idx": index, "label": index % 2}


def _cb(chance: random.Random, index: int) -> Row:
    person, thing = chance.choice(_PEOPLE), chance.choice(_THINGS)
    premise = f"A: {_line(chance, index)} B: Do you think {person} has the {thing}? A:  I don't know"
    return {"premise": premise, "hypothesis": f"{person} has the {thing}", "idx": index, "label": index % 3}


def _copa(chance: random.Random, index: int) -> Row:
    first, second = (f"{_line(chance, index).rstrip(' .!…')}." for _ in range(2))
    return {
        "premise": f"{chance.choice(('', ' '))}{_line(chance, index).rstrip(' .!…')}.",
        "choice1": f"The {chance.choice(_THINGS)} fell before {first}",
        "choice2": f"É{second[1:]}" if index % 4 == 0 else second,
        "question": ("cause", "effect")[index % 2],
        "idx": index,
        "label": chance.randrange(2),
    }


def _multirc(chance: random.Random, index: int) -> Row:
    """Two paragraphs' worth of questions: three answers to a question, two questions to a paragraph."""
    question = index // 3
    told = random.Random(question // 2)
    return {
        "paragraph": " ".join(_line(told, place) for place in range(3)),
        "question": f"Who {told.choice(_DEEDS)} what on day {question + 1}?",
        "answer": f"{chance.choice(_PEOPLE)} and the {chance.choice(_THINGS)}{chance.choice(_ENDS)}",
        "idx": {"paragraph": question // 2, "question": question, "answer": index},
        "label": (index + question) % 2,
    }


def _record(chance: random.Random, index: int) -> Row:
    people = _pick(chance, _PEOPLE, 3 + index % 3)
    people[0] = f"The {people[0]} Society"
    told = f"{people[0]} met {people[1]} at the {chance.choice(_PLACES)} on day {index + 1}"
    highlights = (told, f"{people[2]} was not there", f"Nobody saw the {chance.choice(_THINGS)}")
    return {
        "passage": "\n@highlight\n".join(highlights),
        "query": f"On that day, @placeholder {chance.choice(_DEEDS)} a {chance.choice(_THINGS)} of {people[2]}.",
        "entities": [*people, people[1]],
        "entity_spans": {"text": [], "start": [], "end": []},
        "answers": [people[0], people[0].upper()] if index % 2 else [people[1], people[1]],
        "idx": {"passage": index, "query": index},
    }


def _pair(first: str, second: str) -> Make:
    def make(chance: random.Random, index: int) -> Row:
        claim = f"{chance.choice(_PEOPLE)} owns a {chance.choice(_THINGS)}{chance.choice(_ENDS)}"
        return {first: _line(chance, index), second: claim, "idx": index, "label": chance.randrange(2)}

    return make


def _wic(chance: random.Random, index: int) -> Row:
    texts = [f"The {place} has a light of {count}." for place, count in zip(_PLACES, _COUNTS, strict=False)]
    texts += [f"On day {index + 1} the lights were é{deed}" for deed in _DEEDS]
    first, second = _pick(chance, texts, 2)
    starts = [text.index("light") for text in (first, second)]
    ends = [start + 5 + (text[start + 5] == "s") for start, text in zip(starts, (first, second), strict=True)]
    return {
        "word": "light",
        "sentence1": first,
        "sentence2": second,
        "start1": starts[0],
        "start2": starts[1],
        "end1": ends[0],
        "end2": ends[1],
        "idx": index,
        "label": chance.randrange(2),
    }


def _wsc(chance: random.Random, index: int) -> Row:
    person, other = _pick(chance, _PEOPLE, 2)
    thing = chance.choice(_THINGS)
    texts = (
        (f"{person} gave {other} the {thing} , because he did n't need it any more .", 7, "he"),
        (f'" {person} \'s {thing} is new , " said {other} , and he left on day {index + 1}.', 12, "he"),
        (f"It was the {thing} that {person} mended before {other} ( a friend ) came .", 0, "It"),
        (f"{person}  saw {other} and she waved .", 4, "she"),
    )
    text, place, pronoun = texts[index % len(texts)]
    span = {"span1_index": 0, "span2_index": place, "span1_text": person, "span2_text": pronoun}
    return {"text": text, **span, "idx": index, "label": chance.randrange(2)}


def _axg(chance: random.Random, index: int) -> Row:
    """Neighbours differ in the pronoun alone."""
    told = random.Random(index // 2)
    pronoun = ("he", "she")[index % 2]
    premise = f"The {told.choice(_THINGS)} was sold because {pronoun} needed {told.choice(_COUNTS)} coins."
    claim = f"The seller of day {index // 2 + 1} needed coins."
    return {"premise": premise, "hypothesis": claim, "idx": index, "label": told.randrange(2)}


# -- questions with options ------------------------------------------------------------------------------------


def _options(chance: random.Random, count: int) -> list[str]:
    """Different options of unequal length, some with letters of several bytes."""
    things = _pick(chance, _THINGS, count) if count <= len(_THINGS) else [*_THINGS, "sieve", "quill"][:count]
    forms = ("the {}", "{} — très léger", "a {}, or something quite like it,", "{}", "the {} of the harbour")
    return [chance.choice(forms).format(thing) for thing in things]


def _mmlu(chance: random.Random, index: int) -> Row:
    question = f"{chance.choice(('', '  '))}{_line(chance, index)} Which one was it?{chance.choice(('', ' ', chr(10)))}"
    return {"question": question, "subject": "", "choices": _options(chance, 4), "answer": chance.randrange(4)}


def _medqa(chance: random.Random, index: int) -> Row:
    right, options = "ABCD"[chance.randrange(4)], dict(zip("ABCD", _options(chance, 4), strict=True))
    return {
        "question": f"{_line(chance, index)} Which is it?",
        "answer": options[right],
        "options": options,
        "meta_info": "step1",
        "answer_idx": right,
        "metamap_phrases": [],
    }


def _medmcqa(chance: random.Random, index: int) -> Row:
    options = dict(zip(("opa", "opb", "opc", "opd"), _options(chance, 4), strict=True))
    rest = {"choice_type": "single", "exp": None, "subject_name": "Anatomy", "topic_name": None}
    question = f"{_line(chance, index)} Which is it:-"
    return {"id": f"row-{index}", "question": question, **options, "cop": chance.randrange(4), **rest}


def _pubmedqa(chance: random.Random, index: int) -> Row:
    decision = ("yes", "no", "maybe")[index % 3]
    return {
        # Every other row is one of the official test items.
        "pubid": _PUBMEDQA_TEST[index // 2] if index % 2 else 1000 + index,
        "question": f"Does the {chance.choice(_THINGS)} of day {index + 1} last?",
        "context": {
            "contexts": [_line(chance, index), _line(chance, index)],
            "labels": ["BACKGROUND", "RESULTS"],
            "meshes": ["Things"],
            "reasoning_required_pred": ["y"],
            "reasoning_free_pred": ["y"],
        },
        "long_answer": f"UNSEEN CONCLUSION {index}",
        "final_decision": decision,
    }


def _arc(chance: random.Random, index: int) -> Row:
    count = (4, 4, 5, 3)[index % 4]
    labels = list("ABCDE" if index % 3 else "12345")[:count]
    return {
        "id": f"row_{index}",
        "question": f"{_line(chance, index)} What was it?",
        "choices": {"text": _options(chance, count), "label": labels},
        "answerKey": chance.choice(labels),
    }


def _hellaswag(chance: random.Random, index: int) -> Row:
    first, second = _line(chance, index), f"then {chance.choice(_PEOPLE)}"
    ends = [f"{deed} it [step] and  left [title] for the {place}." for deed, place in zip(_DEEDS, _PLACES, strict=True)]
    title = f"{chance.choice(('Mending', '[header] How to mend'))} a {chance.choice(_THINGS)}"
    return {
        "ind": index,
        "activity_label": title,
        "ctx_a": f"{first} [title] Wait.",
        "ctx_b": second if index % 3 else "",
        "ctx": f"{first} {second}",
        "endings": _pick(chance, ends, 4),
        "source_id": f"row~{index}",
        "split": "val",
        "split_type": "indomain",
        "label": str(chance.randrange(4)),
    }


def _mmlu_pro(chance: random.Random, index: int) -> Row:
    options = _options(chance, (10, 4, 7)[index % 3])
    right = chance.randrange(len(options))
    letter = "ABCDEFGHIJ"[right]
    return {
        "question_id": index,
        "question": f"{_line(chance, index)} Which one?",
        "options": options,
        "answer": letter,
        "answer_index": right,
        "cot_content": f"A: Let's think step by step. Only one is {options[right]}. The answer is ({letter}).",
        "category": MMLU_PRO_CATEGORIES[index % 14],
        "src": "ours",
    }


MMLU_PRO_CATEGORIES = (
    *("biology", "business", "chemistry", "computer science", "economics", "engineering", "health"),
    *("history", "law", "math", "other", "philosophy", "physics", "psychology"),
)


# -- written answers -------------------------------------------------------------------------------------------


def _gsm8k(chance: random.Random, index: int) -> Row:
    price, count = chance.randrange(100, 900), index + 2
    total = price * count
    steps = f"Each costs ${price}.\n{count} cost {price}*{count}=<<{price}*{count}={total}>>{total} dollars."
    question = f"{chance.choice(_PEOPLE)} buys {count} items at ${price} each. What do they cost?"
    return {"question": question, "answer": f"{steps}\n#### {total:,}"}


def _bbh(form: str) -> Make:
    def make(chance: random.Random, index: int) -> Row:
        if form == "choice":
            options = "\n".join(f"({letter}) {text}" for letter, text in zip("ABC", _options(chance, 3), strict=True))
            return {"input": f"{_line(chance, index)}\nOptions:\n{options}", "target": f"({'ABC'[index % 3]})"}
        if form == "words":
            words = _pick(chance, _THINGS, 4)
            return {"input": f"Sort: List: {' '.join(words)} {index}", "target": " ".join(sorted(words))}
        if form == "number":
            return {"input": f"(({index} + 3) * -2) =", "target": str((index + 3) * -2)}
        if form == "brackets":
            return {"input": f"Complete the sequence {index}. Input: [ {{ (", "target": ") } ]"}
        yes, no = form.split("/")
        return {"input": f"{_line(chance, index)} Is it so?", "target": (yes, no)[index % 2]}

    return make


MAKERS: dict[tuple[str, str], Make] = {
    ("aps/super_glue", "boolq"): _boolq,
    ("aps/super_glue", "cb"): _cb,
    ("aps/super_glue", "copa"): _copa,
    ("aps/super_glue", "multirc"): _multirc,
    ("aps/super_glue", "record"): _record,
    ("aps/super_glue", "rte"): _pair("premise", "hypothesis"),
    ("aps/super_glue", "wic"): _wic,
    ("aps/super_glue", "wsc.fixed"): _wsc,
    ("aps/super_glue", "axb"): _pair("sentence1", "sentence2"),
    ("aps/super_glue", "axg"): _axg,
    ("cais/mmlu", ""): _mmlu,
    ("GBaker/MedQA-USMLE-4-options", ""): _medqa,
    ("openlifescienceai/medmcqa", ""): _medmcqa,
    ("qiaojin/PubMedQA", ""): _pubmedqa,
    ("allenai/ai2_arc", ""): _arc,
    ("Rowan/hellaswag", ""): _hellaswag,
    ("TIGER-Lab/MMLU-Pro", ""): _mmlu_pro,
    ("openai/gsm8k", ""): _gsm8k,
    ("SaylorTwift/bbh", ""): _bbh("choice"),
    ("SaylorTwift/bbh", "boolean_expressions"): _bbh("True/False"),
    ("SaylorTwift/bbh", "causal_judgement"): _bbh("Yes/No"),
    ("SaylorTwift/bbh", "dyck_languages"): _bbh("brackets"),
    ("SaylorTwift/bbh", "formal_fallacies"): _bbh("valid/invalid"),
    ("SaylorTwift/bbh", "multistep_arithmetic_two"): _bbh("number"),
    ("SaylorTwift/bbh", "navigate"): _bbh("Yes/No"),
    ("SaylorTwift/bbh", "object_counting"): _bbh("number"),
    ("SaylorTwift/bbh", "sports_understanding"): _bbh("yes/no"),
    ("SaylorTwift/bbh", "web_of_lies"): _bbh("Yes/No"),
    ("SaylorTwift/bbh", "word_sorting"): _bbh("words"),
}
