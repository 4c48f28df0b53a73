"""A causal language model from a folder: its weights are raw tensors, its hash is its name.

Only folders whose weights are safetensors are opened, code that lies beside them is never run, and
pickled files are refused even when nobody would read them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer

from agent_gym.agents.llm.smollm2 import SMOLLM2, prepare_smollm2
from agent_gym.agents.sb3.folder import settled
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import to_json

PICKLED = {".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"}
CODE = {".py", ".so"}
STAMPED = ("config.json", "generation_config.json")
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A model, its tokenizer, and the hash of the files they came from."""

    name: str
    hash: str
    network: Any
    tokenizer: Any
    device: torch.device

    def token_ids(self, text: str) -> list[int]:
        """Return a text as tokens, with whatever the tokenizer puts before a text."""
        return list(self.tokenizer(text)["input_ids"])

    def first_tokens(self, words: Sequence[str]) -> list[int]:
        """Return the first token of each answer, as it follows a prompt.

        The first token decides: what follows it is then forced, with a chance of one.
        """
        ids = [self.tokenizer(f" {word}", add_special_tokens=False)["input_ids"] for word in words]
        first = [one[0] if one else None for one in ids]
        if None in first or len(set(first)) != len(first):
            raise ConfigError(
                "two answers begin with the same token, so one forward pass cannot tell them apart",
                where=self.name,
                found=dict(zip(words, ids, strict=True)),
                remedy="Choose answers that begin differently",
            )
        return [int(one) for one in first if one is not None]


def base_folder(name: str) -> Path:
    """Return the folder of a model: a path, the wheel's SmolLM2, or what the hub's cache has."""
    if name == SMOLLM2:
        return prepare_smollm2()
    if Path(name).is_dir():
        return settled(Path(name))
    offline = os.environ.get("HF_HUB_OFFLINE", "1") != "0"
    try:
        return Path(
            snapshot_download(
                name,
                local_files_only=offline,
                allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"],
            )
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        raise ConfigError(
            "there is no such language model here",
            where="model",
            found=name,
            expected=f"a folder, {SMOLLM2}, or a model of the hub that was fetched before",
            remedy="To fetch it from the hub set HF_HUB_OFFLINE=0" if offline else None,
        ) from error


def load_base(name: str, device: str = "cpu", *, expected_hash: str | None = None) -> BaseModel:
    """Read a model; the folder's hash goes into the version of every policy on it.

    A folder with another hash than the expected one is not opened at all.
    """
    folder = base_folder(name)
    found = base_hash(folder)
    if expected_hash is not None and found != expected_hash:
        raise DataError(
            "the policy was made on another base model",
            where=str(folder),
            found=found,
            expected=expected_hash,
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise DataError("this is no language model", where=str(folder), found=error) from error
    network.to(device)
    network.train(mode=False)  # no dropout: the first ratio of an update is exactly 1
    network.requires_grad_(False)
    return BaseModel(name, found, network, tokenizer, torch.device(device))


def base_hash(folder: Path) -> str:
    """Return the hash of every file of a model; a folder with pickles or code is refused."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if bad := [path.name for path in paths if path.suffix.lower() in PICKLED | CODE]:
        raise DataError(
            "a model's folder must hold raw tensors and settings alone",
            where=str(folder),
            found=", ".join(bad[:3]),
            expected="*.safetensors and *.json",
            remedy="Convert the weights to safetensors and leave the rest out",
        )
    if not any(path.suffix == ".safetensors" for path in paths):
        raise DataError("no weights lie here", where=str(folder), expected="*.safetensors")
    lines = "".join(f"{path.relative_to(folder)} {_sha256(path)}\n" for path in paths)
    return sha256(lines.encode()).hexdigest()


def _sha256(path: Path) -> str:
    digest = sha256()
    if path.name in STAMPED:
        # The library stamps its own version into these; it changes nothing about the model.
        with path.open(encoding="utf-8") as file:
            settings = {k: v for k, v in json.load(file).items() if k != "transformers_version"}
        return sha256(to_json(settings).encode()).hexdigest()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
