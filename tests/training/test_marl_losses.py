"""The losses, and who has a part in them; planted faults must be found."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from agent_gym.core import Seeds
from agent_gym.training.marl import learner as learner_module
from agent_gym.training.marl import rows as rows_module
from agent_gym.training.marl import study as study_module
from agent_gym.training.marl.learner import _Lesson
from agent_gym.training.marl.losses import PolicyTerms, imitation_loss, policy_loss, value_loss
from agent_gym.training.marl.study import study
from tests.training.marl_samples import bonus, parts, small, with_deaths


def terms(n=200, seed=0):
    rng = Seeds(seed).rng()
    drawn = rng.uniform(-3.0, -0.1, n)
    columns = {
        "log_probs": drawn + 0.3 * rng.standard_normal(n),
        "entropy": rng.random(n),
        "drawn": drawn,
        "ratios": np.ones(n),
        "advantages": rng.standard_normal(n),
        "weights": (rng.random(n) < 0.8) * 1.0,
    }
    return PolicyTerms(**{name: torch.from_numpy(each) for name, each in columns.items()})


def plain_ppo(given, clip, entropy_weight):
    """Return the loss of PPO as everybody writes it, over the rows that count."""
    kept = given.weights > 0
    ratio = (given.log_probs - given.drawn).exp()[kept]
    gain = given.advantages[kept]
    surrogate = torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain).mean()
    return -surrogate - entropy_weight * given.entropy[kept].mean()


def test_fresh_rows_give_the_loss_of_ppo():
    given = terms()
    found = policy_loss(given, 0.2, 0.01)
    assert float(found.loss) == pytest.approx(float(plain_ppo(given, 0.2, 0.01)), abs=1e-12)
    assert 0.2 < float(found.clip_fraction) < 0.9
    assert float(found.approx_kl) > 0.0


def test_old_rows_are_clipped_around_their_own_ratio():
    ratios = torch.tensor([0.5, 0.5, 0.5, 2.0, 2.0, 2.0], dtype=torch.float64)
    moved = torch.tensor([0.5, 0.7, 0.55, 2.0, 2.5, 2.1], dtype=torch.float64)
    log_probs = moved.log().requires_grad_()
    one = torch.ones(6, dtype=torch.float64)
    zero = torch.zeros(6, dtype=torch.float64)
    found = policy_loss(PolicyTerms(log_probs, zero, zero, ratios, one, one), 0.2, 0.0)
    gains = [0.5, 0.6, 0.55, 2.0, 2.2, 2.1]  # reach .2 * .5 = .1 below 1, and .2 above
    assert float(found.loss.detach()) == pytest.approx(-np.mean(gains))
    found.loss.backward()
    assert (log_probs.grad != 0).tolist() == [True, False, True, True, False, True]


@pytest.mark.parametrize("name", ["advantages", "weights", "log_probs", "ratios", "entropy"])
def test_a_column_against_a_row_is_an_error(name):
    """A [B, 1] against a [B] would be an outer product: the same credit for every action."""
    given = terms()
    with pytest.raises(ValueError, match="one shape"):
        policy_loss(replace(given, **{name: getattr(given, name).unsqueeze(-1)}), 0.2, 0.01)


def test_the_outer_product_would_hide_who_did_well():
    given = terms()
    ratio = (given.log_probs - given.drawn).exp()
    spread = (ratio * given.advantages.unsqueeze(-1)).mean()
    assert float(spread) == pytest.approx(float(ratio.mean() * given.advantages.mean()))


def test_the_loss_of_values_by_hand():
    values = torch.tensor([1.0, 0.0, 30.0], dtype=torch.float64)
    before = torch.tensor([0.0, 0.0, 30.0], dtype=torch.float64)
    targets = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    weights = torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)
    # held at .2 the first is off by .8; the third is beyond 10, where the loss is straight
    expected = (0.5 * 0.8**2 + 0.5 + 2 * 10 * (30 - 5)) / 4
    found = float(value_loss(values, before, targets, weights, 0.2, 10.0))
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="one shape"):
        value_loss(values.unsqueeze(-1), before, targets, weights, 0.2, 10.0)


def gradients(learner, rows, loss):
    """Return a loss of rows and its gradient."""
    lesson = _Lesson.of(rows, {}, learner.parts.norms)
    network = learner.parts.actor if loss == "policy" else learner.parts.critic
    value = learner._policy_loss(lesson).loss if loss == "policy" else learner._value_loss(lesson)
    network.zero_grad()
    value.backward()
    return [float(value.detach()), *(p.grad.numpy().copy() for p in network.parameters())]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def check_the_dead_have_no_part(learner, batch):
    rows = study(batch, learner.parts, learner.config, 1).rows
    dead, rng = ~rows.used, Seeds(9).rng()
    noise = rng.standard_normal(dead.shape)
    changed = replace(
        rows,
        seen=np.where(dead[..., None], 5.0, rows.seen),
        drawn=np.where(dead, rows.drawn - 0.5, rows.drawn),
        ratios=np.where(dead, 1.7, rows.ratios),
        advantages={"team": np.where(dead, 1e3 * noise, rows.advantages["team"])},
    )
    assert dead.any()
    assert same(gradients(learner, rows, "policy"), gradients(learner, changed, "policy"))


def test_the_dead_have_no_part_in_the_loss_of_the_policy():
    check_the_dead_have_no_part(*with_deaths())


def test_a_mean_over_the_dead_would_be_found(monkeypatch):
    learner, batch = with_deaths()
    everybody = rows_module.normalized
    monkeypatch.setattr(
        rows_module, "normalized", lambda each, used: everybody(each, np.ones_like(used))
    )
    with pytest.raises(AssertionError):
        check_the_dead_have_no_part(learner, batch)


def test_the_living_have_a_part():
    learner, batch = with_deaths()
    rows = study(batch, learner.parts, learner.config, 1).rows
    changed = replace(rows, drawn=np.where(rows.used, rows.drawn - 0.05, rows.drawn))
    assert not same(gradients(learner, rows, "policy"), gradients(learner, changed, "policy"))


def test_the_dead_have_a_part_in_the_loss_of_values():
    learner, batch = with_deaths()
    rows = study(batch, learner.parts, learner.config, 1).rows
    targets = {"team": np.where(rows.used, rows.targets["team"], rows.targets["team"] + 1.0)}
    changed = replace(rows, targets=targets)
    assert not same(gradients(learner, rows, "value"), gradients(learner, changed, "value"))


def check_good_actions_become_likelier():
    """Pay for one action alone: after one update everybody who may do it does it more often."""
    learner, collector = parts(small(n_envs=8))
    batch, _ = collector.collect(learner.policy)
    paid = (batch.actions == 2).mean(axis=-1).astype(np.float32)
    batch = replace(batch, rewards={"team": paid}, ended=np.ones_like(batch.ended))
    seen, legal = batch.observations[0], batch.legal[0]

    def chance():
        policy = learner.policy
        return np.exp(policy.log_probs(seen, legal, policy.memory(len(seen)))[0][..., 2])

    before = chance()
    learner.learn([batch])
    assert legal[..., 2].all()
    assert (chance() > before).all()


def test_good_actions_become_likelier():
    check_good_actions_become_likelier()


def test_a_wrong_sign_would_be_found(monkeypatch):
    right = rows_module.normalized
    monkeypatch.setattr(rows_module, "normalized", lambda each, used: -right(each, used))
    with pytest.raises(AssertionError):
        check_good_actions_become_likelier()


def check_what_acted_is_what_learns():
    learner, batch = with_deaths()
    rows = study(batch, learner.parts, learner.config, 1).rows
    np.testing.assert_allclose(rows.ratios, 1.0, atol=2e-6)


def test_logits_without_a_mask_would_be_found(monkeypatch):
    check_what_acted_is_what_learns()
    for module in (study_module, learner_module):
        monkeypatch.setattr(module, "masked", lambda x, legal: torch.log_softmax(x, -1))
    with pytest.raises(AssertionError):
        check_what_acted_is_what_learns()


def test_rows_far_from_what_would_be_done_now_are_dropped():
    learner, collector = parts(small(learn={"epochs": 2, "reuse": {}}))
    batch, _ = collector.collect(learner.policy)
    shift = np.zeros_like(batch.log_probs)
    shift[0], shift[1], shift[2] = np.log(5.5), np.log(0.15), np.log(4.5)
    moved = replace(batch, log_probs=batch.log_probs - shift, source="reused")
    rows = study(moved, learner.parts, learner.config, 1).rows
    used = rows.used.reshape(batch.actions.shape)
    np.testing.assert_array_equal(used[:2], False)
    np.testing.assert_array_equal(used[2:], batch.alive[2:])
    ess = learner.learn([batch, moved]).figures.ess
    assert ess["fresh"] == pytest.approx(1.0)
    assert 0.1 < ess["reused"] < 0.9


def forgotten(imitation, paid):
    """Return a learner, and a window of action 2 that the present team would hardly play."""
    learner, collector = parts(
        small(n_envs=8, learn={"epochs": 4, "reuse": {"imitation": imitation}})
    )
    batch, _ = collector.collect(learner.policy)
    legal = batch.legal.copy()
    legal[..., 1:] = True
    legal[..., 0] = False
    ways = dict(actions=np.full_like(batch.actions, 2), legal=legal, source="auxiliary")
    rewards = {"team": np.full(batch.ended.shape, paid, np.float32)}
    ended = np.ones_like(batch.ended)
    far = replace(batch, log_probs=np.zeros_like(batch.log_probs), **ways)
    return learner, batch, replace(far, rewards=rewards, ended=ended, weight=0.3)


def risen(imitation, paid):
    """Return by how much the log of the chance of action 2 rises in one update."""
    learner, fresh, far = forgotten(imitation, paid)
    seen, legal = far.observations[0], far.legal[0]

    def chance():
        policy = learner.policy
        return policy.log_probs(seen, legal, policy.memory(len(seen)))[0][..., 2].mean()

    before = chance()
    learner.learn([fresh, far])
    return chance() - before


def test_what_was_forgotten_and_went_well_is_imitated():
    dropped = risen(0.0, 10.0)
    assert risen(1.0, 10.0) > max(dropped, 0.0) + 0.01
    assert risen(1.0, -10.0) == risen(0.0, -10.0), "what went badly is no example"


def test_merits_are_those_of_forgotten_rows_and_are_cut():
    learner, _, far = forgotten(1.0, 1e6)
    rows = study(far, learner.parts, learner.config, 1).rows
    assert (rows.ratios < 0.2).all()
    assert not rows.used.any()
    assert (rows.merits > 0).all()
    likely = replace(far, log_probs=np.full_like(far.log_probs, np.log(1 / 9)))
    assert not study(likely, learner.parts, learner.config, 1).rows.merits.any()
    half = np.arange(rows.used.size).reshape(rows.used.shape) % 2 == 0
    noise = {"team": Seeds(3).rng().standard_normal(rows.used.shape)}
    known = replace(rows, used=half, advantages=noise)
    assert known.merit().max() == rows_module.LARGEST_MERIT
    assert not replace(rows, used=np.zeros_like(half)).merit().any()
    with pytest.raises(ValueError, match="one shape"):
        imitation_loss(torch.zeros(4), torch.zeros(4, 1), torch.ones(4))


def test_another_value_head_counts_by_its_share():
    """With share 0 the policy learns as if there were one head; with more it does not."""

    def learned(heads, share):
        learner, collector = parts(small(), heads)
        batch, _ = collector.collect(learner.policy)
        batch = bonus(batch, news=np.cos(np.arange(80, dtype=np.float32)).reshape(20, 4))
        learner.learn([batch], shares={} if share is None else {"news": share})
        return learner.policy.version

    alone = learned(("team",), None)
    assert learned(("team", "news"), 0.0) == alone
    assert learned(("team", "news"), 0.3) != alone
    with pytest.raises(ValueError, match="no share"):
        learned(("team",), 0.3)
