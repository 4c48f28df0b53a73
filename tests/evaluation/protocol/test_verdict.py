"""The verdict: one of four words by stated rules, and never without an entry in the registry."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.protocol.lockbox import LOCKBOX
from agent_gym.evaluation.protocol.nulls import NullRuns, gate_a, gate_b
from agent_gym.evaluation.protocol.standing import Standings
from agent_gym.evaluation.protocol.trials import Outcome, Stretch, TrialPlan, TrialRegistry
from agent_gym.evaluation.protocol.verdict import Evidence, judge
from agent_gym.evaluation.statistics import (
    Interval,
    dsr,
    effective_trials,
    moments,
    pbo,
    psr,
)

MARKET = Stretch(
    name="BTC/USDT", kind="spot", period_ns=3600, fingerprint="f", first_ns=100, last_ns=200
)
DAYS = 600


def outcome(use, mean, seed=0, market=MARKET, **changes):
    rng = Seeds(seed).child(use).rng()
    plan = TrialPlan(
        agent={"use": use},
        label=use,
        market=market,
        protocol=changes.get("protocol", {"name": "walk-forward"}),
        costs=changes.get("costs", {}),
    )
    n = changes.get("n", DAYS)
    return Outcome(plan, mean + 0.02 * rng.standard_normal(n), 365.0)


@pytest.fixture
def registry(tmp_path):
    return TrialRegistry(tmp_path / "trials.jsonl")


def entered(registry, *outcomes):
    return [trial.id for trial in registry.register(outcomes)]


def bp(estimate, half=1.0):
    return Interval(estimate, estimate - half, estimate + half, 0.95)


def test_figures_come_from_the_registry_alone(registry):
    made = [outcome("a", 0.004), outcome("b", 0.0), outcome("c", -0.001)]
    ids = entered(registry, *made)
    standing = Standings(registry).of(ids[0])
    own = moments(made[0].returns)
    ratios = [moments(each.returns).sharpe for each in made]
    matrix = np.column_stack([each.returns for each in made])
    assert standing.trials == 3
    assert standing.effective_trials == effective_trials(matrix) == 3
    assert standing.sharpe_variance == pytest.approx(np.var(ratios, ddof=1))
    assert standing.psr == psr(own)
    assert standing.dsr == dsr(own, 3, standing.sharpe_variance)
    assert standing.pbo == pbo(matrix, 16).pbo
    assert standing.sharpe == pytest.approx(own.sharpe * 365**0.5)


def test_more_trials_lower_the_figure_and_repetition_does_not(registry):
    (own,) = entered(registry, outcome("a", 0.002))
    alone = Standings(registry).of(own)
    assert (alone.trials, alone.pbo, alone.dsr) == (1, None, alone.psr)
    others = [outcome(f"noise{k}", 0.0, seed=k) for k in range(12)]
    entered(registry, *others)
    many = Standings(registry).of(own)
    assert many.trials == 13
    assert many.dsr < alone.dsr
    entered(registry, *others, outcome("a", 0.002))
    assert Standings(registry).of(own) == many


def test_copies_of_one_idea_count_once_among_those_apart(registry):
    base = outcome("a", 0.001)
    copies = [
        Outcome(outcome(f"copy{k}", 0.0).plan, base.returns * (1 + 0.01 * k), 365.0)
        for k in range(5)
    ]
    ids = entered(registry, base, *copies)
    standing = Standings(registry).of(ids[0])
    assert (standing.trials, standing.effective_trials) == (6, 1)


def test_trials_on_another_market_or_another_time_do_not_count(registry):
    (own,) = entered(registry, outcome("a", 0.002))
    other = MARKET.model_copy(update={"name": "ETH/USDT", "fingerprint": "e"})
    later = MARKET.model_copy(update={"first_ns": 300, "last_ns": 400})
    entered(registry, outcome("b", 0.0, market=other), outcome("c", 0.0, market=later))
    assert Standings(registry).of(own).trials == 1
    touching = MARKET.model_copy(update={"fingerprint": "g", "first_ns": 200, "last_ns": 400})
    entered(registry, outcome("d", 0.0, market=touching), outcome("e", 0.0, costs={"fee": 1}))
    standing = Standings(registry).of(own)
    assert (standing.trials, standing.effective_trials, standing.compared) == (3, 3, 1)


def test_no_registered_trial_no_number(registry):
    entered(registry, outcome("a", 0.01))
    for ask in (
        lambda: Standings(registry).of("1" * 32),
        lambda: judge(Standings(registry), "1" * 32, Evidence(net=bp(5.0))),
        lambda: Standings(registry).lockbox_growth("1" * 32),
    ):
        with pytest.raises(StoreError, match="not registered"):
            ask()


def test_a_trial_that_is_registered_later_is_taken_in(registry):
    standings = Standings(registry)
    (own,) = entered(registry, outcome("a", 0.01))
    assert standings.of(own).trials == 1


STRONG = Evidence(net=bp(5.0), p_random=0.01, unseen=0.1)


@pytest.fixture
def ids(registry):
    made = [outcome("strong", 0.006), outcome("fair", 0.002, seed=3)]
    noise = [outcome(f"noise{k}", -0.001, seed=k) for k in range(6)]
    return dict(zip(("strong", "fair"), entered(registry, *made, *noise), strict=False))


def word(registry, trial, **changes):
    fields = {name: getattr(STRONG, name) for name in STRONG.__slots__}
    return judge(Standings(registry), trial, Evidence(**(fields | changes))).word


def test_evidence_needs_everything(registry, ids):
    strong = ids["strong"]
    assert word(registry, strong) == "evidence of edge"
    assert word(registry, strong, unseen=None) == "promising"
    assert word(registry, strong, unseen=-0.01) == "promising"
    assert word(registry, strong, p_random=0.06) == "no evidence of edge"
    assert word(registry, strong, p_random=None) == "no evidence of edge"
    assert word(registry, strong, net=bp(-0.1)) == "no evidence of edge"
    assert word(registry, strong, nothing_to_find=True) == "no evidence of edge"


def test_worse_than_any_baseline_comes_first(registry, ids):
    versus = {"cash": bp(3.0), "buy & hold": bp(-2.0)}
    assert word(registry, ids["strong"], versus=versus) == "worse than baseline"
    unsure = {"cash": bp(3.0), "buy & hold": bp(-0.5)}
    assert word(registry, ids["strong"], versus=unsure) == "evidence of edge"


def test_psr_without_dsr_is_promising(registry, ids):
    standing = Standings(registry).of(ids["fair"])
    assert standing.psr > 0.95 > standing.dsr
    assert word(registry, ids["fair"]) == "promising"


def test_a_best_that_does_not_last_is_no_evidence(registry):
    # Two arms that take turns at being the best: whoever wins one half loses the other.
    n = 640
    turns = np.where(np.arange(n) // 40 % 2 == 0, 0.01, -0.01)
    noise = 0.001 * Seeds(1).rng().standard_normal(n)
    plans = [outcome("a", 0.0, n=n).plan, outcome("b", 0.0, n=n).plan]
    one = Outcome(plans[0], 0.003 + turns + noise, 365.0)
    two = Outcome(plans[1], 0.003 - turns + noise[::-1], 365.0)
    first, _ = entered(registry, one, two)
    standing = Standings(registry).of(first)
    assert standing.psr > 0.95
    assert standing.pbo >= 0.5
    assert word(registry, first) == "no evidence of edge"


def test_the_verdict_says_what_led_to_it(registry, ids):
    found = judge(Standings(registry), ids["strong"], Evidence(net=bp(5.0)))
    told = found.as_dict()
    names = [check["name"] for check in told["checks"]]
    assert names[0] == "net bp a bar"
    assert {"PSR", "PBO", "p of random timing", "growth in the lockbox"} <= set(names)
    assert any(name.startswith("DSR over") for name in names)
    assert "p of random timing not known" in found.why


def test_the_lockbox_of_the_same_agent_is_found(registry):
    (own,) = entered(registry, outcome("a", 0.002))
    assert Standings(registry).lockbox_growth(own) is None
    later = MARKET.model_copy(update={"first_ns": 300, "last_ns": 400})
    held = {"market": later, "n": 60}
    entered(
        registry,
        outcome("b", 0.05, protocol={"name": LOCKBOX, "release": "1"}, **held),
        outcome("a", 0.05, costs={"fee": 1}, protocol={"name": LOCKBOX, "release": "1"}, **held),
        outcome("a", 0.05, **held),
    )
    assert Standings(registry).lockbox_growth(own) is None
    opened = outcome("a", 0.003, protocol={"name": LOCKBOX, "release": "1"}, **held)
    entered(registry, opened)
    found = Standings(registry).lockbox_growth(own)
    assert found == pytest.approx(np.log1p(opened.returns).sum())


def runs(gross, exposure=0.0, market=0.0, psr=(0.5,) * 20, net=-0.1):
    wide = np.zeros(20)
    return NullRuns(gross + wide, net + wide, exposure + wide, market + wide, psr)


def test_gate_a_sees_what_cannot_be_known():
    noise = Seeds(0).rng().standard_normal(20)
    assert gate_a(runs(noise), Seeds(1), 0.95).passed
    leak = gate_a(runs(noise + 3.0), Seeds(1), 0.95)
    assert not leak.passed
    assert "looks ahead" in leak.why
    loss = gate_a(runs(noise - 3.0), Seeds(1), 0.95)
    assert not loss.passed
    assert "looks ahead" not in loss.why


def test_gate_a_shows_the_plain_gross_interval_too():
    noise = Seeds(3).child("noise").rng().normal(0.0, 2.0, 20)
    low, high = ttest_1samp(noise, 0.0).confidence_interval(0.99)
    figures = gate_a(runs(noise), Seeds(1), 0.99).figures
    assert (figures["gross_low"], figures["gross_high"]) == pytest.approx((low, high))


def test_gate_a_excuses_the_luck_of_the_paths_but_not_who_picks_them():
    market = 0.5 + np.abs(Seeds(0).rng().standard_normal(20))
    always_long = runs(market, 1.0, market)
    assert gate_a(always_long, Seeds(1), 0.95).passed
    paths = Seeds(0).rng().standard_normal(20)
    picker = runs(np.abs(paths), np.sign(paths), paths)
    assert not gate_a(picker, Seeds(1), 0.95).passed


@pytest.mark.parametrize(("lucky", "passed"), [(0, True), (3, True), (4, False), (20, False)])
def test_gate_b_counts_luck(lucky, passed):
    psr = [0.99] * lucky + [None] + [0.2] * (19 - lucky)
    assert gate_b(runs(0.0, psr=psr[:20]), learns=False).passed is passed


def test_gate_b_asks_who_learns_to_sit_out():
    losing = runs(0.0, net=-0.5)
    assert gate_b(losing, learns=False).passed
    assert not gate_b(losing, learns=True).passed
    assert gate_b(runs(0.0, net=-0.2), learns=True).passed


def test_the_best_of_many_kindred_tries_is_rarely_called_evidence(tmp_path):
    """Without skill the best of forty correlated tries must not pass more than one time in ten."""
    passed = 0
    for repeat in range(30):
        registry = TrialRegistry(tmp_path / f"{repeat}.jsonl")
        rng = Seeds(repeat).child("kindred").rng()
        common = rng.standard_normal(500)
        tries = [
            Outcome(
                outcome(f"try{k}", 0.0).plan,
                0.02 * (0.866 * common + 0.5 * rng.standard_normal(500)),
                365.0,
            )
            for k in range(40)
        ]
        ids = entered(registry, *tries)
        best = max(range(40), key=lambda k: moments(tries[k].returns).sharpe)
        passed += Standings(registry).of(ids[best]).dsr > 0.95
    assert passed <= 3


def test_a_lockbox_that_somebody_looked_into_confirms_nothing(registry):
    ahead = MARKET.model_copy(update={"first_ns": 300, "last_ns": 400})
    held = {"name": "lockbox", "release": "v1"}
    (own,) = entered(registry, outcome("a", 0.01))
    entered(registry, outcome("a", 0.01, seed=1, market=ahead, protocol=held))
    clean = Standings(registry)
    assert clean.unseen_growth(own) == clean.lockbox_growth(own) > 0.0

    other = TrialRegistry(registry.path.with_name("peeked.jsonl"))
    (own,) = entered(other, outcome("a", 0.01))
    entered(other, outcome("b", 0.0, market=ahead))
    entered(other, outcome("a", 0.01, seed=1, market=ahead, protocol=held))
    peeked = Standings(other)
    assert peeked.lockbox_growth(own) > 0.0
    assert peeked.unseen_growth(own) is None


def test_opening_again_until_it_is_positive_does_not_help(registry):
    ahead = MARKET.model_copy(update={"first_ns": 300, "last_ns": 400})
    (own,) = entered(registry, outcome("a", 0.01))
    for release, mean in (("v1", -0.01), ("v2", 0.01)):
        held = {"name": "lockbox", "release": release}
        entered(registry, outcome("a", mean, seed=1, market=ahead, protocol=held))
    assert Standings(registry).unseen_growth(own) < 0.0
