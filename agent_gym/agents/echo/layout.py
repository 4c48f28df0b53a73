"""Where the numbers of an echo and of a seen bar stand in memory; all slots are eight bytes."""

from __future__ import annotations

# One echo: who it is, then what it holds. KEY is a whole number, all others are float64.
FAMILY = 0
FIRST_PARAMETER = 1  # four of them
SIDE = 5  # +1 or -1, for those who only ever stand on one side
KEY = 6
CAPITAL = 7  # in average daily volumes
POSITION = 8  # in units of its capital
PREVIOUS = 9  # the position before the last decision
ENTRY = 10  # the best or worst log price since the stage began
STAGE = 11
ECHO_SLOTS = 12

# One seen bar. Prices are logarithms.
CLOSE = 0
HIGH = 1
LOW = 2
SIGMA = 3
VALUE = 4
FLOW = 5  # what those who take liquidity ask for after this bar, in average daily volumes
DEPTH = 6  # what the makers offer against it
FILL = 7  # at which price the demands decided before this bar were filled in it
SEEN_SLOTS = 8

MOMENTUM, MEAN_REVERSION, BREAKOUT, MARKET_MAKER = 0, 1, 2, 3
TREND_VOL_TARGET, VALUE_TRADER, NOISE, STOP_CASCADE = 4, 5, 6, 7

# The crowd as a kernel gets it: addresses and counts are whole numbers, COST and what the kernel
# leaves in NET and GROSS are float64.
ECHOES_AT = 0
ECHO_COUNT = 1
SEEN_AT = 2
SEEN_MASK = 3
COST = 4
DEMAND_AT = 5
GROWTH_AT = 6
POSITION_AT = 7
NET = 8  # sum of all demands after the last decision, in average daily volumes
GROSS = 9  # sum of their sizes
CROWD_SLOTS = 10
