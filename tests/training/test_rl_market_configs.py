from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from agent_gym.apps.cli.evaluate import costs_of
from agent_gym.apps.cli.evaluate_options import EvaluateJob
from agent_gym.envs.market_env import resolve_config
from agent_gym.envs.training_env import make_vec_env
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.training.rl.config import TrainerConfig, read_mapping
from agent_gym.training.rl.seeding import SeedManager
from agent_gym.training.rl.setup import make_plan, make_setup

FOLDER = Path(str(files("agent_gym"))) / "configs" / "rl"
NAMES = ("market-m1-ppo", "market-ppo", "market-a2c", "market-sac", "market-td3")
KEPT_FOR_CHOOSING, KEPT_FOR_JUDGING = range(1000, 1020), range(20)


def short(name, **changes):
    """Return a shipped config on a series short enough for a test."""
    fields = read_mapping(FOLDER / f"{name}.yaml")
    fields["env_params"]["market"]["params"]["n_bars"] = 3_000
    return TrainerConfig.model_validate(fields | changes)


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_market_config_can_act_and_is_judged_elsewhere(name, tmp_path):
    plan = make_plan(short(name), 0, tmp_path)
    assert plan.recipe.continuous == (plan.config.algo in ("sac", "td3"))
    trained = resolve_config(None, plan.recipe.params)
    judged = resolve_config(None, plan.evaluation_recipe.params)
    assert trained.market_seed != judged.market_seed
    assert judged.costs == trained.costs
    assert judged.account == trained.account
    assert trained.account_features == judged.account_features == ("position",)
    for seed in (trained.market_seed, judged.market_seed):
        assert seed not in KEPT_FOR_CHOOSING
        assert seed not in KEPT_FOR_JUDGING


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_shows_what_the_config_names(name, tmp_path):
    plan = make_plan(short(name), 0, tmp_path)
    env = make_vec_env(plan.recipe, 3, SeedManager(0).environment)
    seen = env.reset()
    config = resolve_config(None, plan.recipe.params)
    assert seen.shape == (3, len(config.features) + 1)
    assert np.abs(seen[:, : len(config.features)]).max(axis=0).all()


def test_training_pays_what_the_evaluation_charges(tmp_path):
    config = resolve_config(None, make_plan(short("market-m1-ppo"), 0, tmp_path).recipe.params)
    asked = costs_of(EvaluateJob(market="known/m1"), BacktestConfig())
    charged = asked.costs()
    for name in ("taker_bps", "half_spread_bps", "slippage_bps", "impact", "participation"):
        assert getattr(config.costs, name) == getattr(charged, name), name
    assert config.costs.latency_bars == charged.latency_bars
    account = asked.account()
    assert config.account.allow_short is account.allow_short is True
    assert config.account.max_leverage == account.max_leverage


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_a_few_steps(name):
    small = {"n_envs": 4, "steps": 64}
    fields = read_mapping(FOLDER / f"{name}.yaml")["agent"]
    few = {"n_steps": 8, "batch_size": 16} if "n_steps" in fields else {"learning_starts": 8}
    few = few | ({"buffer_size": 200} if "buffer_size" in fields else {})
    agent = fields | {key: value for key, value in few.items() if key in fields}
    model = make_setup(short(name, agent=agent, **small), 0).model
    before = {key: value.clone() for key, value in model.policy.state_dict().items()}
    model.learn(64)
    after = model.policy.state_dict()
    assert any(not before[key].equal(after[key]) for key in before)
