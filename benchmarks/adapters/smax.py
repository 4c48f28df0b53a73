"""SMAX of JaxMARL: 256 environments of ``3m`` against its own heuristic, on one core."""

from __future__ import annotations

import os
from importlib.metadata import version

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before XLA counts the cores

import inputs  # noqa: E402
import jax  # noqa: E402
from jaxmarl.environments.smax import (  # noqa: E402
    HeuristicEnemySMAX,
    map_name_to_scenario,
)

ENVS = 256


class Peer:
    """Runs whole rollouts inside one compiled loop, as JaxMARL's own learners do."""

    version = version("jaxmarl")

    def __init__(self, bars: str) -> None:
        self.env = HeuristicEnemySMAX(scenario=map_name_to_scenario("3m"))
        keys = jax.random.split(jax.random.PRNGKey(0), ENVS)
        self.key, self.state = jax.random.PRNGKey(1), jax.jit(jax.vmap(self.env.reset))(keys)[1]
        self.compiled: dict[int, object] = {}

    def _rollout(self, n_steps: int):
        env, agents = self.env, self.env.agents
        choices = env.action_space(agents[0]).n

        def step(carry, _):
            key, state = carry
            key, dice, world = jax.random.split(key, 3)
            drawn = jax.random.randint(dice, (ENVS, len(agents)), 0, choices)
            actions = {name: drawn[:, i] for i, name in enumerate(agents)}
            keys = jax.random.split(world, ENVS)
            seen, state, rewards, _, _ = jax.vmap(env.step)(keys, state, actions)
            # What is not returned would not be computed.
            total = sum(each.sum() for each in seen.values()) + rewards[agents[0]].sum()
            return (key, state), total

        return jax.jit(lambda key, state: jax.lax.scan(step, (key, state), None, n_steps))

    def steps(self, n_steps: int) -> dict:
        if n_steps not in self.compiled:
            rollout = self._rollout(n_steps)
            self.compiled[n_steps] = rollout.lower(self.key, self.state).compile()

        def work():
            return jax.block_until_ready(self.compiled[n_steps](self.key, self.state))

        seconds, ((self.key, self.state), _) = inputs.timed(work)
        return {"seconds": seconds, "units": n_steps * ENVS * len(self.env.agents)}
