"""The texts of options, how sentences mention them, and which of them a reply says is right or wrong. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_TRIMMED = " \t\r\n\u00a0*_`\"'“”‘’«»<>()[]{}$.,;:!?…✓"
_LIGHTLY = ' \t\r\n\u00a0*`"“”.!✓'
_INTRODUCED = re.compile(r"^(?:option [0-9] ?[:.)]? ?|(?:the|an?) |[a-z] ?= ?)[\"'“‘]?")
_ARTICLE = re.compile(r"^(?:the|an?) (?=...)")
_JOINING = frozenset("→–—-|>,;")
_LATEX = re.compile(
    r"\\(?:left|right|displaystyle|,|;|!| )|\\(?:text|mathrm|mathbf)\{([^{}]*)\}|\^?\{?\\circ\}?|\\(?=[A-Za-z%])"
)
_NEARLY_ALL = 0.7
"""Share of an option's words that a text has which says it in other words."""
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_FILLERS = {
    "the", "and", "for", "with", "that", "this", "from", "are", "was", "were", "has", "have", "its", "into", "than",
    "then", "when", "which", "who", "not", "does",
}  # fmt: skip
_ENDING = re.compile(r"(?:ing|ed|es|s|e|ly|d)$")
_TOLD = re.compile(r"[ ]\([^()\n]{1,80}\)[\s*_.:]*\Z")
_NAME = re.compile(r"(?:[A-Z][\w.'’-]* ){1,3}[A-Z][\w'’-]{3,}")
_HEAD = 3
"""Words by which a long option is known."""
_MOST = 4000
"""Characters of the longest text that may be an option."""


class Options:
    """`texts` by their letters, as far as they are known."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._bare = {letter: bare_text(text) for letter, text in texts.items()}
        self._exact = {letter: text.strip(_LIGHTLY).casefold() for letter, text in texts.items()}
        self._words = {letter: " ".join(_words(text)) for letter, text in texts.items()}
        self._stems = _stems(self._words)
        self._heads = _heads(self._words)
        self._surnames = _surnames(texts)

    @property
    def texts(self) -> Collection[str]:
        """Without decoration, in lower case."""
        return self._bare.values()

    def text(self, letter: str) -> str:
        """Without decoration, in lower case; empty where it is not known."""
        return self._bare.get(letter, "")

    def same(self, text: str) -> str:
        """The letter of the only option with this text, or an empty string."""
        if len(text) > _MOST:
            return ""
        exact = text.strip(_LIGHTLY).casefold()
        if len(alike := [letter for letter, option in self._exact.items() if option == exact]) == 1 and exact:
            return alike[0]
        said = bare_text(text)
        # "Croup (laryngotracheitis)" and "Diamond (D)" are told of.
        told = _TOLD.search(text)
        named: tuple[str, ...] = ()
        if told is not None and len(text[: told.start()].split()) < _HEAD:
            # "O− (O negative)".
            named = (bare_text(text[: told.start()]), bare_text(told[0]))
        elif told is not None:
            named = (bare_text(text[: told.start()]),)
        for bare in (said, _INTRODUCED.sub("", said), *named):
            alike = [letter for letter, option in self._bare.items() if option == bare] if bare else []
            if len(alike) == 1:
                return alike[0]
        return ""

    def begun(self, text: str) -> list[str]:
        """The letters of the options with whose texts this one begins."""
        said = bare_text(text)
        return [letter for letter, option in self._bare.items() if option and said.startswith(option)]

    def mentioned(self, text: str) -> set[str]:
        """The letters of the options whose texts a text holds."""
        words = _words(text)
        plain, stems = f" {' '.join(words)} ", f" {' '.join(map(stem, words))} "
        said = {
            letter
            for letter, option in self._words.items()
            if ((len(option) > 2 or any(map(str.isdigit, option))) and f" {option} " in plain)
            or (len(option) > 2 and f" {self._stems[letter]} " in stems)
            or (option.isdigit() and f" {option}°" in plain)
        }
        said = said or {letter for letter, head in self._heads.items() if f" {head} " in plain}
        if self._surnames:
            names = {word.strip(_TRIMMED) for word in text.split()}
            said |= {letter for letter, name in self._surnames.items() if name in names}
        # The text of one option may hold that of another.
        return {
            letter
            for letter in said
            if not any(other != letter and self._words[letter] in self._words[other] for other in said)
        }

    def lacks_number(self, number: str) -> bool:
        """Whether all options have numbers, and none has this one."""
        wanted = re.sub(r"\D", "", number.rstrip(".,").removesuffix(".00"))
        numbers = [{re.sub(r"\D", "", each) for each in _NUMBER.findall(option)} for option in self._bare.values()]
        return all(numbers) and not any(wanted in each for each in numbers)

    def in_other_words(self, text: str) -> str:
        """The letter of the only option with nearly all of whose words a text is made; else empty."""
        said = _roots(text)
        shares = {
            letter: len(roots & said) / len(roots)
            for letter, option in self._bare.items()
            if len(roots := _roots(option)) > 1
        }
        best = max(shares, key=shares.__getitem__, default="")
        others = [share for letter, share in shares.items() if letter != best]
        return best if best and shares[best] >= _NEARLY_ALL and max(others, default=0) <= shares[best] / 2 else ""

    def without_denials(self, sentence: str, denial: re.Pattern[str]) -> str:
        """The sentence without the text of an option that itself has a `denial`, as "cannot be determined"."""
        plain = " ".join(map(bare_text, sentence.split()))
        for option in self._bare.values():
            if option and denial.search(option) and option in plain:
                return plain.replace(option, "")
        return sentence


def bare_text(text: str) -> str:
    """In lower case, without white space, Markdown, LaTeX and punctuation around it."""
    if "{" in text:
        text = re.sub(r"(?<=[\^_])\{(\w{1,3})\}", r"\1", text)
    if "\\" in text:
        text = re.sub(r"\\[dt]?frac\{(\w{1,9})\}\{(\w{1,9})\}", r"\1/\2", text)
        text = _LATEX.sub(lambda found: "°" if "circ" in found[0] else found[1] or "", text)
    return " ".join(text.replace("**", "").replace("’", "").replace("'", "").strip(_TRIMMED).split()).casefold()


def _roots(text: str) -> set[str]:
    """Words that carry meaning, without their endings."""
    words = (word for word in re.findall(r"[^\W_]+", text.lower()) if len(word) > 2 and word not in _FILLERS)
    return {_ENDING.sub("", word) if len(word) > 4 else word for word in words}


def _words(text: str) -> list[str]:
    return [bare for word in text.split() if word not in _JOINING and (bare := bare_text(word))]


def _stems(options: Mapping[str, str]) -> dict[str, str]:
    """The options as sentences mention them: without articles and plurals, unless these tell them apart."""
    articles = bool(options) and all(map(_ARTICLE.match, options.values()))
    stems = {
        letter: " ".join(map(stem, (_ARTICLE.sub("", text) if articles else text).split()))
        for letter, text in options.items()
    }
    begun = {text[: max(4, len(text) - 3)] for text in options.values()}
    return stems if len(begun) == len(options) == len(set(stems.values())) else dict(options)


def _heads(options: Mapping[str, str]) -> dict[str, str]:
    """The first words of long options, where no other begins alike."""
    heads = {letter: " ".join(text.split()[:_HEAD]) for letter, text in options.items()}
    begun = list(heads.values())
    return {
        letter: head
        for letter, head in heads.items()
        if len(options[letter].split()) > _HEAD + 1 and len(head) > 12 and begun.count(head) == 1
    }


def _surnames(texts: Mapping[str, str]) -> dict[str, str]:
    """The last words of options that are all names of two or three words, where these differ."""
    if not texts or not all(map(_NAME.fullmatch, texts.values())):
        return {}
    last = {letter: text.split()[-1] for letter, text in texts.items()}
    return last if len(set(last.values())) == len(last) else {}


def stem(word: str) -> str:
    """A word of lower case without the ending of a plural."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "sui":
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("xes", "ches", "shes", "sses")) else word[:-1]


_VERDICT = re.compile(
    r"(?:\A[\s*_:–—-]{0,6}|[.:–—|(\[→=-][\s*_(]{1,6}|[|(\[→]|, )(?:this (?:is|one is) |that is |it is |is )?"
    r"(?P<no>not |in)?(?P<said>correct|right|true|accurate|wrong|false|incorrect|inaccurate|"
    r"yes|no|✓|fits|matches|(?:this |it )(?:fits|matches)(?: best| well)?|unlikely|eliminated|excluded|ruled out|"
    r"does(?:n['’]t| not) fit|(?:highly |very )?likely)\b"
    r"(?=[\s*_]{0,4}(?:\Z|[.,;:!)\]|–—-]|because\b|since\b|as\b|option\b|answer\b|choice\b))"
    r"|(?P<tick>✓)",
    re.IGNORECASE,
)
_RIGHT = ("correct", "right", "true", "accurate", "yes", "✓")
_FITS = re.compile(r"(?<!doesn['’]t )(?<!does not )\b(?:fits|matches|likely)\b")
_LONGEST = 400


def verdict(said: str) -> bool | None:
    """Whether what is said of an item calls it right; None where it does neither."""
    match = _VERDICT.search(said[:_LONGEST])
    if match is None:
        return None
    if match["tick"] is not None:
        return True
    said = match["said"].lower()
    return (said in _RIGHT or _FITS.search(said) is not None) != bool(match["no"])


def the_right_one(verdicts: Mapping[str, bool], count: int) -> str:
    """The only item that is called right, where all `count` are judged, or none after it; else empty."""
    right = [item for item, is_right in verdicts.items() if is_right]
    if len(right) != 1 or len(verdicts) < 2:
        return ""
    return right[0] if len(verdicts) >= count or right[0] == list(verdicts)[-1] else ""
