"""``agent-gym evaluate`` and ``agent-gym trials``: words in, verdicts out."""

import json

import pytest

from agent_gym.apps.cli.agent_words import parse_agents
from agent_gym.apps.cli.evaluate import costs_of
from agent_gym.apps.cli.evaluate_options import EvaluateJob
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.backtest import BacktestConfig
from tests.apps.cli_samples import bars_file, make_call

SHORT = ("--train", "10d", "--validation", "2d", "--test", "5d", "--embargo", 20, "--draws", 10)
COMBINED = ("--protocol", "combinatorial", "--data")
GROUPS = ("--groups", 5, "--tested", 2, "--embargo", 20, "--draws", 10)
SEEDS = ("--seeds", 3, "--bars", 1_200, "--embargo", 20, "--draws", 5)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    return make_call("evaluate", monkeypatch, capsys)


@pytest.fixture
def trials(monkeypatch, capsys):
    return make_call("trials", monkeypatch, capsys)


@pytest.fixture
def file(tmp_path):
    return bars_file(tmp_path, 900, kind="spot")


def test_a_walk_forward_end_to_end(call, trials, file, tmp_path):
    page, registry = tmp_path / "page.html", tmp_path / "deep" / "trials.jsonl"
    words = ("rules/sma-cross:fast=3/5,slow=20", "rules/random", "--data", file, *SHORT)
    words += ("--lockbox", "5d", "--registry", registry)
    code, out, err = call(*words, "--report", page, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [arm["label"] for arm in found["arms"]][:3] == [
        "rules/sma-cross fast=3/5 slow=20",
        "rules/random",
        "cash",
    ]
    assert found["arms"][0]["verdict"]["word"]
    assert found["lockbox"]["rows"] == 120
    assert found["registry"] == str(registry)
    assert "<html" in page.read_text()[:200]
    assert found["manifest"]["command"].startswith("agent-gym evaluate rules/sma-cross:fast=3/5")
    assert "--registry" not in found["manifest"]["command"]
    code, out, _ = trials("--registry", registry, "--json")
    listed = json.loads(out)
    assert code == 0
    assert listed["verified"]["trials"] == len(listed["trials"]) == 2 + 7 + 2 + 16 - 1
    code, out, _ = trials("--registry", registry)
    assert code == 0
    assert "the chain is whole" in out


def test_the_number_of_jobs_changes_no_byte(call, file):
    words = ("rules/random", "--data", file, *SHORT, "--lockbox", "none", "--json")
    first, second = call(*words), call(*words, "--jobs", 2)
    assert first == second
    assert first[0] == 0
    drawn = ("rules/random", "--market", "known/n1", *SEEDS, "--json")
    first, second = call(*drawn), call(*drawn, "--jobs", 2)
    assert first == second
    assert first[0] == 0


def test_a_table_for_people(call, file):
    code, out, _ = call("rules/random", "--data", file, *SHORT, "--lockbox", "5d")
    assert code == 0
    text = " ".join(out.split())
    assert text.startswith("rules/random: ")
    for part in (
        "buy & hold",
        "trials on this market",
        "Lockbox: the last 120 bars",
        "walk-forward",
    ):
        assert part in text


def test_combinations_end_to_end(call, trials, file):
    words = ("rules/sma-cross:fast=3/5,slow=20", "rules/random", *COMBINED, file, *GROUPS)
    words += ("--lockbox", "5d")
    first, second = call(*words, "--json"), call(*words, "--json", "--jobs", 2)
    assert first == second
    assert first[0] == 0
    found = json.loads(first[1])
    assert (found["protocol"]["combinations"], found["protocol"]["paths"]) == (10, 4)
    assert "--protocol combinatorial --groups 5" in found["manifest"]["command"]
    grid, dice = found["arms"][:2]
    assert len(grid["paths"]["paths"]) == 4
    assert dice["paths"]["growth"] is None
    assert json.loads(trials("--json")[1])["verified"]["trials"] == 2 + 7 + 2 + 16 - 1
    code, out, _ = call(*words)
    text = " ".join(out.split())
    assert code == 0
    for part in (
        "combinatorial, 10 combinations: 779 tested bars",
        "Over the paths",
        "rules/random: it neither learns nor chooses, so its 4 paths are one and the same",
        "Lockbox: the last 120 bars",
    ):
        assert part in text


def test_gates_on_a_null(call):
    code, out, _ = call("rules/random", "--market", "known/n1", *SEEDS, "--gate")
    assert code == 0
    assert "gate A passed" in " ".join(out.split())


def test_the_lockbox_is_opened_once(call, trials, file):
    words = ("rules/random", "--data", file, *SHORT, "--lockbox", "5d", "--release", "1.0")
    code, out, _ = call(*words)
    assert code == 0
    assert "Opened now: release '1.0'" in " ".join(out.split())
    code, _, err = call(*words)
    assert code == 2
    assert "opened for this release before" in err
    code, out, _ = call(*words[:-1], "1.1")
    assert code == 0
    assert "1 times before" in " ".join(out.split())
    assert json.loads(trials("--json")[1])["openings"][1]["before"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs an agent"),
        (("rules/random",), "one source of bars"),
        (("rules/random", "--data", "x.csv", "--market", "known/m1"), "one source of bars"),
        (("rules/rando", "--market", "known/m1"), "Did you mean 'rules/random'"),
        (("rules/z*", "--market", "known/m1"), "no agent has such a name"),
        (("rules/random:hold=3", "--market", "known/m1"), "hold"),
        (("rules/random", "--data", "x.csv", "--protocol", "seeds"), "one path"),
        (("rules/random", "--market", "known/m1", "--test", "5d"), "change nothing"),
        (("rules/random", "--data", "x.csv", "--seeds", 5), "change nothing"),
        (("rules/random", "--market", "known/m1", "--gaps", "fill"), "--data only"),
        (("rules/random", "--market", "known/m1", "--cost-bp", 3, "--fee-bps", 2), "one flat cost"),
        (("rules/random", "--market", "known/m1", "--report", "x.pdf"), ".html"),
        (("rules/random", "--market", "known/m1", "--bars", 100), "too few bars"),
        (("rules/random", "--data", "x.csv", "--groups", 5), "change nothing"),
        (("rules/random", *COMBINED, "x.csv", "--train", "9d"), "change nothing"),
        (("rules/random", *COMBINED, "x.csv", "--release", "1"), "change nothing"),
        (("rules/random", *COMBINED, "x.csv", "--report", "x.html"), "of one account"),
    ],
)
def test_what_does_not_fit_together_is_refused(call, words, said):
    code, _, err = call(*words)
    assert code == 2
    assert said in " ".join(err.split())


def test_no_record_of_trials_and_a_broken_one(call, trials, tmp_path, file):
    registry = tmp_path / "trials.jsonl"
    code, _, err = trials("--registry", registry)
    assert code == 2
    assert "no record of trials" in err
    words = ("rules/random", "--data", file, *SHORT, "--lockbox", "none", "--registry", registry)
    assert call(*words)[0] == 0
    registry.write_text(registry.read_text().replace("rules/random", "rules/sma-cross", 1))
    for ask in (lambda: trials("--registry", registry), lambda: call(*words)):
        code, _, err = ask()
        assert code == 4
        assert "chain of this file is broken" in err


def test_agents_in_words():
    several = parse_agents(["rules/*", "rules/flat", "rules/sma-cross:fast=2/3,slow=9/11"])
    assert [arm.label for arm in several].count("rules/flat") == 1
    grid = several[-1]
    assert [tuple(ref.params.values()) for ref in grid.refs] == [(2, 9), (2, 11), (3, 9), (3, 11)]
    (named,) = parse_agents(["oracle/filter:market=known/m1,cost_bp=5"])
    assert named.refs[0].params == {"market": "known/m1", "cost_bp": 5}
    many = "/".join(map(str, range(2, 40)))
    with pytest.raises(ConfigError, match="too large"):
        parse_agents([f"rules/sma-cross:fast={many},slow={many}"])


def test_known_markets_cost_five_points_and_may_be_sold_short():
    known, other = EvaluateJob(market="known/m1"), EvaluateJob(market="synthetic/btc-1h")
    usual = BacktestConfig()
    flat = costs_of(known, usual)
    assert (flat.taker_bps, flat.slippage_bps, flat.impact, flat.allow_short) == (5.0, 0, 0, True)
    assert costs_of(other, usual) == usual
    assert costs_of(known, BacktestConfig(taker_bps=2.0)).taker_bps == 2.0
    asked = costs_of(EvaluateJob(market="synthetic/btc-1h", cost_bp=3.0), usual)
    assert (asked.taker_bps, asked.participation, asked.allow_short) == (3.0, None, None)
    assert costs_of(known, BacktestConfig(allow_short=False)).allow_short is False
