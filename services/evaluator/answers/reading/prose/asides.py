"""What a reply says besides its own answer: of another case, of what others think, of what comes second. Pure.

"It would be spam if it had a link", "many people say 8" and "fear comes second" name answers that are not the reply's.
"""

from __future__ import annotations

import re

SENTENCES = re.compile(
    r"(?<=[.!?])(?<!\b(?:vs|eg|ie|no|Mr|Ms|Dr|St|ca)\.)(?<!\b(?:Mrs)\.)(?<!\b(?:e\.g|i\.e)\.)(?!(?<=[ap]\.m\.)\s+[a-z(])"
    r"(?:\*\*)?\s+|\n+"
)
_CONCEDED = re.compile(r"\A\W{0,4}(?:while|although|though|even though|even if)\b[^,\n]{1,200}, ", re.IGNORECASE)
_CONCLUDES = re.compile(r"\b(?:so|therefore|thus|hence)\b", re.IGNORECASE)
_CLAUSES = re.compile(r"(; |,? but |, (?:though|although|while|whereas|yet|however,) | [–—] )")
_WOULD = re.compile(r"\b(?:would|wouldn['’]t|could|might)\b|['’]d (?:be|get|have|give|need|become|make|mean|yield)\b")
_OWN = re.compile(
    r"(?:\bI\b(?!f)|\bmy\b|\b(?:we|one|it|reader|person)\b[^.]{0,20} say\b|\banswer\b|\Aif I\b|"
    r"\A\W*(?:that|this|so)\b)",
    re.IGNORECASE,
)
"""With these the reply says its own answer politely: "I would say"."""
_ANOTHER_CASE = re.compile(
    r"\b(?:if (?:it|he|she|they|there|we|you|the|this|that|one|these|those|a|an)\b[^,.;]{0,60}?\b"
    r"(?:were|was|had|did|didn['’]t|wasn['’]t|weren['’]t|meant|asked|wanted|used|took|said|counted|included|also|"
    r"only|instead|[a-z]{3,}ed)\b|if \w+['’]d (?:like|prefer|want|rather)\b|"
    r"had (?:it|he|she|they|the|there|this|that)\b|were (?:it|there|he|she|they)\b|"
    r"(?:at|in|under|with|on|for|from) (?:an? |the |some |any )?(?:[a-z]{3,}er|other|different|special|certain) |"
    r"if [a-z ]{0,30}(?:instead|merely|also)\b|without\b|otherwise\b|instead\b)",
    re.IGNORECASE,
)
_OTHERS_THINK = re.compile(
    r"\b(?:some|many|most|other|a few|certain|several) (?:of you |\w+ )?"
    r"(?:people|students|sources|others|readers|folks|guess|think|assume|believe|argue|say|might|may|would)\b|"
    r"(?<!\bas )\b(?:some|many|others|people|students|one|you|someone|it|that) (?:\w+ )?(?:might|may|could) (?:\w+ )?"
    r"(?:think|say|argue|be tempted|expect|assume|guess|seem|believe|look|appear)\b|"
    r"\b(?:people|students|they) often (?:think|say|believe|assume|confuse|mistake|get|"
    r"make|forget|claim|answer|choose|pick|guess|expect)\b|\btempt(?:ing|ed)\b|"
    r"\bcommon(?:ly)? (?:mistake|error|misconception|trap|wrong|mistaken|confused|believed|assumed)\b|"
    r"\b(?:misconception|contrary to|popular (?:myth|belief))\b|"
    r"\bat first (?:glance|sight|blush)\b|\boften (?:confused|mistaken|claimed|said|thought|believed)\b",
    re.IGNORECASE,
)
_SECOND = re.compile(
    r"\b(?:comes? (?:in )?(?:a )?(?:close |distant )?second|"
    r"(?:is|as) (?:a )?(?:close |distant )?second\b(?! option| choice)|"
    r"runner[- ]up|next[- ]best|second(?:[- ]best|[- ]most| choice| place)|(?:minor|lesser|smaller) role|"
    r"secondary (?:emotion|sentiment|label|topic|theme|category|class|choice|answer|candidate|option))\b",
    re.IGNORECASE,
)
_CAPTIONED = re.compile(r"(?:\A|\n)[^\n:.]{1,40}:[ *]{1,4}[^\n]{1,30}\s*\Z")
_ENDS = tuple(".!?:)]}\"'”’*`$✓|")
_BY_THE_WAY = re.compile(
    r"\b(?:by the way|incidentally|interestingly|as an aside|fun fact)\b|\A\W{0,4}note\b.*\bwould\b", re.IGNORECASE
)
_ONE_WOULD = re.compile(r"(?:an?|the) [^,.;]{1,40} would\b")
_MOST = 16_384


def without_asides(text: str, *, own_case: bool = False) -> str:
    """The text without clauses that name answers of others, or of another case. `own_case`: the only case that the text
    tells of may be the one that is asked for."""
    start = max(0, len(text) - _MOST)
    said = text[start:]
    if said.rstrip()[-1:] not in _ENDS and not _CAPTIONED.search(said[-200:]):
        # What is cut off within an aside may not have come to its answer.
        return text
    kept: list[str] = []
    for line in said.split("\n"):
        if any(about.search(line) for about in (_WOULD, _OTHERS_THINK, _SECOND, _BY_THE_WAY)):
            line = " ".join(each for one in SENTENCES.split(line) if (each := _without_aside(one, own_case)))
            if not line:
                continue
        kept.append(line)
    return text[:start] + "\n".join(kept)


def _without_aside(sentence: str, own_case: bool) -> str:
    if _BY_THE_WAY.search(sentence) or (
        not own_case and _tells_of_another_case(sentence) and not _CLAUSES.search(sentence)
    ):
        return ""
    if (conceded := _CONCEDED.match(sentence)) is not None and _OTHERS_THINK.search(conceded[0]):
        sentence = sentence[conceded.end() :]
    parts = _CLAUSES.split(sentence)
    said = ""
    for number in range(0, len(parts), 2):
        clause = parts[number]
        if _OTHERS_THINK.search(clause) or (_SECOND.search(clause) and not _CONCLUDES.search(clause)):
            continue
        joined = parts[number - 1] if number else ""
        if not own_case and (_tells_of_another_case(clause) or (joined == "; " and _ONE_WOULD.match(clause))):
            continue
        said += (joined if said else "") + clause
    if said and said[-1] not in ".!?" and sentence[-1] in ".!?":
        said += sentence[-1]
    return said


def _tells_of_another_case(clause: str) -> bool:
    return _WOULD.search(clause) is not None and _ANOTHER_CASE.search(clause) is not None and not _OWN.search(clause)
