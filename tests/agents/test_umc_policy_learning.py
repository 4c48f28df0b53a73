import json

import numpy as np
import pytest

from agent_gym.agents.umc.keeper import FitState
from agent_gym.agents.umc.policy import Actor, ActorConfig, Lessons, learning
from agent_gym.agents.umc.policy.actor import MEAN
from agent_gym.agents.umc.policy.learning import ActorFit
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.seeds import Seeds

LEVELS = np.array([-1.0, 0.0, 1.0])
TINY = ActorConfig(
    width=5, members=2, steps=12, warm_steps=4, sequences=3, sequence_bars=10, look_every=4
)


def random_lessons(bars=150, seed=1):
    rng = Seeds(seed).child("lessons").rng()
    return Lessons(
        rng.standard_normal((bars, 3)) + 2.0,
        rng.standard_normal((bars, 3)),
        rng.uniform(0.05, 0.1, bars),
        np.append(0.01 * rng.standard_normal(bars - 1), np.nan),
        0.0005,
        LEVELS,
    )


def changed(lessons, **parts):
    names = ("states", "worth", "unit_cost", "returns_ahead", "cost", "levels")
    return Lessons(**{**{name: getattr(lessons, name) for name in names}, **parts})


def fitted(config, lessons, **more):
    fit = ActorFit(config, lessons, Seeds(3), **more)
    fit.run()
    return fit


def same(first, second):
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


def test_a_fit_that_was_stopped_goes_on_to_the_bit():
    lessons = random_lessons()
    whole = fitted(TINY, lessons)
    first = ActorFit(TINY, lessons, Seeds(3))
    for _ in range(6):  # between two looks
        first.step()
    arrays, values = first.state()
    second = ActorFit(TINY, lessons, Seeds(3))
    second.restore(FitState(arrays, json.loads(json.dumps(values))))
    second.run()
    assert same(whole.state().arrays, second.state().arrays)
    assert same(whole.model(), second.model())
    assert whole.state().values == second.state().values
    assert whole.looks == second.looks
    assert not same(whole.state().arrays, arrays)


def test_the_state_of_another_fit_is_refused():
    lessons = random_lessons()
    state = ActorFit(TINY, lessons, Seeds(3)).state()
    for other in (
        ActorFit(TINY, lessons, Seeds(4)),
        ActorFit(TINY, random_lessons(seed=2), Seeds(3)),
        ActorFit(TINY.model_copy(update={"trust": 0.2}), lessons, Seeds(3)),
    ):
        with pytest.raises(DataError, match="another fit"):
            other.restore(state)


def test_a_fit_that_is_over_takes_no_step():
    fit = fitted(TINY, random_lessons())
    assert fit.step_count == TINY.steps
    with pytest.raises(AgentError, match="over"):
        fit.step()


def test_d12_learning_leaves_what_it_learns_from_as_it_was():
    lessons = random_lessons()
    kept = [array.copy() for array in lessons.arrays()]
    fitted(TINY, lessons)
    for before, after in zip(kept, lessons.arrays(), strict=True):
        assert np.array_equal(before, after, equal_nan=True)


@pytest.mark.parametrize("sequences", [1, 5])
def test_d10_a_batch_has_a_size_and_is_no_period(monkeypatch, sequences):
    shapes = []

    def counted(told, growth):
        shapes.append(tuple(told.shape[:3]))
        return growth_loss(told, growth)

    growth_loss = learning.growth_loss
    monkeypatch.setattr(learning, "growth_loss", counted)
    fitted(TINY.model_copy(update={"sequences": sequences}), random_lessons())
    assert shapes == [(TINY.members, sequences, TINY.sequence_bars)] * TINY.steps


def network_after(lessons, config=TINY):
    fit = ActorFit(config, lessons, Seeds(3))
    for _ in range(config.steps):
        fit.step()
    weights = {k: v for k, v in fit.state().arrays.items() if k.startswith("network/")}
    return {**weights, MEAN: fit.model()[MEAN]}


@pytest.mark.parametrize(("first", "same_bits"), [(120, True), (118, False)])
def test_no_sequence_and_no_scale_reaches_into_the_held_out_tail(first, same_bits):
    lessons = random_lessons()
    parts = {name: getattr(lessons, name).copy() for name in ("states", "worth", "unit_cost")}
    for array in parts.values():
        array[first:] = 7.0
    ahead = lessons.returns_ahead.copy()
    ahead[first - 1 :] = 0.9  # the bar before the tail is paid by the first bar in it
    poisoned = changed(lessons, **parts, returns_ahead=ahead)
    patient = TINY.model_copy(update={"patience_looks": 9, "steps": 40, "trust": 0.0})
    assert int(150 * (1.0 - patient.held_out_share)) == 120
    found = network_after(lessons, patient), network_after(poisoned, patient)
    assert same(*found) == same_bits


OTHERS = {
    "width": 6, "layers": 3, "members": 3, "steps": 11, "sequences": 2, "sequence_bars": 9,
    "learning_rate": 0.01, "last_learning_rate": 0.001, "precision": 2.0,
    "efe_weight_first": 0.5, "efe_weight_last": 0.9, "reinforcement_weight_first": 0.9,
    "reinforcement_weight_last": 0.1, "trust": 5.0, "look_every": 3, "patience_looks": 1,
    "held_out_share": 0.4, "warm_steps": 3,
}  # fmt: skip


def fields_of():
    return sorted(ActorConfig.model_fields)


@pytest.mark.parametrize("field", fields_of())
def test_every_field_changes_something(field):
    lessons = random_lessons()
    start = fitted(TINY, lessons).model() if field == "warm_steps" else None
    other = TINY.model_copy(update={field: OTHERS[field]})
    base, varied = (fitted(config, lessons, start_from=start) for config in (TINY, other))
    assert not same(base.state().arrays, varied.state().arrays) or base.looks != varied.looks


def test_going_on_from_earlier_weights():
    lessons = random_lessons()
    model = fitted(TINY, lessons).model()
    warm = ActorFit(TINY, random_lessons(seed=5), Seeds(9), start_from=model)
    assert same(warm.model(), model)  # scales and all, until a look finds better
    warm.run()
    assert warm.step_count == TINY.warm_steps
    for broken in (
        changed(lessons, levels=np.array([0.0, 0.5, 1.0])),
        changed(lessons, states=np.zeros((150, 4))),
    ):
        with pytest.raises(DataError):
            ActorFit(TINY, broken, Seeds(9), start_from=model)


CONTEXTS = 6
BANDIT = ActorConfig(
    width=16, members=2, steps=400, sequences=4, sequence_bars=32, look_every=50, learning_rate=0.02
)


def bandit(bars, seed):
    """Six contexts on a circle; each has one best level."""
    rng = Seeds(seed).child("bandit").rng()
    context = rng.integers(CONTEXTS, size=bars)
    turn = 2.0 * np.pi * context / CONTEXTS
    states = np.column_stack([np.cos(turn), np.sin(turn)])
    return states + 0.05 * rng.standard_normal(states.shape), context


@pytest.mark.parametrize("by", ["free energy", "realised growth"])
def test_d8_a_contextual_bandit_is_solved_by_what_it_is_told(by):
    states, context = bandit(1_000, 1)
    if by == "free energy":
        best = context % 3
        worth, ahead = 0.5 * np.eye(3)[best], np.zeros(1_000)
        weights = {"reinforcement_weight_first": 0.0, "reinforcement_weight_last": 0.0}
    else:
        best = 2 * (context % 2)
        worth, ahead = np.zeros((1_000, 3)), 0.01 * (best - 1.0)
        weights = {}  # free energy is the same for all levels: it asks for open chances, no more
    lessons = Lessons(states, worth, np.zeros(1_000), ahead, 0.0, LEVELS)
    fit = ActorFit(BANDIT.model_copy(update=weights), lessons, Seeds(3))

    def solved():
        actor = Actor(fit.model())
        fresh, known = bandit(2_000, 2)
        wanted = known % 3 if by == "free energy" else 2 * (known % 2)
        return np.mean(actor.decide(fresh, actor.begin())[0] == LEVELS[wanted])

    assert solved() < 0.8
    for _ in range(BANDIT.look_every):
        fit.step()
    fit.run()
    assert solved() > 0.99
