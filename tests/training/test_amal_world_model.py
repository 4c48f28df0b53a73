"""The model of the world: it learns, from primary rows alone, and nothing else can reach it."""

import numpy as np
import pytest

from agent_gym.agents.gate import ProvenanceError, Source, Tagged, Tags
from agent_gym.core import DataError, Seeds
from agent_gym.envs.exact import same_bits
from agent_gym.training.marl.amal import AuxBuffer, PrimaryBuffer, PrimaryView, WorldModel
from agent_gym.training.marl.amal.canary import canary, symmetric, twins_of
from agent_gym.training.marl.amal.probes import Place, coverage, sight
from agent_gym.training.marl.amal.transitions import Transitions, core_features, transitions_of
from agent_gym.training.marl.batch import AUXILIARY, FRESH
from agent_gym.training.marl.worlds import battle_worlds
from tests.training.amal_samples import TINY, session_of, small_amal, tiny_model
from tests.training.marl_samples import small, with_deaths


def linear(seed, n=400, noise=0.1, every=20):
    """Return rows of a world in which changes are linear, cut into episodes."""
    rng = Seeds(seed).rng()
    seen = rng.standard_normal((n, 5)).astype(np.float32)
    matrix = np.arange(15).reshape(5, 3) / 10.0 - 0.7
    change = seen @ matrix + noise * rng.standard_normal((n, 3))
    ended = np.arange(n) % every == every - 1
    change[ended] = 0.0
    return Transitions(seen, change.astype(np.float32), seen[:, 0], ended, FRESH)


def filled(*windows):
    buffer = PrimaryBuffer(10_000, 4, 1)
    for rows in windows:
        buffer.add(rows)
    return buffer


def fitted(updates, rows=None):
    buffer = filled(rows or linear(1))
    model = WorldModel(5, 3, tiny_model(updates=updates, hidden=32), Seeds(1))
    model.learn(buffer.view())
    return model, buffer


def test_it_learns_what_can_be_learned():
    model, buffer = fitted(400)
    quality = model.quality(buffer.view())
    assert quality.r2 > 0.9
    assert quality.rows > 50
    untrained, _ = fitted(0)
    assert untrained.quality(buffer.view()).r2 < 0.2


def test_it_does_not_learn_what_cannot():
    rows = linear(1)
    rng = Seeds(2).rng()
    shuffled = rows._replace(change=rng.permutation(rows.change), ended=np.zeros(400, np.bool_))
    model, buffer = fitted(100, shuffled._replace(ended=rows.ended))
    assert model.quality(buffer.view()).r2 < 0.3


def test_what_is_held_out_teaches_nothing():
    rows = linear(1)
    buffer = filled(rows)
    held = buffer.view().held_out
    assert 0.1 < held.mean() < 0.4
    spoiled = rows._replace(change=np.where(held[:, None], np.float32(1e3), rows.change))
    one, _ = fitted(5, rows)
    other, _ = fitted(5, spoiled)
    assert all(same_bits(one.state()[name], other.state()[name]) for name in one.state())


def test_a_change_after_the_end_of_a_battle_teaches_nothing():
    rows = linear(1)
    spoiled = rows._replace(change=np.where(rows.ended[:, None], np.float32(1e3), rows.change))
    one, other = fitted(5, rows)[0].state(), fitted(5, spoiled)[0].state()
    assert all(same_bits(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("share", "old_ones_matter"), [(1.0, False), (0.5, True), (0.0, True)])
def test_the_newest_window_has_its_share_of_every_step(share, old_ones_matter):
    def after(old):
        model = WorldModel(5, 3, tiny_model(updates=5, newest_share=share), Seeds(1))
        model.learn(filled(old, linear(2)).view())
        return model.weights()

    old = linear(1)
    one, other = after(old), after(old._replace(change=-old.change))
    assert any(not same_bits(one[name], other[name]) for name in one) is old_ones_matter


def test_a_newest_window_that_is_held_out_leaves_all_rows_to_the_others():
    view = filled(linear(1, n=80), linear(2, n=20)).view()  # of four episodes one is held out
    assert view.newest().held_out.all()
    model = WorldModel(5, 3, tiny_model(updates=5, newest_share=1.0), Seeds(1))
    before = model.weights()
    model.learn(view)
    assert any(not same_bits(before[name], each) for name, each in model.weights().items())


def test_heads_draw_rows_of_their_own():
    model, _ = fitted(5)
    weights = model.state()["weights.0"]
    assert not np.allclose(weights[0], weights[1])


def test_only_a_view_of_sealed_rows_is_taken():
    model, buffer = fitted(1)
    auxiliary = AuxBuffer()
    auxiliary.add(linear(2)._replace(source=AUXILIARY))
    for given in (auxiliary, auxiliary.rows(), buffer, linear(2)):
        with pytest.raises(TypeError, match="PrimaryView"):
            model.learn(given)
    with pytest.raises(ProvenanceError, match="sealed"):
        PrimaryView((auxiliary.rows(),))


def test_the_gate_refuses_what_others_made():
    buffer = PrimaryBuffer(100, 4, 1)
    rows = linear(1)
    tags = Tags.of(Source.ECHO, "auxiliary", np.arange(400))
    with pytest.raises(ProvenanceError):
        buffer._gate.primary_batch({"seen": Tagged(rows.seen, tags)})


def test_rows_that_are_passed_off_are_counted():
    buffer = filled(linear(1))
    assert buffer.view().leaks == 0
    buffer.forge(linear(2))
    assert buffer.view().leaks == 400


def test_old_windows_are_dropped():
    buffer = PrimaryBuffer(600, 4, 1)
    for seed in range(5):
        buffer.add(linear(seed))
    assert len(buffer) == 800
    assert np.array_equal(buffer.view().newest().column("seen"), linear(4).seen)


def test_garbage_beside_it_changes_no_bit_and_a_symmetric_one_notices():
    config = small_amal()
    session = session_of(config)
    session.iterate()
    mixed = session.play()
    assert len(session.mixer.buffer.auxiliary) > 0
    for asked, changes in ((config, False), (symmetric(config), True)):
        twin = twins_of(session.mixer, asked)
        assert (canary(twin, battle_worlds, mixed, Seeds(0)) > 0) is changes


def test_a_buffer_refuses_rows_of_the_other_stream():
    session = session_of(small_amal())
    session.iterate()
    mixed, core = session.play(), session.mixer.core
    ours, theirs = (transitions_of(batch, core) for batch in (mixed.fresh, mixed.others[0]))
    with pytest.raises(ProvenanceError, match="another stream"):
        session.mixer.buffer.primary.add(theirs)
    with pytest.raises(ProvenanceError, match="another stream"):
        session.mixer.buffer.auxiliary.add(ours)


def test_a_canary_needs_something_to_spoil():
    config = small_amal(auxiliary_share=0.0, late_share=0.0)
    session = session_of(config)
    mixed = session.play()
    with pytest.raises(DataError, match="spoil"):
        canary(twins_of(session.mixer, config), battle_worlds, mixed, Seeds(0))


def test_a_window_becomes_rows_without_what_was_done_last():
    _, batch = with_deaths()
    core = core_features(battle_worlds(small(), 1).contract)
    rows = transitions_of(batch, core)
    assert len(core) == 48 - 27
    assert rows.seen.shape == (batch.ended.size, 21 + 27 + 3)
    t, e = np.argwhere(~batch.ended)[5]
    row = t * batch.ended.shape[1] + e
    change = batch.state[t + 1, e, core] - batch.state[t, e, core]
    assert np.array_equal(rows.change[row], change)
    done = rows.seen[row, 21:48].reshape(3, 9).argmax(axis=1)
    assert np.array_equal(done, batch.actions[t, e])
    assert np.array_equal(rows.seen[row, 48:], batch.alive[t, e])
    assert (rows.change[batch.ended.ravel()] == 0.0).all()


def test_learning_takes_off_surprise_where_there_was_some():
    model, _ = fitted(0)
    rows = linear(2)
    before = model.forecast(rows)
    trained, _ = fitted(200)
    after = trained.forecast(rows)
    went_on = ~rows.ended
    assert (before.surprise(0.3) - after.surprise(0.3))[went_on].mean() > 0.5
    one = before._replace(mean=before.mean[:, :1], variance=before.variance[:, :1])
    gaps = np.square(one.truth - one.mean[:, 0]) / (one.variance[:, 0] + 0.09)
    by_hand = 0.5 * (gaps + np.log(one.variance[:, 0] + 0.09)).sum(axis=-1)
    np.testing.assert_allclose(one.surprise(0.3), by_hand)


def test_coverage_tells_wide_from_narrow():
    wide = linear(1).seen.astype(np.float64)
    battle = np.arange(len(wide)) % 4
    gain = coverage(wide, battle) - coverage(0.1 * wide, battle)
    assert gain == pytest.approx(np.log(10.0))


def test_coverage_does_not_ask_how_fast_a_team_moves():
    """Battles that lie as far apart cover as much, however short the steps within them are."""
    battle = np.repeat(np.arange(8), 50)
    places = 10.0 * Seeds(1).rng().standard_normal((8, 3))
    steps = Seeds(2).rng().standard_normal((400, 3))
    slow, fast = (coverage(places[battle] + size * steps, battle) for size in (0.001, 0.1))
    assert slow == pytest.approx(fast, abs=0.1)
    near = coverage(0.1 * places[battle] + 0.001 * steps, battle)
    assert slow - near == pytest.approx(np.log(10.0), abs=0.1)
    with pytest.raises(DataError, match="battles"):
        coverage(steps, np.zeros(400, np.int64))


def test_a_team_sees_no_more_than_itself():
    """The control: a crowd without shifts plays the very battles of the policy."""
    config = small_amal()
    session = session_of(config)
    policy, agent = session.learner.policy, session.mixer
    space, place = agent.auxiliaries.space, Place(config, battle_worlds, 16)
    same, other = (
        sight(space.crowd(policy, shifts), policy, place, agent.core, Seeds(1))
        for shifts in (np.zeros((4, space.dim)), 40.0 * agent.auxiliaries.shifts)
    )
    assert same == (0.0, 0.0)
    assert other.novelty > 0.0
    assert other.coverage != 0.0


@pytest.mark.parametrize(
    "change",
    [
        {"heads": 4},
        {"hidden": 8},
        {"layers": 1},
        {"updates": 3},
        {"batch": 16},
        {"learning_rate": 1e-2},
        {"beta": 0.0},
        {"reward_weight": 0.0},
        {"end_weight": 1.0},
    ],
    ids=str,
)
def test_every_setting_of_it_acts(change):
    def after(config):
        model = WorldModel(5, 3, config, Seeds(1))
        model.learn(filled(linear(1)).view())
        return model.forecast(linear(3)).mean

    one, other = after(TINY), after(tiny_model(**change))
    assert one.shape != other.shape or not np.allclose(one, other)
