from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from agent_gym.agents.sb3.artifact import Policy, load_policy, save_policy
from agent_gym.core.errors import AgentGymError, ConfigError, DataError
from agent_gym.training.rl import export_onnx as onnx_door
from agent_gym.training.rl.export import export_zip, open_trained, script_of, weights_hash
from agent_gym.training.rl.export_onnx import compare, export_onnx, sample_observations
from tests.training.rl_export_samples import MARKET, config_of, trained

BOTH = {"observations": True, "rewards": True}
RUNS: dict[str, dict[str, Any]] = {
    "ppo": {
        "env": "LunarLander-v3",
        "env_params": {"gravity": -9.0},
        "normalize": BOTH,
        "agent": {"learning_rate": "linear_0.001", "clip_range": "linear_0.2_0.1"},
    },
    "a2c": {"env": "CartPole-v1", "agent": {"activation": "relu"}},
    "sac": {"env": "Pendulum-v1", "normalize": BOTH, "steps": 128},
    "td3": {"env": "LunarLanderContinuous-v3", "agent": {"action_noise": 0.1}, "steps": 128},
    "tqc": {"env": "Pendulum-v1", "steps": 128},
    "dqn": {"env": "CartPole-v1"},
    "qrdqn": {"env": "CartPole-v1"},
}


def run_here(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    exec(compile(script, "exported.py", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("algo", sorted(RUNS))
def test_the_script_makes_the_same_weights(algo, tmp_path, monkeypatch, capsys):
    config = config_of(algo, **RUNS[algo])
    model = open_trained(trained(tmp_path / "run", config))
    digest = weights_hash(model.policy.weights())
    script = script_of(model.config, model.seed, step=model.policy.card.step, expected=digest)
    assert "agent_gym" not in script
    run_here(script, tmp_path / "again", monkeypatch)
    said = capsys.readouterr().out
    assert f"weights after {config.steps} steps: sha256 {digest}\nthe same as the run" in said
    assert (tmp_path / "again" / "model.zip").is_file()
    assert (tmp_path / "again" / "vec_normalize.pkl").exists() == ("normalize" in RUNS[algo])


def test_the_script_keeps_the_model_of_an_earlier_step_under_the_same_schedule(
    tmp_path, monkeypatch, capsys
):
    config = config_of("ppo", **RUNS["ppo"])
    model = open_trained(trained(tmp_path / "run", config, stop=128))
    assert model.policy.card.step == 128
    digest = weights_hash(model.policy.weights())
    run_here(script_of(config, 3, step=128, expected=digest), tmp_path / "again", monkeypatch)
    assert "weights after 128 steps" in (said := capsys.readouterr().out)
    assert "the same as the run" in said
    run_here(script_of(config, 4, step=128, expected=digest), tmp_path / "again", monkeypatch)
    assert "NOT the same" in capsys.readouterr().out


def test_the_script_of_a_market_needs_this_package_and_says_so(tmp_path, monkeypatch, capsys):
    config = config_of("ppo", "market", env_params=MARKET, n_envs=4, normalize=BOTH)
    model = open_trained(trained(tmp_path / "run", config))
    digest = weights_hash(model.policy.weights())
    script = script_of(config, 3, expected=digest)
    assert "The market is the one of agent_gym" in script
    run_here(script, tmp_path / "again", monkeypatch)
    assert "the same as the run" in capsys.readouterr().out


def test_the_script_runs_by_itself(tmp_path):
    config = config_of("a2c", "CartPole-v1", steps=64)
    model = open_trained(trained(tmp_path / "run", config))
    script = script_of(config, 3, expected=weights_hash(model.policy.weights()))
    path = tmp_path / "train.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-I", path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "the same as the run" in done.stdout


def test_what_a_script_cannot_do_is_said():
    config = config_of("sac", "Pendulum-v1", learner="sbx")
    with pytest.raises(ConfigError, match="cannot make this model"):
        script_of(config, 0)


@pytest.mark.parametrize(
    "algo", ["ppo", "sac", "td3", "qrdqn"]
)  # the others act by the same layers
def test_onnx_acts_as_the_policy_does(algo, tmp_path):
    config = config_of(algo, **(RUNS[algo] | {"steps": 64}))
    policy = load_policy(trained(tmp_path / "run", config))
    path = tmp_path / "policy.onnx"
    check = export_onnx(policy, path)
    assert check.observations == check.agreeing == 1_000
    session = onnxruntime.InferenceSession(path)
    wide = sample_observations(policy, 1_000)
    seen = compare(policy, session, wide)
    assert seen.agreeing == 1_000
    assert seen.largest_difference is None or seen.largest_difference < 1e-5
    single = session.run(None, {"observations": wide[:1]})[0]
    assert len(single) == 1
    made = session.run(None, {"observations": wide})[0]
    if policy.card.actions.n is not None:
        assert len(set(made.tolist())) > 1  # else equality would prove little
    else:
        low, high = policy.card.actions.bounds()
        assert made.min() >= low.min() - 1e-6
        assert made.max() <= high.max() + 1e-6
        assert np.ptp(made) > 1e-3


def test_a_graph_without_the_normaliser_is_found_out(tmp_path, monkeypatch):
    policy = load_policy(trained(tmp_path / "run", config_of("ppo", **RUNS["ppo"])))
    whole = onnx_door._Acting

    class Forgetful(whole):  # type: ignore[misc, valid-type]
        def __init__(self, policy: Any) -> None:
            super().__init__(policy)
            self._normalized = False

    monkeypatch.setattr(onnx_door, "_Acting", Forgetful)
    with pytest.raises(AgentGymError, match="does not act as the policy"):
        export_onnx(policy, tmp_path / "policy.onnx")
    assert not (tmp_path / "policy.onnx").exists()


def test_the_zip_is_the_one_that_was_written(tmp_path):
    folder = trained(tmp_path / "run", config_of("a2c", "CartPole-v1", steps=64))
    export_zip(folder, tmp_path / "out" / "m.zip")
    assert (tmp_path / "out" / "m.zip").read_bytes() == (folder / "model.zip").read_bytes()
    (folder / "model.zip").write_bytes(b"PK another one")
    with pytest.raises(DataError, match="damaged"):
        export_zip(folder, tmp_path / "out" / "n.zip")
    assert not (tmp_path / "out" / "n.zip").exists()


def test_a_model_needs_nothing_but_its_folder(tmp_path):
    config = config_of("a2c", "CartPole-v1", steps=64)
    folder = trained(tmp_path / "run", config)
    shutil.copytree(folder, tmp_path / "elsewhere")
    model = open_trained(tmp_path / "elsewhere")
    assert model.config == config
    assert model.seed == 3
    card = model.policy.card.model_copy(update={"manifest": {}})
    save_policy(Policy(card, model.policy.tensors(), None), tmp_path / "bare")
    with pytest.raises(DataError, match="does not say how it was made"):
        open_trained(tmp_path / "bare")
