"""(e) How fast is learning: our loop beside Stable-Baselines3 as it is usually called.

On LunarLander the peer's settings are those that rl-baselines3-zoo ships, and its environments are
made as the zoo makes them. On a market there are two peers: the library as it is called there, with
its own defaults on one environment, and one with every setting of ours, read from the same config,
on as many. All run in this process, one thread each, round by round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from agent_gym.agents.sb3.algorithms import RATES, policy_kwargs, schedule
from agent_gym.agents.sb3.artifact import policy_of
from agent_gym.core.seeds import Seeds
from agent_gym.training.rl.config import TrainerConfig, read_trainer_config
from agent_gym.training.rl.episodes import mean_reward, play_episodes
from agent_gym.training.rl.experiment_config import shipped_config
from agent_gym.training.rl.loop import Loop
from agent_gym.training.rl.setup import make_setup, recipe_of
from benchmarks.contest import LIMIT, OURS, Entry, contest
from benchmarks.peers import ENVIRONMENTS, Fleet
from benchmarks.report import Goal, Row, rate_row

ZOO = "SB3 with the zoo's settings"
ANYTRADING = "SB3 on gym-anytrading"
SAME = "SB3 on as many gym-anytradings, with our settings"
GOOD_RETURN, LOOK_EVERY, LOOK_EPISODES = 200.0, 25_000, 20
LONGEST, SEEDS = 1_000_000, (0, 1)
CHUNK, FEW, WINDOW = 16_384, 4_096, 32


def _zoo_model(seed: int) -> PPO:
    return PPO(
        "MlpPolicy",
        make_vec_env("LunarLander-v3", 16, seed=seed),
        n_steps=1024,
        batch_size=64,
        n_epochs=4,
        gamma=0.999,
        gae_lambda=0.98,
        ent_coef=0.01,
        device="cpu",
        seed=seed,
    )


class _OurRun:
    """Our loop on a shipped config, from its first step on."""

    def __init__(self, config: TrainerConfig, seed: int) -> None:
        self.config = config
        self.model, self.env = make_setup(config, seed)
        self._loop = Loop(self.model, LONGEST)

    def go_on(self, steps: int) -> None:
        """Take at least so many steps more, and learn from them."""
        end = self._loop.step + steps
        while self._loop.step < end:
            self._loop.iterate()


class _ZooRun:
    """Plain ``.learn()``, a piece at a time; schedules are constant, so pieces change nothing."""

    def __init__(self, seed: int) -> None:
        self.model = _zoo_model(seed)

    def go_on(self, steps: int) -> None:
        """Take at least so many steps more, and learn from them."""
        self.model.learn(steps, reset_num_timesteps=False)


def _random_steps(config: TrainerConfig) -> Callable[[], None]:
    """Return the limit: the same environments with nobody learning."""
    env = make_setup(config, 5).env
    env.reset()
    actions = Seeds(3).child("lander").rng().integers(0, 4, (CHUNK // env.num_envs, env.num_envs))

    def run() -> None:
        for chosen in actions:
            env.step(chosen)

    return run


def lander_rate(fleet: Fleet, rounds: int) -> Row:
    """Steps a second while learning, nobody looking."""
    config = read_trainer_config(shipped_config("lander-ppo"))
    ours, zoo = _OurRun(config, 0), _ZooRun(0)
    own = {
        LIMIT: Entry(_random_steps(config), CHUNK),
        OURS: Entry(lambda: ours.go_on(CHUNK), CHUNK),
        ZOO: Entry(lambda: zoo.go_on(CHUNK), CHUNK),
    }
    standings = contest(own, {}, fleet, rounds)
    note = "LunarLander-v3, 16 environments, one thread; the limit steps them and learns nothing"
    row = rate_row("ppo_lander", "steps/s", standings, Goal(to_peers={ZOO: 1.5}), note)
    return with_returns(row, _look(ours, config), _look(zoo, config))


def with_returns(row: Row, ours: dict[str, Any], zoo: dict[str, Any]) -> Row:
    """Return a row whose goal also asks for an equal or better return after as many steps."""
    said = f"greedy returns after {ours['steps']:,} and {zoo['steps']:,} steps: {ours['mean']:.1f} "
    fair = ours["steps"] <= zoo["steps"] and ours["mean"] >= zoo["mean"]
    return replace(
        row,
        goal=f"{row.goal}, at an equal or better return after no more steps",
        met=fair if row.met else row.met,
        measured=row.measured | {"returns": {OURS: ours, ZOO: zoo}},
        note=f"{row.note}; {said}and {zoo['mean']:.1f} ({LOOK_EPISODES} episodes, one run each)",
    )


def lander_to_200() -> Row:
    """Processor seconds of learning until 20 greedy episodes have a mean of 200."""
    config = read_trainer_config(shipped_config("lander-ppo"))
    ours = [_until_good(_OurRun(config, seed), config) for seed in SEEDS]
    zoo = [_until_good(_ZooRun(seed), config) for seed in SEEDS]
    spent, theirs = (sum(row["cpu_s"] for row in rows) for rows in (ours, zoo))
    reached = all(row["mean"] >= GOOD_RETURN for row in ours)
    ratio = theirs / spent
    return Row(
        "ppo_to_200",
        "CPU s, less is better",
        spent / len(SEEDS),
        theirs / len(SEEDS),
        f"at most half the processor time of {ZOO}",
        reached and ratio >= 2.0,
        {ZOO: ratio},
        {"ours by seed": ours, "zoo by seed": zoo},
        f"seeds {SEEDS}; first of looks every {LOOK_EVERY:,} steps; a run not there in "
        f"{LONGEST:,} steps counts with what it spent, so the ratio is then a lower bound",
    )


def _until_good(run: _OurRun | _ZooRun, config: TrainerConfig) -> dict[str, Any]:
    spent, mean = 0.0, -np.inf
    while mean < GOOD_RETURN and run.model.num_timesteps < LONGEST:
        start = time.process_time()
        run.go_on(LOOK_EVERY)
        spent += time.process_time() - start
        mean = _look(run, config)["mean"]
    return {"cpu_s": round(spent, 2), "steps": run.model.num_timesteps, "mean": round(mean, 1)}


def _look(run: _OurRun | _ZooRun, config: TrainerConfig) -> dict[str, Any]:
    """Return the mean of greedy episodes, the same for all, and after how many steps it is."""
    seeds = [Seeds(77).child("look", k).as_int() for k in range(LOOK_EPISODES)]
    agent = (
        config.agent
        if isinstance(run, _OurRun)
        else config.agent.model_copy(update={"activation": "tanh"})
    )
    played = play_episodes(policy_of(run.model, config=agent), recipe_of(config), seeds)
    return {"steps": run.model.num_timesteps, "mean": mean_reward(played)}


def market_rate(close: np.ndarray, fleet: Fleet, rounds: int) -> Row:
    """Steps a second while learning to trade."""
    config = read_trainer_config(shipped_config("market-ppo"))
    ours = _OurRun(config, 0)
    own = {
        LIMIT: Entry(_market_steps(config), CHUNK),
        OURS: Entry(lambda: ours.go_on(CHUNK), CHUNK, repeats=3),
    }
    make = _anytrading(close)
    if make is not None:
        same, plain = same_ppo(config, make), PPO("MlpPolicy", make(), device="cpu", seed=0)
        own[SAME] = Entry(lambda: same.learn(CHUNK, reset_num_timesteps=False), CHUNK)
        own[ANYTRADING] = Entry(lambda: plain.learn(FEW, reset_num_timesteps=False), FEW)
    goal = Goal(to_peers={ANYTRADING: 3.0})
    note = (
        f"{config.n_envs} accounts; {SAME} has as many environments and every setting of the "
        f"config, normaliser and optimiser too; {ANYTRADING} is told nothing"
    )
    return rate_row("ppo_market", "steps/s", contest(own, {}, fleet, rounds), goal, note)


def _market_steps(config: TrainerConfig) -> Callable[[], None]:
    env = make_setup(config, 6).env
    env.reset()
    actions = Seeds(3).child("market").rng().integers(0, 3, (CHUNK // env.num_envs, env.num_envs))

    def run() -> None:
        for chosen in actions:
            env.step(chosen)

    return run


def _anytrading(close: np.ndarray) -> Callable[[], Any] | None:
    """Return what makes a gym-anytrading environment, from the peers' folder; None if absent."""
    folder = next((ENVIRONMENTS / "others").glob("lib/python*/site-packages"), Path("absent"))
    sys.path.append(str(folder))  # last: all else comes from here
    try:
        envs = import_module("gym_anytrading.envs")
    except ImportError:
        return None
    finally:
        sys.path.remove(str(folder))
    frame = import_module("pandas").DataFrame({"Close": close})
    bound = (WINDOW, len(close))
    return lambda: envs.StocksEnv(df=frame, window_size=WINDOW, frame_bound=bound)


def same_ppo(config: TrainerConfig, make: Callable[[], Any]) -> PPO:
    """Return plain PPO on other environments with every setting that a config gives ours."""
    env: VecEnv = DummyVecEnv([make] * config.n_envs)
    if config.normalize.observations or config.normalize.rewards:
        env = VecNormalize(
            env,
            norm_obs=config.normalize.observations,
            norm_reward=config.normalize.rewards,
            clip_obs=config.normalize.clip,
            clip_reward=config.normalize.clip,
            gamma=config.agent.gamma,
        )
    told = config.agent.model_kwargs()
    rates = {name: schedule(told[name]) for name in RATES if told[name] is not None}
    return PPO(
        "MlpPolicy",
        env,
        learning_rate=schedule(config.agent.learning_rate),
        policy_kwargs=policy_kwargs(config.agent),
        device="cpu",
        seed=0,
        **(told | rates),
    )


def learning(close: np.ndarray, fleet: Fleet, rounds: int) -> Iterator[Row]:
    """Yield the rows of this work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield lander_rate(fleet, rounds)
        yield market_rate(close, fleet, rounds)
        yield lander_to_200()
    finally:
        torch.set_num_threads(threads)
