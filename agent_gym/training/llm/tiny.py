"""A language model of 0.4 million numbers, from nothing: for tests and examples, in seconds.

It is a folder like that of any other model, and goes through the same code. It knows the words of
the text market and no others; a name or a number is to it "some word".
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from agent_gym.agents.sb3.folder import atomic_folder
from agent_gym.core.seeds import Seeds
from agent_gym.training.llm.notes import PROMPT, WORDINGS

UNKNOWN = "<word>"
WIDTH, LAYERS, HEADS, INNER = 128, 2, 4, 344
FIRST_SD = 0.02
_MODEL: Any = LlamaForCausalLM
_TOKENIZER: Any = PreTrainedTokenizerFast


def make_tiny(folder: Path, seeds: Seeds) -> Path:
    """Write a tiny model with drawn weights into a folder of its own."""
    words = vocabulary()
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=128,
        tie_word_embeddings=False,
    )
    network = _MODEL(config)
    _draw(network, seeds)
    with atomic_folder(folder) as place:
        network.save_pretrained(place)
        _TOKENIZER(
            tokenizer_object=tokenizer, unk_token=UNKNOWN, pad_token=UNKNOWN
        ).save_pretrained(place)
    return folder


def vocabulary() -> list[str]:
    """Return every word of the text market, in a fixed order; tickers are left out."""
    phrases = [phrase for phrases in WORDINGS.values() for phrase in phrases]
    text = " ".join([*phrases, PROMPT.question, "Price"])
    found = re.findall(r"\w+|[^\w\s]+", re.sub(r"\{\w+\}", " ", text))
    return [UNKNOWN, *sorted({*found, ".", ":", ","})]


def _draw(network: Any, seeds: Seeds) -> None:
    with torch.no_grad():
        for name, parameter in sorted(network.named_parameters()):
            if parameter.dim() < 2:
                continue  # scales begin at one
            sd = 1.0 / math.sqrt(parameter.shape[1]) if "embed" not in name else FIRST_SD
            drawn = seeds.child("tiny", name).rng().standard_normal(parameter.shape) * sd
            parameter.copy_(torch.from_numpy(drawn.astype(np.float32)))
