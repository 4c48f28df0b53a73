"""A market in words whose best trader is known: follow strong news, leave weak news alone.

A note names a ticker and a piece of news whose wording tells how strong it is. Buying earns the
strength and luck, selling the opposite, and both cost; holding earns nothing. Luck is drawn once
for all who trade the same note, so that it drops out of a comparison within the group. Weak news is
worth less than the cost: whoever follows every piece of news is not the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.grpo.batch import RolloutBatch

LEVELS = np.array([-1.0, 0.0, 1.0])
PROMPT = PromptConfig(question="{text} BUY, SELL or HOLD:", ask="always")
FEATURES = ("price",)
COST, LUCK_SD = 0.3, 0.5
LogProbs = Callable[[Sequence[str]], FloatArray]

WORDINGS: dict[float, tuple[str, ...]] = {
    1.0: (
        "Huge demand reported for {ticker}",
        "Record profit announced at {ticker}",
        "{ticker} wins its largest contract ever",
        "Takeover bid far above the price for {ticker}",
    ),
    0.6: (
        "Strong demand report for {ticker}",
        "Good quarter at {ticker}, outlook raised",
        "Analysts upgrade {ticker}",
        "{ticker} gains an important customer",
    ),
    0.1: (
        "Slightly better mood around {ticker}",
        "A small buyer looks at {ticker}",
        "{ticker} opens a minor branch",
        "Modest praise for {ticker} in a blog",
    ),
    -0.1: (
        "Slightly worse mood around {ticker}",
        "A small holder leaves {ticker}",
        "{ticker} closes a minor branch",
        "Modest doubts about {ticker} in a blog",
    ),
    -0.6: (
        "Weak demand report for {ticker}",
        "Poor quarter at {ticker}, outlook cut",
        "Analysts downgrade {ticker}",
        "{ticker} loses an important customer",
    ),
    -1.0: (
        "Demand collapses at {ticker}",
        "Record loss announced at {ticker}",
        "Fraud confirmed at {ticker}",
        "{ticker} close to bankruptcy, lenders say",
    ),
}
UNSEEN: dict[float, tuple[str, ...]] = {
    1.0: ("Enormous orders pour in at {ticker}", "Best year in history for {ticker}"),
    0.6: ("Solid demand growth at {ticker}", "Brokers raise their rating of {ticker}"),
    0.1: ("A slightly friendlier tone about {ticker}", "Minor purchase of {ticker} by a fan"),
    -0.1: ("A slightly colder tone about {ticker}", "Minor sale of {ticker} by a clerk"),
    -0.6: ("Falling demand at {ticker}", "Brokers cut their rating of {ticker}"),
    -1.0: ("Orders vanish completely at {ticker}", "Worst crisis in history for {ticker}"),
}
TICKERS = ("ALPHA", "BRIX", "CORAL", "DELTA", "ECHO", "FJORD", "GAMMA", "HELIX")
UNSEEN_TICKERS = ("KITE", "LUMEN", "MANGO", "NORTH")


@dataclass(frozen=True, slots=True)
class Note:
    """What is shown, and how much the news is worth."""

    text: str
    strength: float


@dataclass(frozen=True, slots=True)
class Score:
    """What a policy earns a note, without luck: doing what it finds likeliest, and drawing."""

    greedy: float
    expected: float
    accuracy: float
    entropy: float


def training_notes(seeds: Seeds, n: int) -> list[Note]:
    """Draw notes to learn from; every strength is as frequent as any other."""
    rng = seeds.rng()
    strengths = list(WORDINGS)
    drawn: list[Note] = []
    for i in range(n):
        strength = strengths[i % len(strengths)]
        words = WORDINGS[strength][int(rng.integers(len(WORDINGS[strength])))]
        drawn.append(_note(words, TICKERS[int(rng.integers(len(TICKERS)))], rng, strength))
    return drawn


def held_out_notes(seeds: Seeds, wordings: dict[float, tuple[str, ...]], each: int) -> list[Note]:
    """Return every wording, with tickers that no training note has; ``each`` so many times."""
    rng = seeds.rng()
    return [
        _note(words, UNSEEN_TICKERS[(i + k) % len(UNSEEN_TICKERS)], rng, strength)
        for strength, phrases in wordings.items()
        for i, words in enumerate(phrases)
        for k in range(each)
    ]


def best(notes: Sequence[Note]) -> float:
    """Return what the best trader earns a note."""
    return float(np.mean([max(abs(note.strength) - COST, 0.0) for note in notes]))


def follower(notes: Sequence[Note]) -> float:
    """Return what a trader earns who follows every piece of news, whatever it costs."""
    return float(np.mean([abs(note.strength) - COST for note in notes]))


def at_random(notes: Sequence[Note]) -> float:
    """Return what a trader earns who throws dice."""
    return float(np.mean([_values(note).mean() for note in notes]))


def score(log_probs: LogProbs, notes: Sequence[Note]) -> Score:
    """Look at a policy on notes, exactly: over all it could answer, without luck."""
    found = log_probs([note.text for note in notes])
    values = np.array([_values(note) for note in notes])
    chosen, chances = found.argmax(axis=1), np.exp(found)
    rows = np.arange(len(notes))
    return Score(
        greedy=float(values[rows, chosen].mean()),
        expected=float((chances * values).sum(axis=1).mean()),
        accuracy=float((chosen == values.argmax(axis=1)).mean()),
        entropy=float(-(chances * found).sum(axis=1).mean()),
    )


def play(
    log_probs: LogProbs, notes: Sequence[Note], members: int, seeds: Seeds, version: str
) -> RolloutBatch:
    """Let a policy trade each note several times; a note is a group."""
    found = log_probs([note.text for note in notes])
    reach = np.exp(found).cumsum(axis=1)
    draws = seeds.child("draws").rng().random((len(notes), members)) * reach[:, -1:]
    chosen = (draws[..., np.newaxis] >= reach[:, np.newaxis]).sum(axis=2)
    luck = LUCK_SD * seeds.child("luck").rng().standard_normal(len(notes))
    of_chosen = np.take_along_axis(found, chosen, axis=1)
    return _batch(notes, chosen, (luck, of_chosen), "/".join(seeds.path), version)


def demonstrations(notes: Sequence[Note], seeds: Seeds, wrong_share: float) -> RolloutBatch:
    """Return what a follower of all news did, and beside it what it did not do; no chances known.

    It errs in a share of its decisions, so that whoever imitates it is never quite sure.
    """
    rng = seeds.rng()
    right = np.array([0 if note.strength < 0 else 2 for note in notes])
    drawn = rng.integers(3, size=len(notes))
    done = np.where(rng.random(len(notes)) < wrong_share, drawn, right)
    both = np.stack([done, (done + 1) % 3], axis=1)
    nothing = np.full(both.shape, np.nan)
    batch = _batch(notes, both, (np.zeros(len(notes)), nothing), "demonstration", "follower")
    taken = np.tile([1.0, 0.0], len(notes))
    return replace(batch, returns=taken, scored=True)


def shuffled(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    """Return the same decisions with the rewards of others: there is nothing to learn."""
    order = seeds.rng().permutation(len(batch))
    return replace(batch, rewards=batch.rewards[order], returns=batch.returns[order])


def _batch(
    notes: Sequence[Note],
    chosen: NDArray[np.int64],
    luck_and_log_probs: tuple[FloatArray, FloatArray],
    name: str,
    version: str,
) -> RolloutBatch:
    luck, log_probs = luck_and_log_probs
    n, members = chosen.shape
    sides = LEVELS[chosen]
    worth = np.array([note.strength for note in notes]) + luck
    rewards = sides * worth[:, np.newaxis] - COST * np.abs(sides)
    return RolloutBatch(
        ids=tuple(f"{name}:{s}.{m}" for s in range(n) for m in range(members)),
        group_keys=tuple(f"{name}:{s}" for s in range(n) for _ in range(members)),
        versions=(version,) * (n * members),
        feature_names=FEATURES,
        observations=np.zeros((n * members, 1, 1)),
        actions=sides.reshape(-1, 1, 1),
        rewards=rewards.reshape(-1, 1),
        log_probs=log_probs.reshape(-1, 1),
        mask=np.ones((n * members, 1), dtype=np.bool_),
        finished=np.ones(n * members, dtype=np.bool_),
        returns=rewards.reshape(-1),
        texts=tuple((note.text,) for note in notes for _ in range(members)),
    )


def _values(note: Note) -> FloatArray:
    return np.asarray(LEVELS * note.strength - COST * np.abs(LEVELS))


def _note(words: str, ticker: str, rng: np.random.Generator, strength: float) -> Note:
    price = 10 + int(rng.integers(90))
    said = words.format(ticker=ticker)
    return Note(f"{said}. Price {price}.", strength)
