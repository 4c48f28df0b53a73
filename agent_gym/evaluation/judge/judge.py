"""The relative judge: a group is shown several times, each time in another order, and averaged.

Passes come in pairs, one in a drawn order and one in its reverse, so that a liking for early or
late places falls out of the mean. Labels are drawn anew for every pass. Nothing depends on the
order in which trajectories are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.judge.answer import Malformed, Verdict, read_answer
from agent_gym.evaluation.judge.backend import BackendFailed, JudgeBackend, JudgeRequest
from agent_gym.evaluation.judge.cache import AnswerCache
from agent_gym.evaluation.judge.prompt import PROMPT_VERSION, question, repair
from agent_gym.evaluation.judge.records import (
    CandidateGroup,
    Entrant,
    RecordConfig,
    common_beginning,
    entrants,
)
from agent_gym.evaluation.judge.result import Failure, GroupJudgment, PassResult
from agent_gym.evaluation.judge.rubric import DECISIONS, Rubric


class JudgeConfig(Config):
    """How a group is shown."""

    passes: int = Field(default=4, ge=1, le=64, description="times a group is shown")
    seed: int = Field(default=0, ge=0, description="of orders, labels and marks")
    max_shown: int = Field(
        default=8,
        ge=3,
        le=64,
        description="records in one question; a larger group is dealt out anew in every pass",
    )
    rubric: Rubric = DECISIONS
    record: RecordConfig = RecordConfig()

    @property
    def least_passes(self) -> int:
        """How many passes must be good for a group to count as judged: half of them."""
        return (self.passes + 1) // 2


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of one question."""

    verdicts: dict[str, Verdict] | None
    failure: Failure | None = None
    requests: int = 0
    repaired: bool = False
    cached: bool = False


@dataclass(frozen=True, slots=True)
class RelativeJudge:
    """Scores the trajectories of a group against each other, from 0 to 1.

    Args:
        backend: Who answers.
        config: How groups are shown.
        cache: Where good answers are kept.
        workers: Questions at a time; no score depends on it.
    """

    backend: JudgeBackend
    config: JudgeConfig = JudgeConfig()  # noqa: RUF009 - frozen
    cache: AnswerCache | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError("questions at a time", found=self.workers, expected="at least 1")
        if self.cache is not None and self.backend.reads != "messages":
            raise ConfigError(
                "answers that depend on outcomes are not kept by the hash of their question",
                found=self.backend.model,
                remedy="Judge without a cache; looking up outcomes costs nothing",
            )

    @property
    def model(self) -> str:
        """Who answers."""
        return self.backend.model

    @property
    def version(self) -> str:
        """The hash of all that decides a judgment but the group itself."""
        return fingerprint(
            [self.backend.version, PROMPT_VERSION, self.config.model_dump(mode="json")]
        )

    @property
    def knows_outcomes(self) -> bool:
        """Whether its scores owe anything to hindsight."""
        return self.config.record.hindsight or self.backend.reads == "outcomes"

    def judge(self, group: CandidateGroup) -> GroupJudgment:
        """Show a group several times and return the mean; failures are told, never filled in."""
        passes = self._passes(group, [(k, k) for k in range(self.config.passes)])
        heads = tuple(one.ids[0] for one in entrants(group))
        good = [one for one in passes if one.good]
        if len(good) < self.config.least_passes:
            bad = next(failure for one in passes for failure in one.failures)
            words = f"{len(good)} of {len(passes)} passes succeeded; {bad.kind}: {bad.words}"
            return GroupJudgment(group.group_id, passes, heads, reason=words)
        scores = {
            one.id: float(np.mean([each.scores[one.id] for each in good]))
            for one in group.candidates
        }
        return GroupJudgment(group.group_id, passes, heads, scores)

    def again(self, group: CandidateGroup) -> PassResult:
        """Show a group once more in the order of the first pass, under other labels."""
        return self._passes(group, [(self.config.passes, 0)])[0]

    def _passes(
        self, group: CandidateGroup, numbers: Sequence[tuple[int, int]]
    ) -> tuple[PassResult, ...]:
        """Make passes, each given by its number and by that of the pass whose order it takes."""
        found = entrants(group)
        beginning = common_beginning([one.messages for one in found])
        seeds = Seeds(self.config.seed).child("judge", fingerprint([one.content for one in found]))
        asked: list[tuple[int, JudgeRequest]] = []
        for number, ordered_as in numbers:
            for part, chunk in enumerate(self._dealt(found, seeds, ordered_as)):
                drawn = seeds.child("labels", number, part)
                asked.append(
                    (number, question(group.group_id, chunk, beginning, self.config.rubric, drawn))
                )
        answers = self._ask_all([request for _, request in asked])
        return tuple(
            _pass_of(
                number,
                [
                    (request, answer)
                    for (own, request), answer in zip(asked, answers, strict=True)
                    if own == number
                ],
            )
            for number, _ in numbers
        )

    def _dealt(self, found: list[Entrant], seeds: Seeds, number: int) -> list[list[Entrant]]:
        """Return the records of one pass in its order, in as many questions as they need."""
        order = seeds.child("order", number // 2).rng().permutation(len(found))
        if number % 2:
            order = order[::-1]
        n_parts = -(-len(found) // self.config.max_shown)
        return [[found[i] for i in part] for part in np.array_split(order, n_parts)]

    def _ask_all(self, requests: list[JudgeRequest]) -> list[_Asked]:
        if self.workers == 1 or len(requests) == 1:
            return [self._ask(one) for one in requests]
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(self._ask, requests))

    def _ask(self, request: JudgeRequest) -> _Asked:
        """Ask, and once more if the answer cannot be used."""
        key = request.key(self.backend.model, self.backend.version)
        known = None if self.cache is None else _kept(self.cache, key, request)
        if known is not None:
            return _Asked(known, cached=True)
        requests = 1
        try:
            text = self.backend.answer(request)
            try:
                verdicts = read_answer(text, request.labels)
            except Malformed as first:
                requests = 2
                text = self.backend.answer(repair(request, text, first.what))
                verdicts = read_answer(text, request.labels)
        except (BackendFailed, Malformed) as error:
            return _Asked(None, Failure(error.kind, str(error)), requests)
        if self.cache is not None:
            self.cache.put(key, self.backend.model, text)
        return _Asked(verdicts, None, requests, repaired=requests > 1)


def _kept(cache: AnswerCache, key: str, request: JudgeRequest) -> dict[str, Verdict] | None:
    """Return an answer that is known already; one that is read differently now is asked again."""
    text = cache.get(key)
    try:
        return None if text is None else read_answer(text, request.labels)
    except Malformed:
        return None


def _pass_of(number: int, answers: Sequence[tuple[JudgeRequest, _Asked]]) -> PassResult:
    """Put the questions of a pass together; labels are turned back into trajectories here."""
    scores: dict[str, float] = {}
    explanations: dict[str, str] = {}
    for request, asked in answers:
        for label, verdict in (asked.verdicts or {}).items():
            scores |= dict.fromkeys(request.labels[label], verdict.score)
            explanations |= dict.fromkeys(request.labels[label], verdict.explanation)
    failures = tuple(asked.failure for _, asked in answers if asked.failure is not None)
    return PassResult(
        number,
        {} if failures else scores,
        {} if failures else explanations,
        failures,
        requests=sum(asked.requests for _, asked in answers),
        repaired=sum(asked.repaired for _, asked in answers),
        cached=sum(asked.cached for _, asked in answers),
    )
