"""The tear sheet: one offline page about a run, and the same as JSON, CSV and a picture.

``Sheet`` says what is shown, ``sheet_of`` makes one from backtests, ``write_sheet`` writes it in
the format that the name ends with. Each chart of ``tearsheet.options`` is a pure function that
returns an ECharts option.
"""

from agent_gym.evaluation.tearsheet.backtests import sheet_of
from agent_gym.evaluation.tearsheet.export import FORMATS, format_of, payload_of, write_sheet
from agent_gym.evaluation.tearsheet.page import page_of
from agent_gym.evaluation.tearsheet.sheet import Band, Regime, Sheet, Versus
from agent_gym.evaluation.tearsheet.thinning import regime_spans

__all__ = [
    "FORMATS",
    "Band",
    "Regime",
    "Sheet",
    "Versus",
    "format_of",
    "page_of",
    "payload_of",
    "regime_spans",
    "sheet_of",
    "write_sheet",
]
