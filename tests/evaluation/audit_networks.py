"""Networks with one planted defect each, and their healthy twins; these need torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from agent_gym.core.types import Decision

COLUMNS = ("return_z", "momentum_4")
BATCH = 32


class Trader:
    """Healthy: learns while it plays, a policy by its own rewards beside a value as baseline."""

    name = "sample/trader"
    width = len(COLUMNS)

    def __init__(self):
        torch.set_num_threads(1)
        self._nets = None
        self._greedy = False
        self._losses = {}

    def reset(self, start):
        self._columns = [start.column(name) for name in COLUMNS]
        self._known = [start.column(f"{name}_known") for name in COLUMNS]
        self._dice = start.seeds.child("explore").rng()
        self._batch = []
        if self._nets is None:
            self._build(start.seeds.as_int())

    def act(self, obs):
        x = self.inputs(obs)
        with torch.no_grad():
            chance = torch.sigmoid(self._nets["policy"](x)).item()
        long = chance > 0.5 if self._greedy else self._dice.random() < chance
        return Decision(1.0 if long else -1.0, {"chance": chance})

    def observe(self, step):
        self._batch.append((self.inputs(step.before), step.decision.action, step.after.reward))
        if len(self._batch) == BATCH:
            self._learn()

    def act_greedily(self):
        self._greedy = True
        self.settle()

    def settle(self):
        if self._nets is not None and self._greedy:
            self._nets.eval()

    def weights(self):
        if self._nets is None:
            return {}
        return {name: value.detach().numpy() for name, value in self._nets.named_parameters()}

    def losses(self):
        return self._losses

    def save(self, folder):
        np.savez(folder / "nets.npz", **self.kept())

    def load(self, folder):
        self._build(0)
        with np.load(folder / "nets.npz") as file:
            found = {name: torch.from_numpy(file[name]) for name in file.files}
        self._nets.load_state_dict(found, strict=False)

    def kept(self):
        return {name: value.numpy() for name, value in self._nets.state_dict().items()}

    def inputs(self, obs):
        known = obs.features[self._columns] * obs.features[self._known]
        return torch.tensor(np.clip(known, -3.0, 3.0), dtype=torch.float32)

    def body(self):
        return nn.Sequential(nn.Linear(self.width, 8), nn.Tanh(), nn.Linear(8, 1))

    def policy_loss(self, logits, actions, advantage):
        chosen = nn.functional.logsigmoid(logits * actions)
        return -(chosen * advantage).mean()

    def _build(self, seed, lr=0.02):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._nets = nn.ModuleDict({"policy": self.body(), "value": self.body()})
        self._optimiser = torch.optim.Adam(self._nets.parameters(), lr=lr)
        self.settle()

    def _learn(self):
        x, actions, rewards = zip(*self._batch, strict=True)
        self._batch = []
        x = torch.stack(x)
        actions, rewards = torch.tensor(actions), torch.tensor(rewards) * 100.0
        value = self._nets["value"](x).squeeze(1)
        logits = self._nets["policy"](x).squeeze(1)
        losses = {
            "policy": self.policy_loss(logits, actions, (rewards - value).detach()),
            "value": ((value - rewards) ** 2).mean(),
        }
        self._optimiser.zero_grad()
        sum(losses.values()).backward()
        self._optimiser.step()
        self._losses = {name: loss.item() for name, loss in losses.items()}


class NoPolicyGradient(Trader):
    """Takes the gradient through numbers that the policy has no part in."""

    def policy_loss(self, logits, actions, advantage):
        return super().policy_loss(logits.detach(), actions, advantage)


class SignError(Trader):
    """Goes uphill where it should go down."""

    def policy_loss(self, logits, actions, advantage):
        return -super().policy_loss(logits, actions, advantage)


class PaddedInputs(Trader):
    """Pads its inputs with zeros."""

    width = 8

    def inputs(self, obs):
        return nn.functional.pad(super().inputs(obs), (0, self.width - len(COLUMNS)))


class HalfSaved(Trader):
    """Forgets the policy when it saves."""

    def kept(self):
        return {name: value for name, value in super().kept().items() if "policy" not in name}


class Dropping(Trader):
    """Never leaves training mode, dropout included, though its dice are its own."""

    def body(self):
        return nn.Sequential(nn.Linear(self.width, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))

    def act(self, obs):
        if not self._nets.training:
            return super().act(obs)
        with torch.random.fork_rng():
            torch.manual_seed(int(self._dice.integers(2**31)))
            return super().act(obs)

    def settle(self):
        pass


class Undropped(Dropping):
    """Healthy: the same layers in evaluation mode."""

    def settle(self):
        Trader.settle(self)


class HandmadeNoise(Trader):
    """Adds noise to what it does, without any layer that would show it."""

    def act(self, obs):
        made = super().act(obs)
        return Decision(made.action, {"chance": made.signals["chance"] + self._dice.normal()})


class GlobalInit(Trader):
    """Draws its first weights from the generator that all share."""

    def _build(self, seed):
        self._nets = nn.ModuleDict({"policy": self.body(), "value": self.body()})
        self._optimiser = torch.optim.Adam(self._nets.parameters(), lr=0.02)


class Forecaster(Trader):
    """Healthy: is fitted to the next return, and holds as much as it expects."""

    needs = ("close", "return_z", "momentum_4", "return_z_known", "momentum_4_known")

    def fit(self, start, columns):
        self._build(start.seeds.as_int(), lr=0.04)
        values = [columns[n] * columns[f"{n}_known"] for n in COLUMNS]
        x = torch.tensor(np.clip(np.column_stack(values)[:-1], -3, 3), dtype=torch.float32)
        y = torch.tensor(np.diff(np.log(columns["close"])) * 100.0, dtype=torch.float32)
        for _ in range(80):
            loss = self.loss(self._nets["policy"](x), y)
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
        self._losses = {"squared": loss.item()}

    def loss(self, guess, y):
        return ((guess.squeeze(1) - y) ** 2).mean()

    def act(self, obs):
        with torch.no_grad():
            guess = self._nets["policy"](self.inputs(obs)).item()
        return Decision(float(np.clip(guess, -1.0, 1.0)))

    def observe(self, step):
        pass

    def weights(self):
        return {name: v for name, v in super().weights().items() if "policy" in name}


class Broadcast(Forecaster):
    """Takes [B, 1] from [B], which is a table of all pairs."""

    def loss(self, guess, y):
        return ((guess - y) ** 2).mean()
