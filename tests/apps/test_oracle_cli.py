from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agent_gym.apps.cli import oracle
from agent_gym.apps.cli.main import COMMANDS
from agent_gym.evaluation.oracle import plan
from agent_gym.evaluation.oracle.plan import PLANS
from agent_gym.markets.known import KNOWN
from agent_gym.markets.known.source import LAWS
from tests.apps.cli_samples import Call, make_call


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.setitem(COMMANDS, "oracle", "What can be earned.")
    return make_call("oracle", monkeypatch, capsys)


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Solve on coarse grids, and let nobody else see the answers."""
    monkeypatch.setattr("agent_gym.evaluation.oracle.chain.BELIEFS_BESIDE_RETURNS", 41)
    monkeypatch.setattr("agent_gym.evaluation.oracle.chain.RETURN_STEP", 0.5)
    monkeypatch.setattr("agent_gym.evaluation.oracle.chain.STATES_PER_STEP", 2)
    plan.forget()
    yield
    plan.forget()


def test_the_figures_of_m1_are_printed(call):
    words = ("m1", "--drift-bp", 6, "--cost-bp", 5, "--stay", 0.995, "--json")
    code, out, _ = call(*words)
    found = json.loads(out)
    assert code == 0
    assert found["market"] == "known/m1"
    assert found["attainable_bp_per_bar"] == pytest.approx(2.66, abs=0.006)
    assert found["sharpe"] == pytest.approx(4.11, abs=0.05)
    assert found["bands"]["enter_belief"] == pytest.approx(0.588, abs=0.003)
    assert found["bands"]["hold_belief"] == pytest.approx(0.415, abs=0.003)
    assert found["parameters"] == {"drift_bp": 6.0, "sigma_pct": 0.6, "stay": 0.995}


def test_options_may_stand_before_the_market_and_change_the_answer(call):
    def gain(*words):
        return json.loads(call(*words, "--json")[1])["attainable_bp_per_bar"]

    plain = gain("known/m1")
    assert gain("--drift-bp", 8, "m1") > plain > gain("m1", "--cost-bp", 10)
    assert gain("m1", "--no-allow-short") == pytest.approx(plain / 2, rel=0.001)


@pytest.mark.parametrize("name", sorted(PLANS))
@pytest.mark.usefixtures("coarse")
def test_every_option_of_a_market_changes_a_figure(call, name):
    changed = {"drift_bp": 7.0, "stay": 0.98, "break_at": 0.3, "sigma_pct": 0.4, "shock_pct": 0.3}
    changed |= {"reversion": 0.05, "autocorrelation": 0.3, "correlation": 0.1, "memory": 0.8}
    changed |= {"calm_sigma_pct": 0.2, "wild_sigma_pct": 1.0}
    needed = ("--drift-bp", 2) if name == "known/m5" else ()

    def figures(*words):
        code, out, _ = call(name, *words, "--json")
        found = json.loads(out)
        assert code == 0
        return {key: value for key, value in found.items() if key not in ("seconds", "parameters")}

    plain = figures(*needed)
    for field in oracle.law_fields(name):
        if (name, field) == ("known/m5", "stay"):  # as much time is calm as wild, whatever it is
            continue
        rest = () if field == "drift_bp" else needed
        assert figures(*rest, oracle.flag(field), changed[field]) != plain, field


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("m4", "--stay", 0.9), ("known/m4 has no option '--stay'", "--correlation, --memory")),
        (("m1", "--foo", 3), ("known/m1 has no option '--foo'", "--drift-bp, --sigma-pct, --stay")),
        (("m1", "--foo=3"), ("known/m1 has no option '--foo'", "--drift-bp")),
        (("n1", "--sigma-pct", 1), ("known/n1 has no option", "--cost-bp")),
        (("m1", "m2"), ("one word too many", "known/m1")),
        (("m9",), ("no known market is named 'm9'", "known/m2-hidden")),
        (("m1", "--stay", 2), ("stay", "0.9999")),
        (("m1", "--cost-bp", -3), ("cost", "0 to 1000")),
        ((), ("MARKET is missing", "known/m1")),
    ],
)
def test_what_cannot_be_answered_is_refused_with_what_can(call, words, said):
    code, out, err = call(*words)
    assert code == 2
    assert out == ""
    for text in said:
        assert text in err


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.usefixtures("coarse")
def test_every_market_is_shown_in_words(call, name):
    code, out, _ = call(name)
    assert code == 0
    assert "attainable" in out
    assert LAWS[name].about.split()[0] in out
    assert ("Nothing can be earned" in out) == (name == "known/m5" or name not in PLANS)
