"""Laws of the gate: sides, units and order change nothing that they should not."""

import msgspec
from gate_samples import MadeUpRerun, metric, pinned, suite, words
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.files import to_json
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate import judge

CHANGES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sampled_from([-0.3, -0.1, 0.0, 0.1, 0.3]), min_size=1
)


@settings(max_examples=15, deadline=None)
@given(CHANGES, st.sampled_from([0.0, 0.01, 0.05]))
def test_swapped_sides_swap_regressions_and_improvements(changes, sd):
    metrics = tuple(metric(name, abs=0.02) for name in changes)
    old, new = pinned(changes, sd=sd, metrics=metrics)
    rerun = MadeUpRerun(changes, sd=sd, metrics=metrics)
    there = judge(old, new, rerun)
    back = judge(new, old, lambda names, n: rerun(names, n)[::-1])
    for one, other in (("regression", "improvement"), ("improvement", "regression")):
        assert [each.id for each in there.of(one)] == [each.id for each in back.of(other)]
    assert all(changes[each.metric] < 0.0 for each in there.of("regression"))
    hurt = {name for name, change in changes.items() if change <= -0.1}
    assert {each.metric for each in there.of("regression")} == hurt


@settings(max_examples=10, deadline=None)
@given(CHANGES, st.sampled_from([1e-6, 0.01, 8.0, 3_600.0, 1e9]))
def test_the_unit_changes_no_word(changes, unit):
    def scaled(side):
        made = []
        for each in side.scenarios:
            samples = tuple(
                msgspec.structs.replace(
                    sample, metrics={name: unit * value for name, value in sample.metrics.items()}
                )
                for sample in each.samples
            )
            metrics = tuple(metric(m.name, abs=0.02 * unit, floor=0.1 * unit) for m in each.metrics)
            made.append(msgspec.structs.replace(each, samples=samples, metrics=metrics))
        return suite(*made, run=side.run_id)

    metrics = tuple(metric(name, abs=0.02, floor=0.1) for name in changes)
    old, new = pinned(changes, metrics=metrics)
    rerun = MadeUpRerun(changes, metrics=metrics)
    plain = judge(old, new, rerun)
    other = judge(scaled(old), scaled(new), lambda names, n: tuple(map(scaled, rerun(names, n))))
    assert words(plain) == words(other)
    assert plain.verdict == other.verdict


def test_order_changes_no_byte():
    changes = {"a": -0.06, "b": 0.0, "c": 0.06}
    rng = Seeds(4).child("order").rng()

    def shuffled(side):
        made = []
        for each in side.scenarios:
            samples = [each.samples[index] for index in rng.permutation(len(each.samples))]
            metrics = [each.metrics[index] for index in rng.permutation(len(each.metrics))]
            made.append(
                msgspec.structs.replace(each, samples=tuple(samples), metrics=tuple(metrics))
            )
        return suite(*(made[index] for index in rng.permutation(len(made))), run=side.run_id)

    def both(name):
        return pinned(changes, name=name)

    parts = [both(name) for name in ("one", "two", "three")]
    old = suite(*(part[0].scenarios[0] for part in parts), run="old")
    new = suite(*(part[1].scenarios[0] for part in parts), run="new")
    rerun = MadeUpRerun(changes)
    first = to_json(msgspec.to_builtins(judge(old, new, rerun)))
    for _ in range(3):
        again = judge(
            shuffled(old), shuffled(new), lambda names, n: tuple(map(shuffled, rerun(names, n)))
        )
        assert to_json(msgspec.to_builtins(again)) == first
    assert msgspec.json.encode(judge(old, new, rerun)) == msgspec.json.encode(
        judge(old, new, rerun)
    )
