"""Does the learning layer find what is there and nothing else? One function a question and seed.

Tests ask a few seeds, ``scripts/desk_learning.py`` asks all and writes down the answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.agents.desk.context import RecentContext
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk.config import PromotionConfig, RetrainingConfig, TrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.drift import DriftMonitor
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.planted import (
    Draw,
    PlantedLaw,
    draw,
    joined,
    planted_dataset,
    store_planted,
)
from agent_gym.training.desk.promotion import PromotionRule, Ruling
from agent_gym.training.desk.retraining import RetrainingLoop
from agent_gym.training.desk.scores import auc, ece
from agent_gym.training.desk.training import TrainingModule

# A planted table spans a year or more of simulated time and its law does not age.
LASTING = TrainingConfig(
    window_days=36_500.0, half_life_days=36_500.0, stability_folds=0, bootstrap_reps=1000
)
NULL_SHARES = (0.4, 0.5, 0.6)  # losing, even and winning markets in which nothing tells anything
HOUR_S = 3600.0


def truth(seed: int, n: int = 16_000, judged: int = 40_000) -> dict[str, float]:
    """Train under a known law and compare with who knows it, on fresh signals."""
    law = PlantedLaw()
    model = _trained(planted_dataset(draw(law, n, Seeds(seed)), LASTING), seed)
    fresh = draw(law, judged, Seeds(seed).child("fresh"))
    p = model.probabilities(fresh.X)
    ranking, best = auc(p, fresh.y), auc(fresh.p, fresh.y)
    earned = float(fresh.payoff @ (p >= model.threshold))
    most = float(fresh.payoff @ law.bayes_accepts(fresh.p))
    return {
        "seed": seed,
        "auc": 0.0 if ranking is None else ranking.estimate,
        "bayes_auc": 0.0 if best is None else best.estimate,
        "ece": ece(p, fresh.y, np.ones(judged)),
        "utility_share": earned / most,
    }


def null_ruling(seed: int, n: int = 600) -> Ruling:
    """Train where nothing tells anything and judge the model on its test part."""
    law = PlantedLaw.null(NULL_SHARES[seed % len(NULL_SHARES)])
    return _ruling(draw(law, n, Seeds(seed)), seed)


def shuffled_ruling(seed: int, n: int = 600) -> Ruling:
    """Train on a known law whose outcomes were dealt out anew."""
    drawn = draw(PlantedLaw(), n, Seeds(seed))
    return _ruling(drawn.with_shuffled_labels(Seeds(seed)), seed)


def loop_statuses(seed: int, law: PlantedLaw, folder: Path, rounds: int = 4) -> list[str]:
    """Run the whole loop as a desk would live it: a history, then week after week of signals."""
    ctx = RecentContext(maxlen=1_000_000)
    spacing_s = 2400.0
    end = store_planted(ctx, draw(law, 900, Seeds(seed)), spacing_s=spacing_s)
    training = TrainingModule(ctx, config=LASTING, seeds=Seeds(seed))
    config = RetrainingConfig(horizon="1h", promotion=PromotionConfig())
    loop = RetrainingLoop(training, ctx, config, store=folder)
    statuses: list[str] = [loop.run_retraining(now=end + 2 * HOUR_S).status]
    for week in range(rounds):
        drawn = draw(law, 270, Seeds(seed).child("week", week))
        end = store_planted(ctx, drawn, start=end + 4 * HOUR_S, spacing_s=spacing_s)
        statuses.append(loop.run_retraining(now=end + 2 * HOUR_S).status)
    return statuses


def drift_delay(seed: int, before: int = 600, after: int = 300) -> dict[str, Any]:
    """Turn the law round and count the labelled signals until an alarm; None if none came."""
    law = PlantedLaw()
    model = _trained(planted_dataset(draw(law, 3000, Seeds(seed)), LASTING), seed)
    stream = joined(
        draw(law, before, Seeds(seed).child("before")),
        draw(law.turned(), after, Seeds(seed).child("after")),
    )
    data = planted_dataset(stream, LASTING)
    alarms = DriftMonitor(model, data.feature_names, seeds=Seeds(seed)).follow(data)
    late = [alarm.after - before for alarm in alarms if alarm.after > before]
    return {
        "seed": seed,
        "delay": min(late) if late else None,
        "before": sum(alarm.after <= before for alarm in alarms),
    }


def false_alarms(seed: int, n: int = 5000) -> dict[str, Any]:
    """Follow signals of an unchanged law and return every alarm."""
    law = PlantedLaw()
    model = _trained(planted_dataset(draw(law, 3000, Seeds(seed)), LASTING), seed)
    data = planted_dataset(draw(law, n, Seeds(seed).child("same")), LASTING)
    alarms = DriftMonitor(model, data.feature_names, seeds=Seeds(seed)).follow(data)
    return {"seed": seed, "signals": n, "alarms": [alarm.sensor for alarm in alarms]}


def _trained(data: Dataset, seed: int) -> DeskModel:
    model = TrainingModule(RecentContext(), config=LASTING, seeds=Seeds(seed)).train_model(data)
    if model.model is None:
        raise ValueError(f"a study needs enough rows: {model.reason}")
    return model.model


def _ruling(drawn: Draw, seed: int) -> Ruling:
    data = planted_dataset(drawn, LASTING)
    result = TrainingModule(RecentContext(), config=LASTING, seeds=Seeds(seed)).train_model(data)
    if result.model is None or result.test is None:
        raise ValueError(f"a study needs enough rows: {result.reason}")
    rule = PromotionRule(PromotionConfig(), LASTING, Seeds(seed))
    return rule.judge(result.model, None, result.test)
