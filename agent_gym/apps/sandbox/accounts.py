"""What an account may ask of itself: its balances, and what trading costs it."""

from __future__ import annotations

from typing import Any

from agent_gym.apps.sandbox.market import MS_NS, MarketData
from agent_gym.apps.sandbox.params import Params
from agent_gym.apps.sandbox.symbols import text
from agent_gym.exchange.costs import BPS


class Accounts:
    """The requests of accounts about money."""

    def __init__(self, market: MarketData) -> None:
        self._floor, self._symbols = market.floor, market.symbols

    def account(self, account: str, params: Params) -> dict[str, Any]:
        """Return balances and fees."""
        maker, taker = self._rates()
        hide = params.text("omitZeroBalances") == "true"
        balances = [
            {"asset": asset, "free": text(one.free), "locked": text(one.locked)}
            for asset, one in self._floor.balances(account).items()
            if not hide or one.free or one.locked
        ]
        return {
            "makerCommission": round(maker / BPS),
            "takerCommission": round(taker / BPS),
            "buyerCommission": 0,
            "sellerCommission": 0,
            "commissionRates": {
                "maker": text(maker),
                "taker": text(taker),
                "buyer": text(0.0),
                "seller": text(0.0),
            },
            "canTrade": not self._floor.finished,
            "canWithdraw": False,
            "canDeposit": False,
            "brokered": False,
            "requireSelfTradePrevention": False,
            "preventSor": False,
            "updateTime": self._floor.opened_ns // MS_NS,
            "accountType": "SPOT",
            "balances": balances,
            "permissions": ["SPOT"],
            "uid": 1 + list(self._floor.marks).index(account),
        }

    def commission(self, _account: str, params: Params) -> dict[str, Any]:
        """Return the fees of a symbol."""
        maker, taker = self._rates()
        rates = {"maker": text(maker), "taker": text(taker), "buyer": "0", "seller": "0"}
        return {"symbol": self._symbols.need(params).id, "standardCommission": rates}

    def trade_fees(self, _account: str, params: Params) -> list[dict[str, Any]]:
        """Return the fees of symbols."""
        maker, taker = self._rates()
        return [
            {"symbol": one.id, "makerCommission": text(maker), "takerCommission": text(taker)}
            for one in self._symbols.chosen(params)
        ]

    def coins(self, account: str, _params: Params) -> list[dict[str, Any]]:
        """Return the assets; nothing comes in or goes out here."""
        return [
            {
                "coin": asset,
                "name": asset,
                "free": text(one.free),
                "locked": text(one.locked),
                "trading": True,
                "depositAllEnable": False,
                "withdrawAllEnable": False,
                "isLegalMoney": False,
                "networkList": [],
            }
            for asset, one in self._floor.balances(account).items()
        ]

    def _rates(self) -> tuple[float, float]:
        costs = self._floor.venue.costs
        return costs.maker_bps * BPS, costs.taker_bps * BPS
