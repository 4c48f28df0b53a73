"""An agent that fails is named and flagged, and the others are judged without it."""

import json

import numpy as np
import pytest

from agent_gym.core import registry as names
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.registry import Entry, Ref
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.protocol.forward import ForwardPlan, evaluate_forward
from agent_gym.evaluation.protocol.seeded import SeededPlan, evaluate_seeded, with_first_path
from agent_gym.evaluation.protocol.setting import Setting, _failure
from agent_gym.evaluation.protocol.sheet import evaluation_sheet
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.trials import TrialRegistry
from tests.apps.cli_samples import bars_file, make_call
from tests.evaluation.protocol.protocol_samples import NULL, Nothing, Pupil
from tests.samples import random_bars

BARS = random_bars(1_500, kind="spot")
LEAK = Arm(label="leaky", refs=(Ref(use="test/peeker"),))
WORSE = Arm(label="unteachable", refs=(Ref(use="test/unteachable"),))
DICE = Arm(label="dice", refs=(Ref(use="rules/random", params={"hold_bars": 6}),))
BASE = reference_arms(allow_short=False)[:2]
LATER = "decision depends on bars that come after it"


class Peeker(Pupil):
    """Holds what the last bar it is shown says, at all bars before it too."""

    name = "test/peeker"
    fit = None

    def targets(self, start, columns):
        close = columns["close"]
        return np.full(close.size, (close[-1] * 1e6) % 1.0)


class Unteachable(Pupil):
    """Cannot learn from more than the first fold."""

    name = "test/unteachable"

    def fit(self, start, columns):
        if columns["close"].size > 400:
            raise AgentError("too much to learn")
        super().fit(start, columns)


class Clumsy(Pupil):
    """Has a plain mistake in its code."""

    name = "test/clumsy"

    def targets(self, start, columns):
        return columns["close"] / {}["nothing"]


class LatePeeker(Peeker):
    """Leaks only where it is shown the lockbox."""

    name = "test/late"

    def targets(self, start, columns):
        close = columns["close"]
        return super().targets(start, columns) if close.size > 1_300 else np.ones(close.size)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    for made in (Peeker, Unteachable, LatePeeker, Clumsy):
        monkeypatch.setitem(names._entries, ("agent", made.name), Entry(Nothing, made))


@pytest.fixture
def asked(tmp_path):
    return Setting(TrialRegistry(tmp_path / "trials.jsonl"))


def plan(**changes):
    walk = WalkForward(train=400, test=200, validate=50, purge=2, embargo=20)
    return ForwardPlan(**({"walk": walk, "lockbox": 240, "draws": 20} | changes))


def test_in_a_walk_the_others_go_on(asked, tmp_path):
    found = evaluate_forward(BARS, (LEAK, WORSE, DICE, *BASE), plan(), asked)
    assert [arm.label for arm in found.arms] == ["dice", *(arm.label for arm in BASE)]
    leaky, unteachable = found.failed
    assert (leaky.label, unteachable.label) == ("leaky", "unteachable")
    assert LATER in leaky.words()
    assert "leaky, fold 1 of 4, decision" in leaky.words()
    assert "unteachable, fold 2 of 4" in unteachable.words()
    assert not found.passed
    assert [each["label"] for each in found.as_dict()["failed"]] == ["leaky", "unteachable"]
    assert any("leaky: failed" in note for note in evaluation_sheet(found).notes)
    assert {trial.plan.label for trial in asked.registry.trials()} >= {"dice"}
    alone = Setting(TrialRegistry(tmp_path / "other" / "trials.jsonl"))
    clean = evaluate_forward(BARS, (DICE, *BASE), plan(), alone)
    assert [arm.as_dict() for arm in clean.arms] == [arm.as_dict() for arm in found.arms]


def test_a_plain_mistake_in_an_agent_is_a_failure_of_its_own(asked):
    clumsy = Arm(label="clumsy", refs=(Ref(use="test/clumsy"),))
    found = evaluate_forward(BARS, (clumsy, DICE, *BASE), plan(), asked)
    (failed,) = found.failed
    assert "own code failed" in failed.words()
    assert "KeyError" in failed.words()
    assert "test_failures.py:" in failed.words()
    assert found.arms[0].label == "dice"


def test_over_seeds_the_others_go_on(asked):
    seeds = SeededPlan(market=NULL, seeds=3, draws=5, embargo=20, first_seed=4)
    arms = (LEAK, DICE, *BASE)
    found = evaluate_seeded(arms, seeds, asked)
    (leaky,) = found.failed
    assert "seed 4, leaky, fold 1 of 1, decision" in leaky.words()
    assert [arm.label for arm in found.arms] == ["dice", *(arm.label for arm in BASE)]
    drawn, _ = with_first_path(found, arms, seeds)
    assert evaluation_sheet(drawn).subject == "dice"


def test_if_nobody_is_left_it_is_an_error_and_nothing_is_written(asked):
    with pytest.raises(AgentError, match=r"after it.*leaky, fold 1 of 4"):
        evaluate_forward(BARS, (LEAK, *BASE), plan(release="1"), asked)
    with pytest.raises(AgentError, match=r"no agent could be judged.*leaky.*unteachable, fold 2"):
        evaluate_forward(BARS, (LEAK, WORSE, *BASE), plan(), asked)
    with pytest.raises(AgentError, match="seed 0, leaky"):
        evaluate_seeded((LEAK, *BASE), SeededPlan(market=NULL, seeds=2, embargo=20), asked)
    assert not asked.registry.path.exists()


def test_the_error_of_another_process_says_its_place_and_kind():
    told = ConfigError("too few bars", where="market m", found=3).as_dict()
    error = _failure({"status": "failed", "error": told}, "seed 7")
    assert isinstance(error, ConfigError)
    assert (error.what, error.where, error.found) == ("too few bars", "seed 7, market m", "3")
    lost = _failure({"status": "lost", "error": None}, "rules/a")
    assert isinstance(lost, AgentError)
    assert lost.where == "rules/a"


def test_a_baseline_that_fails_ends_it(asked):
    base = LEAK.model_copy(update={"baseline": True})
    with pytest.raises(AgentError, match="leaky"):
        evaluate_forward(BARS, (DICE, base), plan(), asked)


def test_who_leaks_in_the_lockbox_has_no_verdict(asked):
    late = Arm(label="late", refs=(Ref(use="test/late"),))
    found = evaluate_forward(BARS, (late, DICE, *BASE), plan(release="1"), asked)
    assert [arm.label for arm in found.agents] == ["dice"]
    assert "lockbox, late" in found.failed[0].words()
    assert found.agents[0].lockbox_growth is not None


def test_exit_codes(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    call = make_call("evaluate", monkeypatch, capsys)
    file = bars_file(tmp_path, 900, kind="spot")
    words = ("--data", file, "--train", "10d", "--validation", "2d", "--test", "5d")
    words += ("--embargo", 20, "--draws", 10, "--lockbox", "none")
    code, out, _ = call("test/peeker", "rules/random", *words)
    assert code == 0
    assert "test/peeker: FAILED (an agent's decision depends" in " ".join(out.split())
    assert call("test/peeker", "rules/random", *words, "--gate")[0] == 4
    code, out, _ = call("test/peeker", *words, "--json")
    assert code == 4
    assert "test/peeker, fold 1" in json.loads(out)["where"]
