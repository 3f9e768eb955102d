"""Rows of Excel workbooks, and workbooks that are meant to harm."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from services.results.datasets.files.cells import Strings
from services.results.datasets.frames import Limits, Refusal
from tests.unit.results.datasets.files.workbooks import sheet, texts, workbook
from tests.unit.results.uploads import upload

HEAD = texts(("question", "answer"))
TEMPLATE = "{{question}}"


def metadata(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(row.metadata) for row in upload(data, name="a.xlsx", template=TEMPLATE).rows]


def test_a_sheets_rows_are_read_whatever_the_file_is_called() -> None:
    data = workbook(HEAD + texts(("Capital of Peru?", "Lima"), ("And of Chile?", "Santiago")))
    made = upload(data, name="rows.csv")

    assert [row.messages[0].content for row in made.rows] == ["Capital of Peru?", "And of Chile?"]
    assert [row.reference for row in made.rows] == ['"Lima"', '"Santiago"']
    assert made.dataset is not None
    assert made.dataset.reading == (
        'Excel workbook of the sheet "Data", read as question and answer: prompt from question, reference from answer'
    )


def test_cells_have_the_values_that_the_sheet_shows() -> None:
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="0.0&quot; days&quot;"/>'
        '<numFmt numFmtId="165" formatCode="[Red]yyyy\\-mm"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="164"/><xf numFmtId="165"/>'
        "</cellXfs>"
    )
    strings = (
        "<si><t>shared</t></si><si><r><t>of </t></r><r><rPr/><t>runs</t></r><rPh><t>spoken</t></rPh></si>"
        "<si><t>line_x000D_end _x005F_x</t></si>"
    )
    cells = (
        '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c><c r="C2"><v>3</v></c>'
        '<c r="D2"><v>0.5</v></c><c r="E2" t="b"><v>1</v></c><c r="F2" s="1"><v>45292</v></c>'
        '<c r="G2" s="2"><v>45292.75</v></c><c r="H2" s="3"><v>4</v></c><c r="I2" s="4"><v>60</v></c>'
        '<c r="J2"><f>C2+1</f><v>4</v></c><c r="K2" t="str"><f>""</f><v></v></c><c r="L2" t="s"><v>2</v></c></row>'
    )
    head = texts(("question", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"))
    (row,) = metadata(workbook(head + cells, strings=strings, styles=styles))

    assert row == {
        "question": "shared",
        "b": "of runs",
        "c": 3,
        "d": 0.5,
        "e": True,
        "f": "2024-01-01",
        "g": "2024-01-01T18:00:00",
        "h": 4,
        "i": "1900-02-28",
        "j": 4,
        "k": None,
        "l": "line\rend _x",
    }


def test_dates_may_begin_in_1904() -> None:
    cells = '<row><c t="inlineStr"><is><t>q</t></is></c><c s="0"><v>1</v></c></row>'
    styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    data = workbook(HEAD + cells, styles=styles, properties='<workbookPr date1904="1"/>')

    assert metadata(data)[0]["answer"] == "1904-01-02"


def test_the_first_visible_sheet_is_read_and_named() -> None:
    sheets = (
        '<sheet name="Old" sheetId="1" state="hidden" r:id="rId1"/><sheet name="New" sheetId="2" r:id="rId4"/>'
        '<sheet name="Old 2" sheetId="3" r:id="rId1"/>'
    )
    made = upload(workbook(HEAD, sheets=sheets, parts={"xl/worksheets/sheet2.xml": sheet(HEAD + texts(("q", "a")))}))

    assert made.dataset is not None
    assert made.dataset.reading.startswith('Excel workbook of the sheet "New", the first of 2, read as')


TWO = '<sheet name="A &amp; B" sheetId="1" r:id="rId1"/><sheet name="Rows" sheetId="2" r:id="rId4"/>'


def test_another_sheet_is_read_by_its_name() -> None:
    data = workbook(HEAD, sheets=TWO, parts={"xl/worksheets/sheet2.xml": sheet(HEAD + texts(("q", "a")))})
    made = upload(data, sheet="Rows")

    assert made.dataset is not None
    assert made.dataset.reading.startswith('Excel workbook of the sheet "Rows", number 2 of 2, read as')
    which = 'Set sheet to one of: "A & B", "Rows".'
    assert upload(data).refusal == Refusal(f'The sheet "A & B" has no rows. {which}', "sheet")
    assert upload(data, sheet="rows").refusal == Refusal(f'The workbook has no visible sheet "rows". {which}', "sheet")
    assert upload(b"a,b", sheet="Rows").refusal == Refusal(
        "Only an Excel workbook has sheets. Leave sheet out.", "sheet"
    )


def test_a_sheet_of_charts_has_no_rows_to_read() -> None:
    """Its relation is of another kind; dialogs and macros are likewise."""
    made = upload(workbook(HEAD + texts(("q", "a")), sheets=TWO.replace("rId1", "rId3").replace("rId4", "rId1")))

    assert made.dataset is not None
    assert made.dataset.reading.startswith('Excel workbook of the sheet "Rows", read as')


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('<row r="7"><c r="A7"><f>1+1</f></c></row>', "Cell A7 holds a formula without its value"),
        ('<row r="7"><c r="B7" t="e"><v>#N/A</v></c></row>', 'Cell B7 holds the error "#N/A"'),
        ('<row r="7"><c r="AB7"><v>1</v></c></row>', "Cell AB7 is in a column without a name"),
        ('<row r="7"><c r="A7" t="s"><v>9</v></c></row>', 'Cell A7 holds "9", which cannot be read'),
        ('<row r="7"><c r="A7"><v>nan</v></c></row>', '"nan" is too large'),
        ('<row r="7"><c r="A7" t="inlineStr"><is><t>_x0000_</t></is></c></row>', "NUL character"),
    ],
)
def test_a_cell_that_cannot_be_used_is_named_by_its_place(row: str, reason: str) -> None:
    assert reason in upload(workbook(HEAD + row), template=TEMPLATE).reasons[7]


BOMB = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (workbook("", parts={"xl/worksheets/sheet1.xml": BOMB + sheet(HEAD)}), "declares XML entities"),
        (workbook(HEAD, parts={"xl/sharedStrings.xml": BOMB + "<sst/>"}), "declares XML entities"),
        (workbook(HEAD, parts={"xl/worksheets/sheet1.xml": b"<worksheet><sheetData><row>"}), "damaged or incomplete"),
        (workbook(HEAD, parts={"xl/worksheets/sheet1.xml": b"\xff\xfe\x00"}), "damaged or incomplete"),
        (workbook(HEAD, without=("xl/worksheets/sheet1.xml",)), "damaged or incomplete"),
        (workbook(HEAD, without=("[Content_Types].xml",)), "a ZIP archive, and not an Excel workbook"),
        (workbook(HEAD, without=("[Content_Types].xml",), parts={"mimetype": "x"}), "an OpenDocument file"),
        (workbook(HEAD, parts={"[Content_Types].xml": "<Types/>"}), "not an Excel workbook with sheets in XML"),
        (workbook(HEAD, sheets='<sheet name="a" state="veryHidden" r:id="rId1"/>'), "no visible sheet"),
        (workbook(texts(("question", "question"), ("a", "b"))), 'names "question" twice'),
        (workbook(""), "no rows"),
        (workbook(HEAD), "no rows"),
        (workbook(HEAD + texts(("a", "b")))[:-30], "damaged or incomplete"),
        (workbook(texts(tuple(f"c{place}" for place in range(1001)))), "1,001 columns"),
    ],
)
def test_a_workbook_that_cannot_be_read_is_refused(data: bytes, reason: str) -> None:
    assert reason in upload(data).refused


def test_a_zip_bomb_is_stopped_by_its_ratio() -> None:
    data = workbook(HEAD + texts(("a", "b")), strings="<si><t>" + "0" * 40_000_000 + "</t></si>")

    assert "bytes for each compressed one" in upload(data).refused


def test_a_workbook_without_rows_ends_when_its_time_is_over() -> None:
    data = workbook(HEAD + "<row/>" * 400_000)

    assert "CPU time" in upload(data, limits=Limits(small_cpu_s=0, cpu_s_per_mb=0)).refused


def test_a_cell_far_away_takes_no_room() -> None:
    rows = HEAD + '<row r="1048576"><c r="A1048576" t="inlineStr"><is><t>q</t></is></c></row>'
    made = upload(workbook(rows), template=TEMPLATE)

    assert [row.messages[0].content for row in made.rows] == ["q"]


def test_shared_texts_take_little_memory_and_keep_every_character() -> None:
    strings = Strings()
    tracemalloc.start()
    try:
        for number in range(20_000):
            strings.texts.append(f"Text number {number}")
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 20_000 * 40, "a list of them takes 75 bytes for each"
    for text in ("", "Größe 你好 🙂", "half \ud83d", "a\0b"):
        strings.texts.append(text)
    assert [strings.texts[20_000 + place] for place in range(4)] == ["", "Größe 你好 🙂", "half \ud83d", "a\0b"]
    assert strings.texts[19_999] == "Text number 19999"
    for number in (20_004, -1):
        with pytest.raises(IndexError):
            strings.texts[number]
