"""The price curves of two prediction-market makers, as scalar parts for kernels.

Both makers are cost functions of the shares outstanding. With ``gap`` = YES shares less NO shares,
traders have paid  max(yes, no) + slack(gap)  in all (up to a constant): what the maker owes in the
worst case, and a slack that falls from its largest value at gap 0 to nothing. The price of YES is
the slope. So a trade costs the integral of the price, a round trip costs nothing before fees, and
the maker cannot lose more than slack(0).

``scale`` is b of the logarithmic market scoring rule (LMSR), or the geometric mean of the two pools
of a constant-product maker (CPMM). No part overflows: what grows is written as a logarithm of a sum
of exponentials, or as a hypotenuse.
"""

from __future__ import annotations

import math

from agent_gym.core.kernels import inlined


@inlined
def lmsr_slack(gap: float, scale: float) -> float:
    """Return b * ln(1 + exp(-|gap| / b))."""
    return scale * math.log1p(math.exp(-abs(gap) / scale))


@inlined
def lmsr_price(gap: float, scale: float) -> float:
    """Return the price of YES: a logistic curve that never loses a small price to rounding."""
    tail = math.exp(-abs(gap) / scale)
    low = tail / (1.0 + tail)
    return low if gap < 0.0 else 1.0 - low


@inlined
def lmsr_gap(price: float, scale: float) -> float:
    """Return the gap at which YES has the given price, which lies inside 0 and 1."""
    return scale * (math.log(price) - math.log1p(-price))


@inlined
def lmsr_cost(gap: float, shares: float, scale: float) -> float:
    """Return what YES shares cost from a gap on; sold ones are negative. For NO, negate the gap."""
    after = gap + shares
    owed = max(after, 0.0) - max(gap, 0.0)
    return owed + (lmsr_slack(after, scale) - lmsr_slack(gap, scale))


@inlined
def cpmm_slack(gap: float, scale: float) -> float:
    """Return the smaller of the two pools: their product is scale^2, their difference the gap."""
    half = 0.5 * abs(gap)
    return scale * (scale / (math.hypot(half, scale) + half))


@inlined
def cpmm_price(gap: float, scale: float) -> float:
    """Return the price of YES: the share of the NO pool in both."""
    low = 0.5 * cpmm_slack(gap, scale) / math.hypot(0.5 * gap, scale)
    return low if gap < 0.0 else 1.0 - low


@inlined
def cpmm_gap(price: float, scale: float) -> float:
    """Return the gap at which YES has the given price, which lies inside 0 and 1."""
    return scale * (2.0 * price - 1.0) / math.sqrt(price * (1.0 - price))


@inlined
def cpmm_cost(gap: float, shares: float, scale: float) -> float:
    """Return what YES shares cost from a gap on; sold ones are negative. For NO, negate the gap."""
    after = gap + shares
    owed = max(after, 0.0) - max(gap, 0.0)
    return owed + (cpmm_slack(after, scale) - cpmm_slack(gap, scale))
