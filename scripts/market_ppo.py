"""Ask what PPO learns on markets whose law is known, and write the answers down.

    python scripts/market_ppo.py [docs/results/market_ppo.json [QUESTION ...]]

Questions: ``m1`` (share of the attainable), ``transfer`` (the first of those models on the nulls),
``nulls`` (trained on each null) and ``shuffled`` (trained on M1 with the rewards of other
accounts). Answers to questions that are not named are kept as the file has them. Models lie in
``results/experiments/market-m1-ppo``; those that are trained already are not trained again.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn
from typing_extensions import override

from agent_gym.agents.sb3.algorithms import build_model
from agent_gym.agents.sb3.artifact import save_model
from agent_gym.core.clock import SystemClock
from agent_gym.core.files import home, write_json
from agent_gym.core.manifest import describe
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.envs.training_env import describe_env, make_vec_env
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.report import ArmReport
from agent_gym.evaluation.protocol.seeded import SeededPlan, evaluate_seeded
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.training.rl.config import TrainerConfig, read_mapping
from agent_gym.training.rl.seeding import SeedManager
from agent_gym.training.rl.setup import recipe_of
from agent_gym.training.rl.trainer import create_trainer_from_config

NAME = "market-m1-ppo"
CONFIG = Path(__file__).resolve().parents[1] / "agent_gym" / "configs" / "rl" / f"{NAME}.yaml"
NULLS = ("n1", "n2", "n3", "n4")
MODEL_SEEDS = (0, 1, 2)
MARKET_SEEDS = 20
BESIDE = ("buy & hold", "SMA(24,120)")
COSTS = BacktestConfig(
    taker_bps=5.0,
    slippage_bps=0.0,
    half_spread_bps=0.0,
    impact=0.0,
    participation=None,
    allow_short=True,
)


def main() -> None:
    """Ask the questions and write the answers."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/results/market_ppo.json")
    questions = {"m1": m1, "shuffled": shuffled, "nulls": nulls, "transfer": transfer}
    config = config_of("m1").model_dump(mode="json")
    about = describe(argv=["python", "scripts/market_ppo.py"], config=config, data={})
    for name in sys.argv[2:] or questions:
        started = SystemClock().monotonic_s()
        answer = questions[name]()
        took = SystemClock().monotonic_s() - started
        sys.stdout.write(f"{name}: {json.dumps(answer['summary'])} ({took:.0f} s)\n")
        sys.stdout.flush()
        kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
        write_json(target, kept | {"manifest": about.model_dump(mode="json"), name: answer})


def m1() -> dict[str, Any]:
    """Trained on M1: what share of the attainable is earned on markets never seen?"""
    runs = {f"seed {seed}": trained("m1", seed) for seed in MODEL_SEEDS}
    models = {f"seed {seed}": model_of("m1", seed) for seed in MODEL_SEEDS}
    rows = played("m1", models, oracle=True)
    shares = [rows[label]["share"]["estimate"] for label in runs]
    return {
        "market": "known/m1",
        "market_seeds": MARKET_SEEDS,
        "training": runs,
        "arms": rows,
        "summary": {
            "share_mean": float(np.mean(shares)),
            "share_min": min(shares),
            "share_low95_min": min(rows[label]["share"]["low"] for label in runs),
            "sma_share": rows["SMA(24,120)"]["share"]["estimate"],
            "buy_hold_share": rows["buy & hold"]["share"]["estimate"],
        },
    }


def shuffled() -> dict[str, Any]:
    """Trained on M1 with rewards dealt out anew at each step: nothing may be learned."""
    models = {f"seed {seed}": trained_on_shuffled(seed) for seed in MODEL_SEEDS}
    rows = played("m1", models, beside=False)
    return {
        "market": "known/m1",
        "market_seeds": MARKET_SEEDS,
        "arms": rows,
        "summary": {
            "shares": [row["share"]["estimate"] for row in rows.values()],
            "gross_bp": [row["gross"]["estimate"] for row in rows.values()],
        },
    }


def nulls() -> dict[str, Any]:
    """Trained where nothing can be known: is nothing earned there?"""
    runs = {null: trained(null, 0) for null in NULLS}
    rows = {null: played(null, {"seed 0": model_of(null, 0)}, beside=False) for null in NULLS}
    return {
        "market_seeds": MARKET_SEEDS,
        "training": runs,
        "markets": rows,
        "summary": _passed(rows),
    }


def transfer() -> dict[str, Any]:
    """The first model of M1 where nothing can be known: is nothing earned there either?"""
    trained("m1", MODEL_SEEDS[0])
    models = {f"seed {seed}": model_of("m1", seed) for seed in MODEL_SEEDS[:1]}
    rows = {null: played(null, models, beside=False) for null in NULLS}
    return {"market_seeds": MARKET_SEEDS, "markets": rows, "summary": _passed(rows)}


def _passed(markets: dict[str, dict[str, Any]]) -> dict[str, Any]:
    rows = [row for arms in markets.values() for row in arms.values()]
    return {
        "gross_interval_holds_0": sum(
            row["gross"]["low"] <= 0.0 <= row["gross"]["high"] for row in rows
        ),
        "gates_passed": sum(all(gate["passed"] for gate in row["gates"]) for row in rows),
        "of": len(rows),
        "most_lucky_seeds": max(row["seeds_with_psr_above_95"] for row in rows),
        "worst_net_bp": min(row["net"]["estimate"] for row in rows),
        "best_net_bp": max(row["net"]["estimate"] for row in rows),
    }


def config_of(market: str) -> TrainerConfig:
    """Return the shipped settings, for another known market if one is named."""
    fields = read_mapping(CONFIG)
    fields["env_params"]["market"]["use"] = f"known/{market}"
    return TrainerConfig.model_validate(fields)


def folder_of(name: str, seed: int) -> Path:
    """Return where a run lies."""
    return home() / "experiments" / NAME / name / f"seed_{seed}"


def model_of(market: str, seed: int) -> str:
    """Return where the best model of a run lies."""
    return str(folder_of(market, seed) / "best")


def trained(market: str, seed: int) -> dict[str, Any]:
    """Train one seed on a market, or take the run that is there, and say what it took."""
    folder = folder_of(market, seed)
    made = create_trainer_from_config(config_of(market), seed=seed, folder=folder).train()
    return {
        "steps": made.steps,
        "best_step": made.best_step,
        "cpu_s": made.cpu_s,
        "wall_s": made.wall_s,
        "state_hash": made.state_hash,
    }


class ShuffledRewards(VecEnvWrapper):
    """Deals the rewards of a step out among the accounts by chance."""

    def __init__(self, env: VecEnv, seeds: Seeds) -> None:
        super().__init__(env)
        self._rng = seeds.rng()

    @override
    def reset(self) -> VecEnvObs:
        """Begin."""
        return self.venv.reset()

    @override
    def step_wait(self) -> VecEnvStepReturn:
        """Step, and pay each account what another has earned."""
        seen, paid, ended, infos = self.venv.step_wait()
        return seen, self._rng.permutation(paid), ended, infos


def trained_on_shuffled(seed: int) -> str:
    """Train with the same settings on rewards that have nothing to do with the actions."""
    folder, config, seeds = folder_of("shuffled", seed) / "last", config_of("m1"), SeedManager(seed)
    if folder.exists():
        return str(folder)
    recipe = recipe_of(config)
    env = make_vec_env(recipe, config.n_envs, seeds.environment)
    dealt = ShuffledRewards(env, seeds.environment.child("shuffled"))
    model = build_model(config.agent, VecNormalize(dealt, gamma=config.agent.gamma), seeds.model)
    model.learn(config.steps)
    save_model(model, folder, config=config.agent, env=describe_env(recipe), step=config.steps)
    return str(folder)


def played(
    market: str, models: dict[str, str], *, beside: bool = True, oracle: bool = False
) -> dict[str, Any]:
    """Evaluate models on fresh paths of a market, beside rules, under the costs of training."""
    arms = [
        Arm(label=label, refs=(Ref(use="sb3/ppo", params={"model": path}),))
        for label, path in models.items()
    ]
    if oracle:
        arms.append(Arm(label="oracle/filter", refs=(Ref(use="oracle/filter"),)))
    if beside:
        arms += [arm for arm in reference_arms(allow_short=True) if arm.label in BESIDE]
    plan = SeededPlan(market=Ref(use=f"known/{market}"), seeds=MARKET_SEEDS, config=COSTS, draws=20)
    return {arm.label: _alone(arm, plan) for arm in arms}


def _alone(arm: Arm, plan: SeededPlan) -> dict[str, Any]:
    """Evaluate one arm in a registry of its own: it is measured, not picked from among others."""
    with tempfile.TemporaryDirectory() as folder:
        registry = TrialRegistry(Path(folder) / "trials.jsonl")
        found = evaluate_seeded(
            [arm], plan, Setting(registry, command=("python", "scripts/market_ppo.py"))
        )
    for failed in found.failed:
        raise failed.error
    return _row(found.arms[0])


def _row(arm: ArmReport) -> dict[str, Any]:
    return {
        "net": arm.net.as_dict(),
        "gross": arm.gross.as_dict(),
        "share": None if arm.share is None else arm.share.as_dict(),
        "seeds_with_psr_above_95": arm.lucky,
        "gates": [gate.as_dict() for gate in arm.gates],
    }


if __name__ == "__main__":
    main()
