"""Which columns of an observation belong to which market."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config

ACCOUNT = "account"


class PolicyInputs(Config):
    """The features a policy looks at: those of one market, then those of the account."""

    market: tuple[str, ...]
    account: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Return how many numbers the network sees at once."""
        return len(self.market) + len(self.account)


@dataclass(frozen=True, slots=True)
class FeatureLayout:
    """The markets of a world and the names of what it shows of them.

    Names are ``<market>/<feature>``, and ``account/<feature>`` for the account. A world whose
    names have no market in them is one market without a name.
    """

    names: tuple[str, ...]
    markets: tuple[str, ...]
    inputs: PolicyInputs

    @classmethod
    def of(cls, names: tuple[str, ...]) -> FeatureLayout:
        """Read the layout of a world from the names of its features.

        Example:
            >>> layout = FeatureLayout.of(("btc/price", "eth/price", "account/cash"))
            >>> layout.markets, layout.inputs.market, layout.inputs.account
            (('btc', 'eth'), ('price',), ('cash',))
        """
        shown: dict[str, list[str]] = {}
        for name in names:
            market, slash, feature = name.partition("/")
            shown.setdefault(market if slash else "", []).append(feature if slash else name)
        account = tuple(shown.pop(ACCOUNT, ()))
        if not shown:
            raise AgentError("no feature is that of a market", found=", ".join(names))
        first = next(iter(shown.values()))
        for market, features in shown.items():
            if features != first:
                raise AgentError(
                    "every market must show the same features in the same order",
                    where=f"market {market or '(without a name)'}",
                    found=", ".join(features),
                    expected=", ".join(first),
                )
        return cls(names, tuple(shown), PolicyInputs(market=tuple(first), account=account))

    def columns(self, inputs: PolicyInputs) -> NDArray[np.intp]:
        """Return, for each market, where the inputs of a policy stand in an observation.

        The world may show more than the policy looks at, and in another order.
        """
        place = {name: column for column, name in enumerate(self.names)}
        wanted = [
            [f"{market}/{name}" if market else name for name in inputs.market]
            + [f"{ACCOUNT}/{name}" for name in inputs.account]
            for market in self.markets
        ]
        lacking = sorted({name for row in wanted for name in row if name not in place})
        if lacking:
            raise AgentError(
                "this world does not show what the policy looks at",
                found=f"shown: {', '.join(self.names)}",
                expected=f"also {', '.join(lacking)}",
                remedy="Play it in the kind of world it was made for (inputs in policy.json)",
            )
        return np.array([[place[name] for name in row] for row in wanted], dtype=np.intp)
