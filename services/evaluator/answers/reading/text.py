"""A text of the answer's own: the rest of the line, without the marks around it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
_ANSWERED = re.compile(r"A:[ \t]{1,4}(?=\S)")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_CHINESE_IS = re.compile(r"是(?P<said>[^，。是\n]{1,20})。?\Z")
_CODE = re.compile(r"[`]?([^`\n]{1,400})`[ ](?:because|since|as)\b")
_GOES_ON = re.compile(r"(?:is|was|remains|which)\b", re.IGNORECASE)
"""After "the final answer", a sentence and not the answer itself."""
_MOST_WHOLE = 400
_NOTHING_SAID = re.compile(
    r"(?:I['’]?m\b|I[ ](?:am|do|don['’]?t|can|cannot|can['’]t|could|would)\b|sorry\b|it[ ](?:isn['’]t|is[ ]not|"
    r"wasn['’]t|was[ ]not)\b|unknown\b|n/a\b|not[ ]\w|"
    r"either[ ]|neither\b|cannot[ ]|please\b|could[ ]you\b|can[ ]you\b|unclear\b|"
    r"(?:the[ ])?(?:passage|text|article|context|question|story)[ ](?:does|did)(?:n['’]t|[ ]not)[ ]\w|"
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
    r"(?!not\b|in\b|(?:located|situated|found)[ ](?!in\b)|a[ ]\w+[ ]\w+[ ]\w+)"
    r"(?:(?:called|named|(?:known|given|listed)[ ]as|(?:located|situated|found)[ ]in)[ ])?"
    r"(?P<said>(?:[^.!?\n]|\.(?=\S)){1,60}?)[.!]?"
)
_PARTED = re.compile(r"[\w)\]]{2}[.!?]\s+[A-Z]")
_BEGINS = re.compile(r"(?:So|Thus|Hence|Therefore|First|Then|Now|Next|Let)\b[ ,]")
_EITHER = re.compile(r"[\w'’-]{1,30}(?: \([^)\n]{1,60}\))? or (?:[\w'’-]{1,30}|[A-Z].{1,60})")
_APPOSED = re.compile(
    r", (?:which|who|whom|whose|where|known as)\b|,? (?:because|since|also known|formerly)\b|"
    r", (?:from|an?|the|in|on|at|located|situated|born|named|not|with|after|when|one|meaning|capital|as|"
    r"[a-z]{3,}ing)\b|"
    r",? and (?:it|he|she|they|was|is|published|released)\b| [–—] | \((?=[\w~])[^()\n]{2,200}\)\W*\Z"
)
"""Where a name goes on to what is told of it."""
_ALSO = re.compile(
    r"[ ]\((?:also|formerly|or|aka|a\.k\.a\.|known as|spelled|spelt|pronounced|i\.e\.|"
    r"abbreviated)\b[^()\n]*\)\W*\Z"
)
_VERB = re.compile(r"(?<=\S )(?:[a-z]{3,}ed|wrote|won|made|built|led|held|became|began|took|sang|found|gave|has|had)\b")
_SUBJECT_VERB = re.compile(r"(?:The|It|He|She|They|His|Her|Its|Their|This)(?: \w+){1,4}? [a-z]{3,}(?<![su])s ")
_BY = re.compile(
    r"(?:\A|\b(?:was|is|were|are|been)[ ](?:\w{1,15}ly[ ]|first[ ])?)"
    r"(?:[a-z]{3,}ed|written|drawn|sung|made|built|won|led|found)[ ]by[ ]"
)
_SUBJECT = re.compile(
    r"\A(?:So,? |Therefore,? |Thus,? |Hence,? )?(?P<said>[\"“][^\"”\n]{1,60}[\"”]|"
    r"[A-Z][\w'’.-]*(?:[ ](?:of|the|van|von|de|da|del|[A-Z][\w'’.-]*)){0,4})"
    r"[ ](?:is|was|would be)[ ](?:the|called)\b"
)
"""A name that the rest of its sentence describes."""
_WHERE = re.compile(
    r"[ ](?:in|on|around|at)[ ](?:\w+[ ])?\d{3,4}\b.*| (?:in|on) (?:January|February|March|April|May|June|July|August|"
    r"September|October|November|December)\b.*"
)
_WITHDRAWS = re.compile(
    r"\b(?:but|however|actually|wait|though|although|instead|sure|answer|maybe|"
    r"perhaps|might|may|could|or)\b|\?",
    re.IGNORECASE,
)
_STANDS_FOR = re.compile(
    r"\A[^,.;\n]{1,40}? (?:stands for|means|refers to|translates (?:to|as)) [\"“]?(?P<said>[^,.;\"”\n]{2,60})"
)
_PLACED = re.compile(
    r"\A(?:The|It|it|This|That|His|Her|Their)\b[^,;]{0,80}?[ ]"
    r"(?:(?:was|were|is|are)[ ](?:\w+ly[ ])?[a-z]{2,}(?:ed|en|lt|nt|ld|wn|rn|pt|ut)|ended(?: up)?(?: taking place)?|"
    r"falls|fell|took place|takes place|happened|lies|comes|came|began|started|occurred)"
    r"(?P<at>[ ](?:in|on|at|from|to)[ ])(?:the )?(?P<said>[A-Z0-9][^,.;()]{0,40})[.!]?\Z"
)
_BASED = re.compile(r"\A(?:Based on|According to|In) [^,]{1,60}, ")
_FURTHER_PLACE = re.compile(r" (?:in|on|at|from|by|after|before|to|with|during|and) ")
_GIVES = re.compile(r"\b(?:gives|yields|makes|spells|becomes|results in|get) [\"“](?P<said>[^\"“”\n]{1,60})[\"”]\W*\Z")
_BUT_IT = re.compile(r", but (?P<said>(?:the|it) .+)\Z")
_LAST_SAID = re.compile(r"\A(?:So|Therefore|Thus|Hence|Consequently)\b,? (?P<said>.+)")
_NOT_NAMED = re.compile(
    r"(?:[a-z]{3,}ed|[a-z]+ing|based|made|written|for|by|to|with|from|of|about|when|why|how|that|because|more|very|quite|"
    r"not|also|one of|part of|true|false|correct|unclear|unknown|an? )\b",
)
"""With this what is said of the subject is no name."""
_THAT_IS = re.compile(
    r"\A(?:that[ ])?(?:['’]s|(?:it|this|that|he|she)(?:['’]s|[ ](?:is|was))|is|was|"
    r"(?:the[ ])?[a-z][a-z ]{0,40}? (?:is|was))[ ]"
)
_PRONOUNS = ("It", "That", "This", "He", "She", "They", "There", "The", "What", "Which", "Who", "Here")
_DESCRIBED = re.compile(r"\A(?:the )?(?:(?<=the )(?:[a-z-]+ ){1,3}(?=[A-Z]))?")
"""What stands before a name: "the sea nymph"."""
_SYMBOLS = re.compile(r"\A[^\w\"“'(\[<{]+")
_NAME_WORDS = 6
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
        answer = "" if _is_nothing(shown) else without_marks(_ALSO.sub("", shown))
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
        answer = "" if _is_nothing(first) else without_marks(_told(first))
        return Found(answer, len(said) - len(text) + len(first)) if answer else None

    def whole(self, text: str) -> Found | None:
        if (fenced := _FENCE.match(text)) is not None:
            text = fenced["said"]
        bare = text.strip(" \t\r\n\0")
        if (caption := CAPTION.match(bare) or _ANSWERED.match(bare)) is not None:
            bare = bare[caption.end() :]
        if "\n" not in bare:
            bare = bare.rpartition(" → ")[2]
        if (chinese := _CHINESE_IS.search(bare)) is not None:
            bare = chinese["said"]
        if bare.startswith("{") and bare.endswith("}") and '":' in bare:
            return None
        if not bare or "\n" in bare or len(bare) > _MOST_WHOLE or self._cut:
            return None
        if _is_nothing(bare) or bare.endswith("?"):
            return None
        if said := _stood_for(bare) or _said_to_be(bare):
            if _is_nothing(said):
                return None
            bold = _BOLD.findall(bare)
            if len(bold) == 1 and bold[0] not in said and said not in bold[0]:
                # "It is the mug, which is **red**."
                return None
            bare = said
        elif _is_sentence(bare):
            return None
        else:
            bare = _name(bare) or bare
        answer = without_marks(bare)
        return Found(answer, len(text)) if answer else None

    def first(self, text: str) -> Found | None:
        return None

    def claimed(self, sentences: Sequence[str]) -> Found | None:
        """The name that a sentence gives, where the others only tell of it."""
        if any(map(_is_nothing, sentences)):
            return None
        if (gives := _GIVES.search(sentences[-1])) is not None:
            return Found(gives["said"], len(sentences[0]))
        concluded = _LAST_SAID.match(sentences[-1]) or _BUT_IT.search(sentences[-1])
        said = concluded["said"] if concluded is not None else sentences[0]
        others = sentences[1:] if concluded is None else ()
        if (concluded is None and any(map(_WITHDRAWS.search, sentences))) or any(
            _said_to_be(each) or _subject(each) for each in others
        ):
            return None
        answer = without_marks(_named(said[:1].upper() + said[1:]))
        return Found(answer, len(sentences[0])) if re.search(r"\w\w", answer) else None

    def only(self, sentence: str) -> Found | None:
        bold = re.findall(r"\*\*([^*\n]{1,200})\*\*", sentence)
        return (
            Found(without_marks(bold[0]), len(sentence))
            if len(bold) == 1 and not sentence.rstrip().endswith("?") and not bold[0].endswith(":")
            else None
        )

    def shown(self, text: str) -> Found | None:
        """The only fenced code of a text, of one line."""
        blocks = re.findall(r"```[A-Za-z0-9_+-]{0,16}[ \t]*\n([^`\n]{1,2000})\n[ \t]*```", text)
        return Found(blocks[0].strip(), len(text)) if len(blocks) == 1 == text.count("```") // 2 else None


def _said_to_be(sentence: str) -> str:
    """What a sentence says that it, or its subject, is: "It was Ada", "The river is called the Inn"."""
    said = _SAID_TO_BE.fullmatch(_APPOSED.split(sentence.replace("**", "").rstrip(), maxsplit=1)[0])
    if said is None:
        return ""
    if (agent := _agent(said["said"])) or _NOT_NAMED.match(said["said"]):
        return agent
    return _name(_DESCRIBED.sub("", _WHERE.sub("", said["said"])))


def _named(sentence: str) -> str:
    """The name that a sentence gives as an answer."""
    return _said_to_be(sentence) or _agent(sentence) or _subject(sentence) or _stood_for(sentence) or _placed(sentence)


def _stood_for(sentence: str) -> str:
    said = _STANDS_FOR.match(sentence)
    return said["said"] if said is not None else ""


def _placed(sentence: str) -> str:
    """Where or when something was, if a sentence says no more of it."""
    sentence = _BASED.sub("", sentence)
    said = _PLACED.match(sentence[:1].upper() + sentence[1:])
    if said is None or _FURTHER_PLACE.search(said["said"]) or _FURTHER_PLACE.search(sentence[: said.start("at")]):
        return ""
    return said["said"]


def _agent(sentence: str) -> str:
    """By whom something was done, as a sentence says."""
    by = _BY.search(sentence)
    return _name(_WHERE.sub("", sentence[by.end() :])) if by is not None else ""


def _told(said: str) -> str:
    """What is named after "the answer is", or "I believe": without "that it is", and what is told of it."""
    said = _THAT_IS.sub("", said, count=1)
    return _name(said) or said


def _subject(sentence: str) -> str:
    subject = _SUBJECT.match(sentence)
    return subject["said"] if subject is not None and subject["said"] not in _PRONOUNS else ""


def _name(text: str) -> str:
    """A short text without what is told of it; empty where it is no name."""
    name = _APPOSED.split(text, maxsplit=1)[0].rstrip(" .,!")
    initial = re.search(r"\b[A-Z]\Z", name) is not None and " " in name
    return name if 0 < len(name.split()) <= _NAME_WORDS and not _VERB.search(name) and not initial else ""


def _is_sentence(text: str) -> bool:
    """Whether it says more than an answer does."""
    if _PARTED.search(text) or text.endswith((",", ":")) or _BEGINS.match(text):
        return True
    words = len(text.split())
    text = _SYMBOLS.sub("", text) if words > _NAME_WORDS else text
    if text[0].isupper() and text[-1] in ".!" and (_VERB.search(text) or _SUBJECT_VERB.match(text)):
        return True
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
