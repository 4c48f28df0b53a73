import numpy as np
import pytest

from agent_gym.agents.echo import EchoConfig
from agent_gym.agents.gate import GateConfig, ProvenanceError, Source, Tagged, Tags
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.leakage import (
    check_leakage,
    mean_divergence,
    require_caught,
    weights_digest,
)
from agent_gym.evaluation.leakage.crowd import CLOSE, MARKER, draw_marker, planted, simple_crowd
from agent_gym.evaluation.leakage.echoes import EvolvedEchoes
from agent_gym.evaluation.leakage.umc import TIERS, UmcLeakageConfig, UmcSubject, umc_leakage

ECHO_PARAMS = {"size": 24, "window_bars": 250, "evolve_every_bars": 250, "candidates": 6}
ECHOES = EchoConfig(**ECHO_PARAMS)
SMALL = UmcLeakageConfig(
    train_bars=1_500, held_out_bars=200, echo_bars=800, live_bars=300, echoes=ECHOES
)


TINY_NETWORK = {**TIERS["recurrent"].params, "steps": 60, "look_every": 20, "learning_rate": 1e-2}


def met(bars=500):
    close = 100.0 * np.exp(np.cumsum(0.01 * Seeds(3).rng().standard_normal(bars)))
    tags = Tags.of(Source.PRIMARY, "own", np.arange(bars))
    return {CLOSE: Tagged(close, tags), MARKER: Tagged(draw_marker(bars, Seeds(3)), tags)}


@pytest.fixture(scope="module")
def report():
    return umc_leakage(5, SMALL)


def assert_tight(report):
    require_caught(report)
    assert report.purity.value == 0.0
    assert report.by_part == {"world model": 0, "macrostates": 0, "cost of orders": 0}
    assert report.non_interference.digest_with == report.non_interference.digest_without
    assert report.non_interference.largest_change == 0.0
    assert report.predictive.leaked == 0.0
    assert report.influence.value <= 0.01 < report.projection.full_divergence
    assert report.counts.withheld >= SMALL.echo_bars


def test_the_exact_tier_holds_all_four_bounds_beside_poisoned_echoes(report):
    assert_tight(report)
    assert report.passed
    assert 0.0 < report.predictive_live.leaked <= report.predictive_live.bound
    assert report.predictive_live.floor > 0.0
    assert report.counts.withheld == 2 * SMALL.echo_bars


def test_the_kalman_tier_holds_all_four_bounds_beside_poisoned_echoes():
    found = umc_leakage(5, SMALL.model_copy(update={"tier": TIERS["kalman"]}))
    assert_tight(found)
    assert found.passed


def test_the_recurrent_tier_is_tight_to_the_bit_and_its_control_is_caught():
    pytest.importorskip("torch")
    tier = Ref(use="umc/recurrent", params=TINY_NETWORK)
    subject = UmcSubject(5, SMALL.model_copy(update={"tier": tier}))
    assert_tight(check_leakage(subject.train, subject.logits, subject.gate))


def test_the_planted_pattern_is_believed_with_the_gate_open(report):
    assert report.control.purity.value == SMALL.echo_bars
    assert report.control.non_interference.value > 0.0
    assert report.control.predictive.value > 0.002


def test_the_same_seed_gives_the_same_model(report):
    learned = [
        weights_digest(UmcSubject(seed, SMALL).train(echoes=True, gated=True).weights)
        for seed in (5, 6)
    ]
    assert learned[0] == report.non_interference.digest_with != learned[1]


def test_the_echoes_are_the_real_ones_and_evolved():
    subject = UmcSubject(5, SMALL)
    assert subject.population.generations == 0
    recorded = subject.recorded(subject._past, echoes=True)
    lived = SMALL.train_bars // ECHOES.evolve_every_bars - 1
    assert subject.population.generations > lived
    crowd = {name: column[SMALL.train_bars :] for name, column in recorded.items()}
    assert crowd["fill_known"].x.mean() > 0.9  # who trades, pays
    assert crowd["fill_slippage_bp"].x.mean() > 0.0
    other = UmcSubject(5, SMALL.model_copy(update={"echoes": EchoConfig(**ECHO_PARAMS, seed=1)}))
    again = other.recorded(other._past, echoes=True)
    assert not np.array_equal(again["close"].x[SMALL.train_bars :], crowd["close"].x)
    assert np.array_equal(again["close"].x[: SMALL.train_bars], recorded["close"].x[:1_500])


def test_d34_a_crowd_that_is_never_recorded_is_found_out():
    class Vacuous(UmcSubject):
        def recorded(self, met, *, echoes):
            return met

    subject = Vacuous(5, SMALL)
    found = check_leakage(subject.train, subject.logits, subject.gate)
    assert found.control.missed == ("g1", "g2", "g3")
    assert found.counts.idle
    assert not found.passed


def test_where_orders_move_nothing_nothing_leaks_into_the_data():
    config = SMALL.model_copy(update={"impact": 0.0})
    subject = UmcSubject(5, config)
    beside, alone = (subject.collect(echoes=echoes, trial=0)[CLOSE].x for echoes in (True, False))
    assert np.array_equal(beside, alone)
    moved = UmcSubject(5, SMALL)
    assert not np.array_equal(moved.collect(echoes=True, trial=0)[CLOSE].x, alone)


def test_it_is_the_projection_that_keeps_a_live_market_from_leaking():
    """Where own orders move prices much, a policy that follows the crowd spoils its own data."""
    held = SMALL.model_copy(update={"impact": 1.0, "live_bars": 1_000})
    free = held.model_copy(update={"gate": GateConfig(kl_threshold=100.0)})
    leaked = {}
    for name, config in (("held", held), ("free", free)):
        subject = UmcSubject(0, config)
        beside, alone = (subject.live(echoes=echoes, trial=0) for echoes in (True, False))
        leaked[name] = mean_divergence(beside, alone)
    assert leaked["held"] <= 0.002 < leaked["free"]


@pytest.mark.parametrize("source", [simple_crowd, EvolvedEchoes(EchoConfig(size=16))])
def test_a_crowd_is_tagged_and_goes_on_from_the_last_close(source):
    seen = met()
    crowd = source(seen, 300, Seeds(1))
    assert set(crowd) >= set(seen)
    assert all(column.prov.counts() == {Source.ECHO: 300} for column in crowd.values())
    assert crowd[CLOSE].prov[0].parent_hash == seen[CLOSE].prov[-1].digest
    assert abs(np.log(crowd[CLOSE].x[0] / seen[CLOSE].x[-1])) < 0.05


def test_the_plant_lifts_the_close_after_every_mark_and_keeps_the_tag():
    crowd = planted(simple_crowd)(met(), 300, Seeds(1))
    plain = np.diff(np.log(simple_crowd(met(), 300, Seeds(1))[CLOSE].x))
    after = crowd[MARKER].x[:-1] > 0.0
    moves = np.diff(np.log(crowd[CLOSE].x))
    assert 10 < after.sum() < 60
    assert moves[after] == pytest.approx(3.0 * np.std(plain))
    assert moves[~after] == pytest.approx(plain[~after])
    assert crowd[CLOSE].prov.counts() == {Source.ECHO: 300}


def test_a_crowd_that_calls_itself_primary_does_not_get_through_unnoticed():
    def liars(seen, count, seeds):
        made = EvolvedEchoes(ECHOES)(seen, count, seeds)
        tags = Tags.of(Source.PRIMARY, "crowd", np.arange(count))
        return {name: Tagged(column.x, tags) for name, column in made.items()}

    report = umc_leakage(5, SMALL.model_copy(update={"live_bars": 200}), liars)
    assert not report.passed
    assert not report.non_interference.figure.passed
    assert report.control.missed == ("g1",)
    with pytest.raises(AgentError, match="prove nothing"):
        require_caught(report)


def test_what_was_recorded_beside_a_crowd_cannot_be_learned_from_as_it_is():
    subject = UmcSubject(5, SMALL)
    recorded = subject.recorded(subject._past, echoes=True)
    with pytest.raises(ProvenanceError, match="800 echo"):
        subject.gate.primary_batch(recorded)
