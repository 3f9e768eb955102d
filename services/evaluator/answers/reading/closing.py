"""Which of the last sentences of a reply states its number, and which only remarks on it. Pure.

"She pays $160. You save 20%!" states 160: a computed number that is said in words is settled, and what neither
calculates nor concludes after it is a remark. Where a remark may as well be the next step, no number is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.number import NumberKind

_REMARK = re.compile(
    r"\W{0,4}(?:check|verif|indeed|proof|to (?:check|verify|confirm|double)|(?:we|you) can (?:also )?(?:check|verify|"
    r"confirm|see)|plugging|as a check|note\b|always\b|please\b|be sure|make sure|consult|disclaimer|remember\b|"
    r"recall\b|keep in mind|don['’]t forget|for (?:comparison|reference|context)|by comparison|not\b|"
    r"at (?:that|this) (?:point|time|moment)\b|"
    r"this [a-z]{4,12} (?:makes|allows|helps|lets|explains)\b|the other (?:\d|two|three|four|five)|"
    r"(?:this|that|it|which) (?:also )?(?:makes sense|matches|agrees|checks|is consistent|confirms|assumes|includes|"
    r"is because|is (?:the|our|your|how)\b(?!.*\d)))|"
    r"\W{0,4}(?:that|this|it|which)(?:['’]s|[ ]is|[ ]was)[ ](?:also |still |much |far |slightly |a bit |well |just )?"
    r"(?:[a-z]{3,}er|more|less|above|below|over|under|within|close|short)\b",
    re.IGNORECASE,
)
"""A sentence about the number that the one before it states."""
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|also|altogether|in total|(?<!\ba )total|answer|result|final(?:ly)?|"
    r"(?:gives?|leaves?|makes?|means?)(?=[^.;]{0,24}\d)|must|"
    r"we (?:get|have|find)|adding|which|in other words)\b|[=≈→⇒∴⟹]|"
    r"\A\W{0,4}(?:the|its|your|our)\b[^,;]{1,60}?[ ](?:is|are|was|equals|will be|comes to)\b|"
    r"\A\W{0,4}[A-Z][\w’' -]{2,40}: ",
    re.IGNORECASE,
)
_DRAWN = re.compile(
    r"\b(?:so|therefore|thus|hence|answer|result|total|altogether|equals?|leaves?|makes?)\b|[=≈→⇒∴⟹]", re.IGNORECASE
)
"""A sentence whose number is computed, even if the question has it, too."""
_CAPTIONED = re.compile(r"\A\W{0,4}[A-Z][\w’' -]{2,40}: ")
_POINTS_BACK = re.compile(r"\A\W{0,4}(?:that|this)(?:['’]s|[ ]is|[ ]makes|[ ]gives|[ ]means)\b", re.IGNORECASE)
_ADDS_UP = re.compile(r"\b(?:total|altogether|together|in all|sum|adding|plus|average|remaining)\b", re.IGNORECASE)
_RESULT = re.compile(r"[=≈→⇒][ ]{0,2}(?P<said>[^=≈→⇒\n]{1,40})")
_RATES = re.compile(
    r"\b(?:rat(?:e|ed|ing|ings)|scor(?:e|ed|ing)|give|giving|assign|award|deserves?|merits?|earns?|warrants?|grade|mark|"
    r"overall|similarity|stars?|final|solid|strong|weak|so|therefore|thus|hence|leaves?|leaving|say|settle|call it|"
    r"judge|put|place|evaluate|total|average|out of|would be|seems?|feels?|fits?|right|"
    r"fair|it['’]s an?|note|bewert\w*|vergebe)\b|\d ?/ ?\d|→",
    re.IGNORECASE,
)
_IS_FINAL = re.compile(
    r"\b(?:overall|final(?:ly)?|total|average|revised|corrected|so|therefore|thus|hence|leaves?|leaving|settle|say|"
    r"altogether|all in all|in sum|on balance)\b",
    re.IGNORECASE,
)
_BEGINS_WITH = re.compile(r"\W{0,4}(?P<said>\d{1,3}(?:[.,]\d)?(?: ?/ ?\d{1,3})?)\W{0,3}(?: [–—-] |[,;:] )")
_WOULD_BE = re.compile(
    r"\b(?:to (?:get|reach|earn|achieve|improve|become)|could have|should (?:have|add))\b", re.IGNORECASE
)
_SHORT = re.compile(r"\W*(?:[\w'’]+ ){0,2}[\w.,]+\W*")
_NEAR = 4
"""Sentences that are looked back at."""


def is_remark(sentence: str) -> bool:
    """Whether a sentence is about the number of the one before it."""
    return _REMARK.match(sentence) is not None


def rated(sentences: Sequence[str], kind: NumberKind) -> Found | None:
    """The rating that sentences give, among other numbers that they name; of several the one that is final."""
    if (begun := _BEGINS_WITH.match(sentences[0])) is not None and not any(map(_IS_FINAL.search, sentences)):
        return kind.whole(begun["said"])
    naming = [each for each in sentences if kind.names(each) and not _WOULD_BE.search(each)]
    rating = naming if len(naming) == 1 else [each for each in naming if _RATES.search(each) or _SHORT.fullmatch(each)]
    if not rating or kind.only(rating[-1]) is None:
        return None
    final = [each for each in rating if _IS_FINAL.search(each)]
    found = [one for each in rating if (one := kind.only(each)) is not None]
    if len({each.answer for each in found}) > 1:
        return kind.only(final[-1]) if final else None
    return found[-1]


def stated(sentences: Sequence[str], kind: NumberKind) -> Found | None:
    """The number that the last of these sentences states, or the one before that it remarks on."""
    *before, last = sentences
    found = kind.only(last, before=" ".join(before))
    if found is None and before:
        return kind.repeated(last, before, _results(before, kind)[-1:])
    if found is None or not before or _concludes(last, before, found.answer, kind):
        return found
    place, settled = _settled(before, kind)
    if settled is None or settled.answer == found.answer:
        return found
    if _results(before[:place], kind)[-1:] == [settled.answer]:
        return settled if not _ADDS_UP.search(last) else None
    if _POINTS_BACK.match(last) and not kind.says_again(before[-1], last):
        return found
    given = any(number == found.answer for each in before[: place + 1] for number in kind.numbers(each))
    return settled if given and _CONCLUDES.search(before[place]) else None


def repeats_result(sentences: Sequence[str], answer: str, kind: NumberKind) -> bool:
    """Whether the number of the last sentence is the last result of a calculation before it."""
    return _results(sentences[:-1], kind)[-1:] == [answer]


def disputed(sentences: Sequence[str], answer: str, kind: NumberKind) -> bool:
    """Whether these sentences may mean another number than the answer that was read in one of them: one that follows it
    there, or none at all, where they repeat a number of the question that nothing comes to."""
    place = next((at for at in reversed(range(len(sentences))) if answer in kind.numbers(sentences[at])), 0)
    if kind.rivals(sentences[place], answer) and not repeats_result(sentences[: place + 1], answer, kind):
        return True
    stated_apart = kind.numbers(sentences[place]).count(answer) > 1
    is_given = kind.is_given(answer) and not stated_apart and answer not in _results(sentences, kind)
    return is_given and not _DRAWN.search(sentences[place])


def _concludes(sentence: str, before: Sequence[str], answer: str, kind: NumberKind) -> bool:
    """Whether a sentence draws a conclusion, or says the last result of a calculation."""
    if repeats_result([*before, sentence], answer, kind):
        return True
    return _CONCLUDES.search(sentence) is not None and not kind.says_again(before[-1], sentence)


def _settled(sentences: Sequence[str], kind: NumberKind) -> tuple[int, Found | None]:
    """The last sentence that concludes a number, repeats a result in words, or begins the reply with a number."""
    for place in range(len(sentences) - 1, max(-1, len(sentences) - 1 - _NEAR), -1):
        found = kind.only(sentences[place])
        if found is None:
            if kind.numbers(sentences[place]):
                break
            continue
        if place and _CAPTIONED.match(sentences[place]) and _CAPTIONED.match(sentences[place - 1]):
            # Facts in a list conclude nothing.
            break
        if "=" in sentences[place]:
            is_final = _IS_FINAL.search(sentences[place]) or sentences[place].rstrip().endswith("**")
            return (place, found) if is_final else (0, None)
        concluded = _CONCLUDES.search(sentences[place]) or _results(sentences[:place], kind)[-1:] == [found.answer]
        if concluded or place == 0:
            return place, found
        break
    return 0, None


def _results(sentences: Sequence[str], kind: NumberKind) -> list[str]:
    """The numbers after signs of equality, in their order."""
    found = (kind.at(match["said"], closed=False, ends=False) for each in sentences for match in _RESULT.finditer(each))
    return [each.answer for each in found if each is not None and each.answer]
