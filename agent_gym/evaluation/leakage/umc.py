"""UMC under the four checks, tier by tier, beside the real echoes.

The crowd always plants a pattern, so the figures are those beside a hostile crowd.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pydantic import Field

from agent_gym.agents.echo import EchoConfig
from agent_gym.agents.gate import (
    AsymmetricGate,
    GateConfig,
    PrimaryBatch,
    Source,
    Tagged,
    Tags,
    aligned_tags,
    concat,
)
from agent_gym.core.registry import Config, Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.leakage.crowd import Columns, EchoSource, planted
from agent_gym.evaluation.leakage.echoes import TRADED, EvolvedEchoes
from agent_gym.evaluation.leakage.predictive import Predictive
from agent_gym.evaluation.leakage.report import LeakageReport, Trained, check_leakage
from agent_gym.evaluation.leakage.umc_model import POSITIONS, Follower, UmcLearner
from agent_gym.evaluation.leakage.umc_world import replayed, traded, with_regimes

EXACT, KALMAN, RECURRENT = "exact", "kalman", "recurrent"
TIERS: Mapping[str, Ref] = {
    EXACT: Ref(use="umc/exact"),
    KALMAN: Ref(use="umc/kalman"),
    RECURRENT: Ref(
        use="umc/recurrent",
        params={
            "embedding": 8,
            "memory": 16,
            "latent": 4,
            "heads": 3,
            "head_width": 8,
            "width": 16,
            "components": 2,
            "sequence_bars": 32,
            "batch_sequences": 16,
            "steps": 200,
            "look_every": 50,
            "learning_rate": 3e-3,
        },
    ),
}
"""Every tier that can be trained; the recurrent one is small and learns for seconds only."""


class UmcLeakageConfig(Config):
    """How the check is made."""

    tier: Ref = Field(default=TIERS[EXACT], description="the model of the market")
    market: str = Field(default="known/m1", description="known market whose closes are met")
    train_bars: int = Field(default=3_000, ge=200, description="bars to learn from")
    held_out_bars: int = Field(default=500, ge=50, description="bars to be compared on")
    echo_bars: int = Field(default=1_000, ge=50, description="bars that the crowd makes")
    live_bars: int = Field(default=1_000, ge=200, description="bars that own orders move")
    impact: float = Field(
        default=0.1, ge=0.0, description="deviations by which buying a whole position lifts prices"
    )
    precision: float = Field(
        default=10.0, gt=0.0, description="how surely the policy takes the better position"
    )
    echoes: EchoConfig = Field(default=EchoConfig(), description="the crowd beside it")
    gate: GateConfig = GateConfig()


class UmcSubject:
    """UMC on one seed: with a crowd or without, gated or not, replayed or live.

    Args:
        seed: Draws the market, the crowd, and what the live policy leaves to chance.
        config: How the check is made.
        echoes: The crowd, before it is poisoned; None: the real echoes of the config.
    """

    def __init__(
        self, seed: int, config: UmcLeakageConfig, echoes: EchoSource | None = None
    ) -> None:
        self.config = config
        self.gate = AsymmetricGate(config.gate)
        self.population = EvolvedEchoes(config.echoes)
        self._seeds = Seeds(seed).child("leakage")
        self._echoes = planted(echoes or self.population)
        bars = config.train_bars + config.held_out_bars
        met = replayed(config.market, bars, self._seeds)
        self._past = {name: column[: config.train_bars] for name, column in met.items()}
        self._probe = self.gate.primary_batch(met).columns
        self._taught: dict[bool, UmcLearner] = {}

    def train(self, *, echoes: bool, gated: bool) -> Trained:
        """Train on what was recorded of the replay; implements Train."""
        recorded = self.recorded(self._past, echoes=echoes)
        if gated:
            batch = self.gate.sift(recorded)
            tags = batch.tags
        else:  # for the control alone: what a trainer without a gate would do
            batch, tags = _forged(recorded), aligned_tags(recorded)
        learner = self._learned(batch)
        if echoes != gated:  # what a policy would believe that takes all that it is given
            self._taught[echoes] = learner
        return Trained(learner.parts(tags, batch[TRADED]), self._forecasts(learner))

    def logits(self, echoes: bool) -> FloatArray:
        """Return the policy's logits on the held-out states."""
        learner = self._policy(echoes)
        return learner.logits(self._probe, self.config.train_bars, self.config.precision)

    def live(self, *, echoes: bool, trial: int) -> Predictive:
        """Trade, learn from what was met, and forecast; implements Live."""
        met = self.collect(echoes=echoes, trial=trial)
        batch = self.gate.sift(self.recorded(met, echoes=echoes))
        return self._forecasts(self._learned(batch))

    def collect(self, *, echoes: bool, trial: int) -> Columns:
        """Return what is met in a market in which the policy trades and its orders move prices."""
        desk = _Desk(self, echoes)
        chances = self._seeds.child("actions", trial)
        live = self._seeds.child("live market")
        return traded(desk.decide, self.config.live_bars, self.config.impact, chances, live)

    def follower(self, echoes: bool) -> Follower:
        """Return the policy, bar by bar."""
        return Follower(self._policy(echoes), self.config.precision)

    def recorded(self, met: Columns, *, echoes: bool) -> Columns:
        """Return all that was recorded: what was met, then what the crowd made of it."""
        if not echoes:
            return met
        made = self._echoes(met, self.config.echo_bars, self._seeds.child("echo"))
        crowd = with_regimes(made)
        return {name: concat([column, crowd[name]]) for name, column in met.items()}

    def _policy(self, echoes: bool) -> UmcLearner:
        """Return what a policy believes: one that others taught believes them as well."""
        if echoes not in self._taught:
            recorded = self.recorded(self._past, echoes=echoes)
            self._taught[echoes] = self._learned(_forged(recorded))
        return self._taught[echoes]

    def _learned(self, batch: PrimaryBatch) -> UmcLearner:
        return UmcLearner(batch, self.config.tier, self._seeds.child("model"))

    def _forecasts(self, learner: UmcLearner) -> Predictive:
        return learner.predictive(self._probe, self.config.train_bars)


def _forged(recorded: Columns) -> PrimaryBatch:
    """Return all rows as if they had been met: an open gate."""
    rows = len(aligned_tags(recorded))
    tags = Tags.of(Source.PRIMARY, "forged", np.arange(rows))
    columns = {name: Tagged(column.x, tags) for name, column in recorded.items()}
    return AsymmetricGate(GateConfig()).primary_batch(columns)


class _Desk:
    """Trades bar by bar; what others taught is felt within the gate's bound, in every state."""

    def __init__(self, subject: UmcSubject, echoes: bool) -> None:
        self._own = subject.follower(False)
        self._other = subject.follower(True) if echoes else None
        self._projection = (
            subject.gate.project(subject.logits(False), subject.logits(True)) if echoes else None
        )

    def decide(self, bar: Mapping[str, FloatArray], chance: float) -> float:
        """Return the position for the next bar."""
        logits = self._own.logits(bar)
        if self._other and self._projection:
            logits = self._projection.apply(logits, self._other.logits(bar))
        shares = np.cumsum(np.exp(logits[0] - logits[0].max()))
        place = int(np.searchsorted(shares, chance * shares[-1], side="right"))
        return float(POSITIONS[min(place, POSITIONS.size - 1)])


def umc_leakage(
    seed: int, config: UmcLeakageConfig | None = None, echoes: EchoSource | None = None
) -> LeakageReport:
    """Return the four numbers and the control of UMC with one tier for one seed.

    Args:
        seed: Draws everything.
        config: How the check is made.
        echoes: The crowd that lives beside the agent; None: the real echoes.
    """
    subject = UmcSubject(seed, config or UmcLeakageConfig(), echoes)
    return check_leakage(subject.train, subject.logits, subject.gate, subject.live)
