"""The one look of all reports: a page that needs nobody, and the parts that pages are made of.

Belongs here: head, policy, style, script, the answer at the top, the origin at the foot, tables,
sections. It knows no kind of report. Colours and print rules stand once, in ``assets/page.css``.
"""

from agent_gym.evaluation.page.frame import (
    Answer,
    Origin,
    Own,
    Page,
    Theme,
    embedded,
    kind_of,
    whole_page,
)
from agent_gym.evaluation.page.parts import (
    SIGNS,
    Light,
    chip,
    command,
    pairs,
    paragraph,
    section,
    table,
    tiles,
)

__all__ = [
    "SIGNS",
    "Answer",
    "Light",
    "Origin",
    "Own",
    "Page",
    "Theme",
    "chip",
    "command",
    "embedded",
    "kind_of",
    "pairs",
    "paragraph",
    "section",
    "table",
    "tiles",
    "whole_page",
]
