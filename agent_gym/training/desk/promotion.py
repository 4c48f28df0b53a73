"""The rule by which a challenger replaces the champion, and the reasons when it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.training.desk.config import DAY_S, PromotionConfig, TrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.scores import brier
from agent_gym.training.desk.validation import Judged, gain_over, slices


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a challenger passed, why not, and the figures it was judged by."""

    passed: bool
    reasons: tuple[str, ...]
    evidence: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the ruling as plain values."""
        return {"passed": self.passed, "reasons": list(self.reasons), "evidence": self.evidence}


@dataclass(frozen=True, slots=True)
class PromotionRule:
    """Judges a challenger on rows that it was not trained on."""

    config: PromotionConfig
    training: TrainingConfig
    seeds: Seeds

    def judge(self, challenger: DeskModel, champion: DeskModel | None, data: Dataset) -> Ruling:
        """Return whether a challenger is better than whatever could stand in its place.

        The gain in utility must be above 0, the lower end of its interval that is, against the
        champion, against letting everything through and against letting nothing through: who only
        stops trading in a losing market, or only trades in a winning one, has learned nothing. The
        Brier score must not be worse than the champion's, or than the plain share of wins, by more
        than the slack. No strategy may lose more than its share.
        """
        asked = Judged.by(challenger, data)
        rivals = self._rivals(champion, data)
        reasons: list[str] = []
        gains: dict[str, dict[str, float] | None] = {}
        for name, rival in rivals.items():
            if np.array_equal(asked.accepts, rival.accepts):
                reasons.append(f"decides as {name} does")
                gains[name] = None
                continue
            found = gain_over(
                asked,
                rival,
                self.seeds.child("promotion", name),
                level=self.config.level,
                reps=self.training.bootstrap_reps,
            )
            gains[name] = found.as_dict()
            if found.low <= 0.0:
                reasons.append(f"gain over {name} is not sure: {found.low:.3g} to {found.high:.3g}")
        office = rivals.get("champion", rivals["accept_all"])
        score, before = _brier(asked), _brier(office)
        if score > before + self.config.brier_slack:
            reasons.append(f"Brier score {score:.4f} against {before:.4f}")
        parts = slices(asked, office, self.training.slice_rows)
        limit = self.config.slice_loss * float(np.abs(data.payoff).mean())
        losers = sorted(name for name, part in parts.items() if part["gain"] < -limit)
        if losers:
            reasons.append(f"loses in {', '.join(losers)}")
        evidence = {
            "n": len(data),
            "gains": gains,
            "brier": score,
            "brier_before": before,
            "slices": parts,
        }
        return Ruling(not reasons, tuple(reasons), evidence)

    def review(
        self, challenger: DeskModel, champion: DeskModel | None, unseen: Dataset, since: float
    ) -> Ruling:
        """Judge a challenger after its shadow, on all rows that it was not trained on.

        The interval is over the test part and the shadow together; the shadow by itself must at
        least point the same way.
        """
        ruling = self.judge(challenger, champion, unseen)
        watched = unseen.take(unseen.t > since)
        mine = Judged.by(challenger, watched).utility
        rivals = {name: j.utility for name, j in self._rivals(champion, watched).items()}
        worse = [f"no better than {name} in its shadow" for name, u in rivals.items() if mine <= u]
        evidence = ruling.evidence | {
            "shadow": {"n": len(watched), "utility": mine, "rivals": rivals}
        }
        return Ruling(ruling.passed and not worse, (*ruling.reasons, *worse), evidence)

    def shadowed(self, rows: Dataset) -> str:
        """Return what a shadow still lacks, empty if it was long enough."""
        days = float(np.ptp(rows.t)) / DAY_S if len(rows) else 0.0
        wanted = self.config
        if len(rows) >= wanted.shadow_signals and days >= wanted.shadow_days:
            return ""
        return (
            f"shadow: {len(rows)} of {wanted.shadow_signals} labelled signals, "
            f"{days:.1f} of {wanted.shadow_days:g} days"
        )

    def _rivals(self, champion: DeskModel | None, data: Dataset) -> dict[str, Judged]:
        share = float(np.average(data.y, weights=data.weight))
        rivals = {
            "accept_all": Judged.constant(data, share, True),
            "accept_none": Judged.constant(data, share, False),
        }
        if champion is not None:
            rivals["champion"] = Judged.by(champion, data)
        return rivals


def _brier(judged: Judged) -> float:
    return brier(judged.p, judged.data.y, judged.data.weight).score
