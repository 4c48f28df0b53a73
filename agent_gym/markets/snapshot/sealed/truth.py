"""What nobody may know while a snapshot is played: seed, answers, and what was behind each post."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.markets.snapshot.content import REMEDY, content_hash, read_packed, write_packed
from agent_gym.markets.snapshot.public_file import SUFFIX as PUBLIC_SUFFIX
from agent_gym.markets.snapshot.types import Snapshot

SUFFIX = ".truth.xz"
KIND = "agent-gym/truth"


@dataclass(frozen=True, slots=True)
class HiddenPost:
    """What was behind a post: its evidence, whether it is noise, whether its author turned it.

    ``move`` is the whole log move of a perpetual that belongs to it, 0 for a prediction market.
    """

    post: str
    evidence: float
    noise: bool
    turned: bool
    move: float


@dataclass(frozen=True, slots=True)
class OptimalAction:
    """Something that was worth doing; ``side`` is YES or NO, LONG or SHORT."""

    tick: int
    type: str
    target: str
    side: str
    expected_value: float
    reason: str


@dataclass(frozen=True, slots=True)
class SocialOpportunity:
    """A post of great weight, or a chat that could be joined."""

    tick: int
    type: str
    value: float
    description: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The sealed half of a snapshot."""

    seed: int
    outcomes: dict[str, bool]
    posts: tuple[HiddenPost, ...]
    optimal_actions: tuple[OptimalAction, ...]
    social_opportunities: tuple[SocialOpportunity, ...]

    def body(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "seed": self.seed,
            "outcomes": dict(self.outcomes),
            "posts": [_plain(one) for one in self.posts],
            "optimal_actions": [_plain(one) for one in self.optimal_actions],
            "social_opportunities": [_plain(one) for one in self.social_opportunities],
        }

    @property
    def hash(self) -> str:
        """Return the hash that the public file must state."""
        return content_hash(self.body())


def _plain(one: HiddenPost | OptimalAction | SocialOpportunity) -> dict[str, Any]:
    return {name.name: getattr(one, name.name) for name in fields(one)}


def truth_path(public: Path) -> Path:
    """Return where the sealed file of a public one lies."""
    return public.with_name(public.name.removesuffix(PUBLIC_SUFFIX) + SUFFIX)


def save_truth(truth: Truth, snapshot: Snapshot, folder: Path) -> Path:
    """Write the sealed file of a snapshot and return its path."""
    path = folder / f"{snapshot.id}{SUFFIX}"
    write_packed(path, KIND, truth.body(), snapshot=snapshot.id)
    return path


def load_truth(path: Path, snapshot: Snapshot) -> Truth:
    """Read a sealed file; one that is not that of the snapshot, to the byte, is refused."""
    whole = read_packed(path, KIND)
    if whole["hash"] != snapshot.truth_hash or whole.get("snapshot") != snapshot.id:
        raise DataError(
            "the sealed truth does not belong to this snapshot",
            where=str(path),
            found=whole["hash"],
            expected=snapshot.truth_hash,
            remedy=REMEDY,
        )
    body = whole["body"]
    return Truth(
        seed=body["seed"],
        outcomes=body["outcomes"],
        posts=tuple(HiddenPost(**one) for one in body["posts"]),
        optimal_actions=tuple(OptimalAction(**one) for one in body["optimal_actions"]),
        social_opportunities=tuple(
            SocialOpportunity(**one) for one in body["social_opportunities"]
        ),
    )
