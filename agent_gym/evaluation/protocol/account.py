"""From an arm to a ledger: decided on all bars, traded from the first test on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from agent_gym.core.errors import AgentError, AgentGymError, VenueError
from agent_gym.core.registry import Ref
from agent_gym.core.types import Agent, FloatArray
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.baselines import Arm
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.metrics import measure
from agent_gym.evaluation.protocol.failures import broken, placed
from agent_gym.evaluation.protocol.pnl import BarPnl, bar_pnl, ratio
from agent_gym.evaluation.protocol.splits import Fold, WalkForward
from agent_gym.evaluation.protocol.walk import Walk
from agent_gym.evaluation.results import BacktestResults
from agent_gym.exchange.round_trips import round_trips
from agent_gym.exchange.series import run_series
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import Bars

Maker: TypeAlias = Callable[[], tuple[Agent, Sequence[Ref]]]
DECISION = re.compile(r"decision (\d+)")


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """What an arm asked for on the tested rows, after scaling and caps."""

    targets: FloatArray
    caps: dict[str, Any]
    equity_hash: str
    chosen: tuple[Ref, ...]


class Ledger:
    """Bars cut into folds, laid out once for every arm that is traded on them."""

    def __init__(self, bars: Bars, walk: WalkForward, config: BacktestConfig, seed: int) -> None:
        self.bars, self.config, self.seed = bars, config, seed
        self.folds: Sequence[Fold] = walk.folds(len(bars))
        self._walk = Walk(bars, self.folds, config, seed)
        self._engine = BacktestEngine(config)
        self._past: dict[str, BarPnl] = {}

    @property
    def first(self) -> int:
        """Return the row whose close the first tested bar is decided at."""
        return self._walk.first

    @cached_property
    def tested(self) -> Bars:
        """Return the tested bars and, before them, the one that the first is decided at."""
        return self.bars.rows(self.first, len(self.bars))

    @cached_property
    def tape(self) -> Tape:
        """Return the tested bars as the venue plays them; volatility is known from before."""
        whole = Tape.of(self.bars, self.config.costs())
        return Tape(self.tested, np.ascontiguousarray(whole.rows[self.first :]), whole.costs)

    def decide(self, arm: Arm) -> Decided:
        """Run an arm through all folds; its errors say whose they are and in which fold."""
        return self.decide_as(arm.label, lambda: self._walk.agent(arm.refs, self._best_on_train))

    def decide_as(self, label: str, make_agent: Maker) -> Decided:
        """Run the agent that is made; an error in making or running it is one of the agent."""
        try:
            agent, chosen = make_agent()
            run = self._engine.run(self.bars, agent, self.seed)
        except AgentError as error:
            raise placed(error, label, self._fold_of(error)) from error
        except AgentGymError:
            raise
        except Exception as error:  # the border at which the failure of an agent is a record
            raise broken(error, label) from error
        tested = replace(run, equity=run.equity[self.first :])
        return Decided(run.target[self.first :], run.caps, tested.equity_hash, tuple(chosen))

    def _fold_of(self, error: AgentError) -> str:
        """Return the fold whose agent made the decision that an error is about, if it is known."""
        said = DECISION.fullmatch(error.where or "")
        row = None if said is None else int(said[1])
        for number, fold in enumerate(self.folds, start=1):
            if row is not None and fold.test.start - 1 <= row < fold.test.stop - 1:
                return f"fold {number} of {len(self.folds)}"
        return ""

    def past(self, ref: Ref) -> BacktestResults:
        """Return the run of one configuration over all bars, as if it had never been chosen."""
        return self._engine.run(self.bars, ref, self.seed)

    def trade(self, name: str, decided: Decided) -> BacktestResults:
        """Return the run over the tested bars; the account is opened at the row before them."""
        traded = self.trade_targets(name, decided.targets, decided.caps)
        if traded.equity_hash != decided.equity_hash:
            raise VenueError(
                "the account that was watched and the one that was opened for the test differ",
                where=name,
                found=traded.equity_hash,
                expected=decided.equity_hash,
            )
        return traded

    def trade_targets(
        self, name: str, targets: FloatArray, caps: dict[str, Any] | None = None
    ) -> BacktestResults:
        """Return the run of targets for the tested bars, the first for the row before them."""
        costs, rules = self.config.costs(), self.config.account()
        run = run_series(self.tape, targets, costs, rules)
        bars, fills = self.tested, run.fills
        trips = round_trips(
            fills["bar"], bars.ts[fills["bar"]], fills["qty"], fills["price"], fills["fee"]
        )
        return replace(
            self._template,
            agent=name,
            bars=bars,
            ts=bars.ts + bars.period_ns,
            equity=run.equity,
            position=run.position,
            cash=run.cash,
            target=targets,
            fills=fills,
            trips=trips,
            metrics=measure(bars, run, trips),
            caps=caps or {},
        )

    @cached_property
    def _template(self) -> BacktestResults:
        """Return a run whose manifest holds what all arms share."""
        return self._engine.run(self.tested, Ref(use="rules/flat"), self.seed)

    def _best_on_train(self, refs: Sequence[Ref], fold: Fold) -> Ref:
        """Return the configuration with the highest Sharpe ratio over the training rows."""
        return max(refs, key=lambda ref: self._train_sharpe(ref, fold))

    def _train_sharpe(self, ref: Ref, fold: Fold) -> float:
        key = ref.model_dump_json()
        if key not in self._past:
            self._past[key] = bar_pnl(self.past(ref))
        # Row t of the bars is row t - 1 of what bars brought.
        rows = self._past[key].net[max(0, fold.train.start - 1) : fold.train.stop - 1]
        return ratio(rows)
