import json

import pytest
from typer.testing import CliRunner

from agent_gym.apps.cli.promotion import app as promotion_app
from agent_gym.apps.cli.registry import app
from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import RefusedDeployment
from tests.pipeline.registry_samples import Site, artifact


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_GYM_DATABASE", f"sqlite:///{tmp_path}/db/trajectories.db")
    made = Site(tmp_path)
    yield made
    made.close()


def said(*words, code=0):
    result = CliRunner().invoke(app, [*words, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code
    return json.loads(result.stdout)


def test_a_loop_elsewhere_is_named_by_its_folder(site, tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_GYM_DATABASE")
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    with LoopFolder(tmp_path / "loop").opened(AutomationConfig()) as stages:
        made = stages.registry.add(artifact(tmp_path, "elsewhere")).model_hash
    assert said("list")["models"] == []
    (found,) = said("list", "--folder", str(tmp_path / "loop"))["models"]
    assert found["model_hash"] == made
    assert said("verify", "--folder", str(tmp_path / "loop"))["checked"] == 1


def test_a_model_goes_live_and_back_by_the_command_line(site):
    old, new = site.add("old"), site.add("new")
    assert said("promote", "v1.0.0", "--first")["champion"] == old
    with pytest.raises(RefusedDeployment, match="has not judged"):
        said("promote", "v1.0.1")
    site.judge(new)
    assert said("promote", "v1.0.1", "--percent", "25")["rollout"]["stage"] == "shadow"
    with pytest.raises(RefusedDeployment, match="too little was seen"):
        said("promote", "v1.0.1")
    for i in range(10):
        site.service.observe(f"shadow-{i}", 0.0, 0.01)
    found = said("promote", new[:10], "--to", "canary")["rollout"]
    assert (found["stage"], found["percent"]) == ("canary", 25.0)
    for i in range(10):
        site.service.observe(f"canary-{i}", 0.0, 0.01)
    state = said("promote", "v1.0.1")
    assert (state["champion"], state["previous"]) == (new, old)
    listed = said("list")
    assert [model["version"] for model in listed["models"]] == ["v1.0.0", "v1.0.1"]
    state = said("rollback", "--reason", "drill")
    assert (state["champion"], state["rollout"]) == (old, None)
    history = said("history")
    assert history["whole"]
    assert history["entries"][-1]["data"]["reason"] == "drill"
    shown = said("show", "v1.0.1")
    assert shown["verdict"]["promoted"]
    assert shown["manifest"]["model_hash"] == new
    assert [entry["event"] for entry in shown["history"]][:2] == ["registered", "sealed look"]


def test_verify_tells_what_was_tampered_with(site):
    site.add("one")
    model = site.add("two")
    assert said("verify") == {"ok": True, "checked": 2, "wrong": []}
    (site.registry.artifacts.root / model / "artifact" / "policy.json").write_text("{}")
    wrong = said("verify", code=3)["wrong"]
    assert wrong == [f"v1.0.1 {model[:12]}: policy.json was changed"]
    assert said("verify", "v1.0.0")["ok"]
    with pytest.raises(ConfigError, match="no such model"):
        said("show", "v7.0.0")


def test_people_get_tables(site):
    site.ready("old", "new")
    for words in (["list"], ["history"], ["verify"], ["show", "v1.0.0"], ["promote", "v1.0.1"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert (
            "v1.0.0" in result.output
            or "models checked" in result.output
            or words[0]
            in (
                "history",
                "promote",
            )
        )


def test_the_study_writes_its_figures_and_picture(tmp_path):
    out, picture = tmp_path / "gate.json", tmp_path / "gate.svg"
    words = ["power", "--runs", "1", "--workers", "1", "--out", str(out), "--picture", str(picture)]
    result = CliRunner().invoke(promotion_app, [*words, "--json"])
    assert result.exit_code in (0, 1)
    assert json.loads(result.stdout) == json.loads(out.read_text())
    assert picture.read_text().startswith("<?xml")
