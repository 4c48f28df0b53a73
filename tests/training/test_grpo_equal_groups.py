"""Groups that are all equal: left out, or kept for entropy and distance; and the last bits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from agent_gym.training.grpo import EntropySchedule, GRPOConfig, GRPOTrainingService
from tests.training.grpo_samples import QUICK, learner, played, source


def trained(config, batches):
    own = learner()
    return own, GRPOTrainingService(config).train(own, batches)


def half_equal(update, own):
    """Give a batch in which the first of four groups differs and the others are all equal."""
    batch = source(update, own)
    first = np.array([key == batch.group_keys[0] for key in batch.group_keys])
    return replace(batch, returns=np.where(first, batch.returns, 1.0))


@pytest.mark.parametrize(("setting", "watched"), [("drop", 4), ("regularise", 16)])
def test_entropy_may_watch_groups_that_are_all_equal(setting, watched):
    """Else it watches only the prompts that still differ, and the policy closes on the others."""
    once = QUICK.model_copy(update={"updates": 1, "epochs": 1, "equal_groups": setting})
    batch = half_equal(0, learner())
    _, found = trained(once, lambda update, own: batch)
    with torch.no_grad():
        entropy = learner().evaluate(batch).entropy.numpy()
    assert found.groups.model_dump() == {"kept": 1, "dropped": 3, "refused": 0}
    assert len(found.trained_ids) == watched
    assert found.updates[0].entropy == pytest.approx(entropy[:watched][batch.mask[:watched]].mean())


def test_what_equal_groups_add_is_no_gain():
    """Their advantages are zero: without entropy and distance the loss is the same."""
    batch = half_equal(0, learner())
    tiny = QUICK.model_copy(
        update={"updates": 1, "epochs": 1, "entropy": EntropySchedule(start=1e-300)}
    )
    kept = tiny.model_copy(update={"equal_groups": "regularise"})
    (one, _), (two, _) = (trained(each, lambda update, own: batch) for each in (tiny, kept))
    for name, array in one.policy.weights.items():
        np.testing.assert_allclose(two.policy.weights[name], array, atol=1e-12)


def test_equal_rewards_change_nothing_even_if_equal_groups_are_kept():
    def equal(update, own):
        batch = source(update, own)
        return replace(batch, returns=np.ones(len(batch)))

    own, _ = trained(QUICK.model_copy(update={"equal_groups": "regularise"}), batches=equal)
    assert own.version == learner().version


def test_equal_groups_need_something_to_weigh():
    with pytest.raises(ValueError, match="equal groups change nothing"):
        GRPOConfig(equal_groups="regularise", entropy=EntropySchedule(start=0.0))


def test_the_bits_do_not_hang_on_the_threads_of_the_machine():
    before = torch.get_num_threads()
    try:
        versions = set()
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            own = learner()
            GRPOTrainingService(QUICK).train(
                own, lambda update, own: played(own, seed=update, groups=64, members=16)
            )
            versions.add(own.version)
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert len(versions) == 1
