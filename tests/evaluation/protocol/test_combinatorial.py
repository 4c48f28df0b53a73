"""Combinatorial cross-validation: every combination learned and traded, every path listed."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import registry as names
from agent_gym.core.errors import AgentError, ConfigError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Entry, Ref
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.baselines import Arm, reference_arms
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.metrics import sharpe
from agent_gym.evaluation.protocol.combinatorial import CombinatorialPlan, evaluate_combinatorial
from agent_gym.evaluation.protocol.paths import Path, Paths, Piece, places
from agent_gym.evaluation.protocol.pieces import Pieces
from agent_gym.evaluation.protocol.pnl import BarPnl, bar_pnl, daily_means
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.splits import Combinatorial
from agent_gym.evaluation.protocol.trials import TrialRegistry
from tests.evaluation.protocol.protocol_samples import Nothing, Pupil, agents
from tests.samples import random_bars

__all__ = ["agents"]
BARS = random_bars(900, kind="spot")
SPLIT = Combinatorial(groups=5, tested=2, purge=2, embargo=10)
PUPIL = Arm(label="pupil", refs=(Ref(use="test/pupil"),))
DICE = Arm(label="dice", refs=(Ref(use="rules/random", params={"hold_bars": 6}),))
GRID = Arm(
    label="grid",
    refs=tuple(Ref(use="rules/sma-cross", params={"fast": fast, "slow": 30}) for fast in (2, 4, 9)),
)
BASE = reference_arms(allow_short=False)[:2]
NO_IMPACT = BacktestConfig(impact=0.0, participation=None)


def plan(**changes):
    return CombinatorialPlan(**({"split": SPLIT, "draws": 20} | changes))


def setting(folder, **changes):
    return Setting(TrialRegistry(folder / "trials.jsonl"), **changes)


@given(st.integers(2, 9), st.integers(1, 8))
def test_every_tested_stretch_is_in_exactly_one_path(groups, tested):
    tested = min(tested, groups - 1)
    choices = Combinatorial(groups=groups, tested=tested).choices()
    found = places(choices, groups)
    assert len(found) == Combinatorial(groups=groups, tested=tested).paths
    assert len(found) == tested * comb(groups, tested) // groups
    used = [place for path in found for place in path]
    assert len(set(used)) == len(used) == tested * comb(groups, tested)
    for path in found:
        assert [choices[at][place] for at, place in path] == list(range(groups))


def test_a_stretch_is_traded_as_a_backtest_of_its_own():
    pieces = Pieces(BARS, SPLIT, NO_IMPACT, 3)
    decided = pieces.decide(BASE[1], None)
    for group, each in enumerate(decided):
        span = pieces.spans[group]
        run = pieces.ledger(group).trade("hold", each)
        alone = BacktestEngine(NO_IMPACT).run(
            BARS.rows(span.start - 1, span.stop), Ref(use="rules/buy-hold"), 3
        )
        assert np.array_equal(run.equity, alone.equity)
        assert run.equity[0] == NO_IMPACT.capital


def path_of(ref):
    pieces = Pieces(BARS, SPLIT, NO_IMPACT, 3)
    decided = pieces.decide(Arm(label="x", refs=(ref,)), None)
    runs = [pieces.ledger(group).trade("x", each) for group, each in enumerate(decided)]
    made = zip(runs, decided, strict=True)
    return Path(BARS, tuple(Piece(bar_pnl(run), each.targets) for run, each in made))


def test_a_rule_has_seen_the_past_of_its_stretch():
    path = path_of(GRID.refs[0])
    whole = BacktestEngine(NO_IMPACT).run(BARS, GRID.refs[0], 3)
    assert np.array_equal(path.targets, whole.target)
    assert path.pnl.net.size == len(BARS) - 1
    returns, per_year = path.returns
    assert path.sharpe == sharpe(returns, per_year)
    assert path.growth == pytest.approx(np.log1p(path.pnl.net).sum())


def test_who_holds_on_buys_anew_in_every_account():
    path = path_of(Ref(use="rules/buy-hold"))
    whole = bar_pnl(BacktestEngine(NO_IMPACT).run(BARS, Ref(use="rules/buy-hold"), 3))
    once = (whole.gross - whole.net).sum()
    assert (path.pnl.gross - path.pnl.net).sum() == pytest.approx(5 * once, rel=0.01)


@pytest.mark.usefixtures("agents")
def test_what_is_said_of_a_learner_a_grid_and_a_rule(tmp_path):
    asked = setting(tmp_path)
    found = evaluate_combinatorial(BARS, (PUPIL, GRID, DICE, *BASE), plan(), asked)
    taught = [each for each in Pupil.made if each.fitted]
    assert len(taught) == 10  # once a combination
    assert len({each.seeds[0] for each in taught}) == 10
    pupil, grid, dice, cash, _ = (arm.as_dict() for arm in found.arms)
    for arm in (pupil, grid):
        told = arm["paths"]
        assert len(told["paths"]) == told["repeated"] == 4
        growths = [path["growth"] for path in told["paths"]]
        assert told["growth"]["median"] == pytest.approx(np.median(growths))
        assert told["growth"]["low"] == pytest.approx(np.quantile(growths, 0.05))
        assert told["growth"]["below_0"] == np.mean(np.array(growths) < 0)
        assert told["note"] is None
        middle = told["paths"][told["median_path"] - 1]
        assert sorted(path["sharpe"] for path in told["paths"])[1] == middle["sharpe"]
        assert arm["standing"]["sharpe"] == pytest.approx(middle["sharpe"])
        assert arm["verdict"]["word"]
    for arm in found.arms:
        path = arm.paths.paths[arm.paths.middle]
        days = daily_means(BARS.ts[1:], path.pnl.bars_bp("net", "growth"))
        assert arm.net.estimate == pytest.approx(days.mean())
    assert len(grid["folds"]) == 10
    assert grid["folds"][0]["tested"] == [1, 2]
    told = dice["paths"]
    assert len(told["paths"]) == 1
    assert (told["sharpe"], told["growth"]) == (None, None)
    assert "4 paths are one and the same" in told["note"]
    assert cash["paths"]["paths"][0]["sharpe"] is None
    assert found.protocol["combinations"] == 10
    assert found.market["bars"] == 899
    # Agents and baselines, and what the grid chose from: each is one trial, not one a path.
    assert len(asked.registry.trials()) == 5 + 3
    again = evaluate_combinatorial(BARS, (PUPIL, GRID, DICE, *BASE), plan(), asked)
    assert to_json(again.as_dict()) == to_json(found.as_dict())


@pytest.mark.usefixtures("agents")
def test_nothing_in_the_lockbox_is_looked_at(tmp_path):
    arms = (PUPIL, GRID, *BASE)
    short = evaluate_combinatorial(BARS.rows(0, 800), arms, plan(), setting(tmp_path / "a"))
    held = evaluate_combinatorial(BARS, arms, plan(lockbox=100), setting(tmp_path / "b"))
    assert [arm.paths.as_dict() for arm in held.arms] == [arm.paths.as_dict() for arm in short.arms]
    assert held.lockbox["rows"] == 100


class Peeker(Pupil):
    """Holds what the last bar it is shown says, at all bars before it too."""

    name = "test/peeker"

    def targets(self, start, columns):
        close = columns["close"]
        return np.full(close.size, (close[-1] * 1e6) % 1.0)


class Clumsy(Pupil):
    """Has a plain mistake where it learns."""

    name = "test/clumsy"

    def fit(self, start, columns):
        raise KeyError("nothing")


def test_who_fails_is_named_with_the_combination_and_the_others_go_on(tmp_path, monkeypatch):
    for made in (Peeker, Clumsy):
        monkeypatch.setitem(names._entries, ("agent", made.name), Entry(Nothing, made))
    leaky = Arm(label="leaky", refs=(Ref(use="test/peeker"),))
    clumsy = Arm(label="clumsy", refs=(Ref(use="test/clumsy"),))
    arms = (leaky, clumsy, DICE, *BASE)
    found = evaluate_combinatorial(BARS, arms, plan(), setting(tmp_path / "a"))
    first, second = found.failed
    assert "groups 1+2 tested, leaky" in first.words()
    assert "bars that come after it" in first.words()
    assert "own code failed" in second.words()
    alone = evaluate_combinatorial(BARS, (DICE, *BASE), plan(), setting(tmp_path / "b"))
    assert [arm.as_dict() for arm in alone.arms] == [arm.as_dict() for arm in found.arms]
    with pytest.raises(AgentError, match="leaky"):
        evaluate_combinatorial(BARS, (leaky, *BASE), plan(), setting(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


def test_one_group_at_a_time_is_one_path(tmp_path):
    split = SPLIT.model_copy(update={"tested": 1})
    found = evaluate_combinatorial(BARS, (GRID, *BASE), plan(split=split), setting(tmp_path))
    told = found.agents[0].paths
    assert len(told.paths) == 1
    assert "one group is tested at a time" in told.note


def test_a_ruined_path_keeps_its_length():
    lost = BarPnl(np.zeros(899), np.zeros(899), np.zeros(899))
    lost.net[400] = -1.5
    path = Path(BARS, (Piece(lost, np.zeros(900)),))
    returns, _ = path.returns
    assert returns.size == Path(BARS, (Piece(bar_pnl_of_nothing(), np.zeros(900)),)).returns[0].size
    assert returns.min() == pytest.approx(-1.0)
    assert Paths((path,), 1).as_dict()["paths"][0]["growth"] < -10


def bar_pnl_of_nothing():
    return BarPnl(np.zeros(899), np.zeros(899), np.zeros(899))


@pytest.mark.parametrize(
    "split",
    [
        {"groups": 5, "tested": 5},
        {"groups": 30, "tested": 9},
        {"groups": 5, "tested": 4, "embargo": 200},
    ],
)
def test_what_cannot_be_combined_is_refused(split, tmp_path):
    asked = setting(tmp_path)
    with pytest.raises(ConfigError):
        evaluate_combinatorial(BARS, (DICE, *BASE), plan(split=Combinatorial(**split)), asked)
    with pytest.raises(ConfigError, match="one row"):
        Pieces(BARS.rows(0, 5), Combinatorial(groups=5, tested=1), BacktestConfig(), 0)
    assert not asked.registry.path.exists()
