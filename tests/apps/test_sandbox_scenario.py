"""Bots under test: sessions that repeat, rows of bots that fail, and a night that turns red."""

import json
import shutil

import pytest

from agent_gym.core.clock import SECOND_NS, ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.scenarios import BotConfig, Subject, load_suite, play_seed
from agent_gym.pipeline.nightly import (
    Approval,
    NightlyOptions,
    RunOptions,
    Workspace,
    compare_runs,
    nightly,
    prepare,
    run_nightly,
)
from agent_gym.pipeline.nightly.code_identity import CodeIdentity, also_hashes, bot_code
from agent_gym.pipeline.nightly.frozen import BOT, freeze, frozen_subject
from agent_gym.pipeline.nightly.jobs import episode_jobs, episode_row
from agent_gym.pipeline.nightly.prepare import check_bot
from agent_gym.pipeline.nightly.run import subject_document
from agent_gym.pipeline.nightly.setup import subject_of
from agent_gym.rollouts.database import TrajectoryStore
from tests.apps import bot_samples as bots
from tests.apps.sandbox_samples import ROOT


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def play(config, seed=1, **params):
    return play_seed(bots.session(**params), bots.subject(config), seed)


def test_the_ccxt_bot_of_the_docs_is_judged(tmp_path):
    shutil.copy(ROOT / "examples" / "sandbox" / "bot.py", tmp_path)
    config = BotConfig(command="python bot.py").settled(tmp_path, "test")
    assert config.folder == tmp_path
    found = play(config, seed=3, bars=10, history=61).metrics
    assert found["fills"] >= 1
    assert found["largest_exposure"] > 0.9
    assert found["ledger_gap_bp"] == found["refused_orders"] == 0


def test_another_seed_is_another_market_and_a_larger_order_another_way(tmp_path):
    holder, greedy = (
        bots.bot(tmp_path / name, source)
        for name, source in (("a", bots.HOLDER), ("b", bots.GREEDY))
    )
    one, other, larger = play(holder), play(holder, seed=2), play(greedy)
    assert len({one.trajectory_hash, other.trajectory_hash, larger.trajectory_hash}) == 3
    for name in ("turnover", "costs_paid", "gross_exposure", "largest_exposure"):
        assert larger.metrics[name] > 1.7 * one.metrics[name], name


def test_a_bot_that_leaves_early_holds_what_it_has_to_the_last_bar(tmp_path):
    stays, leaves = (
        play(bots.bot(tmp_path / name, source))
        for name, source in (("a", bots.HOLDER), ("b", bots.LEAVER))
    )
    assert stays.trajectory_hash == leaves.trajectory_hash


def test_an_unchanged_bot_that_never_ends_moves_the_clock_by_asking(tmp_path):
    config = bots.bot(tmp_path / "bot", bots.ENDLESS)
    one, other = (play(config, clock="poll") for _ in range(2))
    assert one.metrics["fills"] == 1
    assert one.trajectory_hash == other.trajectory_hash


@pytest.mark.parametrize(
    ("source", "said"),
    [(bots.CRASHER, "lost my mind"), (bots.HANGER, "did not end in time"), ("1/0", "ZeroDivision")],
)
def test_a_bot_that_crashes_or_hangs_is_a_row(tmp_path, source, said):
    patience_s = 2.0 if source == bots.HANGER else 60.0
    config = bots.bot(tmp_path / "bot", source, limit_s=patience_s)
    row = episode_row(bots.session(), bots.subject(config), 1)
    assert row["status"] == "error"
    assert said in row["error"]
    assert row["metrics"] == {}


def test_a_bot_that_never_trades_or_is_refused_is_a_row_that_says_so(tmp_path):
    silent = play(bots.bot(tmp_path / "silent", bots.SILENT))
    assert silent.metrics["silent_sessions"] == 1.0
    assert silent.metrics["net_return"] == silent.metrics["refused_orders"] == 0.0
    assert silent.metrics["cost_bp"] is None
    poor = play(bots.bot(tmp_path / "poor", bots.POOR))
    assert poor.metrics["refused_orders"] == 2.0


def test_recorded_bars_are_beside_the_suite_and_a_seed_draws_the_part(tmp_path):
    rows = [
        f"{1_704_067_200_000 + i * 3_600_000},{100 + i % 7},110,90,{100 + i % 5},5000"
        for i in range(60)
    ]
    (tmp_path / "bars.csv").write_text("\n".join(["timestamp,open,high,low,close,volume", *rows]))
    bots.bot(tmp_path / "bot", bots.HOLDER)
    entry = {
        "name": "recorded",
        "type": "sandbox_session",
        "params": {"bars": 10, "history": 8},
        "source": {"path": "bars.csv", "symbol": "BTC/USDT"},
    }
    file = tmp_path / "suite.json"
    file.write_text(json.dumps({"bot": {"command": "python bot/bot.py"}, "scenarios": [entry]}))
    suite = load_suite(file)
    assert suite.bot.folder == tmp_path / "bot"
    assert suite.bot.command == ("python", "bot.py")
    (scenario,) = suite.scenarios
    assert scenario.identity()["data_hash"]
    one, other = (play_seed(scenario, suite.subject(), seed) for seed in (1, 2))
    assert one.trajectory_hash != other.trajectory_hash
    entry["params"]["bars"] = 100
    file.write_text(json.dumps([entry]))
    with pytest.raises(ConfigError, match="fewer bars"):
        load_suite(file).scenarios[0].make().play(Seeds(1), suite.subject())


def test_a_session_can_be_kept_as_a_trajectory(tmp_path):
    play(bots.bot(tmp_path / "bot", bots.HOLDER), record=True)
    with TrajectoryStore.open() as store:
        (found,) = store.page().rows
        assert found.scenario_id == "sandbox"
        assert len(store.steps(found.trajectory_id)) == 12


# The code of a bot.


def test_what_is_in_the_folder_of_a_bot_is_its_code(tmp_path):
    config = bots.bot(tmp_path / "bot", "import ccxt, client, json\n" + bots.SILENT)
    code = bot_code(config)
    assert code.folders == (tmp_path / "bot",)
    assert {"ccxt", "uvicorn", "httptools"} <= set(code.libraries)
    assert code.packages == ()
    before = also_hashes(code.folders)
    (tmp_path / "bot" / "client.py").write_text(bots.CLIENT + "\n")
    assert also_hashes(code.folders) != before


def test_a_baseline_keeps_the_bot_that_made_it(tmp_path):
    config = bots.bot(tmp_path / "bot", bots.HOLDER)
    freeze((), tmp_path / "code", config.folder)
    (tmp_path / "bot" / "bot.py").write_text(bots.GREEDY)
    said = frozen_subject(subject_document(bots.subject(config)), tmp_path / "code")
    frozen = subject_of(said)
    assert frozen.bot.folder == tmp_path / "code" / BOT
    assert (frozen.bot.folder / "bot.py").read_text() == bots.HOLDER
    old, new = play(frozen.bot), play(config)
    assert new.metrics["turnover"] > 1.7 * old.metrics["turnover"]
    assert frozen_subject(subject_document(Subject()), tmp_path) == subject_document(Subject())


@pytest.mark.parametrize(
    ("command", "folder", "said"),
    [
        ("nothing/here bot.py", None, "which files"),
        ("python -c 1", None, "which files"),
        ("python bot.py", "nowhere", "not there"),
        ("python ../other.py", "bot", "outside"),
        ("no-such-program bot/bot.py", None, "no such program"),
    ],
)
def test_a_bot_that_cannot_be_frozen_or_started_is_refused(tmp_path, command, folder, said):
    bots.bot(tmp_path / "bot", bots.SILENT)
    (tmp_path / "other.py").write_text("")
    with pytest.raises(ConfigError, match=said):
        BotConfig(command=command, folder=folder).settled(tmp_path, "test")


def test_a_bot_goes_with_sessions_and_sessions_with_a_bot(tmp_path):
    config = bots.bot(tmp_path / "bot", bots.SILENT)
    with pytest.raises(ConfigError, match="none is named"):
        check_bot(bots.suite(), None)
    gap = bots.session().model_copy(update={"type": "price_gap", "params": {}})
    other = bots.suite().model_copy(update={"scenarios": (gap,)})
    with pytest.raises(ConfigError, match="no scenario"):
        check_bot(other, config)
    around = BotConfig(command="python bot/bot.py", folder=tmp_path).settled(tmp_path, "test")
    with pytest.raises(ConfigError, match="holds the results"):
        check_bot(bots.suite(), around)


# A night.


class Here:
    """Plays in this process, whoever is under test."""

    def __init__(self, subject, *_):
        self._subject = subject

    def play(self, tasks, heard):
        found = {}
        for task in tasks:
            jobs = episode_jobs(task.scenario, self._subject, task.seeds, 4)
            found[task.scenario.name] = [row for job in jobs for row in job.run()["episodes"]]
            heard(task.scenario.name, found[task.scenario.name])
        return found


def _code_of_bot(packages=(), also=(), libraries=()):
    """Return the identity of a bot alone: the rest is not edited while tests run."""
    found = also_hashes(also)
    return CodeIdentity(fingerprint(found), None, dirty=False, packages={}, versions={}, also=found)


def _frozen_here(baseline, *_):
    return Here(subject_of(frozen_subject(baseline.setup.subject, baseline.code)))


SMALL = GatePolicy(n_screen=2, n_confirm=3, max_confirm=3, repeat=False, screen_p=0.9, alpha=0.9)


def night(config, day, *, approve=None):
    options = RunOptions(bots.suite(bars=5), bots.subject(config), timings=False)
    approval = None if approve is None else Approval(approve, "tester")
    clock = ManualClock((1_763_256_600 + day * 86_400) * SECOND_NS)
    decided = NightlyOptions(fail_on_regression=True, approval=approval, policy=SMALL)
    return run_nightly(options, decided, Workspace(prepare.home()), clock=clock)


def test_an_order_of_twice_the_size_turns_the_night_red(tmp_path, monkeypatch):
    for place in (prepare, nightly):
        monkeypatch.setattr(place, "LocalCrew", Here)
    monkeypatch.setattr(prepare, "code_identity", _code_of_bot)
    monkeypatch.setattr(nightly, "frozen_crew", _frozen_here)
    monkeypatch.setattr(nightly, "prove", lambda *_: None)
    bot = bots.bot(tmp_path / "bot", bots.HOLDER)
    night(bot, 0, approve="first")
    calm = night(bot, 1)
    assert (calm.exit_code, calm.kept) == (0, 2)
    (bot.folder / "bot.py").write_text(bots.GREEDY)
    red = night(bot, 2)
    assert red.exit_code == 1
    worse = {finding.id for finding in red.result.diff.of("regression")}
    assert "hours/turnover" in worse
    assert "hours/largest_exposure" in worse
    # The same two sides beside each other, as `agent-gym compare` shows them.
    beside = compare_runs(Workspace(prepare.home()), "baseline", "latest", SMALL)
    assert {each.id for each in beside.of("regression")} & worse


def test_an_agent_is_not_asked_for_a_bot():
    assert subject_document(Subject(agent=Ref(use="rules/rsi"))).keys() == {
        "agent",
        "desk",
        "plant",
    }
