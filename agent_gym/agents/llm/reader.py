"""The forward pass: what a model makes of a prompt, at its last token, for a few words alone.

The frozen lower layers read a prompt once; what they made of it is kept, and only the layers that
an adapter changes read it again. Each prompt goes through the lower layers by itself, so that what
is kept has the same bits whatever else was asked at that time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from agent_gym.agents.llm.base import BaseModel
from agent_gym.core.errors import ConfigError

MOST_KEPT_BYTES = 1 << 29
SPLIT_WITHIN = 1e-3


@dataclass(slots=True)
class Reader:
    """Turns prompts into one number for each answer.

    Args:
        base: The model, with its adapter in place.
        answer_ids: The first token of each answer.
        cut: How many of the lower layers are frozen; 0 keeps nothing.
        longest: Most tokens of a prompt.
    """

    base: BaseModel
    answer_ids: list[int]
    cut: int
    longest: int
    _kept: OrderedDict[tuple[int, ...], Tensor] = field(default_factory=OrderedDict)
    _kept_bytes: int = 0
    _turn: Any = field(default_factory=Lock)

    def logits(self, prompts: Sequence[str]) -> Tensor:
        """Return ``[prompts, answers]``, with a gradient where it is asked for."""
        tokens = [self._tokens(prompt) for prompt in prompts]
        if self.cut:
            with self._turn:  # while one reads in parts, the model is not whole for another
                return self._head(self._upper([self._lower(one) for one in tokens]))
        width = max(len(one) for one in tokens)
        rows = [torch.tensor(one) for one in tokens]
        ids = torch.stack([_left(row, width) for row in rows]).to(self.base.device)
        return self._head(self._decode({"input_ids": ids}, [len(one) for one in tokens], width))

    def plain_logits(self, prompt: str) -> Tensor:
        """Return what the model as a whole says; slow, and what the split must agree with."""
        ids = torch.tensor([self._tokens(prompt)], device=self.base.device)
        with torch.no_grad():
            found: Tensor = self.base.network(input_ids=ids, use_cache=False).logits
        return found[:, -1, self.answer_ids]

    def check(self, prompt: str) -> None:
        """Refuse a model that says something else when it is read in two parts."""
        with torch.no_grad():
            away = float((self.logits([prompt]) - self.plain_logits(prompt)).abs().max())
        if not away <= SPLIT_WITHIN:
            raise ConfigError(
                "this model cannot be read in two parts",
                where=self.base.name,
                found=f"a difference of {away:.3g}",
                expected=f"at most {SPLIT_WITHIN:g}",
                remedy="Use a model built like Llama, Mistral or Qwen",
            )

    def _tokens(self, prompt: str) -> list[int]:
        found = self.base.token_ids(prompt)
        if not found:
            raise ConfigError("a prompt without a token", where=self.base.name, found=prompt)
        return found[-self.longest :]  # the question stands at the end

    def _lower(self, tokens: list[int]) -> Tensor:
        key = tuple(tokens)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        core = self.base.network.get_decoder()
        ids = torch.tensor([tokens], device=self.base.device)
        with torch.no_grad(), _parts(core, slice(0, self.cut), whole=False):
            made: Tensor = core(input_ids=ids, use_cache=False).last_hidden_state[0]
        self._kept[key] = made
        self._kept_bytes += made.nbytes
        while self._kept_bytes > MOST_KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popitem(last=False)[1].nbytes
        return made

    def _upper(self, lower: list[Tensor]) -> Tensor:
        lengths = [len(one) for one in lower]
        width = max(lengths)
        rows = torch.stack([_left(one, width) for one in lower])
        core = self.base.network.get_decoder()
        with _parts(core, slice(self.cut, None), whole=True):
            return self._decode({"inputs_embeds": rows}, lengths, width)

    def _decode(self, inputs: dict[str, Tensor], lengths: list[int], width: int) -> Tensor:
        starts = width - torch.tensor(lengths, device=self.base.device)
        places = torch.arange(width, device=self.base.device) - starts[:, None]
        found: Tensor = self.base.network.get_decoder()(
            **inputs,
            attention_mask=(places >= 0).long(),
            position_ids=places.clamp(min=0),
            use_cache=False,
        ).last_hidden_state[:, -1]
        return found

    def _head(self, last: Tensor) -> Tensor:
        rows: Tensor = self.base.network.get_output_embeddings().weight[self.answer_ids]
        return last @ rows.T


def _left(row: Tensor, width: int) -> Tensor:
    """Pad at the beginning: the last token of every prompt then stands in one column."""
    filled = row.new_zeros((width, *row.shape[1:]))
    filled[width - len(row) :] = row
    return filled


@contextmanager
def _parts(core: Any, part: slice, *, whole: bool) -> Iterator[None]:
    """Let the decoder be some of its layers for a while; the lower part has no last norm."""
    layers, norm = core.layers, core.norm
    core.layers = layers[part]
    if not whole:
        core.norm = torch.nn.Identity()
    try:
        yield
    finally:
        core.layers, core.norm = layers, norm
