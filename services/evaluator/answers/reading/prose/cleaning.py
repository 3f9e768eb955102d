"""What is taken off a response before an answer is looked for. Pure; linear in the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_REASONING = re.compile(
    r"<(?P<xml>/?)(?:think|thinking|thought|reasoning|seed:think)>|\[(?P<square>/?)think\]|◁(?P<arrow>/?)think▷",
    re.IGNORECASE,
)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_NEXT_QUESTION = (
    r"<\|(?:im_start|im_end|eot_id|start_header_id|end|end_of_text|endoftext)\|>|</s>|<(?:start|end)_of_turn>"
    r"|^(?:now[ ,]{1,2})?(?:try|consider|solve)[ ](?:this|another|the[ ]next|one[ ]more)\b"
    r"|^[ \t#*]{0,8}(?:(?:next[ ])?question|q|user|human|example(?:[ \t]\d{1,4})?)[ \t*]{0,4}:"
)
_WIDE = {"\u3000": " ", "。": ".", "、": ",", **dict.fromkeys("✅✔☑👉", "✓"), "✓": "✓"}
_OWN_TURN = re.compile(
    r"\A\s*(?:<\|im_start\|>assistant|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model|"
    r"<\|assistant\|>)\s*"
)
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(?P<tag>s|del|strike)>[^<\n]{1,200}</(?P=tag)>")
_BOX = re.compile(r"^([ \t]*[-*] )\[([ xX])\][ ]?", re.MULTILINE)
"""A box of a list, ticked or not."""
_POWER = re.compile(r"10([⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_DECIMAL_COMMA = re.compile(
    r"\b(?:der|das|ist|sind|hat|haben|ein|eine|und|mit|beträgt|also|el|los|las|una|es|por|tiene|hay|il|gli|è|sono|della|"
    r"het|een|zijn|heeft|são|tem|uma|há|os)\b",
    re.IGNORECASE,
)
_DECIMAL_POINT = re.compile(r"\b(?:the|is|are|of|and|to|has|have|with|that|this|we|it)\b|\d\.\d{1,2}\b", re.IGNORECASE)
_GROUPED = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:\.\d{3})+(?![\d.]*\d)")
_COMMA = re.compile(r"(?<![\w.,])(\d+),(\d+)(?![,\d]*\d)")
_NO_PART = ("So", "Me")
"""Categories of Unicode: emoji and frames around a digit."""


def strip_reasoning(text: str) -> str:
    """The text without <think>…</think> and its like. An unopened closing tag ends reasoning, an unclosed one hides
    all that follows it."""
    text = _OWN_TURN.sub("", text, count=1)
    final = text.rfind(_FINAL_CHANNEL)
    if final >= 0:
        text = text[final + len(_FINAL_CHANNEL) :]
    kept: list[str] = []
    start, inside = 0, False
    for tag in _REASONING.finditer(text):
        closing = "/" in (tag["xml"], tag["square"], tag["arrow"])
        if closing:
            # A closing tag without its opening: the chat template put that into the prompt.
            if not inside:
                kept.clear()
            start, inside = tag.end(), False
        elif not inside:
            kept.append(text[start : tag.start()])
            inside = True
    if not inside:
        kept.append(text[start:])
    return "".join(kept)


def narrow(text: str) -> str:
    """Letters, digits and signs of full width, and mathematical alphabets, as those of ASCII; pictures as blanks;
    without what is struck through."""
    if "~~" in text or "</" in text:
        text = _STRUCK.sub(" ", text)
    text = text.replace("\\ ", " ").replace("\\$", "$")
    if "[ ]" in text:
        text = _BOX.sub(lambda found: found[1] if found[2] == " " else f"{found[1]}✓ ", text)
    if text.isascii():
        return text
    return "".join(map(_narrow, _POWER.sub(lambda found: f"10^{found[1].translate(_RAISED)}", text)))


def with_decimal_points(text: str) -> str:
    """The numbers of a text in a language that writes 1.440 for a thousand and more, and 2,5 for two and a half, as
    English writes them."""
    if len(set(map(str.lower, _DECIMAL_COMMA.findall(text)))) < 2 or _DECIMAL_POINT.search(text):
        return text
    return _COMMA.sub(r"\1.\2", _GROUPED.sub(lambda found: found[0].replace(".", ""), text))


def _narrow(character: str) -> str:
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if "\U0001d400" <= character <= "\U0001d7ff" or "\u24b6" <= character <= "\u24e9":
        return unicodedata.normalize("NFKC", character)
    if character in _WIDE:
        return _WIDE[character]
    if character in "°№":
        return character
    return " " if unicodedata.category(character) in _NO_PART or "\ufe00" <= character <= "\ufe0f" else character


def parts_pattern(captions: Sequence[str]) -> re.Pattern[str]:
    """Where a model goes on to invent a next question, or repeats the prompt's lines with these captions."""
    lines = "".join(rf"|^[ \t#*]{{0,8}}{re.escape(caption)}[ \t*]{{0,4}}:" for caption in captions)
    return re.compile(_NEXT_QUESTION + lines, re.IGNORECASE | re.MULTILINE)
