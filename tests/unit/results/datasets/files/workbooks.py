"""Excel workbooks, written part by part as the format has them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_SHEET}"/></Types>'
)


def sheet(rows: str) -> str:
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def texts(*rows: tuple[str, ...]) -> str:
    """Rows of texts that are within the cells."""
    made = []
    for row in rows:
        cells = "".join(f'<c t="inlineStr"><is><t xml:space="preserve">{cell}</t></is></c>' for cell in row)
        made.append(f"<row>{cells}</row>")
    return "".join(made)


def workbook(
    rows: str,
    *,
    strings: str = "",
    styles: str = "",
    sheets: str = '<sheet name="Data" sheetId="1" r:id="rId1"/>',
    properties: str = "",
    parts: Mapping[str, str | bytes] | None = None,
    without: tuple[str, ...] = (),
) -> bytes:
    """A workbook whose first relation is a sheet of these rows. `parts` replaces or adds parts."""
    kinds = ("worksheet", "sharedStrings", "styles", "worksheet")
    targets = ("worksheets/sheet1.xml", "sharedStrings.xml", "/xl/styles.xml", "worksheets/sheet2.xml")
    relations = "".join(
        f'<Relationship Id="rId{place}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for place, (kind, target) in enumerate(zip(kinds, targets, strict=True), start=1)
    )
    found: dict[str, str | bytes] = {
        "[Content_Types].xml": TYPES,
        "xl/workbook.xml": (
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">{properties}<sheets>{sheets}</sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": f"<Relationships>{relations}</Relationships>",
        "xl/worksheets/sheet1.xml": sheet(rows),
        "xl/worksheets/sheet2.xml": sheet(""),
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{strings}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}">{styles}</styleSheet>',
    }
    found |= parts or {}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in found.items():
            if name not in without:
                archive.writestr(name, content)
    return data.getvalue()
