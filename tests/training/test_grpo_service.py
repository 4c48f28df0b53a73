import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo import (
    AlarmLimits,
    CispoSurrogate,
    ClipSurrogate,
    EntropySchedule,
    Evaluation,
    GRPOConfig,
    GRPOTrainingService,
    ImportanceConfig,
    LossConfig,
    NeuralLearner,
)
from agent_gym.training.grpo.config import AdamConfig
from agent_gym.training.grpo.result import TrainingResult
from tests.training.grpo_samples import MARKET, QUICK, learner, played, source, without_log_probs


def trained(config=QUICK, own=None, batches=source, **more):
    own = own or learner()
    return own, GRPOTrainingService(config).train(own, batches, **more)


def test_the_same_run_gives_the_same_bits():
    one, first = trained()
    two, second = trained()
    assert one.version == two.version == first.model_after
    assert first == second
    assert first.changed
    assert first.model_before == learner().version


def test_the_first_ratio_is_exactly_one():
    _, result = trained(QUICK.model_copy(update={"updates": 1, "epochs": 1}))
    (only,) = result.updates
    assert only.ratio_max == pytest.approx(1.0, abs=1e-12)
    assert only.clip_share == 0.0
    assert only.approx_kl == pytest.approx(0.0, abs=1e-15)
    assert only.ess == pytest.approx(1.0, abs=1e-12)
    _, more = trained(QUICK.model_copy(update={"updates": 1, "epochs": 3}))
    assert more.updates[0].ratio_max > 1.001  # and not any more at the third


def test_equal_rewards_change_nothing_at_all():
    def equal(update, own):
        batch = source(update, own)
        return replace(batch, returns=np.full(len(batch), 0.1 + 0.2))

    own, result = trained(batches=equal)
    assert own.version == learner().version
    assert not result.changed
    assert [u.zero_share for u in result.updates] == [1.0] * 6
    assert result.groups.dropped == 24
    assert result.trained_ids == ()
    assert set(result.stops) == {"no group"}


class Killed(Exception):
    """Stands for the end of a process between two updates."""


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, at):
    def dies(update, own):
        if update == at:
            raise Killed
        return source(update, own)

    with pytest.raises(Killed):
        trained(batches=dies, folder=tmp_path / "run")
    asked = []

    def counted(update, own):
        asked.append(update)
        return source(update, own)

    own, result = trained(batches=counted, folder=tmp_path / "run")
    whole, expected = trained()
    assert asked == list(range(at, 6))
    assert own.version == whole.version
    assert result == expected


def test_resuming_without_the_memory_of_adam_would_be_noticed(tmp_path):
    """The control of the test above: the same weights with a fresh optimiser go elsewhere."""
    half = QUICK.model_copy(update={"updates": 3})
    own, _ = trained(half)
    fresh, _ = trained(half, own=own, batches=lambda u, p: source(u + 3, p))
    whole, _ = trained()
    assert fresh.version != whole.version


def test_a_finished_run_is_not_run_again(tmp_path):
    _, first = trained(folder=tmp_path / "run")
    own, second = trained(folder=tmp_path / "run", batches=None)
    assert second == first
    assert own.version == first.model_after


def test_a_run_with_other_settings_is_not_continued(tmp_path):
    trained(folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="other settings"):
        trained(QUICK.model_copy(update={"epochs": 3}), folder=tmp_path / "run")
    with pytest.raises(ConfigError, match="another policy"):
        trained(own=learner(1), folder=tmp_path / "run")


@pytest.mark.parametrize("name", ["state.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_refused(tmp_path, name):
    trained(folder=tmp_path / "run")
    path = tmp_path / "run" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged"):
        trained(folder=tmp_path / "run")


def test_the_result_survives_json():
    _, result = trained()
    text = json.dumps(result.model_dump(mode="json"), allow_nan=False)
    assert TrainingResult.model_validate(json.loads(text)) == result


SETTINGS = {
    "seed": {"minibatches": 2, "seed": 1},
    "updates": {"updates": 5},
    "epochs": {"epochs": 1},
    "minibatches": {"minibatches": 2},
    "credit": {"credit": "reward_to_go"},
    "discount": {"credit": "reward_to_go", "discount": 0.5},
    "scaling": {"scaling": "none"},
    "advantage_eps": {"advantage_eps": 5.0},
    "min_group_size": {"min_group_size": 5},
    "max_staleness": {"max_staleness": 0},
    "min_ess": {"min_ess": 1.0},
    "adam": {"adam": AdamConfig(learning_rate=0.01)},
    "adam.max_grad_norm": {"adam": AdamConfig(learning_rate=0.02, max_grad_norm=0.01)},
    "entropy": {"entropy": EntropySchedule(start=0.5, updates=6)},
    "entropy.end": {"entropy": EntropySchedule(start=0.05, end=0.5, updates=6)},
    "entropy.updates": {"entropy": EntropySchedule(start=0.05, updates=2)},
    "alarms.max_kl": {"alarms": AlarmLimits(max_kl=1e-9, max_clip_share=None)},
    "alarms.max_clip_share": {"alarms": AlarmLimits(max_kl=None, max_clip_share=1e-9)},
    "alarms.min_entropy": {
        "alarms": AlarmLimits(max_kl=None, max_clip_share=None, min_entropy=1.09)
    },
    "loss.low": {"loss": LossConfig(surrogate=ClipSurrogate(low=0.01))},
    "loss.high": {"loss": LossConfig(surrogate=ClipSurrogate(high=0.01))},
    "loss.dual": {"loss": LossConfig(surrogate=ClipSurrogate(dual=1.01))},
    "loss.cispo": {"loss": LossConfig(surrogate=CispoSurrogate())},
    "loss.cispo.maximum": {"loss": LossConfig(surrogate=CispoSurrogate(maximum=0.9))},
    "loss.level": {"loss": LossConfig(level="sequence")},
    "loss.aggregation": {"loss": LossConfig(aggregation="luspo")},
    "loss.length": {"loss": LossConfig(length=3)},
    "loss.importance.cap": {"loss": LossConfig(importance=ImportanceConfig(cap=1.0))},
    "loss.importance.level": {"loss": LossConfig(importance=ImportanceConfig(level="sequence"))},
    "loss.importance.band": {"loss": LossConfig(importance=ImportanceConfig(band=1.0001))},
}
FIRM = QUICK.model_copy(
    update={
        "epochs": 4,
        "min_ess": 0.0,
        "max_staleness": 9,
        "adam": AdamConfig(learning_rate=0.02, max_grad_norm=0.05),
    }
)


def every_other_is_old(update, own):
    """Give batches of which every other one was recorded by the first policy."""
    return source(update, own if update % 2 else learner())


@pytest.fixture(scope="module")
def versions():
    found = {"as it is": trained(FIRM, batches=every_other_is_old)[0].version}
    for name, change in SETTINGS.items():
        own, _ = trained(FIRM.model_copy(update=change), batches=every_other_is_old)
        found[name] = own.version
    return found


@pytest.mark.parametrize("name", list(SETTINGS))
def test_every_setting_changes_something(versions, name):
    compared = {"seed": "minibatches", "discount": "credit", "loss.cispo.maximum": "loss.cispo"}
    assert versions[name] != versions[compared.get(name, "as it is")]


def test_the_distance_to_a_reference_holds_the_policy_back():
    far, _ = trained()
    near, result = trained(
        QUICK.model_copy(update={"loss": LossConfig(kl=3.0)}), reference=learner()
    )
    start = learner().policy
    snapshots = MARKET.snapshots(Seeds(9), 50)

    def distance(policy):
        p, q = policy.log_probs(snapshots.seen), start.log_probs(snapshots.seen)
        return (np.exp(p) * (p - q)).sum(-1).mean()

    assert distance(near.policy) < 0.5 * distance(far.policy)
    assert result.updates[-1].reference_kl > 0
    sampled, _ = trained(
        QUICK.model_copy(update={"loss": LossConfig(kl=3.0)}), reference=Sampled(learner())
    )
    assert distance(sampled.policy) < 0.5 * distance(far.policy)
    assert sampled.version != near.version  # the estimate is not the exact distance


class Sampled:
    """A policy that can tell only the chance of what was done, like a language model's tokens."""

    def __init__(self, own):
        self._own = own
        self.version = own.version

    def named_parameters(self):
        return self._own.named_parameters()

    def evaluate(self, batch):
        return Evaluation(self._own.evaluate(batch).log_prob)


@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_a_reference_and_its_weight_belong_together(kl):
    config = QUICK.model_copy(update={"loss": LossConfig(kl=kl)})
    with pytest.raises(ConfigError, match="belong together"):
        trained(config, reference=None if kl else learner())


def test_alarms_stop_before_the_step_and_say_why():
    tight = AlarmLimits(max_kl=1e-6)
    _, result = trained(QUICK.model_copy(update={"alarms": tight, "epochs": 5}))
    for update in result.updates:
        assert update.steps == 1  # the first is at ratio 1, the second is already too far
        assert update.stopped.startswith("kl: ")
    assert result.stops == {"kl": 6}


def test_what_was_not_stepped_on_does_not_count_as_trained_on():
    never = AlarmLimits(min_entropy=9.0)
    own, result = trained(QUICK.model_copy(update={"alarms": never}))
    assert result.trained_ids == ()
    assert own.version == result.model_before
    early = AlarmLimits(max_kl=1e-9, max_clip_share=None)  # each minibatch moves the others
    config = QUICK.model_copy(update={"alarms": early, "minibatches": 4, "updates": 1})
    _, result = trained(config)
    assert len(result.trained_ids) == 4  # one minibatch of the four groups
    assert result.updates[0].steps == 1


def test_a_discount_needs_rewards_to_go():
    with pytest.raises(ValueError, match="discount changes nothing"):
        GRPOConfig(discount=0.9)


def test_without_log_probs_it_is_refused_and_others_are_offered():
    own = learner()
    batch = without_log_probs(played(own))
    with pytest.raises(DataError, match=r"SFT.*DPO"):
        GRPOTrainingService(QUICK).train_on(own, batch)
    assert own.version == learner().version


def test_stale_unknown_and_mixed_records_are_left_out_and_counted():
    own, old, older = learner(0), learner(1), learner(2)
    parts = [played(one, seed=i, groups=2) for i, one in enumerate((own, old, older, learner(3)))]
    keys = [f"{i}/{key}" for i, part in enumerate(parts) for key in part.group_keys]
    batch = joined(parts, keys)
    service = GRPOTrainingService(QUICK.model_copy(update={"min_ess": 0.0}))
    result = service.train_on(own, batch, lineage=(older.version, old.version))
    assert result.refused == {
        "recorded by an unknown policy": 8,
        "recorded by too old a policy": 8,
    }
    assert result.groups.model_dump() == {"kept": 4, "dropped": 0, "refused": 4}
    assert len(result.trained_ids) == 16
    mixed = joined(parts[:2], [key.partition("/")[2] for key in keys[:16]])
    result = service.train_on(learner(0), mixed, lineage=(old.version,))
    assert result.refused == {"policies mixed in one group": 16}
    assert not result.changed


def joined(parts, keys):
    first = parts[0]
    columns = ("observations", "actions", "rewards", "log_probs", "mask", "finished", "returns")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    return replace(
        first,
        ids=tuple(f"t{i}" for i in range(len(keys))),
        group_keys=tuple(keys),
        versions=tuple(version for part in parts for version in part.versions),
        **arrays,
    )


def test_what_was_cut_short_is_no_failure_and_small_groups_are_refused():
    own = learner()
    batch = played(own)
    finished = np.ones(16, dtype=bool)
    finished[[0, 1, 2, 4]] = False  # the first group keeps one, the second three
    worst = np.where(finished, batch.returns, -1e6)  # would dominate if it were scored
    result = GRPOTrainingService(QUICK).train_on(
        own, replace(batch, finished=finished, returns=worst)
    )
    assert result.refused == {"cut short": 4, "group too small": 1}
    assert result.groups.model_dump() == {"kept": 3, "dropped": 0, "refused": 1}
    assert set(result.trained_ids) == {batch.ids[i] for i in range(5, 16)}
    assert abs(result.updates[0].loss) < 1.0


def test_a_batch_of_another_policy_is_refused_when_too_little_of_it_counts():
    own, other = learner(0), sharp(learner(1))
    batch = played(other)
    config = QUICK.model_copy(update={"min_ess": 0.9})
    result = GRPOTrainingService(config).train_on(own, batch, lineage=(other.version,))
    assert result.updates[0].ess < 0.9
    assert result.stops == {"effective sample": 1}
    assert not result.changed
    assert result.trained_ids == ()


def sharp(own):
    weights = own.policy.weights
    return NeuralLearner(
        own.policy.with_weights({"layers.1.weight": weights["layers.1.weight"] * 200})
    )


def test_a_judges_score_takes_the_place_of_the_return():
    own = learner()
    batch = replace(played(own), scored=True)
    liked = batch.actions.sum(axis=(1, 2))  # a judge that likes to be long
    config = QUICK.model_copy(update={"epochs": 30})
    GRPOTrainingService(config).train_on(own, replace(batch, returns=liked))
    before = np.exp(learner().policy.log_probs(batch.observations))[..., 2].mean()
    after = np.exp(own.policy.log_probs(batch.observations))[..., 2].mean()
    assert before + 0.03 < after < 1.25 * before  # up, as far as the clip lets it
    to_go = QUICK.model_copy(update={"credit": "reward_to_go"})
    with pytest.raises(ConfigError, match="one score"):
        GRPOTrainingService(to_go).train_on(learner(), batch)


def test_training_leaves_torchs_global_generator_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    trained(QUICK.model_copy(update={"minibatches": 2}))
    assert torch.equal(before, torch.get_rng_state())
