"""Loss, gradients and advantages against TRL on the same batch.

TRL's are private methods of an exact version; if they look different the tests skip and say so.
"""

import inspect
import os

import numpy as np
import pytest
import torch

os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", WANDB_DISABLED="true")
trl = pytest.importorskip("trl")
transformers = pytest.importorskip("transformers")
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from tokenizers.models import WordLevel  # noqa: E402
from tokenizers.pre_tokenizers import Whitespace  # noqa: E402

from agent_gym.core.seeds import Seeds  # noqa: E402
from agent_gym.training.grpo.advantages import group_advantages  # noqa: E402
from agent_gym.training.grpo.loss import LossInputs, categorical_entropy, policy_loss  # noqa: E402
from agent_gym.training.grpo.loss_config import (  # noqa: E402
    CispoSurrogate,
    ClipSurrogate,
    LossConfig,
)

torch.set_num_threads(1)
PINNED = "1.16."
WORDS, PROMPT, LENGTH, GROUPS, MEMBERS = 32, 4, 6, 2, 4
CONFIGURED_LENGTH = 8
LOW, HIGH, CISPO_MAX, DELTA = 0.2, 0.28, 5.0, 3.0
TRL_EPS = 1e-4
SIGNATURES = {
    "_compute_loss": ["self", "model", "inputs"],
    "_get_per_token_logps_and_entropies": [
        "self",
        "model",
        "input_ids",
        "attention_mask",
        "logits_to_keep",
    ],
    "_generate_and_score_completions": ["self", "inputs"],
}


def require_known_signatures():
    if not trl.__version__.startswith(PINNED):
        pytest.skip(f"compared with trl {PINNED}*, found {trl.__version__}")
    for name, wanted in SIGNATURES.items():
        method = getattr(trl.GRPOTrainer, name, None)
        found = None if method is None else list(inspect.signature(method).parameters)
        if found is None or found[: len(wanted)] != wanted:
            pytest.skip(f"trl {trl.__version__}: {name} takes {found}, known is {wanted}")


def tokenizer():
    words = {"<pad>": 0, "<eos>": 1} | {f"w{i}": i for i in range(2, WORDS)}
    plain = Tokenizer(WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )


def tiny_llama():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config)


class Recorded:
    """Completions that were recorded: ids and rewards, given back in place of generation."""

    def __init__(self):
        rng = Seeds(5).child("trl").rng()
        n = GROUPS * MEMBERS
        self.lengths = rng.integers(1, LENGTH + 1, n)
        self.prompts = rng.integers(2, WORDS, (GROUPS, PROMPT))
        self.completions = rng.integers(2, WORDS, (n, LENGTH))
        self.rewards = rng.normal(size=n).round(2)

    def rollout(self, prompts, trainer):
        ids = [self.completions[i, :k].tolist() for i, k in enumerate(self.lengths)]
        repeated = [self.prompts[i // MEMBERS].tolist() for i in range(len(ids))]
        return {
            "prompt_ids": repeated,
            "completion_ids": ids,
            "logprobs": [[-1.0] * len(one) for one in ids],
        }

    def reward(self, completions, **_):
        return self.rewards[: len(completions)].tolist()


@pytest.fixture(scope="module")
def recorded():
    return Recorded()


@pytest.fixture(scope="module")
def make_trainer(recorded, tmp_path_factory):
    require_known_signatures()
    folder = tmp_path_factory.mktemp("trl")
    words = tokenizer()
    data = Dataset.from_dict({"prompt": [words.decode(row) for row in recorded.prompts]})

    def make(**settings):
        args = trl.GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=GROUPS * MEMBERS,
            num_generations=MEMBERS,
            max_completion_length=CONFIGURED_LENGTH,
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            temperature=1.0,
            disable_tqdm=True,
            **settings,
        )
        trainer = trl.GRPOTrainer(
            model=tiny_llama(),
            reward_funcs=recorded.reward,
            args=args,
            train_dataset=data,
            processing_class=words,
            rollout_func=recorded.rollout,
        )
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        return trainer

    return make


@pytest.fixture(scope="module")
def trainer(make_trainer):
    return make_trainer(epsilon=LOW, epsilon_high=HIGH)


@pytest.fixture(scope="module")
def tensors(recorded, trainer):
    """Return the batch as TRL takes it; old log-probabilities are far enough to be clipped."""
    mask = torch.tensor(np.arange(LENGTH) < recorded.lengths[:, None])
    batch = {
        "prompt_ids": torch.tensor(np.repeat(recorded.prompts, MEMBERS, axis=0)),
        "prompt_mask": torch.ones(GROUPS * MEMBERS, PROMPT, dtype=torch.long),
        "completion_ids": torch.tensor(recorded.completions) * mask,
        "completion_mask": mask.long(),
        "num_items_in_batch": mask.sum(),
    }
    with torch.no_grad():
        now, _ = log_probs(trainer.model, batch)
    rng = Seeds(6).child("trl").rng()

    def near(size):
        return now + torch.tensor(size * rng.normal(size=now.shape), dtype=now.dtype)

    batch["old_per_token_logps"] = near(0.35)
    batch["ref_per_token_logps"] = near(0.2)
    return batch


def log_probs(model, batch):
    """Return the log-probability of each completion token and its entropy, by our own sums."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    seen = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    logits = model(input_ids=ids, attention_mask=seen).logits[:, PROMPT - 1 : -1]
    each = torch.log_softmax(logits, dim=-1)
    own = each.gather(-1, batch["completion_ids"].unsqueeze(-1)).squeeze(-1)
    return own, categorical_entropy(each)


def own_loss(model, batch, config, coefficient=0.0):
    current, entropy = log_probs(model, batch)
    inputs = LossInputs(
        current=current,
        behaviour=batch["old_per_token_logps"],
        reference=batch["ref_per_token_logps"],
        entropy=entropy,
        advantages=batch["advantages"],
        mask=batch["completion_mask"],
        n_items=float(batch["num_items_in_batch"]),
    )
    return policy_loss(inputs, config, coefficient).loss


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten().clone() for p in model.parameters()])


def difference(trainer, batch, config, coefficient=0.0):
    model = trainer.model
    theirs = trainer._compute_loss(model, batch)
    their_slope = gradients(model, theirs)
    ours = own_loss(model, batch, config, coefficient)
    our_slope = gradients(model, ours)
    assert float(their_slope.abs().max()) > 1e-3  # there is something to compare
    return max(
        abs(float(theirs.detach()) - float(ours.detach())),
        float((their_slope - our_slope).abs().max()),
    )


def prepared(trainer, tensors, recorded, scaling, **settings):
    for name, value in settings.items():
        setattr(trainer, name, value)
    groups = np.repeat(np.arange(GROUPS), MEMBERS)
    found = group_advantages(recorded.rewards, groups, scaling, TRL_EPS)
    return tensors | {"advantages": torch.tensor(found.values, dtype=torch.float32)}


@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("scaling", ["std", "none", "batch"])
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("kind", ["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "luspo"])
def test_loss_and_gradients_are_those_of_trl(
    trainer, tensors, recorded, kind, level, scaling, beta
):
    cispo = kind == "cispo"
    batch = prepared(
        trainer,
        tensors,
        recorded,
        scaling,
        loss_type=kind,
        importance_sampling_level=level,
        beta=beta,
        epsilon_high=CISPO_MAX if cispo else HIGH,
    )
    config = LossConfig(
        surrogate=CispoSurrogate(maximum=CISPO_MAX)
        if cispo
        else ClipSurrogate(low=LOW, high=HIGH, dual=None),
        aggregation="dapo" if cispo else kind,
        length=CONFIGURED_LENGTH if kind == "dr_grpo" else None,
        level=level,
        kl=beta,
    )
    assert difference(trainer, batch, config) < 1e-5


@pytest.fixture
def plain_trainer(trainer):
    trainer.loss_type, trainer.importance_sampling_level = "dapo", "token"
    trainer.beta, trainer.epsilon_high = 0.0, HIGH
    yield trainer
    trainer.args.delta = None
    trainer._entropy_bonus_enabled, trainer.entropy_coef = False, 0.0


def clip_config(**more):
    return LossConfig(
        surrogate=ClipSurrogate(low=LOW, high=HIGH, dual=None), aggregation="dapo", **more
    )


def test_the_dual_clip_is_the_delta_of_trl(plain_trainer, tensors, recorded):
    batch = prepared(plain_trainer, tensors, recorded, "std")
    old = batch["old_per_token_logps"].clone()
    old[::2] -= 1.5  # ratios above 3, so that it acts
    batch = batch | {"old_per_token_logps": old}
    plain_trainer.args.delta = DELTA
    dual = LossConfig(surrogate=ClipSurrogate(low=LOW, high=HIGH, dual=DELTA), aggregation="dapo")
    assert difference(plain_trainer, batch, dual) < 1e-5
    assert difference(plain_trainer, batch, clip_config()) > 1e-3


def test_the_entropy_bonus_is_that_of_trl(plain_trainer, tensors, recorded):
    batch = prepared(plain_trainer, tensors, recorded, "std")
    plain_trainer._entropy_bonus_enabled, plain_trainer.entropy_coef = True, 0.1
    assert difference(plain_trainer, batch, clip_config(), coefficient=0.1) < 1e-5
    assert difference(plain_trainer, batch, clip_config(), coefficient=0.0) > 1e-3


def test_the_comparison_sees_a_distance_without_the_ratio(plain_trainer, tensors, recorded):
    batch = prepared(plain_trainer, tensors, recorded, "std", beta=0.04)
    assert difference(plain_trainer, batch, clip_config(kl=0.04)) < 1e-5
    wrong = clip_config(kl=0.04, kl_times_ratio=False)
    assert difference(plain_trainer, batch, wrong) > 1e-5


def test_log_probs_are_those_of_trl(trainer, tensors):
    ids = torch.cat([tensors["prompt_ids"], tensors["completion_ids"]], dim=1)
    seen = torch.cat([tensors["prompt_mask"], tensors["completion_mask"]], dim=1)
    with torch.no_grad():
        theirs = trainer._get_per_token_logps_and_entropies(trainer.model, ids, seen, LENGTH)[0]
        ours, _ = log_probs(trainer.model, tensors)
    both = tensors["completion_mask"]  # theirs are 0 in the padding
    assert float(((theirs - ours) * both).abs().max()) < 1e-5


@pytest.mark.parametrize(
    ("scale_rewards", "scaling"), [("group", "std"), ("none", "none"), ("batch", "batch")]
)
def test_advantages_are_those_of_trl(make_trainer, recorded, scale_rewards, scaling):
    trainer = make_trainer(scale_rewards=scale_rewards)
    asked = [
        {"prompt": trainer.processing_class.decode(recorded.prompts[i // MEMBERS])}
        for i in range(GROUPS * MEMBERS)
    ]
    theirs = trainer._generate_and_score_completions(asked)["advantages"]
    groups = np.repeat(np.arange(GROUPS), MEMBERS)
    ours = group_advantages(recorded.rewards, groups, scaling, TRL_EPS).values
    assert np.abs(theirs.numpy() - ours).max() < 1e-5
    population = (recorded.rewards - recorded.rewards.mean()) / recorded.rewards.std()
    assert np.abs(theirs.numpy() - population).max() > 1e-2
