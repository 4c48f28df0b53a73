from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from agent_gym.apps.cli import model_words
from agent_gym.apps.cli.model_words import best_run, find_model, is_model
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.training.rl.export import open_trained
from agent_gym.training.rl.judging import fresh_seeds, judge
from agent_gym.training.rl.seeding import SeedManager
from tests.apps.cli_samples import Call, make_call
from tests.training.rl_export_samples import MARKET, config_of, trained


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """One model of a game and one of a market, as training would leave them."""
    home = tmp_path_factory.mktemp("models")
    game = config_of("a2c", "CartPole-v1", steps=64)
    trained(home / "experiments" / "cart" / "seed_0", game)
    market = config_of("ppo", "market", env_params=MARKET, steps=128)
    trained(home / "experiments" / "trader" / "seed_0", market)
    return home


@pytest.fixture
def home(models, tmp_path, monkeypatch) -> Path:
    shutil.copytree(models, tmp_path / "home")
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def evaluate(home, monkeypatch, capsys) -> Call:
    return make_call("evaluate", monkeypatch, capsys)


def test_a_model_is_found_by_every_name_it_has(home):
    best = home / "experiments" / "cart" / "seed_0" / "best"
    for word in (
        "cart",
        best,
        best.parent,
        best.parent.parent,
        best / "model.json",
        best / "model.zip",
    ):
        assert is_model(str(word))
        assert find_model(str(word)) == best
    for word in ("rules/flat", "rules/*", "sb3/ppo:model=x", "nothing"):
        assert not is_model(word)
    assert is_model("some/where/else")


def test_the_best_seed_is_chosen_by_training_not_by_the_final_episodes(home):
    first = home / "experiments" / "cart" / "seed_0"
    second = home / "experiments" / "cart" / "seed_1"
    shutil.copytree(first, second)
    for run, best, final in ((first, 10.0, 99.0), (second, 20.0, 1.0)):
        result = json.loads((run / "result.json").read_text())
        result |= {"best_mean": best, "final_mean": final}
        (run / "result.json").write_text(json.dumps(result))
    assert best_run([first, second]) == second
    assert find_model("cart") == second / "best"


def test_fresh_episodes_with_interval_share_worst_and_best(evaluate, home):
    code, out, err = evaluate("cart", "--episodes", 12, "--threshold", 20, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["episodes"] == 12
    assert told["low"] <= told["mean"] <= told["high"]
    assert told["csv"] == str(home / "metrics" / "cart-seed_0-episodes.csv")
    rows = list(csv.DictReader(Path(told["csv"]).read_text().splitlines()))
    rewards = [float(row["reward"]) for row in rows]
    assert told["mean"] == pytest.approx(np.mean(rewards))
    assert told["share"] == np.mean([reward >= 20 for reward in rewards])
    assert told["worst"][0]["reward"] == min(rewards)
    assert told["best"][0]["reward"] == max(rewards)
    assert len({row["seed"] for row in rows}) == 12
    code, out, _ = evaluate("cart", "--episodes", 12, "--csv", home / "x.csv")
    assert code == 0
    assert f"{told['mean']:.1f}" in out
    assert "worst seeds" in out
    assert (home / "x.csv").read_bytes() == Path(told["csv"]).read_bytes()
    _, out, _ = evaluate("cart", "--episodes", 12, "--seed", 1, "--json")
    assert json.loads(out)["worst"] != told["worst"]


def test_no_episode_is_one_that_chose_or_judged_the_model():
    known = SeedManager(3)
    used = {*known.evaluation_seeds(1_000), *known.final_seeds(1_000)}
    assert not used & set(fresh_seeds(3, 0, 5_000))


def test_one_episode_has_no_interval(home):
    played = judge(open_trained(find_model("cart")), 1, 0, 200.0)
    assert played.interval is None
    assert played.as_dict()["low"] is None


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("no/such/model",), 2, "no such model"),
        (("cart", "trader"), 2, "one model at a time"),
        (("cart", "--train", "30d"), 2, "--train 30d"),
        (("cart", "--taker-bps", "3"), 2, "--taker-bps"),
        (("cart", "--report", "x.html"), 2, "--report"),
        (("cart", "--episodes", "0"), 2, "--episodes"),
        (("cart", "--csv", "/proc/x/y.csv"), 2, "cannot be written"),
        (("cart", "--market", "known/m1"), 2, "not trained on a market"),
        (("rules/flat", "--episodes", "3", "--market", "known/m1"), 2, "--episodes"),
    ],
)
def test_what_cannot_be_meant_is_refused(evaluate, words, code, hint):
    found, _, err = evaluate(*words)
    assert found == code
    assert hint in " ".join(err.split())


def test_a_foreign_zip_is_never_opened(evaluate, home, tmp_path):
    shutil.copy(home / "experiments" / "cart" / "seed_0" / "best" / "model.zip", "foreign.zip")
    code, _, err = evaluate("foreign.zip")
    assert code == 2
    assert "runs whatever code it holds" in " ".join(err.split())
    Path("notes.json").write_text("{}")
    code, _, err = evaluate("notes.json")
    assert code == 3
    Path("empty").mkdir()
    code, _, err = evaluate("./empty")
    assert code == 3
    assert "no model in this folder" in err


def test_a_damaged_model_is_named(evaluate, home):
    best = home / "experiments" / "cart" / "seed_0" / "best"
    with (best / "policy.safetensors").open("ab") as file:
        file.write(b"x")
    code, _, err = evaluate("cart", "--episodes", 2)
    assert code == 3
    assert "policy.safetensors" in err
    (best / "model.json").write_text("{}")
    code, _, err = evaluate("cart", "--episodes", 2)
    assert code == 3
    assert "model.json" in err


def test_a_market_model_trades_under_a_protocol(evaluate, home):
    words = ("--market", "known/m1", "--bars", 800, "--seeds", 2, "--draws", 20)
    code, out, err = evaluate("trader", *words, "--json")
    assert code == 0, err
    assert "sb3/ppo" in out


def test_export_in_every_format(home, monkeypatch, capsys):
    export = make_call("export", monkeypatch, capsys)
    code, out, err = export("cart", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["exact"]
    script = Path(told["file"]).read_text()
    assert told["file"] == str(home / "models" / "cart-seed_0.py")
    assert told["sha256"] in script
    code, out, _ = export("cart", "--format", "onnx", "--out", "p.onnx", "--json")
    assert code == 0
    assert json.loads(out)["check"]["agreeing"] == 1_000
    assert Path("p.onnx").stat().st_size > 100
    code, out, _ = export("cart", "--format", "zip", "--out", "p.zip")
    assert code == 0
    assert Path("p.zip").is_file()
    for words, hint in (
        (("cart", "--format", "tar"), "--format"),
        (("gone",), "no such model"),
        (("cart", "--out", home), "a file cannot be written here"),
    ):
        code, _, err = export(*words)
        assert code == 2
        assert hint in " ".join(err.split())


def test_watch_writes_the_episode_of_a_seed(home, monkeypatch, capsys):
    watch = make_call("watch", monkeypatch, capsys)
    code, out, err = watch("cart", "--seed", 7, "--out", "a.mp4", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["seed"] == 7
    assert told["length"] == told["reward"]  # a pole pays 1 a step
    assert Path("a.mp4").read_bytes()[4:8] == b"ftyp"
    code, out, _ = watch("cart", "--which", "worst", "--json")
    worst = json.loads(out)
    _, out, _ = watch("cart", "--which", "best", "--json")
    assert worst["reward"] <= json.loads(out)["reward"]
    assert worst["file"] == str(home / "videos" / "cart-seed_0.mp4")
    assert watch("cart", "--out", "a.avi")[0] == 2
    assert watch("cart", "--seed", "-1")[0] == 2


def test_a_foreign_zip_comes_in_by_its_own_door_alone(home, monkeypatch, capsys):
    best = home / "experiments" / "cart" / "seed_0" / "best"
    train = make_call("train", monkeypatch, capsys)
    words = ("unsafe-import-zip", best / "model.zip", "--env", "CartPole-v1", "--out", "taken-in")
    code, _, err = train(*words, "--algo", "a2c", "--json")
    assert code == 0, err
    one, other = open_trained(best), open_trained(Path("taken-in"))
    obs = np.zeros((1, 4), dtype=np.float32)
    assert one.policy.predict(obs) == other.policy.predict(obs)
    assert other.policy.card.manifest["foreign"]["file"] == "model.zip"
    export = make_call("export", monkeypatch, capsys)
    code, _, err = export("./taken-in")
    assert code == 2
    assert "nobody knows how this model was trained" in err
    code, _, err = train(*words, "--algo", "a2c")
    assert code == 2
    assert "taken" in err
    shutil.rmtree("taken-in")
    code, _, err = train(*words, "--algo", "dqn")
    assert code == 2
    assert not Path("taken-in").exists()


def test_a_library_that_is_missing_is_told_with_what_to_install(home, monkeypatch, capsys):
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(model_words, "import_module", missing)
    evaluate = make_call("evaluate", monkeypatch, capsys)
    code, _, err = evaluate("cart")
    assert code == 2
    assert "agent-gym[rl]" in err


def test_folders_that_hold_arms_name_them(home):
    (home / "experiments" / "two").mkdir()
    shutil.move(home / "experiments" / "cart", home / "experiments" / "two" / "arm")
    with pytest.raises(DataError, match="arm"):
        find_model("two")
    assert find_model("two/arm").name == "best"
    with pytest.raises(ConfigError, match="trader"):
        find_model("nix/nix/nix")
