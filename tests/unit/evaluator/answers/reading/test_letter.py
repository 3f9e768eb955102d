"""Which letters count as the answer to a question with options."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading import layers
from services.evaluator.answers.reading.layers import Extraction, Layer
from services.evaluator.answers.reading.letter import LetterKind
from services.evaluator.answers.reading.reader import AnswerReader
from tests.growth import is_about_linear
from tests.parts import NIGHTLY

OPTIONS = {
    "A": "The first pharyngeal arch",
    "B": "A lesion of the nerve",
    "C": "Carpal tunnel",
    "D": "None of the above",
}
STRICT = AnswerReader(["Question"], Layer.STRICT)


def strictly(text: str) -> Extraction:
    return STRICT(text, LetterKind(4, OPTIONS))


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: B", "B"),
        ("answer: b.", "B"),
        ("**Answer:** (C)", "C"),
        ("Answer: **D**", "D"),
        ("Answer: <A>", "A"),
        ("Answer: $\\boxed{B}$", "B"),
        ("Answer: Option C", "C"),
        ("Answer: B. A lesion of the nerve", "B"),
        ("Answer: B) A lesion of the nerve", "B"),
        ("Answer: B - A lesion of the nerve", "B"),
        ("Answer: C because a carpal tunnel is narrow and D is wrong", "C"),
        ("Answer: A because the arch comes first", "A"),
        ("Answer: A, the first arch", "A"),
        ("Answer: A The first pharyngeal arch.", "A"),
        ("Answer: \\(B\\)", "B"),
        ("Answer: \\[\\boxed{(B)}\\]", "B"),
        ("Answer: \\textbf{(B)}", "B"),
        ("Answer: A\nA is right since it comes first.", "A"),
        ("A and B are tempting.\n\nAnswer: D", "D"),
        ("Answer: A\nNo, wait.\nAnswer: C", "C"),
        ("<think>Answer: A</think>Answer: C", "C"),
        ("Answer: B\n\nQuestion: and the next one?\nAnswer: D", "B"),
    ],
)
def test_letter_after_the_marker_is_the_answer(text: str, letter: str) -> None:
    found = strictly(text)
    assert (found.answer, found.how) == (letter, layers.BY_MARKER)


@pytest.mark.parametrize(
    ("text", "letter", "how"),
    [
        ("The correct answer is D.", "D", layers.BY_SENTENCE_MARKER),
        ("Answer: carpal tunnel.", "C", layers.BY_MARKER),
        ("Answer: A lesion of the nerve", "B", layers.BY_MARKER),
        ("Answer: **None of  the above**", "D", layers.BY_MARKER),
        ("B", "B", layers.WHOLE_RESPONSE),
        ("(B)", "B", layers.WHOLE_RESPONSE),
        ("**C.**", "C", layers.WHOLE_RESPONSE),
        ("C. Carpal tunnel", "C", layers.WHOLE_RESPONSE),
        ("Carpal tunnel", "C", layers.WHOLE_RESPONSE),
    ],
)
def test_option_given_in_other_ways_is_the_answer(text: str, letter: str, how: str) -> None:
    found = strictly(text)
    assert (found.answer, found.how) == (letter, how)


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("", layers.NO_MARKER),
        ("I would say B.", layers.NO_MARKER),
        ("A is tempting, D is right", layers.NO_MARKER),
        ("B. Carpal tunnel", layers.NO_MARKER),
        ("b is the second letter", layers.NO_MARKER),
        ("Answer: B or C", layers.AMBIGUOUS),
        ("Answer: (B) and (C)", layers.AMBIGUOUS),
        ("Answer: B, D", layers.AMBIGUOUS),
        ("Answer: A/B", layers.AMBIGUOUS),
        ("Answer: E", layers.NO_LABEL),
        ("Answer: a nerve", layers.NO_LABEL),
        ("Answer: Both", layers.NO_LABEL),
        ("Answer: <letter>\nwhere <letter> is one of: A, B, C, D.", layers.NO_LABEL),
        ("The answer is not B.", layers.NO_LABEL),
        ("<think>Answer: B", layers.NO_MARKER),
    ],
)
def test_anything_else_is_no_answer(text: str, how: str) -> None:
    found = strictly(text)
    assert (found.answer, found.how) == ("", how)


def test_answer_to_an_invented_next_question_does_not_stand_in_for_several() -> None:
    text = "Answer: B or C\n\nQuestion: and the next one?\nAnswer: D"
    assert AnswerReader(["Question"])(text, LetterKind(4, OPTIONS)).how == layers.AMBIGUOUS


def test_option_with_the_text_of_another_is_told_by_letter_only() -> None:
    twice = {"A": "Both", "B": "Both"}
    assert STRICT("Answer: Both", LetterKind(2, twice)).answer == ""
    assert STRICT("Answer: B. Both", LetterKind(2, twice)).answer == "B"


@pytest.mark.parametrize(
    ("text", "letter"), [("Answer: J", "J"), ("Answer: I", "I"), ("Answer: I think so", ""), ("Answer: I, J", "")]
)
def test_ten_options_have_a_letter_that_is_a_word(text: str, letter: str) -> None:
    assert STRICT(text, LetterKind(10)).answer == letter


ANIMALS = {"A": "Otter", "B": "Heron", "C": "Newt"}


def leniently(text: str) -> str:
    return AnswerReader()(text, LetterKind(3, ANIMALS)).answer


@pytest.mark.parametrize(
    "text",
    [
        "Herons lay eggs and have feathers, unlike newts.",
        "The heron has feathers. The other two have none.",
        "Only the second one is a bird. The others have fur or a moist skin.",
        "The second option is the correct one: it doesn't have fur.",
        "An otter is a mammal, so A is out. C is an amphibian. So the best answer has to be B",
        "B is the bird here. Whatever you pick, don't pick A.",
        "You should never take the otter for a bird. It must be the heron.",
        "It isn't the otter, nor the newt. The heron has feathers.",
        "It has feathers, so B. The otter (A) only swims.",
        "I would lean towards B, though C also lays eggs.",
        "Both lay eggs, but the heron is the only bird.",
        "It lays eggs and flies. (B)",
        "The answer is therefore the second option.",
        "So:\n- A is wrong, as it has fur.\n- B is correct.\n- C is wrong.",
        "The biggest difference is the otter's fur.\n\nB is right and the others are not.",
        "Pick the **heron (Option B)**, which must be it.\n\nThe others:\n- **Otter (A):** fur\n- **Newt (C):** skin.",
        "Otters and newts swim. The heron flies.",
        "We look for feathers or a beak. The animal with both is called a heron.",
        "**Animal B**",
        "Most likely: **Heron (Ardea cinerea)**\n\n| Sign | Heron | Newt |\n|---|---|---|\n| Skin | no | yes |",
        "Heron (B), the largest wader. The otter comes next.",
        "Ardea (heron), since it has feathers. The otter has fur.",
        "The animal with feathers is the **heron**\n\n- It flies\n- It wades",
        "1. Otter: 8 kg\n2. Heron: 2 kg\n3. Newt: 0.01 kg\n\nSo the bird among them is the heron.",
        "Otters and newts have no feathers. Herons do.\n\nB is accurate.",
        "**Diagnosis: heron (adult)**\n\nSigns:\n- feathers\n- a long beak",
        "It is the **heron**.\n\nWhile an otter may also wade, it has fur.\n\nPlease see a zoologist for more.",
        "Before anything else, look at the skin. The heron is the northernmost bird here.",
        "It is the heron.\n\n*This reply is for general information only, and no expert has seen it.*",
        "B\n\nNext question: Which one has fur?\nA. Newt\nB. Heron\nC. Otter\n\nThe correct option is C.",
    ],
)
def test_an_option_is_claimed_beside_others(text: str) -> None:
    assert leniently(text) == "B"


@pytest.mark.parametrize(
    "text",
    [
        "Both A and C swim, but an otter is small.",
        "The otter swims; the heron flies.",
        "Statement A says that it swims; the text does not. Statement B says that it flies. Statement C has no source. "
        "None of the options fits.",
        "Otters swim well. Herons wade through reeds, which",
        "Otters have fur. Herons",
        '```json\n{"reasoning": "The heron has',
        "A (otter): it has fur.\nB (heron): it has feathers.\nC (newt): it has neither.",
        "**Option A: Otter** – it has fur.\n\n**Option B: Heron** – known for its long",
        "- **Otter** → fur\n- **Newt** → skin\n- **Heron** → feathers",
        "The pond was dug in 1948. The mill, the heron, and the weir followed in 1949.",
        "The otter owns the pond. Since the newt has no nest, the heron must own it, and the newt has the ditch.",
        "The right answers are A and C. Both swim, whereas herons wade.",
        "It may be the otter, so A is plausible. B fits as well. Both readings can be defended equally well.",
    ],
)
def test_an_option_that_is_only_talked_about_is_not_read(text: str) -> None:
    assert leniently(text) == ""


def test_plurals_and_articles_tell_options_apart_where_nothing_else_does() -> None:
    plurals = LetterKind(3, {"A": "gooses", "B": "geese", "C": "goose"})
    assert AnswerReader()('The plural of goose is "geese".', plurals).answer == "B"
    keys = LetterKind(2, {"A": "E minor", "B": "A minor"})
    assert AnswerReader()("It is the relative minor of C.", keys).answer == ""


WRITERS = {"A": "Mary Shelley", "B": "Emily Dickinson", "C": "Walt Whitman"}
METALS = {"A": "Iron", "B": "Gold", "C": "Neon"}


def test_a_surname_and_an_odd_one_out_name_an_option() -> None:
    read = AnswerReader()
    assert read("It was written by Dickinson around 1861.", LetterKind(3, WRITERS)).answer == "B"
    assert read("Iron and gold conduct well. Neon doesn't.", LetterKind(3, METALS)).answer == "C"
    assert read("The right answers are A and B. Neon isn't.", LetterKind(3, METALS)).answer == ""


LONG = {
    "A": "Heat travels faster than cold",
    "B": "A careful survey of 300 farms",
    "C": "Seeds, roots, leaves, fruits",
    "D": "The roof was painted",
}


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Because heat travels much faster than the cold does, the pipe warms up first.", "A"),
        ("The best source would be a careful survey, as it is based on numbers.", "B"),
        ("The order is: Seeds → Roots → Leaves → Fruits.", "C"),
        ("The workers painted the roof of the barn.", "D"),
        ("The workers painted the barn.", ""),
        ("Heat doesn't travel faster than cold.", ""),
    ],
)
def test_an_option_is_known_by_its_words(text: str, letter: str) -> None:
    assert AnswerReader()(text, LetterKind(4, LONG)).answer == letter


@pytest.mark.parametrize(
    "unit",
    [
        *("a", "A", " ", "\n", "answer: A ", "answer: ", "answer: A or ", "A,", "(", "answer: option ", "B. ", "*"),
        *("A is best. ", "It is A. ", "so A and since B, "),
    ],
)
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    def read(size: int) -> None:
        text = unit * (size // len(unit))
        strictly(text)
        AnswerReader()(text, LetterKind(4, OPTIONS))

    assert is_about_linear(read, 1 << (17 if NIGHTLY else 16))
