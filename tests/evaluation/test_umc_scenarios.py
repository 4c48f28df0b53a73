"""Market scenarios with agents that learn: what they learn from, and that nothing else moves."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typing_extensions import override

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.evaluation.scenarios.market_school import School
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import (
    ScenarioConfig,
    Suite,
    default_suite,
    fixed_seeds,
    load_suite,
    play_seed,
)
from tests.evaluation.market_samples import TYPES, AnyConfig, scenario

SUITE = Path(str(files("agent_gym") / "configs" / "umc_scenarios.json"))
SMALL = {"hours": 30.0, "warmup_hours": 3.0, "shocks": 1, "bar_minutes": 15, "train_bars": 400}
LEARNER = Subject(agent=Ref(use="test/scenario-learner"))


class Pupil:
    """Holds the side that the past moved to, and writes down what it was taught."""

    name = "test/scenario-learner"
    needs = ("close", "momentum_4", "momentum_4_known")
    lessons: ClassVar[list[tuple[EpisodeStart, dict[str, FloatArray]]]] = []

    def __init__(self) -> None:
        self._side: float | None = None
        self._acted = 0

    def fit(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> None:
        self.lessons.append((start, {name: column.copy() for name, column in columns.items()}))
        self._side = float(np.sign(columns["close"][-1] - columns["close"][0]))

    def reset(self, start: EpisodeStart) -> None:
        if self._side is None:
            raise AgentError("this pupil has learned nothing yet", where=self.name)

    def act(self, obs: Observation) -> Decision:
        # Remembers across episodes: only a copy that nobody has used begins at 0.
        self._acted += 1
        return Decision((self._side or 0.0) * (1.0 if self._acted % 2 else 0.5))

    def observe(self, step: Step) -> None: ...


register("agent", Pupil.name, AnyConfig)(lambda config: Pupil())


@pytest.fixture(autouse=True)
def _no_lessons() -> None:
    Pupil.lessons.clear()


@pytest.mark.parametrize("kind", TYPES)
def test_a_learner_is_taught_once_on_bars_that_are_not_played(kind: str) -> None:
    made = scenario(kind, **SMALL | ({"outage_minutes": 60.0} if kind == "feed_outage" else {}))
    made.play(Seeds(4), LEARNER)
    ((start, columns),) = Pupil.lessons
    bars, past = made.market(Seeds(4))[0], made.past(Seeds(4))
    assert start.feature_names == Pupil.needs == tuple(columns)
    assert np.array_equal(columns["close"], past.close)
    assert columns["close"].size == 400
    assert not set(past.close.tolist()) >= set(bars.close.tolist())
    assert past.ts[-1] + past.period_ns <= bars.ts[0]
    assert past.period_ns == bars.period_ns


def test_what_is_learned_hangs_on_the_seed_alone() -> None:
    plain = scenario("flash_crash", **SMALL)
    deeper = scenario("flash_crash", **SMALL, depth=0.3)
    plain.play(Seeds(4), LEARNER)
    deeper.play(Seeds(4), Subject(agent=LEARNER.agent, plant="market_fat_finger"))
    scenario("price_gap", **SMALL).play(Seeds(4), LEARNER)
    plain.play(Seeds(5), LEARNER)
    taught = [columns["close"].tobytes() for _, columns in Pupil.lessons]
    seeds = [start.seeds.as_int() for start, _ in Pupil.lessons]
    assert taught[0] == taught[1] == taught[2] != taught[3]
    assert seeds[0] == seeds[1] == seeds[2] != seeds[3]
    assert Pupil.lessons[0][0].actions == Pupil.lessons[1][0].actions


@pytest.mark.parametrize("kind", TYPES)
def test_the_length_of_the_past_changes_what_a_learner_does(kind: str) -> None:
    # The other parameters have to act on every agent; this one acts on those that learn.
    short, long = (scenario(kind, train_bars=bars) for bars in (400, 1_200))
    seeds = [Seeds(number) for number in range(6)]
    assert any(
        short.play(each, LEARNER).trajectory_hash != long.play(each, LEARNER).trajectory_hash
        for each in seeds
    )


def test_every_run_of_an_episode_gets_a_copy_that_nobody_has_used() -> None:
    made = scenario("flash_crash", **SMALL)
    first, again = made.play(Seeds(4), LEARNER), made.play(Seeds(4), LEARNER)
    assert first.metrics["causality_breaks"] == 0.0
    assert (first.metrics["time_in_market"] or 0.0) > 0.5
    assert first.trajectory_hash == again.trajectory_hash
    school = School(LEARNER.agent, made.setting.venue, Seeds(4), made.past)
    assert school.pupil() is not school.pupil()


def test_a_past_changes_nothing_for_agents_that_do_not_learn() -> None:
    taught = scenario("flash_crash", **SMALL)
    untaught = scenario("flash_crash", **SMALL | {"train_bars": None})
    one, other = taught.play(Seeds(4), Subject()), untaught.play(Seeds(4), Subject())
    assert (one.trajectory_hash, one.metrics) == (other.trajectory_hash, other.metrics)
    assert Pupil.lessons == []


def test_scenarios_without_a_past_are_still_those_of_before() -> None:
    # Hashes of the suite before there was a past: baselines stay comparable.
    before = {
        "flash_crash": "669cf3b2d65f269dd77b95c68084f445",
        "price_gap": "002de08f1a4a0e731bf366a99b037b97",
        "funding_spike": "95417a657b23ee5fc39e310e0f9b0f29",
        "feed_outage": "3e574f6fae580cf590ca6c5a4c6da9c9",
        "thin_book": "ae9d801bd32cb28fb58ee52e8769dd0b",
    }
    found = {each.name: each.identity()["config_hash"] for each in default_suite().scenarios}
    assert {name: found[name] for name in before} == before
    other = ScenarioConfig(name="flash_crash", type="flash_crash", params={"train_bars": 400})
    assert other.identity()["config_hash"] != before["flash_crash"]


def test_umc_that_has_learned_nothing_is_told_what_to_do() -> None:
    made = scenario("price_gap", **SMALL | {"train_bars": None})
    with pytest.raises(AgentError, match=r"learned nothing yet.*train_bars"):
        made.play(Seeds(1), Subject(agent=Ref(use="umc")))
    with pytest.raises(AgentError, match=r"learned nothing yet.*train_bars"):
        made.play(Seeds(1), LEARNER)


def test_umc_from_a_folder_is_played_as_it_is(tmp_path: Path) -> None:
    taught = scenario("price_gap", **SMALL)
    agent = School(Ref(use="umc"), taught.setting.venue, Seeds(1), taught.past).pupil()
    assert isinstance(agent, UMCAgent)
    agent.save(tmp_path / "umc")
    saved = Subject(agent=Ref(use="umc", params={"folder": str(tmp_path / "umc")}))
    kept = scenario("price_gap", **SMALL | {"train_bars": None}).play(Seeds(1), saved)
    assert (
        kept.trajectory_hash == taught.play(Seeds(1), Subject(agent=Ref(use="umc"))).trajectory_hash
    )


def test_the_suite_of_umc_teaches_it_and_holds_the_breaker() -> None:
    suite = load_suite(SUITE)
    assert suite.agent == Ref(use="umc")
    assert {each.type for each in suite.scenarios} == set(TYPES)
    settings: list[Any] = [each.setting() for each in suite.scenarios]
    assert all(setting.train_bars for setting in settings)
    assert sum(setting.venue.max_drawdown == 0.15 for setting in settings) >= 2
    names = {each.name for each in default_suite().scenarios}
    assert not names & {each.name for each in suite.scenarios}


def trading(suite: Suite, name: str) -> tuple[ScenarioConfig, list[int]]:
    """Return an entry of the suite and its first two seeds in which UMC trades."""
    entry, found = suite.scenario(name), []
    for seed in fixed_seeds(suite.id, entry):
        if play_seed(entry, suite.subject(), seed).metrics["time_in_market"]:
            found.append(seed)
        if len(found) == 2:
            return entry, found
    raise AssertionError("UMC hardly trades here: the scenario would test nothing")


def test_umc_trades_through_the_suite_and_faults_show() -> None:
    suite = load_suite(SUITE)
    entry, seeds = trading(suite, "umc_thin_book")
    sound = [play_seed(entry, suite.subject(), seed) for seed in seeds]
    zero = [metric.name for metric in entry.metrics() if metric.must_be_zero]
    assert {each.metrics[name] for each in sound for name in zero} == {0.0}
    again = play_seed(entry, suite.subject(), seeds[0])
    assert again.trajectory_hash == sound[0].trajectory_hash
    for plant, figure in (
        ("market_fee_doubled", "ledger_gap_bp"),
        ("market_sign_flipped", "wrong_side_share"),
        ("market_future_shown", "causality_breaks"),
    ):
        subject = Subject(agent=suite.agent, plant=plant)
        faulty = [play_seed(entry, subject, seed) for seed in seeds]
        now, before = (sum(e.metrics[figure] or 0.0 for e in each) for each in (faulty, sound))
        assert now > before, plant


class FutureUMC(UMCAgent):
    """Follows closes that are one bar too new."""

    @override
    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        close = columns["close"]
        return super().targets(start, {**columns, "close": np.append(close[1:], close[-1:])})


register("agent", "test/future-umc", UMCConfig)(FutureUMC)


def test_a_umc_that_looks_ahead_does_not_get_through() -> None:
    suite = load_suite(SUITE)
    entry, seeds = trading(suite, "umc_thin_book")
    with pytest.raises(AgentError, match="bars that come after it"):
        play_seed(entry, Subject(agent=Ref(use="test/future-umc")), seeds[0])
