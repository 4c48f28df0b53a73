from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from agent_gym.agents.llm.answers import Answers
from agent_gym.agents.llm.base import base_hash, load_base
from agent_gym.agents.llm.policy import LanguagePolicy
from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from tests.agents.llm_samples import LORA, TEXTS, WHOLE, moved, policy, tiny_folder

PROMPTS = [f"{text} BUY, SELL or HOLD:" for text in TEXTS]


def read(own: LanguagePolicy, prompts: list[str]) -> np.ndarray:
    with torch.no_grad():
        return own.log_probs(prompts).numpy()


def test_chances_are_those_of_a_model_that_may_say_nothing_else() -> None:
    own = moved(policy())
    network, tokenizer = own.base.network, own.base.tokenizer
    ids = [tokenizer(word)["input_ids"][0] for word in own.answers.words]
    found = np.exp(read(own, PROMPTS))
    for prompt, chances in zip(PROMPTS, found, strict=True):
        tokens = torch.tensor([tokenizer(prompt)["input_ids"]])
        with torch.no_grad():
            whole = torch.softmax(network(input_ids=tokens).logits[0, -1].double(), dim=-1)
        expected = (whole[ids] / whole[ids].sum()).numpy()
        np.testing.assert_allclose(chances, expected, atol=1e-5)
    drawn = torch.tensor([tokenizer(PROMPTS[0])["input_ids"]]).repeat(2_000, 1)
    torch.manual_seed(0)
    said = network.generate(
        drawn,
        attention_mask=torch.ones_like(drawn),
        max_new_tokens=1,
        do_sample=True,
        top_k=0,
        top_p=1.0,
        prefix_allowed_tokens_fn=lambda _batch, _ids: ids,
    )[:, -1]
    shares = [(said == one).float().mean().item() for one in ids]
    np.testing.assert_allclose(shares, found[0], atol=0.04)


@pytest.mark.parametrize("adapter", [LORA, WHOLE])
def test_padding_and_neighbours_change_nothing(adapter: object) -> None:
    own = moved(policy(adapter))  # type: ignore[arg-type]
    together = read(own, [*PROMPTS, "BUY", f"{PROMPTS[0]} {PROMPTS[1]} {PROMPTS[2]}"])
    alone = np.concatenate([read(own, [one]) for one in PROMPTS])
    np.testing.assert_allclose(together[: len(PROMPTS)], alone, atol=1e-4)


def test_a_fresh_adapter_is_the_model_itself() -> None:
    assert np.array_equal(read(policy(seed=1), PROMPTS), read(policy(seed=2), PROMPTS))
    assert not np.allclose(read(moved(policy()), PROMPTS), read(policy(), PROMPTS), atol=1e-3)


def test_what_the_lower_layers_made_is_kept_and_right() -> None:
    own = policy()
    first = read(own, PROMPTS)
    moved(own)
    assert not np.allclose(read(own, PROMPTS), first, atol=1e-3)
    for prompt in PROMPTS:
        own._reader.check(prompt)  # the whole model, read at once, says the same


def test_all_that_decides_is_in_the_version() -> None:
    own = policy()
    versions = {
        own.version,
        moved(policy()).version,
        policy(temperature=2.0).version,
        policy(longest_prompt=64).version,
        policy(prompt=PromptConfig(question="{text} Well?", ask="always")).version,
        policy(answers=Answers(words=("HOLD", "SELL", "BUY"))).version,
        policy(adapter=LORA.model_copy(update={"alpha": 4.0})).version,
    }
    assert len(versions) == 7
    assert own.version == policy().version
    before = own.version
    own.calibrate(PROMPTS)
    assert own.version != before


def test_calibration_takes_the_mean_preference_off() -> None:
    own = policy()
    logits = own._reader.logits(PROMPTS).mean(0)
    own.calibrate(PROMPTS)
    np.testing.assert_allclose(own.bias, logits.detach().numpy(), atol=1e-6)
    centred = own._reader.logits(PROMPTS).detach().numpy() - own.bias
    np.testing.assert_allclose(centred.mean(axis=0), 0.0, atol=1e-6)


def test_temperature_flattens() -> None:
    def spread(own: LanguagePolicy) -> float:
        return float(np.ptp(read(own, PROMPTS), axis=1).mean())

    assert spread(policy(temperature=4.0)) == pytest.approx(spread(policy()) / 4, rel=1e-6)


@pytest.mark.parametrize("adapter", [LORA, WHOLE])
def test_a_policy_comes_back_as_it_was_saved(tmp_path: Path, adapter: object) -> None:
    own = moved(policy(adapter))  # type: ignore[arg-type]
    own.calibrate(PROMPTS)
    manifest = own.save(tmp_path / "policy")
    again = LanguagePolicy.load(tmp_path / "policy")
    assert again.version == own.version == manifest.model_hash
    assert np.array_equal(read(again, PROMPTS), read(own, PROMPTS))
    if adapter is LORA:
        assert (tmp_path / "policy" / "policy.safetensors").stat().st_size < 100_000


def test_a_changed_or_additional_file_is_refused(tmp_path: Path) -> None:
    own = policy()
    own.save(tmp_path / "policy")
    path = tmp_path / "policy" / "policy.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged"):
        LanguagePolicy.load(tmp_path / "policy")
    own.save(tmp_path / "policy")
    (tmp_path / "policy" / "adapter.bin").write_bytes(b"x")
    with pytest.raises(DataError, match="not those of its manifest"):
        LanguagePolicy.load(tmp_path / "policy")


def test_a_policy_stands_on_its_own_base_alone(tmp_path: Path) -> None:
    own = policy()
    own.save(tmp_path / "policy")
    shutil.copytree(tiny_folder(), tmp_path / "elsewhere")
    moved_base = LanguagePolicy.load(tmp_path / "policy", base=str(tmp_path / "elsewhere"))
    assert moved_base.version == own.version  # where it lies is no part of what it is
    with pytest.raises(DataError, match="another base model"):
        LanguagePolicy.load(tmp_path / "policy", base=str(tiny_folder(1)))


def test_weights_of_another_shape_or_not_numbers_are_refused() -> None:
    own = policy()
    weights = {name: one.detach() for name, one in own.parameters.items()}
    good = weights | {"bias": torch.zeros(3)}
    base = load_base(str(tiny_folder()))
    LanguagePolicy(base, own.config, Seeds(0), good)
    name = next(iter(weights))
    for bad in (
        weights,
        good | {"more": torch.zeros(1)},
        good | {name: weights[name][:1]},
        good | {name: torch.full_like(weights[name], float("nan"))},
    ):
        with pytest.raises(DataError):
            LanguagePolicy(load_base(str(tiny_folder())), own.config, Seeds(0), bad)


def test_answers_that_begin_alike_are_refused() -> None:
    with pytest.raises(ConfigError, match="same token"):
        policy(answers=Answers(words=("FOO", "BAR"), levels=(0.0, 1.0)))


def test_more_layers_than_the_model_has_are_refused() -> None:
    with pytest.raises(ConfigError, match="fewer layers"):
        policy(LORA.model_copy(update={"layers": 3}))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "modeling.py", "sub/x.pkl"])
def test_a_base_with_pickles_or_code_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "base"
    shutil.copytree(tiny_folder(), folder)
    assert load_base(str(folder)).hash == load_base(str(tiny_folder())).hash
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"")
    with pytest.raises(DataError, match="raw tensors"):
        load_base(str(folder))


def test_the_hash_of_a_base_is_that_of_what_decides(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    shutil.copytree(tiny_folder(), folder)
    first = base_hash(folder)
    config = json.loads((folder / "config.json").read_text())
    config["transformers_version"] = "0.0.1"
    (folder / "config.json").write_text(json.dumps(config))
    assert base_hash(folder) == first
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(bytes(content))
    assert base_hash(folder) != first


def test_a_model_that_is_not_here_is_not_fetched() -> None:
    with pytest.raises(ConfigError, match="no such language model"):
        load_base("nobody/has-this-model")


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no weights"):
        load_base(str(tmp_path))
