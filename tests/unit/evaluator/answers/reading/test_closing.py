"""Sentences at the end of a solution: which states the number, and which remarks on it."""

from __future__ import annotations

import pytest

from services.evaluator.answers.reading.closing import is_remark
from services.evaluator.answers.reading.number import NumberKind
from services.evaluator.answers.reading.reader import AnswerReader


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("A coat is $90. A third is taken off: 90 - 30 = 60. She pays $60. She saves $30!", "60"),
        ("24 / 6 = 4. Each child gets 4 plums. There are 6 happy children.", "4"),
        ("Price: 50 × 0.9 = 45 euros.\n\nYou pay 45 euros. That's a saving of 5 euros.", "45"),
        ("The ticket was $80, so after the discount of $20 he pays $60. He got $20 off!", "60"),
        ("x + 9 = 14, so x = 5. You can check it: 5 + 9 = 14.", "5"),
        ("The bus goes at 150 / 3 = 50 km/h. That is slower than the limit of 60 km/h.", "50"),
        ("Total: 36\n\nRemember that a week has 7 days and not 5.", "36"),
        ("The area is 28.27 m².\n\nNote: with π = 3 you get 27.", "28.27"),
        ("It equals 45, not 54.", "45"),
        ("The answer isn't 45 but 54.", "54"),
        ("That is 40 percent, well above the 25 percent of last year.", "40"),
        ("It ran until 1961, two years after the 1959 storm.", "1961"),
        ("Altogether she pays $18, which leaves $2 of her $20.", ""),
    ],
)
def test_a_remark_on_a_number_is_not_its_answer(text: str, number: str) -> None:
    assert AnswerReader()(text, NumberKind()).answer == number


@pytest.mark.parametrize(
    "text",
    [
        "Lea is 11. Her brother is 7.",
        "They need 5 boxes. With 4 boxes, 12 cups are left over.",
        "The walk takes 90 minutes. That's 1.5 hours.",
        "The sack weighs 2 kg, i.e. 2,000 g.",
        "It takes 14 days, which is exactly 2 weeks.",
    ],
)
def test_of_two_numbers_that_both_may_be_asked_for_none_is_read(text: str) -> None:
    assert AnswerReader()(text, NumberKind()).answer == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("He has 3 bags. Each holds 8 nuts. So he has 24 nuts.", "24"),
        ("Half of 30 is 15. The sum is 45.", "45"),
        ("3 × 5 = 15. With the 2 old ones that makes 17.", "17"),
        ("Six of the eight rows are full. That's 75 percent.", "75"),
        ("The original price was $70.", "70"),
        ("The first runs 8 km. The total comes to 20 km.", "20"),
        ("She got $4 back: four coins.", "4"),
        ("15% of 60 is 9. Then 60 − 9 = 51. The shirt costs $51, and you save $9.", "51"),
        ("3 × 40 = 120\n\nHe has 120 cents, or $1.20.", "120"),
        ("The numbers are 12 and 5, and the larger is 12.", "12"),
        ("The net gain is -$3, i.e. you lose three dollars.", "-3"),
        ("It rose from 11 °C to 19 °C, a change of 8 degrees.", "8"),
        ("That leaves 6 weeks and **2** days.", "2"),
        (
            "212 °F is equal to 100 °C.\n\nHere's how to convert: subtract 32, then multiply by 5/9 (180 × 5/9 = 100).",
            "100",
        ),
        ("It lasts about 12 years. This property makes it useful for up to 90 loads.", "12"),
        ("1. Price: $50 × 2 = $100\n2. Final price: $100 − $20 = **$80**\n\nYou save a total of $20!", "80"),
        ("The ratio is 3 : 4, which as a decimal is 0.75.", "0.75"),
        ("5 × 2 × 3 = 30\n\nThe tank holds 30 m³, which is 30,000 litres.", "30"),
        ("n = 54 g / 18 g/mol = 3 mol\n\n**Therefore, 54 g of it contain 3 moles.**", "3"),
        ("Time: 400 / 100 = 4 h.\n\nAt that point, the first has gone 180 km and the second 220 km.", "4"),
        ("300 ÷ 24 = 12.5\n\nSo she ends on **day 13**.", "13"),
        ("Distance: 30 km. Time: 2 h. Speed: 15 km/h.", "15"),
        ("30 × 6 = 180\n\n**Interest: $180**\n\nNote: with a bonus it would be $200.", "180"),
        ("It takes 4 hours (from 9 a.m. to 1 p.m.).", "4"),
    ],
)
def test_a_step_that_goes_on_to_the_answer_is_read(text: str, number: str) -> None:
    assert AnswerReader()(text, NumberKind()).answer == number


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("I rate it 7 out of 10. The text is clear, although 3 names are missing.", "7"),
        ("A weak 4. It has 2 good ideas and 5 gaps.", "4"),
        ("6 – the plot holds, but 2 of the 3 endings don't.", "6"),
        ("Two of the four facts are wrong. Score: 5", "5"),
        ("The story would get a 9 for style and a 5 for facts, so 7 overall.", "7"),
        ("Rating: 6/10. To get to 9/10, it needs 2 more sources.", "6"),
        ("It's no 2, and not an 8 either. Let's say 5.", "5"),
        ("Initially I thought of 3. The ending is fine, so I settle on 4.", "4"),
        ("Style: 8\nFacts: 6", ""),
        ("Style: 8\nFac", ""),
        ("I'd put it at a **4**. Many find such puns hard to get, although 2 are plain.", "4"),
        ("**Style: 9/10**\n\n**Next steps:**\n1. Add a title\n2. Cut it if possible", "9"),
        ("**Style: 8**\n\nReasons:\n- Clear (3 examples)\n- 1 joke", "8"),
        ("It was 8/10 at first, and is 3/10 now.\n\nPresent style: 3", "3"),
        ("It could be a 5 or a 6.", ""),
    ],
)
def test_a_rating_is_read_among_other_numbers(text: str, rating: str) -> None:
    assert AnswerReader()(text, NumberKind((1, 10))).answer == rating


def test_a_remark_is_about_the_number_before_it() -> None:
    assert is_remark("That is more than enough for 20 guests.")
    assert is_remark("Keep in mind that 5 are spare.")
    assert not is_remark("That is 20.")
