"""The last stage: a learned model may veto what every rule let pass, and nothing else."""

from __future__ import annotations

from hashlib import blake2b
from math import isfinite
from typing import NamedTuple

from agent_gym.agents.desk.acceptor import Acceptor, Score
from agent_gym.agents.desk.features import signal_features
from agent_gym.agents.desk.filter_case import Case
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.core.errors import AgentGymError
from agent_gym.core.seeds import Seeds

HOLDS = frozenset({RejectCode.MODEL_UNCERTAIN, RejectCode.MODEL_DRIFT_HOLD})
_WORD = 2.0**64


class Veto(NamedTuple):
    """Why the model says no; ``score`` is None if it could not be asked."""

    code: RejectCode | None
    detail: str
    score: Score | None


def ask(acceptor: Acceptor, case: Case) -> Veto:
    """Return what a model says of a case; a model that breaks its contract is a wrong set-up."""
    try:
        score = acceptor.score(signal_features(case.signal, case.view, case.context))
    except AgentGymError as error:
        return Veto(RejectCode.OPS_CONFIG_ERROR, f"the model failed: {error.what}", None)
    if not (isfinite(score.score) and isfinite(score.threshold)):
        detail = f"the model gave {score.score:g} with threshold {score.threshold:g}"
        return Veto(RejectCode.OPS_CONFIG_ERROR, detail, None)
    if score.hold is not None:
        code = score.hold if score.hold in HOLDS else RejectCode.OPS_CONFIG_ERROR
        return Veto(code, f"the model holds: {score.hold.value}", score)
    if score.score < score.threshold:
        detail = f"score {score.score:.6g}; threshold {score.threshold:.6g}"
        return Veto(RejectCode.MODEL_LOW_SCORE, detail, score)
    return Veto(None, "", score)


class PaperDraw:
    """Picks the vetoed signals that are followed on paper, by their id and never by their turn.

    Example:
        >>> draw = PaperDraw(Seeds(7), 1.0)
        >>> draw.takes("signal1")
        True
    """

    def __init__(self, seeds: Seeds, share: float) -> None:
        self._key = seeds.child("epsilon").as_uint64().to_bytes(8, "big")
        self._share = share

    def takes(self, signal_id: str) -> bool:
        """Return whether a signal is followed though the model vetoed it."""
        digest = blake2b(signal_id.encode(), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "big") / _WORD < self._share
