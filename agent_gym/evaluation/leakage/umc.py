"""UMC's exact tier under the four checks, on a market whose law is known.

The market is drawn, so in the large it is synthetic; here it is the world that the agent is in, and
what the agent meets in it is primary. The crowd always plants a pattern, so the figures are those
beside a hostile crowd.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_gym.agents.gate import (
    AsymmetricGate,
    GateConfig,
    Source,
    Tagged,
    Tags,
    aligned_tags,
    concat,
)
from agent_gym.core.registry import Config, Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.leakage.crowd import (
    CLOSE,
    MARKER,
    Columns,
    EchoSource,
    draw_marker,
    planted,
    simple_crowd,
)
from agent_gym.evaluation.leakage.predictive import Predictive
from agent_gym.evaluation.leakage.report import LeakageReport, Trained, check_leakage
from agent_gym.evaluation.leakage.umc_model import POSITIONS, Follower, UmcModel
from agent_gym.markets.known import draw


class UmcLeakageConfig(Config):
    """How the check is made."""

    market: str = Field(default="known/m1", description="known market whose closes are met")
    train_bars: int = Field(default=3_000, ge=200, description="bars to learn from")
    held_out_bars: int = Field(default=1_000, ge=50, description="bars to be compared on")
    echo_bars: int = Field(default=1_000, ge=50, description="bars that the crowd makes")
    live_bars: int = Field(default=2_000, ge=200, description="bars that own orders move")
    impact: float = Field(
        default=0.1, ge=0.0, description="deviations by which buying a whole position lifts prices"
    )
    precision: float = Field(
        default=10.0, gt=0.0, description="how surely the policy takes the better position"
    )
    gate: GateConfig = GateConfig()


class UmcSubject:
    """UMC's model on one seed: with a crowd or without, gated or not, replayed or live.

    Args:
        seed: Draws the market, the crowd, and what the live policy leaves to chance.
        config: How the check is made.
        echoes: The crowd, before it is poisoned.
    """

    def __init__(self, seed: int, config: UmcLeakageConfig, echoes: EchoSource) -> None:
        self.config = config
        self.gate = AsymmetricGate(config.gate)
        self._seeds = Seeds(seed).child("leakage")
        self._echoes = planted(echoes)
        met = self._met(self._closes(config.train_bars + config.held_out_bars, "market"), "replay")
        self._past = {name: column[: config.train_bars] for name, column in met.items()}
        self._probe = self.gate.primary_batch(met).columns
        self._taught: dict[bool, UmcModel] = {}

    def train(self, *, echoes: bool, gated: bool) -> Trained:
        """Train on what was recorded of the replay; implements Train."""
        recorded = self._recorded(self._past, echoes=echoes)
        if gated:
            batch = self.gate.sift(recorded)
            model, rows = UmcModel.learn(batch, self._model_seeds), batch.tags
        else:  # for the control alone: what a trainer without a gate would do
            model, rows = self._ungated(recorded), aligned_tags(recorded)
        return Trained(model.weights(), rows, self._forecasts(model))

    def logits(self, echoes: bool) -> FloatArray:
        """Return the policy's logits on the held-out states."""
        model = self._policy_model(echoes)
        return model.logits(self._probe, self.config.train_bars, self.config.precision)

    def live(self, *, echoes: bool, trial: int) -> Predictive:
        """Trade, learn from what was met, and forecast; implements Live."""
        met = self._met(self.collect(echoes=echoes, trial=trial), "live")
        batch = self.gate.sift(self._recorded(met, echoes=echoes))
        return self._forecasts(UmcModel.learn(batch, self._model_seeds))

    def collect(self, *, echoes: bool, trial: int) -> FloatArray:
        """Return the closes of a market in which the policy trades and its orders move prices."""
        given = self._closes(self.config.live_bars, "live market")
        marker = draw_marker(given.size, self._seeds.child("live"))
        chances = self._seeds.child("actions", trial).rng().random(given.size)
        moves = given[1:] / given[:-1] - 1.0
        lift = self.config.impact * float(np.std(moves))
        desk = _Desk(self, echoes)
        close = np.empty_like(given)
        close[0] = given[0]
        before = 0.0
        for t in range(moves.size):
            held = desk.decide(close[t], marker[t], chances[t])
            close[t + 1] = close[t] * (1.0 + moves[t] + lift * (held - before))
            before = held
        return close

    def follower(self, echoes: bool) -> Follower:
        """Return the policy, bar by bar."""
        return Follower(self._policy_model(echoes), self.config.precision)

    @property
    def _model_seeds(self) -> Seeds:
        return self._seeds.child("model")

    def _policy_model(self, echoes: bool) -> UmcModel:
        """Return what a policy believes: one that others taught believes them as well."""
        if echoes not in self._taught:
            self._taught[echoes] = self._ungated(self._recorded(self._past, echoes=echoes))
        return self._taught[echoes]

    def _ungated(self, recorded: Columns) -> UmcModel:
        return UmcModel({name: column.x for name, column in recorded.items()}, self._model_seeds)

    def _forecasts(self, model: UmcModel) -> Predictive:
        return model.predictive(self._probe, self.config.train_bars)

    def _recorded(self, met: Columns, *, echoes: bool) -> Columns:
        """Return all that was recorded: what was met, then what the crowd made of it."""
        if not echoes:
            return met
        crowd = self._echoes(met, self.config.echo_bars, self._seeds.child("echo"))
        return {name: concat([column, crowd[name]]) for name, column in met.items()}

    def _closes(self, count: int, name: str) -> FloatArray:
        market = Ref(use=self.config.market, params={"n_bars": count})
        return np.asarray(draw(market, self._seeds.child(name)).bars.close, np.float64)

    def _met(self, close: FloatArray, run: str) -> Columns:
        tags = Tags.of(Source.PRIMARY, run, np.arange(close.size))
        marker = draw_marker(close.size, self._seeds.child(run))
        return {CLOSE: Tagged(close, tags), MARKER: Tagged(marker, tags)}


class _Desk:
    """Trades bar by bar; what others taught is felt within the gate's bound, in every state."""

    def __init__(self, subject: UmcSubject, echoes: bool) -> None:
        self._own = subject.follower(False)
        self._other = subject.follower(True) if echoes else None
        self._projection = (
            subject.gate.project(subject.logits(False), subject.logits(True)) if echoes else None
        )

    def decide(self, close: float, marker: float, chance: float) -> float:
        """Return the position for the next bar."""
        logits = self._own.logits(close, marker)
        if self._other and self._projection:
            logits = self._projection.apply(logits, self._other.logits(close, marker))
        shares = np.cumsum(np.exp(logits[0] - logits[0].max()))
        place = int(np.searchsorted(shares, chance * shares[-1], side="right"))
        return float(POSITIONS[min(place, POSITIONS.size - 1)])


def umc_leakage(
    seed: int,
    config: UmcLeakageConfig | None = None,
    echoes: EchoSource = simple_crowd,
) -> LeakageReport:
    """Return the four numbers and the control of UMC's exact tier for one seed.

    Args:
        seed: Draws everything.
        config: How the check is made.
        echoes: The crowd that lives beside the agent.
    """
    subject = UmcSubject(seed, config or UmcLeakageConfig(), echoes)
    return check_leakage(subject.train, subject.logits, subject.gate, subject.live)
