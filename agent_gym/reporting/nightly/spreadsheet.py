"""All findings as CSV, for those who want to sort them their own way."""

from __future__ import annotations

import csv
import io

from agent_gym.reporting.nightly.documents import KEYS, diff_document
from agent_gym.reporting.nightly.run import NightlyResult

COLUMNS = (
    *("scenario", "metric", "word", "severity", "stage", "unit", "direction", "n", "base", "cand"),
    *("loss", "delta_abs", "delta_rel", "p", "p_holm", "effect", "mde", "replay", "why"),
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "|", "%")


def findings_csv(result: NightlyResult) -> str:
    """Return the findings of ``diff_document``, one a line; no cell of text is a formula."""
    document = diff_document(result)
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key in KEYS.values():
        for entry in document[key]:
            writer.writerow([_cell(entry[column]) for column in COLUMNS])
    return sheet.getvalue()


def _cell(value: object) -> object:
    """Return a cell that spreadsheets take as it is: text that would be a formula is quoted."""
    if not isinstance(value, str):
        return "" if value is None else value
    line = " ".join(value.split())
    return f"'{line}" if line.startswith(FORMULA) else line
