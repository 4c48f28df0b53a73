"""The stated law of the news: what a post tells about the truth, for everybody to know.

A post carries evidence ``e`` in nats. A true one about a fact is drawn from N(+m, delta^2), about
its opposite from N(-m, delta^2), with m = delta^2 / 2: then e is exactly its log-likelihood ratio.
An author of reliability r keeps the sign with probability r. A share of all posts is noise, drawn
from a law of the same width that knows nothing. Readers see the band that e lies in (the strength
of the words), a number close to e (the sentiment), the kind of post, and who wrote it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from pydantic import Field

from agent_gym.core.registry import Config

EDGES = (-1.6, -0.8, -0.25, 0.25, 0.8, 1.6)
BANDS = (-3, -2, -1, 0, 1, 2, 3)
KINDS = ("report", "breaking", "rumour")


class NewsLaw(Config):
    """How much one kind of post says."""

    delta: float = Field(default=0.8, gt=0.0, le=4.0, description="strength of evidence, nats")
    noise_share: float = Field(
        default=0.2, ge=0.0, lt=1.0, description="share of posts that know nothing"
    )
    jump: float = Field(
        default=0.02, gt=0.0, le=0.5, description="log move of a perpetual behind a true post"
    )
    up_share: float = Field(
        default=0.5, gt=0.0, lt=1.0, description="share of such moves that are upward"
    )

    @property
    def mean(self) -> float:
        """Return the mean of true evidence, nats."""
        return 0.5 * self.delta * self.delta

    @property
    def noise_deviation(self) -> float:
        """Return how widely noise is spread: as widely as evidence of unknown sign."""
        return math.hypot(self.delta, self.mean)


@dataclass(frozen=True, slots=True)
class Reading:
    """How likely what is seen of a post is: fact true, fact false, or a post that is noise."""

    true: float
    false: float
    noise: float

    @property
    def evidence(self) -> float:
        """Return the log-likelihood ratio of the fact, nats."""
        return math.log((self.true + self.noise) / (self.false + self.noise))

    def direction(self, up_share: float) -> float:
        """Return the expected direction of the move behind the post, -1 to 1; noise moves none."""
        up, down = up_share * self.true, (1.0 - up_share) * self.false
        return (up - down) / (up + down + self.noise)

    def moves(self, up_share: float) -> float:
        """Return the chance that there is a move behind the post at all."""
        real = up_share * self.true + (1.0 - up_share) * self.false
        return real / (real + self.noise)


def band_of(evidence: float) -> int:
    """Return the band of words that evidence is written in, -3 to 3.

    Example:
        >>> [band_of(e) for e in (-2.0, -0.3, 0.0, 1.0)]
        [-3, -1, 0, 2]
    """
    return BANDS[bisect_right(EDGES, evidence)]


def limits_of(band: int) -> tuple[float, float]:
    """Return the evidence between which a band of words is used."""
    place = BANDS.index(band)
    low = -math.inf if place == 0 else EDGES[place - 1]
    return low, math.inf if place == len(EDGES) else EDGES[place]


def read_post(
    law: NewsLaw, reliability: float, band: int, sentiment: float, sentiment_noise: float
) -> Reading:
    """Return the likelihoods of what is seen of a post, as Bayes' rule wants them.

    Example:
        >>> reading = read_post(NewsLaw(noise_share=0.0), 1.0, 2, 1.1, 0.5)
        >>> 0.8 < reading.evidence < 1.6
        True
    """
    limits = limits_of(band)
    ahead = _seen(law.mean, law.delta, limits, sentiment, sentiment_noise)
    against = _seen(-law.mean, law.delta, limits, sentiment, sentiment_noise)
    noise = _seen(0.0, law.noise_deviation, limits, sentiment, sentiment_noise)
    told = 1.0 - law.noise_share
    return Reading(
        true=told * (reliability * ahead + (1.0 - reliability) * against),
        false=told * (reliability * against + (1.0 - reliability) * ahead),
        noise=law.noise_share * noise,
    )


def _seen(
    mean: float, deviation: float, limits: tuple[float, float], seen: float, noise: float
) -> float:
    """Return the density of a sentiment and a band, for evidence from N(mean, deviation^2)."""
    own, other = deviation * deviation, noise * noise
    both = own + other
    density = math.exp(-0.5 * (seen - mean) ** 2 / both) / math.sqrt(both)
    centre, width = (mean * other + seen * own) / both, math.sqrt(own * other / both)
    low, high = (_below((limit - centre) / width) for limit in limits)
    return density * (high - low) + 1e-300


def _below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
