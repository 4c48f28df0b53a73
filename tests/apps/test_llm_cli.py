from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent_gym.agents.llm.prompts import PromptConfig
from agent_gym.apps.cli import benchmark, llm
from agent_gym.core.errors import ConfigError
from tests.agents.llm_samples import policy, snapshot_path, tiny_folder


def test_prepare_tells_where_the_model_lies_and_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "prepare_smollm2", tiny_folder)
    found = json.loads(CliRunner().invoke(llm.app, ["prepare", "--json"]).stdout)
    assert Path(found["folder"]) == tiny_folder()
    assert len(found["hash"]) == 64
    shown = CliRunner().invoke(llm.app, ["prepare"])
    assert shown.exit_code == 0
    assert found["hash"][:20] in shown.stdout.replace("\n", "")


def test_a_policy_plays_snapshots_from_the_command_line(tmp_path: Path) -> None:
    policy(prompt=PromptConfig()).save(tmp_path / "policy")
    words = ["run", str(snapshot_path()), "--agent", f"llm:model={tmp_path / 'policy'}"]
    limits = ["--workers", "1", "--timeout-s", "250", "--json"]
    found = json.loads(CliRunner().invoke(benchmark.app, [*words, "--text", *limits]).stdout)
    first = next(row for row in found["rows"] if row["player"].startswith("llm"))
    assert (first["status"], first["steps"]) == ("ok", 20)
    blind = json.loads(CliRunner().invoke(benchmark.app, [*words, *limits]).stdout)
    first = next(row for row in blind["rows"] if row["player"].startswith("llm"))
    assert first["status"] == "error"
    assert "Set text to true" in first["error"]["remedy"]


def test_a_grid_has_no_choice_here() -> None:
    with pytest.raises(ConfigError, match="grid"):
        CliRunner().invoke(
            benchmark.app,
            ["run", str(snapshot_path()), "--agent", "benchmark/headline:enter=0.1/0.2"],
            catch_exceptions=False,
        )
