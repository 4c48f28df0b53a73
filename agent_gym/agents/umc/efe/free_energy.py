"""Expected free energy with a weight on information: G = risk + ambiguity - lambda information.

Risk and ambiguity are those of the joint outcome (y, o): what the trade brings and what the bar
shows. Of y alone, a larger position would seem to reveal more of the hidden state through y,
although the return is seen whatever is held; that is a bonus for being in the market. Given what is
seen, y has only its own floor of noise left, so

    risk      = -E ln P*(y) - H[o] - H[e]          (nothing is preferred about o itself)
    ambiguity = E_s H[o | s] + H[e]
    sum       = -E ln P*(y) - I(s; o)

and where orders do not move what is seen, I(s; o) is one number for all actions.

Information about the hidden state is inside the sum already. The term with lambda is therefore
about parameters alone. It does not follow from a bound on surprise (Millidge, Tschantz and Buckley
2021); lambda is a choice which has to be justified by results. Their free energy of the expected
future, with the model's own posterior as the preferred one, is the risk here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from agent_gym.agents.information.mixtures import (
    Mixture,
    conditional_entropy,
    entropy,
    gaussian_entropy,
    label_information,
    stratified_draws,
)
from agent_gym.agents.umc.efe.outcomes import Actions, Market, outcome
from agent_gym.agents.umc.efe.preference import Preference
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

BAR_DRAWS = stratified_draws(256)


@dataclass(frozen=True, slots=True, eq=False)
class FreeEnergy:
    """Every term of every action, in nats per bar.

    Attributes:
        risk: KL from what is expected to what is preferred.
        ambiguity: Entropy that is left when the hidden state is known.
        information: What is learned about parameters.
        pragmatic: Minus the expected log preference of y.
        state_information: What is learned about the hidden state; inside risk + ambiguity.
        lam: Weight of the information.
    """

    risk: FloatArray
    ambiguity: FloatArray
    information: FloatArray
    pragmatic: FloatArray
    state_information: FloatArray
    lam: float

    @property
    def total(self) -> FloatArray:
        """Return risk + ambiguity - lambda information."""
        return self.risk + self.ambiguity - self.lam * self.information

    @property
    def base(self) -> FloatArray:
        """Return the total for a lambda of 0, less a number that is the same for all actions.

        Terms are compared with those of one action before they are added. So a term that is the
        same for all actions drops out to the last bit instead of rounding the others.
        """
        reference = int(np.argmin(self.pragmatic))
        return _against(self.pragmatic, reference) - _against(self.state_information, reference)

    def choice(self) -> int:
        """Return the action of least free energy, the first of equals."""
        return least(self.base, self.information, self.lam)

    def chances(self, precision: float) -> FloatArray:
        """Return chances that fall with the exponential of free energy times a precision."""
        energy = relative(self.base, self.information, self.lam)
        chances: FloatArray = softmax(-precision * energy)
        return chances

    def of(self, action: int) -> dict[str, float]:
        """Return the terms of one action by name, for signals and logs."""
        named = {
            part.name: float(getattr(self, part.name)[action])
            for part in fields(self)
            if part.name != "lam"
        }
        return {**named, "total": float(self.total[action]), "lam": self.lam}


def g_lambda(
    actions: Actions,
    market: Market,
    preference: Preference,
    lam: float,
    own_information: ArrayLike = 0.0,
    draws: FloatArray = BAR_DRAWS,
) -> FreeEnergy:
    """Return the free energy of each action for one bar.

    Args:
        actions: Positions to choose from, and what they cost.
        market: What the bar may show.
        preference: Of outcomes.
        lam: Weight of information about parameters.
        own_information: What an action teaches beyond the bar, in nats: about the cost of orders,
            or by a question that is paid for.
        draws: Common random numbers for entropies that have no closed form.
    """
    everyone = actions.target.shape
    floor = gaussian_entropy(actions.floor**2)
    pragmatic = pragmatic_cost(outcome(actions, market), preference)
    shown = entropy(market.seen, draws)
    left = conditional_entropy(market.seen, market.states, draws)
    learned = label_information(market.seen, market.heads, draws)
    return FreeEnergy(
        risk=pragmatic - shown - floor,
        ambiguity=np.broadcast_to(left + floor, everyone),
        information=np.broadcast_to(learned + np.asarray(own_information, np.float64), everyone),
        pragmatic=pragmatic,
        state_information=np.broadcast_to(shown - left, everyone),
        lam=lam,
    )


def mean_free_energy(bars: Sequence[FreeEnergy]) -> FreeEnergy:
    """Return the mean over the bars of a plan, whose lambda is one."""
    lams = {bar.lam for bar in bars}
    if len(lams) != 1:
        raise DataError("the bars of a plan have one lambda", found=sorted(lams))
    names = [part.name for part in fields(FreeEnergy) if part.name != "lam"]
    means = {name: np.mean([getattr(bar, name) for bar in bars], axis=0) for name in names}
    return FreeEnergy(**means, lam=lams.pop())


def pragmatic_cost(outcomes: Mixture, preference: Preference) -> FloatArray:
    """Return minus the expected log preference of y, exact by its mean and variance."""
    mean, variance = outcomes.moments()
    return preference.cost(mean[..., 0], variance[..., 0])


def outcome_risk(outcomes: Mixture, preference: Preference, draws: FloatArray) -> FloatArray:
    """Return KL[Q(y) || P*] of y alone: closed form for one component, else from the draws.

    By itself it pays for volatility, since it falls with the entropy of y. ``outcome_ambiguity`` of
    the same distribution and the same draws is what takes that back.
    """
    return pragmatic_cost(outcomes, preference) - entropy(outcomes, draws)


def outcome_ambiguity(market: Market, outcomes: Mixture, draws: FloatArray) -> FloatArray:
    """Return the entropy of y alone that is left when the hidden state is known.

    Heads are mixed inside it, since nobody knows which is right. If they were held apart,
    information about parameters would be counted here and once more with lambda.
    """
    return conditional_entropy(outcomes, market.states, draws)


def state_information(market: Market, outcomes: Mixture, draws: FloatArray) -> FloatArray:
    """Return what y alone says about the hidden state."""
    return label_information(outcomes, market.states, draws)


def relative(base: FloatArray, information: FloatArray, lam: float) -> FloatArray:
    """Return free energy for a lambda, less that of the action which is best without one."""
    reference = int(np.argmin(base))
    return _against(base, reference) - lam * _against(information, reference)


def least(base: FloatArray, information: FloatArray, lam: float) -> int:
    """Return the action of least free energy; if information is equal, lambda changes no bit."""
    return int(np.argmin(relative(base, information, lam)))


def _against(values: FloatArray, reference: int) -> FloatArray:
    gaps: FloatArray = values - values[reference]
    return gaps
