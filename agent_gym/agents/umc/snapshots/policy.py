"""The policy: for each market the position of least expected free energy, by the laws it knows.

Nothing is hidden here and no position shows more than another, so expected free energy is, but for
a number that all positions share, what the outcome falls short of what is preferred (the proof is
in ``efe.free_energy``). The preference is a share of Kelly's position, so risk is priced as well.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import Field, ValidationError, field_validator
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import (
    About,
    ArtifactManifest,
    model_hash_of,
    read_artifact,
    write_artifact,
)
from agent_gym.agents.neural.layout import PolicyInputs
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.agents.umc.efe.preference import Preference
from agent_gym.agents.umc.snapshots.law import KINDS, Kind, Law
from agent_gym.agents.umc.snapshots.lessons import Lessons
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

KIND = "umc/market"
WEIGHTS, CARD = "policy.safetensors", "policy.json"
READ = ("perpetual", "price", "move", "position")
"""What it must see of a market beside the inputs of its laws."""


class Trading(Config):
    """How far a law of one kind of market looks ahead, and what trading there costs."""

    ticks: int = Field(ge=1, le=1_000, description="over which a move is expected")
    fee: float = Field(ge=0, lt=1, description="share of what is traded")
    leverage: float = Field(default=1.0, gt=0, description="of a whole position")


class MarketConfig(Config):
    """What it looks at, what it may hold, and what it wants."""

    inputs: tuple[str, ...] = Field(
        default=("gap", "return_5"),
        min_length=1,
        description="what the laws are linear in: what prices have not yet taken in of the news, "
        "and how they moved of late, which shows what others made of it",
    )
    question: Trading = Field(
        default=Trading(ticks=16, fee=0.005), description="held towards its answer, so it looks far"
    )
    perpetual: Trading = Field(
        default=Trading(ticks=2, fee=0.00055, leverage=3.0),
        description="left again as soon as that pays, so it looks as far as its costs",
    )
    memory_ticks: int = Field(
        default=16,
        ge=1,
        le=1_000,
        description="ticks over which rows say the same, for moves overlap and news last: a row "
        "counts as one of so many",
    )
    levels: tuple[float, ...] = Field(
        default=(-1.0, -0.5, 0.0, 0.5, 1.0), description="target positions it chooses from"
    )
    budget: float = Field(default=0.18, gt=0, le=1, description="share of equity for one market")
    kelly_fraction: float = Field(default=0.5, gt=0, le=1, description="of Kelly's position")
    nat: float = Field(
        default=2e-4, gt=0, description="return on equity worth one nat: how sharply it draws"
    )

    @field_validator("levels")
    @classmethod
    def _rising(cls, levels: tuple[float, ...]) -> tuple[float, ...]:
        if 0.0 not in levels or any(b <= a for a, b in pairwise(levels)):
            raise ValueError("levels must rise and hold 0")
        return levels

    @property
    def width(self) -> int:
        """Return how many numbers a lesson has in a row: 1, and the inputs."""
        return 1 + len(self.inputs)

    def trading(self, kind: Kind) -> Trading:
        """Return how a kind of market is traded."""
        return self.question if kind == "question" else self.perpetual


class _Card(Config):
    """All about a policy but its numbers."""

    kind: str = KIND
    config: MarketConfig
    snapshots: tuple[str, ...] = Field(description="that it was taught by")


class UMCMarketPolicy:
    """Chances over target positions for each market; it does not change once it is made.

    One that was taught nothing expects no move, and its best is to hold nothing.
    """

    def __init__(self, config: MarketConfig, lessons: Lessons | None = None) -> None:
        self.config = config
        self.inputs = PolicyInputs(market=(*READ, *config.inputs))
        self.lessons = Lessons.none(config.width) if lessons is None else lessons
        self.laws = {kind: Law.of(self.lessons.sums[kind].total()) for kind in KINDS}
        self.levels = np.array(config.levels)
        self.weights = self.lessons.arrays()
        self.files = {WEIGHTS: bytes_of(self.weights), CARD: self._card_bytes()}
        self.version = model_hash_of(self.files)
        self._preference = Preference.of_kelly(config.kelly_fraction, config.nat)

    def taught(self, lessons: Lessons) -> UMCMarketPolicy:
        """Return the policy after further lessons."""
        return UMCMarketPolicy(self.config, self.lessons.with_newer(lessons))

    def free_energy(self, blocks: FloatArray) -> FloatArray:
        """Return the expected free energy of each level, for each row of inputs, nats."""
        gain, variance = self.outcome(blocks)
        return self._preference.cost(gain, variance)

    def log_probs(self, blocks: FloatArray) -> FloatArray:
        """Return the log of the chance of each level, for each row of inputs ``[..., width]``."""
        x = -self.free_energy(blocks)
        x -= x.max(axis=-1, keepdims=True)
        x -= np.log(np.exp(x).sum(axis=-1, keepdims=True))
        return x

    def outcome(self, blocks: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of what each level brings, as a return on equity."""
        perpetual = blocks[..., 0] > 0.0
        price, move, position = (blocks[..., i] for i in (1, 2, 3))
        expected, variance = self._moves(blocks[..., len(READ) :], perpetual)
        chance = np.clip(price + 0.5, 0.0, 1.0)  # that a question is answered with yes
        there = move != 0.0
        unit = np.divide(price, move, out=np.zeros_like(price), where=there)  # move 1, as a return
        leverage = self.config.perpetual.leverage
        worth = np.where(perpetual, leverage * unit, chance * (1.0 - chance))[..., np.newaxis]
        long = np.where(perpetual, leverage, chance)
        short = np.where(perpetual, leverage, 1.0 - chance)
        fee = np.where(perpetual, self.config.perpetual.fee, self.config.question.fee)
        cost = self._traded(position, long, short) * fee[..., np.newaxis]
        stake = self.config.budget * self.levels * worth
        gain = stake * expected[..., np.newaxis] - self.config.budget * cost
        return gain, stake * stake * variance[..., np.newaxis]

    def save(self, folder: Path, about: About | None = None) -> ArtifactManifest:
        """Put the policy into a folder of its own, whole or not at all."""
        return write_artifact(folder, KIND, self.files, about)

    @classmethod
    def load(cls, folder: Path) -> UMCMarketPolicy:
        """Read a policy; a file with a single changed byte is refused."""
        _, files = read_artifact(folder, KIND)
        try:
            card = _Card.model_validate(json.loads(files[CARD]))
            arrays = tensors_of(checked_tensors(files[WEIGHTS]))
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError("this is no policy of UMC", where=str(folder), found=error) from error
        lessons = Lessons.restored(card.snapshots, arrays, card.config.width)
        return cls(card.config, lessons)

    def _moves(
        self, inputs: FloatArray, perpetual: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    ) -> tuple[FloatArray, FloatArray]:
        question, other = (self.laws[kind].move(inputs) for kind in KINDS)
        mean = np.where(perpetual, other[0], question[0])
        return mean, np.where(perpetual, other[1], question[1])

    def _traded(self, position: FloatArray, long: FloatArray, short: FloatArray) -> FloatArray:
        """Return what each level would trade, as a share of the budget.

        What is held counts as the level next to it: a target that stays is not traded to size.
        """
        levels = self.levels
        nearest = np.abs(levels - position[..., np.newaxis]).argmin(axis=-1)
        held = levels[nearest][..., np.newaxis]
        bought = np.abs(np.maximum(levels, 0.0) - np.maximum(held, 0.0))
        sold = np.abs(np.minimum(levels, 0.0) - np.minimum(held, 0.0))
        traded: FloatArray = bought * long[..., np.newaxis] + sold * short[..., np.newaxis]
        return traded

    def _card_bytes(self) -> bytes:
        card = _Card(config=self.config, snapshots=self.lessons.snapshots)
        return (to_json(card.model_dump(mode="json")) + "\n").encode()
