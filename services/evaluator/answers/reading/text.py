"""A text of the answer's own: the rest of the line, without the marks around it. Pure."""

from __future__ import annotations

import re

from services.evaluator.answers.reading.layers import Found

_LATEX = re.compile(
    r"(?:\$|\\\(|\\\[)?\s{0,3}\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\{(?P<said>[^\n]{0,2000})\}\s{0,3}(?:\$|"
    r"\\\)|\\\])?"
)
_PLACEHOLDER = re.compile(
    r"<(?:text|number|answer|letter|label|[a-z-]{2,20}(?: [a-z-]{2,20}){0,4})>\.?|YYYY-MM-DD|"
    r"\[your [^\]\n]{1,40}\]|\[?(?:your|insert|"
    r"the) (?:final )?answer(?: here)?\]?\.?",
    re.IGNORECASE,
)
_AROUND = " \t\r\f\v\u00a0*`_"
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "<": ">", "«": "»", "「": "」"}
_SENTENCE_END = re.compile(r"(?<=[\w)\]\"'”’}]{3})[.!](?=\s+[A-Z])")
_FENCE = re.compile(r"\A\s*```[A-Za-z0-9_+-]{0,16}[ \t]*\n(?P<said>[^`]{1,4000}?)\n?[ \t]*```\s*\Z")
CAPTION = re.compile(
    r"[ \t>*_#-]{0,6}[A-Z][A-Za-z'’-]{1,20}(?:[ ][A-Za-z'’-]{1,20}){0,3}[*_]{0,2}:[*_]{0,2}[ \t]{1,4}(?=\S)"
)
_CODE = re.compile(r"[`]?([^`\n]{1,400})`[ ](?:because|since|as)\b")
_GOES_ON = re.compile(r"(?:is|was|remains|which)\b", re.IGNORECASE)
"""After "the final answer", a sentence and not the answer itself."""
_MOST_WHOLE = 400
_NOTHING_SAID = re.compile(
    r"(?:I['’]?m\b|I[ ](?:am|do|don['’]?t|can|cannot|can['’]t|could|would)\b|sorry\b|it[ ](?:isn['’]t|is[ ]not|"
    r"wasn['’]t|was[ ]not)\b|unknown\b|n/a\b|not[ ]\w|"
    r"either[ ]|neither\b|cannot[ ]|please\b|could[ ]you\b|can[ ]you\b|unclear\b|"
    r"there[ ](?:is|are)\b|end[ ]your[ ]reply|\.{2,}|…).*",
    re.IGNORECASE | re.DOTALL,
)
_SENTENCE = re.compile(
    r"\b(?:is|are|was|were|am|has|have|do|does|don['’]t|cannot|can['’]t|could|would|must|it|we|so|to|this|that|"
    r"they|you|he|she|not|need|will|should|then|now|finished|isn['’]t|wasn['’]t|takes?|gives?|I['’]m)\b",
    re.IGNORECASE,
)
_SAID_TO_BE = re.compile(
    r"(?:(?:It|That|This)(?:['’]s|[ ](?:is|was|would[ ]be|must[ ]be))"
    r"|(?:The|Its|His|Her|Their|Your)[ ][^.,!?\n]{1,60}?[ ](?:is|was|are|were))[ ]"
    r"(?!not\b|in\b|a[ ]\w+[ ]\w+[ ]\w+)(?P<said>(?:[^.!?\n]|\.(?=\S)){1,60}?)[.!]?"
)
_PARTED = re.compile(r"[\w)\]]{2}[.!?]\s+[A-Z]")
_BEGINS = re.compile(r"(?:So|Thus|Hence|Therefore|First|Then|Now|Next|Let)\b[ ,]")
_EITHER = re.compile(r"[\w'’-]{1,30}(?: \([^)\n]{1,60}\))? or (?:[\w'’-]{1,30}|[A-Z].{1,60})")
_PICTURES = re.compile(r"(?<=\w)[\s\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]+\Z")


class TextKind:
    """The rest of the line. `cut`: the token limit ended the text, so that a line at its very end may lack words."""

    def __init__(self, *, cut: bool = False) -> None:
        self._cut = cut

    def at(self, said: str, *, closed: bool, ends: bool) -> Found | None:
        if ends:
            return None
        text = said if closed else said.lstrip(_AROUND + "\n:")
        start = len(said) - len(text)
        first, newline, _ = text.partition("\n")
        if not closed and _GOES_ON.match(first):
            return None
        if first.strip().startswith("```") and newline:
            block = re.match(r"```[A-Za-z0-9_+-]{0,16}[ \t]*\n([^`\n]{1,2000})\n?[ \t]*```", text)
            return Found(block[1].strip(), start + block.end()) if block else None
        if self._cut and not newline and not closed:
            return None
        shown = re.sub(r"\\(?=[ {}_%$#&])", "", text) if closed else first
        answer = "" if _is_nothing(shown) else without_marks(shown)
        return Found(answer, start + len(shown)) if answer else None

    def sentence(self, said: str) -> Found | None:
        """The rest of the sentence: after "the answer is"."""
        text = said.lstrip(_AROUND + "\n:")
        first = text.partition("\n")[0]
        if self._cut and first == text:
            return None
        if (code := _CODE.match(text)) is not None:
            return Found(code[1], len(said) - len(text) + code.end())
        if (end := _SENTENCE_END.search(first)) is not None:
            first = first[: end.start()]
        answer = without_marks(first)
        return Found(answer, len(said) - len(text) + len(first)) if answer and not _is_nothing(first) else None

    def whole(self, text: str) -> Found | None:
        if (fenced := _FENCE.match(text)) is not None:
            text = fenced["said"]
        bare = text.strip(" \t\r\n\0")
        if (caption := CAPTION.match(bare)) is not None:
            bare = bare[caption.end() :]
        if "\n" not in bare:
            bare = bare.rpartition(" → ")[2]
        if not bare or "\n" in bare or len(bare) > _MOST_WHOLE or self._cut:
            return None
        if _is_nothing(bare) or bare.endswith("?"):
            return None
        if (said := _SAID_TO_BE.fullmatch(bare)) is not None:
            bare = said["said"]
        elif _is_sentence(bare):
            return None
        answer = without_marks(bare)
        return Found(answer, len(text)) if answer else None

    def first(self, text: str) -> Found | None:
        return None

    def only(self, sentence: str) -> Found | None:
        bold = re.findall(r"\*\*([^*\n]{1,200})\*\*", sentence)
        return (
            Found(without_marks(bold[0]), len(sentence))
            if len(bold) == 1 and not sentence.rstrip().endswith("?")
            else None
        )

    def shown(self, text: str) -> Found | None:
        """The only fenced code of a text, of one line."""
        blocks = re.findall(r"```[A-Za-z0-9_+-]{0,16}[ \t]*\n([^`\n]{1,2000})\n[ \t]*```", text)
        return Found(blocks[0].strip(), len(text)) if len(blocks) == 1 == text.count("```") // 2 else None


def _is_sentence(text: str) -> bool:
    """Whether it says more than an answer does."""
    if _PARTED.search(text) or text.endswith((",", ":")) or _BEGINS.match(text):
        return True
    words = len(text.split())
    if words > 6 and text[0].isupper() and text[-1] in ".!" and text.count(",") < words - 2:
        return True
    return words > 3 and (text[0].isupper() or text[-1] in ".!") and _SENTENCE.search(text) is not None


def _is_nothing(text: str) -> bool:
    """Whether it is a placeholder of the prompt, or says that there is no answer."""
    bare = text.strip(_AROUND + "\n")
    if re.search(r"\?\s+(?:or|maybe|perhaps)\b", bare, re.IGNORECASE):
        return True
    return (
        _EITHER.fullmatch(bare.rstrip(".")) is not None
        or _PLACEHOLDER.fullmatch(bare) is not None
        or _NOTHING_SAID.fullmatch(bare) is not None
    )


def without_marks(text: str) -> str:
    """The text without white space, Markdown and LaTeX around it, without quotation marks about all of it, and without
    the full stop of the sentence."""
    bare = text.strip(_AROUND + "\n")
    bare = _PICTURES.sub("", bare)
    while (wrapped := _LATEX.fullmatch(bare.rstrip("."))) is not None:
        bare = re.sub(r"\\(?=[ {}_%$#&])", "", wrapped["said"]).strip(_AROUND)
    if bare.endswith(".") and not bare.endswith(".."):
        bare = bare[:-1].rstrip(_AROUND)
    if len(bare) > 1 and bare[0] == "$" == bare[-1] and bare.count("$") == 2:
        bare = bare[1:-1]
    if len(bare) > 1 and _QUOTES.get(bare[0]) == bare[-1] and bare.count(bare[-1]) <= 2:
        bare = bare[1:-1]
    return bare.strip(_AROUND)
