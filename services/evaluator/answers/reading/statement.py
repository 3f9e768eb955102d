"""Which number a sentence asserts, among those that it only mentions. Pure.

A sentence is taken apart rather than matched: what follows its last conclusive word ("so", "which leaves") counts, else
the sentence without the clause that it begins with ("If 3 pens cost $6,"). Of the numbers there

- those that the sentence takes as given are none: "the 12 m rope", "out of 40", "twice 16", "3 times as many";
- those after a preposition count where no other number is: "cut into 8 pieces", but not "8 bracelets with 40 beads";
- what follows the asserted number in a clause of its own is left out: "to seat 100 guests", "using 5 for each".

What is left must be one number, or the predicate of another: "five dozen is 60". Two that compete are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.numerals.units import Unit, same_quantity


@dataclass(frozen=True, slots=True)
class Mention:
    """A number in a sentence, and where it stands. `answer` is empty where it is a range or part of an expression."""

    answer: str
    start: int
    end: int


_MARKS = r"[\s\u00a0*_`\"'“”‘’(\[{$\\≈~]*\Z"
_BY = (
    r"(?:is|are|was|were|['’]s|makes?|means?|gives?|gave|leaves?|left|yields?|equals?|brings?|comes?[ ](?:out[ ])?to|"
    r"adds?[ ]up[ ]to|works[ ]out|rounds?(?:[ ](?:up|down|off))?[ ]to|results?[ ]in)"
)
_CONCLUSIVE = re.compile(
    r"\b(?:therefore|thus|hence|consequently|accordingly|so(?![ ](?:that|far|much|many|on)\b)|altogether|"
    r"in[ ](?:total|all)|for[ ]a[ ]total[ ]of|total(?:l)?ing|meaning|leaving|giving|making|yielding|bringing|"
    r"resulting[ ]in|"
    r"(?:which[ ](?:[a-z-]+[ ]){0,4}?|(?:\A|[,;] )(?:and )?(?:that|this)(?:[ ]then|[ ]therefore|[ ]in[ ]turn)?[ ]?)"
    rf"{_BY}|"
    r"(?:to|we|you|I|one|they)(?:['’]ll|[ ]will|[ ]can)?[ ](?:then[ ]|finally[ ]|now[ ])?"
    r"(?:get|find|obtain|arrive[ ]at|conclude|end[ ]up[ ]with|are[ ]left[ ]with))\b[:,]?"
    r"|(?:\b(?:said|thought|guess\w*|tempting|seems?|looks?|not)\b|n['’]t\b)[^.;]{0,100}?, but\b"
    r"|(?:\bnot\b|n['’]t\b)[^.,;]{1,30}? but\b"
    r"|, and (?:so |thus |hence )?(?:the|its|his|her) [a-z]{3,}(?:er|est)\b[^,;]{0,30}? (?:is|was)\b"
    r"|, an?[ ](?:increase|decrease|rise|drop|fall|change|difference|gain|loss|reduction)[ ]of\b"
    r"|\bi\.e\.,?|[=≈→⇒∴⟹]|->|=>|[;:](?=[\s*$])",
    re.IGNORECASE,
)
_SAID_AGAIN = re.compile(r"\W*(?:which|that|this|i\.e|meaning)", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:about|approximately|roughly|around|nearly|almost|just)\b|[~≈]", re.IGNORECASE)
_CONCLUDED = re.compile(r"\b(?:so|therefore|thus|hence|altogether|in total|in all)\b", re.IGNORECASE)
_RELATES = re.compile(r"(?:which|leaving|giving|meaning|bringing|making)\b", re.IGNORECASE)
_SO = re.compile(r"\W*(?:so|therefore|thus|hence|then|that|this|it|in total|altogether)\b", re.IGNORECASE)
_NEAR = 200
_COMPARED = re.compile(
    r"\b(?:than|times|as[ ](?:many|much|\w+[ ]as)|half|twice|double|triple|enough|quarter|thirds?|fifth|tenth)\b",
    re.IGNORECASE,
)
_OPENING_CLAUSE = re.compile(
    r"\A\W{0,4}(?:(?:if|when|since|because|as|after|before|with|without|given|by|once|from|between|including|out|of|in|on|"
    r"at|over|for|during|to|while|although|though|considering|assuming)\b|[a-z]+(?:ing|ed)\b)[^,]{1,160}, ",
    re.IGNORECASE,
)
_INSERTED = re.compile(r", (?:which|who|whose)\b[^,]{1,100}, |(?<=\w) [–—] [^–—]{1,100} [–—] | \([^()\n]{1,80}\)")
_SINCE = re.compile(r",? (?:and|but) (?:since|because|as)\b[^,]{1,100}, ", re.IGNORECASE)
"""What follows such a reason is the conclusion."""
_FURTHER = re.compile(
    r",? (?:because|since|as|if|when|while|whereas|although|though|after|before|given|where|until|unless|compared|"
    r"assuming|"
    r"provided|considering|namely|such as|including|not|rather than|instead of|that|which|who|than|e\.g\.|"
    r"even|up from|down from|to (?!be\b)[a-z]{2,}|[a-z]{2,}ing)\b|; |, (?:from|of|in|on|at|for|by) (?:which|whom)\b|"
    r", (?:well |far |just |slightly |much |a little |only )?(?:above|below|under|over|more than|less than|fewer|"
    r"higher|lower|short|up|down|[a-z]{3,}er than)\b|"
    r", [\w-]{1,12} (?:full )?(?:years?|months?|weeks?|days?|hours?|minutes?) (?:after|before|later|earlier|ago)\b",
    re.IGNORECASE,
)
"""Where a clause of its own begins."""
_ASIDE = re.compile(
    rf"(?<!, and)(?<! and)(?:{_FURTHER.pattern})|: | \((?!or\b)|,? i\.e\.|, and (?:so|thus)\b", re.IGNORECASE
)
"""What after a number explains it, or draws from it."""
_OF_IT = re.compile(
    r"\W*(?:(?:of|from|among)[ ](?:which|whom|these|those|them)|including|(?:well[ ])?(?:within|between|above|below|"
    r"inside|outside))\b",
    re.IGNORECASE,
)
"""With this what follows a conclusive word is about a part of the number before it, or about its size."""
_GIVEN_BEFORE = re.compile(
    r"(?:\b(?:not|nor|rather than|instead of|"
    r"the|these|those|all|his|their|its|my|our|your|than|per|every|out of|twice|double|triple|half|up to|step|day|"
    r"week|part|method|option|case|problem|question|number|no|page|table|figure|chapter|round|year|grade|item|"
    r"between)\.?|#|\^)" + _MARKS,
    re.IGNORECASE,
)
_GIVEN_AFTER = re.compile(
    r"(?:st|nd|rd|th)\b|:\d|[ ]?[ap]\.?m\b|[ -]?(?:fold\b|times[ ](?:\d|as\b|more\b|the\b|that\b|[a-z]+er\b))|"
    r"[ ](?:decimals?|significant|or[ ](?:more|fewer|less))\b"
)
_DISTANCE = re.compile(
    r"[ ](?:full )?(?:years?|months?|weeks?|days?|hours?|minutes?) (?:after|before|since|later|earlier|ago)\b"
)
_AND = re.compile(r"\A[^,;]{0,30}\band" + _MARKS, re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween" + _MARKS, re.IGNORECASE)
_ITEM = re.compile(r"\A\W{0,4}(?:[a-z]\)|(?:step|part|method) \d|first\b)|[-=+×/:÷−]\s*\Z", re.IGNORECASE)
"""One of several, or not yet finished."""
_SOLUTIONS = re.compile(r"=[^=]{1,40}(?:,|\bor\b|\band\b)[\s$\\(]{0,4}[A-Za-z](?:_\w)?\s*\Z")
_REASON = re.compile(
    r"(?<=[\w$*)%])(?<!\bbut)(?<!\band)(?<!\bso)(?<!\bwhich),? "
    r"(?:because|since|as(?! (?:of|well|many|much|\w{2,8} as)\b)|even though|although|though|despite|while|whereas)\b"
    r"(?<!times as)(?<!as \w{3} as)(?<!as \w{4} as)"
    r"(?!.*, (?:so|thus|hence|therefore|which (?:makes?|gives?|leaves?|means))\b)",
    re.IGNORECASE,
)
_OPERATOR = re.compile(
    r"\A[^\d,;.=]{0,12}?(?:\b(?:plus|minus|times|divided by|multiplied by|durch|mal|fois)|"
    r"[-+×/÷·−–]|\\times|\\cdot|\A\*|\*(?=\s))" + _MARKS,
    re.IGNORECASE,
)
_CLAIM = re.compile(
    r"\A\W*(?:\d+|[a-z-]+)\W*\Z|\b(?:(?:give|get|cost|equal|use|hold|sell|pay|receive|earn|spend|contain|weigh|last|"
    r"need|buy|leave|remain|total)s?|is|are|was|were|has|have|needs?|gets?|makes?|takes?|there|it|s?he|they|we|you|I)\b",
    re.IGNORECASE,
)
"""A number that is claimed before a colon, and not the caption of another."""
_OF_NUMBER = re.compile(r"\A[ %°*]{0,3}of" + _MARKS, re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:of|from|in|at|on|by|for|after|before|with|within|into|over|under|during|until|since|through|across|"
    r"against|among|von|aus|nach|mit|de|sur|con|en|avec|para|por)"
    r"(?:[ ](?:a|an|the|about|only|just|exactly|roughly|nearly|approximately|around|another|his|her|their|its|my|"
    r"our|your|original|initial|first|last|other|all)){0,2}" + _MARKS,
    re.IGNORECASE,
)
_EQUATES = re.compile(
    r"\A(?!.*(?:[,;]|\b(?:and|or|plus|but|minus)\b)).{0,80}\b(?:is|are|was|were|be|equals?|makes?|gives?|leaves?|"
    r"costs?|comes?[ ]to|yields?|means?|becomes?|takes?|needs?|requires?|[a-z]+s[ ]to)\b.{0,60}\Z",
    re.IGNORECASE,
)
_UNSAID = re.compile(
    r"\?|\d[a-z] [-+−] \d|\b(?:let me know|hope|for example|e\.g\.|step|question|problem|not|cannot|unclear|if|either|"
    r"maybe|might|could|perhaps|possibly|options?|depend\w*|know that|means\s*\Z|are given|is given|"
    r"(?:start|beg[ai]n|started|begins?|starts) with|initially|(?<!the )original(?:ly)?|at first)\b|n['’]t\b",
    re.IGNORECASE,
)
_GOAL = re.compile(
    r"\A\W{0,4}(?:\w+, |so )?(?:now |first |next )?(?:we|you|I)(?:['’]re| are)? (?:now |first |next )?"
    r"(?:need|want|have|asked|looking) to (?:find|solve|determine|compute|calculate|figure|know)\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\A\W{0,4}(?:(?:first|then|next|now|finally|second|third|lastly)\b,?[ ]){0,2}(?:we[ ](?:need|must|"
    r"have[ ]to|know|can|should)[ ]|let\b(?!['’]s (?:say|call|go))|multiply|add|subtract|divide|take|set|start|"
    r"consider|suppose|assume|convert|compute|calculate|find|use|plug|substitute|round|count|note|recall|remember|check|denote|write|"
    r"factor|simplify|solve|put|move)\b",
    re.IGNORECASE,
)
"""What is to be done, and not what comes of it."""


def asserted(sentence: str, mentions: Callable[[str], Sequence[Mention]], before: str = "") -> Found | None:
    """The number that a sentence asserts. Where it does not conclude and names other numbers, too, it may restate what
    is given: then its number must stand in what comes `before`, if anything does."""
    bare = _SINCE.sub(", so ", sentence)
    bare = _INSERTED.sub(lambda found: " " if found[0].startswith(" (") else ", ", bare)
    end = len(sentence)
    if _ITEM.search(bare) or _GOAL.match(bare):
        return None
    if (reason := _REASON.search(bare)) is not None and mentions(bare[: reason.start()]):
        bare = bare[: reason.start()]
    for place in reversed(list(_CONCLUSIVE.finditer(bare))):
        left, rest = bare[: place.start()], bare[place.end() :]
        if (place[0] in ("=", "≈") and _SOLUTIONS.search(left)) or (place[0] == ":" and _TASK.match(bare)):
            return None
        if (_COMPARED.search(rest) and place[0][:1] in "wW") or _OF_IT.match(rest):
            continue
        if place[0] == ":" and 2 in _ranks(left, mentions(left)):
            if _CLAIM.search(left):
                bare = left
            continue
        if any(_ranks(rest, mentions(rest))):
            answer = _concluded(left, place[0], rest, mentions)
            return Found(answer, end) if answer else None
    answer = "" if _TASK.match(bare) else _unconcluded(bare, mentions, before)
    return Found(answer, end) if answer else None


def _concluded(left: str, joined: str, rest: str, mentions: Callable[[str], Sequence[Mention]]) -> str:
    """The number after a conclusive word; empty where one before it may as well be the answer."""
    numbers = mentions(rest)
    if (stated := _restated(left, joined, rest, mentions)) is not None:
        # In which unit it is asked for, the sentence does not say, unless one is rounded.
        again = numbers[0].answer.lstrip("-") == stated.answer.lstrip("-")
        return stated.answer if again or _ABOUT.search(rest[: numbers[0].start]) else ""
    if joined == ";" and not _SO.match(rest) and _claims(left, mentions):
        return ""
    return "" if _adds_a_consequence(left, joined, mentions) else _one(rest, numbers)


def _unconcluded(bare: str, mentions: Callable[[str], Sequence[Mention]], before: str) -> str:
    """The number of a sentence without a conclusive word, after the clauses that it begins with."""
    while (clause := _OPENING_CLAUSE.match(bare)) is not None and mentions(bare[clause.end() :]):
        bare = bare[clause.end() :]
    numbers = mentions(bare)
    answer = _one(bare, numbers)
    several = sum(map(bool, _ranks(bare, numbers))) > 1
    if before and several and not any(each.answer == answer for each in mentions(before)):
        return ""
    return answer


def _restated(left: str, joined: str, rest: str, mentions: Callable[[str], Sequence[Mention]]) -> Mention | None:
    """The number before a word like "which is", where the one after it is the same in another unit."""
    if not _SAID_AGAIN.match(joined):
        return None
    before, after = mentions(left[-_NEAR:]), mentions(rest)
    if not before or not before[-1].answer or not after[0].answer:
        return None
    stated = left[-_NEAR:][before[-1].end :]
    # "-$1, i.e. you lose one dollar" has the sign in a word.
    one, other = (before[-1].answer, stated), (after[0].answer, rest[after[0].end :])
    same = one[0] == f"-{other[0]}" or same_quantity(one, other)
    return before[-1] if same else None


def _claims(clause: str, mentions: Callable[[str], Sequence[Mention]]) -> bool:
    """Whether a clause states a number, and denies none."""
    return 2 in _ranks(clause, mentions(clause)) and not _UNSAID.search(clause)


def _adds_a_consequence(left: str, joined: str, mentions: Callable[[str], Sequence[Mention]]) -> bool:
    """Whether a word like "which leaves" follows a number that is itself a conclusion: "so they pay $45, which leaves
    $5"."""
    concluded = list(_CONCLUDED.finditer(left)) if _RELATES.match(joined) else []
    if not concluded:
        return False
    claim = left[concluded[-1].end() :]
    return 2 in _ranks(claim, mentions(claim))


def _one(clause: str, numbers: Sequence[Mention]) -> str:
    ranks = _ranks(clause, numbers)
    for rank in (2, 1):
        counted = [each for each, its in zip(numbers, ranks, strict=True) if its == rank]
        if not counted:
            continue
        further = _FURTHER.search(clause, counted[0].end)
        end = further.start() if further is not None else len(clause)
        if _UNSAID.search(clause[:end]):
            return ""
        counted = [each for each in counted if each.start < end]
        if len({each.answer for each in counted}) == 1:
            # "100 machines make 100 parts in 5 minutes" may be about any of them.
            several = rank == 2 and len(counted) > 1 and any(its == 1 for its in ranks)
            return "" if several else counted[0].answer
        if len(emphasised := [each for each in counted if clause[: each.start].endswith("*")]) == 1:
            return emphasised[0].answer
        if len(counted) == 2 and _EQUATES.match(clause[counted[0].end : counted[1].start]):
            return counted[1].answer
        return ""
    return ""


def _ranks(clause: str, numbers: Sequence[Mention]) -> list[int]:
    """2 of a number that stands for itself, 1 after a preposition, 0 of one that is given or calculated with."""
    ranks: list[int] = []
    begun = last = 0
    for mention in numbers:
        between = clause[max(last, mention.start - 60) : mention.start]
        rank = 1 if _PREPOSITION.search(between) else 2
        if _GIVEN_AFTER.match(clause, mention.end) or _GIVEN_BEFORE.search(between):
            rank = 0
        elif _DISTANCE.match(clause, mention.end):
            rank = min(rank, 1)
        if ranks:
            if _OPERATOR.match(between) or between == " in ":
                ranks[-1] = rank = 0
            elif _OF_NUMBER.match(between) or (_AND.match(between) and _BETWEEN.search(clause, 0, begun)):
                rank = 0
        ranks.append(rank)
        begun, last = mention.start, mention.end
    return ranks


def measures_differ(sentence: str, mentions: Sequence[Mention], units: Sequence[Unit | None]) -> bool:
    """Whether a sentence gives two lengths or the like in different units, and does not calculate: "2.4 km, 890 m"."""
    measured = [(each, unit) for each, unit in zip(mentions, units, strict=True) if unit is not None and each.answer]
    return "=" not in sentence and any(
        unit.dimension == other.dimension != "money"
        and unit.factor != other.factor
        and (
            "(" in sentence[each.end : another.start]
            or not same_quantity((each.answer, sentence[each.end :]), (another.answer, sentence[another.end :]))
        )
        for (each, unit), (another, other) in pairwise(measured)
    )


def competing(
    sentence: str, answer: str, mentions: Callable[[str], Sequence[Mention]]
) -> tuple[Mention | None, list[Mention]]:
    """The last mention of an answer, and other numbers after it that the same clause claims."""
    numbers = mentions(sentence)
    own = next((each for each in reversed(numbers) if each.answer == answer), None)
    if own is None:
        return None, []
    aside = _ASIDE.search(sentence, own.end)
    end = aside.start() if aside is not None else len(sentence)
    ranked = zip(numbers, _ranks(sentence, numbers), strict=True)
    return own, [each for each, rank in ranked if rank == 2 and each.answer and own.end <= each.start < end]
