"""Read market files of others: CSV, Parquet and Feather become checked ``Bars``, or an error."""

from agent_gym.markets.readers.funding import FundingRates, attach_funding, read_funding
from agent_gym.markets.readers.request import ReadRequest, parse_time
from agent_gym.markets.readers.series import RawBars, read_bars, read_raw

__all__ = [
    "FundingRates",
    "RawBars",
    "ReadRequest",
    "attach_funding",
    "parse_time",
    "read_bars",
    "read_funding",
    "read_raw",
]
