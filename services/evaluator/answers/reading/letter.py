"""The letter of an option. Pure.

A letter before a word is that option, but "A" and "I" are words themselves: there only a reason may follow
("Answer: A because …") or the option's own text. A second letter after "or", "and", a comma or a slash makes the answer
ambiguous; other text after the letter does not ("Answer: B. A lesion of the nerve"). The text of one option, whole and
in place of its letter, counts as that option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.kinds import denies, goes_on, main_clause, negated, settles
from services.evaluator.answers.reading.layers import Found
from services.evaluator.answers.reading.letter_patterns import patterns
from services.evaluator.answers.reading.places import line
from services.evaluator.answers.reading.prose.asides import SENTENCES
from services.evaluator.answers.reading.prose.options import Options, bare_text, the_right_one, verdict

_ALSO_A_WORD = frozenset("AI")
_REASON = re.compile(
    r"[\s\u00a0]+(?:because|since|as|for|is|due|was|seems|would|which|follows|[(\[–—-])", re.IGNORECASE
)
_WORD_FOLLOWS = re.compile(r"[\s\u00a0]+\w")
_END = re.compile(
    r"[\s)\]*_`\"'”’}$]{0,8}(?:[.!]|,?[ ](?:because|since|as|which)\b|\n|$|:[ ]|[ ][-–—][ ])", re.IGNORECASE
)
_LISTED = re.compile(
    r"^[ \t>*_#-]{0,8}(?i:option[ ]|choice[ ])?\(?(?P<letter>[A-Z])(?:\*\*)?(?:[).:]|[ ]?[–—-][ ]|[ ]\()",
    re.MULTILINE,
)
_SENTENCE_NO = re.compile(
    r"\b(?:not|no|never|neither|nor|wrong|incorrect|except|unlike|rather|instead|cannot|without|false|or|might|"
    r"could|unsure|"
    r"uncertain|perhaps|maybe|possibly|eliminate\w*|exclude\w*|rul(?:e|es|ed|ing)[ ]out|none|if)\b|n['’]t\b|\?|=\s*$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,.;:!–—\n]|\s-\s|\s(?:because|since)\b")
_IF = re.compile(r"[^.\n]{0,20}?\bif\b", re.IGNORECASE)
_ITEM = re.compile(
    r"[ \t>*_#|-]{0,8}(?:\d\.[ ])?(?:option[ ]|choice[ ])?[(*]{0,3}(?P<letter>[A-Z])"
    r"(?:[*)]{0,3}(?:[).:|]|[ ]?[|–—-])|[*]{2}|[ ]\(|(?=[ ]is[ ]))",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    r"\b(?P<word>first|second|third|fourth|fifth|last)[ ](?:(?:option|choice|answer|statement|one|alternative)\b|"
    r"(?:sentence|title|ending|definition)(?=[ ](?:is|reads|works|fits)\b))",
    re.IGNORECASE,
)
_BEGINS_COUNTED = re.compile(rf"\W{{0,4}}(?:the )?(?P<said>{_ORDINAL.pattern})", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_CITED = re.compile(
    r"[\"“*]{1,3}(?P<said>[^\"“”*\n]{1,200})[\"”*]{1,3}(?:[ ](?:fits|is|works|matches|seems)\b(?![ ]not)|[ ,.]|$)"
)
_ANOTHER = re.compile(r"[(*_`]{0,3}[A-Z](?:[).,;:/]|\s*$|[ ](?:and|or|&)[ ])")
_LISTED_INLINE = re.compile(r"[.;,][ ]\(?[A-Z][:)][ ]")
_IS = re.compile(r"\b(?:is|are|was|were|be|called)\b")
_CONFIDENCE = re.compile(r"\([^()]{0,40}\b(?:confiden|certain|sure|\d{1,3} ?%)[^()]{0,40}\)\.?")
_SURELY = re.compile(
    r"(?:probably|likely|most likely|definitely|certainly|clearly|obviously),? (?=\(?[A-Z]\b)", re.IGNORECASE
)
_NO_OPTION = re.compile(
    r"\bnone of (?:the|these|them|those)\b|\bno(?: \w+)? (?:option|answer|choice|statement)s?\b", re.IGNORECASE
)
_ASIDE = re.compile(r" \([^()\n]{1,100}\)|\b[\w-]{2,20} or (?:[\w-]{2,20} )?[\w-]{2,20}\b")
_NOUN = re.compile(r"[*_`(]{0,3}(?P<noun>[A-Z][a-z]{3,12}) (?P<letter>[B-Z])[*_`).]{0,4}")
_CALLED = re.compile(r"\b(?:correct|right|answers?|true|apply|valid)\b", re.IGNORECASE)
_ELLIPSIS = re.compile(r"(?:\b(?:is|are|does|do|was|has|can) not|n['’]t|cannot)[.!]?\s*\Z")
_MUST = re.compile(r"\b(?:must|so|therefore|thus|hence|leaves|leaving)\b", re.IGNORECASE)
_APPOSED = re.compile(r", (?:the|an?) [^,.;]{1,60}, ")
_CONCEDED = re.compile(r"\A\W{0,4}(?:while|whereas|although|though|even though)\b[^,\n]{1,160}, ", re.IGNORECASE)
_RESULT = re.compile(r"=[ ]{0,2}(?P<said>[$€£]?\d[\d.,]*)[\s.$*\\)]*\Z")
"""The result with which a calculation ends."""
_SHORT = 400


class LetterKind:
    """One of so many capital letters from "A" on; `options` are their texts, as far as they are known."""

    def __init__(self, count: int, options: Mapping[str, str] | None = None) -> None:
        self._count = count
        self._patterns = patterns(count)
        self._options = Options(options or {})

    def with_capitals(self, text: str) -> str:
        """The text with capital letters where it names options as "(b)" or "option b"."""
        return self._patterns.small.sub(lambda found: found[0][:-1] + found[0][-1].upper(), text)

    def at(self, said: str, *, closed: bool, ends: bool) -> Found | None:
        match = self._patterns.at.match(said)
        if match is not None and (found := self._letter(said, match, closed, ends)) is not None:
            return found
        return self._at_option(said, closed)

    def whole(self, text: str) -> Found | None:
        if len(text) > 4000:
            return None
        if letter := self._options.same(text):
            return Found(letter, len(text))
        match = self._patterns.whole.fullmatch(self._without_noun(text.strip(" \t\r\n\u00a0‘’“”«»✓")))
        if match is None:
            return None
        letter, rest = match["answer"].upper(), bare_text(match["text"] or "")
        if _CONFIDENCE.fullmatch(match["text"] or ""):
            rest = ""
        if match["answer"].islower() and rest and not match["mark"]:
            return None
        if rest and rest != self._options.text(letter):
            # "A shark is a fish" begins with a word.
            is_word = letter in _ALSO_A_WORD and not match["mark"]
            if is_word or self.mentioned(text) - {letter}:
                return None
        one_line = "\n" not in (match["text"] or "").strip()
        if rest and not self._says_option(rest, letter, match["mark"] is not None and len(rest) < 200, one_line):
            return None
        return Found(letter, len(text))

    def _without_noun(self, text: str) -> str:
        """ "Student B" as "B", where no option is of students."""
        noun = _NOUN.fullmatch(text)
        if noun is None or any(noun["noun"].lower() in option for option in self._options.texts):
            return text
        return noun["letter"]

    def first(self, text: str) -> Found | None:
        said = _SURELY.sub("", text.lstrip(), count=1)
        match = self._patterns.first.match(said)
        if match is None:
            begun = _CLAUSE.split(line(said), maxsplit=1)
            letter = self._options.same(begun[0]) if len(begun) > 1 else ""
            if letter and (negated(said[len(begun[0]) :]) or self._goes_through(said, letter)):
                return None
            if letter and self.mentioned(SENTENCES.split(line(said), maxsplit=1)[0]) - {letter}:
                return None
            return Found(letter, len(begun[0])) if letter else None
        letter, rest = match["answer"], line(said[match.end() :])
        if (match["mark"] or ".").strip("\"'`") == "" and rest.strip():
            # "Option 'A' lacks a verb"
            return None
        if _ANOTHER.match(rest) or _LISTED_INLINE.search(rest):
            return None
        if {found["letter"] for found in _LISTED.finditer(said[match.end() :])} - {letter}:
            return None
        if negated(said[match.end() :]) or self._patterns.other.match(rest):
            return None
        offered = self._options.text(letter)
        if offered and match["mark"] and rest.strip():
            # "B) oxygen", where B is carbon dioxide, names two options.
            named = self._options.begun(rest)
            if named and letter not in named:
                return None
        return Found(letter, match.end())

    def _goes_through(self, text: str, letter: str) -> bool:
        """Whether further lines begin with the texts of other options."""
        begun = (self._options.same(_CLAUSE.split(each, maxsplit=1)[0]) for each in text.split("\n")[1:20])
        return any(other not in ("", letter) for other in begun)

    def only(self, sentence: str) -> Found | None:
        if len(sentence) > _SHORT or sentence.startswith("("):
            return None
        sentence = main_clause(sentence, self._meant)
        right = [match["answer"] or match["after"] or match["so"] for match in self._patterns.right.finditer(sentence)]
        if _SENTENCE_NO.search(self._options.without_denials(self._without_asides(sentence), _SENTENCE_NO)):
            return None
        if len(set(map(str.upper, right))) == 1:
            return Found(right[0].upper(), len(sentence))
        if len(words := re.findall("[A-Za-z]+", sentence)) == 1 and (bare := self._patterns.whole.fullmatch(words[0])):
            return Found(bare["answer"].upper(), len(sentence))
        if (alone := self._patterns.alone.search(sentence)) is not None:
            return Found(alone["answer"], len(sentence))
        said = self._meant(sentence)
        if (result := _RESULT.search(sentence)) is not None and self._options.lacks_number(result["said"]):
            return None
        return Found(said.pop(), len(sentence)) if len(said) == 1 else None

    def named(self, text: str) -> set[str]:
        """The options that a text names, by bare letters too."""
        return self.mentioned(text) | {match["answer"] for match in self._patterns.bare.finditer(text)}

    def _without_asides(self, sentence: str) -> str:
        """The sentence without words in brackets, and joined by "or", that name no option."""
        return _ASIDE.sub(lambda found: found[0] if self.named(found[0]) else " ", sentence)

    def claimed(self, sentences: Sequence[str]) -> Found | None:
        # "French doesn't have that" says nothing for any option.
        denied = [self._denied(each) for each in sentences]
        named = [set() if no else self._meant(sentence) for sentence, no in zip(sentences, denied, strict=True)]
        if not any(named):
            return self._paraphrased(sentences)
        first = next(number for number, letters in enumerate(named) if letters)
        if self._walks_through(sentences, first) or not self._may_claim(sentences, denied, first):
            return None
        others = [letters for letters in named[first + 1 :] if letters]
        if 1 < len(named[first]) == self._count - 1 and not _CALLED.search(sentences[first]) and len(others) < 2:
            return self._left_over(sentences, named, first)
        found = self.only(sentences[first]) if len(named[first]) == 1 else None
        if found is None or self._disputed(found.answer, sentences, named, denied, first):
            return None
        if not others:
            return found if not any(map(goes_on, sentences[first + 1 :])) else None
        # What sets several others against it: "A, C and D are not".
        if self._identified(sentences[first]) or any(len(letters) > 1 for letters in others):
            return found
        all_others = len(set().union(*map(self.named, sentences[first + 1 :]))) == self._count - 1 > 1
        return found if all_others and settles(sentences[first]) else None

    def _walks_through(self, sentences: Sequence[str], first: int) -> bool:
        """Whether sentences go through the options, or say that none fits."""
        if _NO_OPTION.search(" ".join(sentences)) or self._goes_through_others(sentences, first):
            return True
        return any(_verdict_of(sentence) is not None for sentence in sentences)

    def _may_claim(self, sentences: Sequence[str], denied: Sequence[bool], first: int) -> bool:
        """Whether a sentence after denials may claim an option: it chooses, or all others are denied."""
        if not any(denied[:first]) or settles(sentences[first]):
            return True
        return len(set().union(*map(self.named, sentences[:first]))) >= self._count - 1

    def _left_over(self, sentences: Sequence[str], named: Sequence[set[str]], first: int) -> Found | None:
        """The one option that a sentence about all others leaves: "A and B are metals. C is a gas.", or "C isn't."."""
        later = next((number for number in range(first + 1, len(named)) if named[number]), None)
        if later is not None:
            return self.only(sentences[later]) if len(named[later]) == 1 and not named[later] & named[first] else None
        left = self.named(sentences[-1]) if _ELLIPSIS.search(sentences[-1]) else set()
        return Found(left.pop(), len(sentences[-1])) if len(left) == 1 and not left & named[first] else None

    def _disputed(
        self, letter: str, sentences: Sequence[str], named: Sequence[set[str]], denied: Sequence[bool], first: int
    ) -> bool:
        """Whether other sentences say an option again, as a list does, deny it, or conclude another."""
        later = sentences[first + 1 :]
        if any(letter in letters for letters in named[first + 1 :]) or any(map(self._identified, later)):
            return True
        if any(_MUST.search(each) for each in later if self._meant(each)):
            return True
        return any(no and letter in self.named(each) for each, no in zip(sentences, denied, strict=True))

    def _paraphrased(self, sentences: Sequence[str]) -> Found | None:
        """The option that sentences say in other words, where they name none."""
        said = " ".join(_APPOSED.sub(", ", each) for each in sentences if not denies(each))
        letter = self._options.in_other_words(said) if len(said) <= _SHORT else ""
        return Found(letter, len(said)) if letter else None

    def _denied(self, sentence: str) -> bool:
        """Whether a sentence says of options that they are not right."""
        return bool(self.named(sentence)) and denies(self._options.without_denials(sentence, _SENTENCE_NO))

    def _goes_through_others(self, sentences: Sequence[str], claiming: int) -> bool:
        """Whether sentences before and after one that claims an option are about others."""
        about = [number for number, sentence in enumerate(sentences) if self._meant(sentence)]
        return about[:1] != [claiming] != about[-1:]

    def _identified(self, sentence: str) -> bool:
        """Whether a sentence ends in an option: "The largest ocean is the Pacific"."""
        clause = main_clause(sentence, self.named)
        found = self.at(_IS.split(clause)[-1], closed=False, ends=True) if _IS.search(clause) else None
        return found is not None and found.answer != ""

    def _meant(self, sentence: str) -> set[str]:
        """The options that a sentence names, or else counts; not what it only concedes, or adds to a name."""
        sentence = _APPOSED.sub(", ", _CONCEDED.sub("", sentence))
        return self.named(sentence) or self._counted(sentence)

    def _counted(self, sentence: str) -> set[str]:
        """The options that a sentence names by their places, as "the second option"."""
        last = len(self._options.texts) - 1
        words = [match["word"].lower() for match in _ORDINAL.finditer(sentence)]
        places = {last if word == "last" else _ORDINALS.index(word) for word in words}
        return {chr(ord("A") + place) for place in places if 0 <= place <= last}

    def right(self, text: str) -> Found | None:
        """The only option that a text calls the right one."""
        said = {}
        for match in self._patterns.right.finditer(text):
            letter = match["answer"] or match["after"] or match["so"]
            before = re.split(r"[.,;\n]", text[max(0, match.start() - 300) : match.start()])[-1]
            if not _SENTENCE_NO.search(before) and not _IF.match(text, match.end()):
                said[letter] = match.end()
        return Found(*said.popitem()) if len(said) == 1 else None

    def denied(self, text: str, letter: str) -> bool:
        """Whether a text says anywhere that it is not this option, and nowhere that it is."""
        said = re.search(rf"(?:\bnot|n['’]t)[ ](?:option[ ]|choice[ ])?\(?{letter}\b(?!['’])", text)
        return said is not None and re.search(rf"(?<![\w'’]){letter}(?![\w'’])", text[said.end() :]) is None

    def judged(self, text: str) -> Found | None:
        """The only option that a list or table calls right and not wrong."""
        if {"yes", "no", "true", "false"} & set(self._options.texts):
            return None
        verdicts = {}
        for each in text.split("\n"):
            if (judged := _verdict_of(each)) is not None:
                verdicts[judged[0]] = judged[1]
        letter = the_right_one(verdicts, self._count)
        return Found(letter, len(text)) if letter else None

    def ticked(self, text: str) -> Found | None:
        """The option on the only line with a tick, in a list of all."""
        marked = [each for each in text.split("\n") if "✓" in each]
        match = _LISTED.match(marked[0]) if len(marked) == 1 else None
        said = {match["letter"]} if match is not None else self.named(marked[0]) if len(marked) == 1 else set()
        return Found(said.pop(), len(text)) if len(said) == 1 else None

    def ends_list(self, text: str, last: str) -> bool:
        """Whether the last line is one of several that go through the options."""
        item = _LISTED.match(last)
        if item is None or not last[item.end() :].strip(" *_"):
            return False
        return len({match["letter"] for match in _LISTED.finditer(text)}) > 1

    def before_others(self, text: str) -> Found | None:
        """The option that is all of the first line, where a list goes through others only."""
        first = line(text.lstrip())
        found = self.whole(first) if _LISTED.match(first) is None else None
        listed = {match["letter"] for match in _LISTED.finditer(text.lstrip()[len(first) :])}
        return found if found is not None and found.answer not in listed else None

    def mentioned(self, text: str) -> set[str]:
        """The options that a text names, by letter or by text."""
        named = {match["answer"] for match in self._patterns.named.finditer(text)}
        return named | self._options.mentioned(text)

    def _letter(self, said: str, match: re.Match[str], closed: bool, ends: bool) -> Found | None:
        letter, after = match["answer"].upper(), said[match.end() :]
        rest = line(after)
        bare = not closed and letter in _ALSO_A_WORD and not match["named"]
        if (
            bare
            and _WORD_FOLLOWS.match(rest)
            and not _REASON.match(rest)
            and bare_text(rest) != self._options.text(letter)
        ):
            return None
        if match["answer"].islower() and not closed and _WORD_FOLLOWS.match(rest) and not _REASON.match(rest):
            return None
        if ends and not (_END.match(rest) or (bare_text(rest) and self._says_option(bare_text(rest), letter, False))):
            return None
        if negated(rest):
            return Found("", match.end(), layers.NEGATED)
        other = self._patterns.other.match(rest)
        if other is not None and other["other"].upper() != letter:
            return Found("", match.end(), layers.AMBIGUOUS)
        return Found(letter, match.end())

    def _says_option(self, bare: str, letter: str, otherwise: bool, more: bool = True) -> bool:
        """Whether a text is the letter's own option, or with `more` begins with it; `otherwise` where
        it is not known."""
        option = self._options.text(letter)
        if not option:
            return otherwise
        begins = more and len(option) > 2 and re.match(rf"{re.escape(option)}(?!\w)", bare) is not None
        return bare == option or begins

    def _at_option(self, said: str, closed: bool) -> Found | None:
        text = said.lstrip()
        first = text if closed else line(text)
        if letter := self._options.same(first):
            return Found(letter, len(said) - len(text) + len(first))
        if (quoted := _CITED.match(first)) is not None and (letter := self._options.same(quoted["said"])):
            return Found(letter, len(said) - len(text) + quoted.end())
        if (counted := _BEGINS_COUNTED.match(first)) is not None and (letters := self._counted(counted["said"])):
            return Found(letters.pop(), len(said) - len(text) + counted.end())
        sentence = re.split(r"(?<=[\w)])[.!](?:\s|$)|\s\(|,? i\.e\.|,? (?:because|since|as)\b", first, maxsplit=1)[0]
        letter = self._options.same(sentence) if len(sentence) < len(first) else ""
        return Found(letter, len(said) - len(text) + len(sentence)) if letter else None


def _verdict_of(line: str) -> tuple[str, bool] | None:
    """The option with which a line begins, and whether the line calls it right."""
    item = _ITEM.match(line)
    said = verdict(line[item.end() :]) if item is not None else None
    return (item["letter"], said) if item is not None and said is not None else None
