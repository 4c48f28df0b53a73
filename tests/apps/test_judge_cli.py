"""``agent-gym judge`` from end to end: practice groups, a store, an endpoint, a cassette."""

import json
import re
import sys

import pytest
from typer.testing import CliRunner

from agent_gym.apps.cli.judge import app
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.rollouts.database import BatchRequest, TrajectoryStore
from tests.evaluation.judge_server import completion, serving
from tests.evaluation.judge_stores import record

LABELS = re.compile(r"Labels to score: (.*)$")


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def folder(tmp_path):
    with TrajectoryStore.open(folder=tmp_path / "store") as store:
        record(store, groups=2)
        store.batches.claim(BatchRequest(batch_id="b1", max_groups=1, log_probs=False))
    return tmp_path / "store"


def said(*words, code=0):
    result = CliRunner().invoke(app, [*words, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def by_place(asked, number):
    labels = LABELS.search(asked["messages"][1]["content"])[1].split(", ")
    rows = [
        {"id": name, "score": 1 - place / 10, "explanation": "first come"}
        for place, name in enumerate(labels)
    ]
    return 200, {}, completion(json.dumps({"scores": rows}))


def test_the_default_needs_nothing_and_agrees_with_itself(tmp_path):
    found = said("calibrate", "--groups", "2", "--passes", "2", "--out", str(tmp_path / "c.json"))
    assert found == json.loads((tmp_path / "c.json").read_text())
    assert found["judge"]["model"] == "ground-truth"
    assert found["judge"]["hindsight"]
    assert found["figures"]["pairwise_accuracy"]["estimate"] == 1.0
    assert found["figures"]["order_flip_rate"]["estimate"] == 0.0
    assert (found["groups"], found["counts"]["records"], found["counts"]["passes"]) == (2, 16, 6)


def test_a_table_tells_the_same_in_words():
    result = CliRunner().invoke(app, ["calibrate", "--groups", "2", "--passes", "2"])
    assert result.exit_code == 0
    for words in ("pairs in the true order", "pairs that flip in the reverse order", "refused"):
        assert words in result.stdout


def test_a_liking_for_places_is_found_over_http_recorded_and_played_back(folder, tmp_path):
    tape = str(tmp_path / "judge.json")
    common = ["--store", str(folder), "--passes", "2", "--groups", "2"]
    with serving(by_place) as server:
        asked = ["--backend", "openai", "--base-url", server.url, "--model", "m"]
        first = said("calibrate", *common, *asked, "--record", tape)
    assert not first["judge"]["hindsight"]
    assert first["figures"]["order_flip_rate"]["estimate"] == 1.0
    assert first["figures"]["repeat_flip_rate"]["estimate"] == 0.0
    assert first["sentence"].startswith("not shown to be better than chance")
    assert first["counts"]["requests"] == len(server.asked) == 6
    again = said("calibrate", *common, "--backend", "cassette", "--cassette", tape)
    assert again == first
    with pytest.raises(DataError, match="not on the cassette"):
        said("calibrate", *common, "--backend", "cassette", "--cassette", tape, "--seed", "1")


def test_answers_are_kept_in_a_cache(folder, tmp_path):
    with serving(by_place) as server:
        words = ["calibrate", "--store", str(folder), "--passes", "2", "--backend", "openai"]
        words += ["--base-url", server.url, "--model", "m", "--cache", str(tmp_path / "cache")]
        first, second = said(*words), said(*words)
    assert first["counts"]["cached"] == second["counts"]["requests"] == 0
    assert second["counts"]["cached"] == first["counts"]["requests"] == 6
    assert first["figures"] == second["figures"]


def test_an_endpoint_that_fails_is_told_and_ends_with_an_error(folder):
    with serving(lambda asked, number: (500, {"retry-after-ms": "1"}, b"")) as server:
        words = ["--backend", "openai", "--base-url", server.url, "--model", "m", "--retries", "0"]
        found = said("calibrate", "--store", str(folder), *words, "--passes", "2", code=4)
        scored = said("score", "--store", str(folder), *words, "--passes", "2", code=4)
    assert len(found["failed"]) == 2
    assert found["counts"]["unavailable"] == 6
    assert found["figures"]["pairwise_accuracy"] is None
    assert scored["trajectories"] == 0
    assert [one["judged"] for one in scored["judgments"]] == [False, False]
    with TrajectoryStore.open(folder=folder) as store:
        assert store.counts().judged == 0


def test_a_store_is_scored_once_and_a_batch_alone(folder):
    first = said("score", "--store", str(folder), "--batch", "b1")
    assert (first["groups"], first["trajectories"]) == (1, 4)
    second = said("score", "--store", str(folder))
    assert (second["groups"], second["trajectories"], len(second["known"])) == (2, 4, 1)
    limited = said("score", "--store", str(folder), "--groups", "1", "--passes", "2")
    assert (limited["groups"], limited["left_out"]) == (1, 1)
    result = CliRunner().invoke(app, ["score", "--store", str(folder)])
    assert "2 groups were judged before" in " ".join(result.stdout.split())
    with TrajectoryStore.open(folder=folder) as store:
        assert store.counts().judged == 8


def test_a_rubric_of_ones_own_is_sent(folder, tmp_path):
    (tmp_path / "mine.txt").write_text("Only patience counts.")
    with serving(by_place) as server:
        words = ["--backend", "openai", "--base-url", server.url, "--model", "m", "--passes", "1"]
        words += ["--temperature", "none", "--no-json-mode", "--max-tokens", "99"]
        said("score", "--store", str(folder), *words, "--rubric", str(tmp_path / "mine.txt"))
        said("score", "--store", str(folder), *words, "--hindsight")
    first, last = server.asked[0]["messages"], server.asked[-1]["messages"]
    assert "Only patience counts." in first[0]["content"]
    assert set(server.asked[0]) == {"model", "messages", "max_tokens"}
    assert server.asked[0]["max_tokens"] == 99
    assert "outcome: total_reward" not in first[1]["content"]
    assert "outcome: total_reward" in last[1]["content"]


BAD = {
    "a backend that does not exist": (["--backend", "magic"], "--backend"),
    "an endpoint without address": (
        ["--backend", "openai", "--model", "m"],
        "--base-url is missing",
    ),
    "an endpoint without model": (
        ["--backend", "openai", "--base-url", "http://127.0.0.1:1/v1"],
        "--model is missing",
    ),
    "what is no address": (
        ["--backend", "openai", "--base-url", "nowhere", "--model", "m"],
        "base_url",
    ),
    "a cassette that is not named": (["--backend", "cassette"], "--cassette is missing"),
    "a model for the truth": (["--model", "m"], "--model changes nothing"),
    "hindsight for the truth": (["--hindsight"], "--hindsight changes nothing"),
    "a cache for the truth": (["--cache", "x"], "--cache changes nothing"),
    "an address for a cassette": (
        ["--backend", "cassette", "--cassette", "x", "--base-url", "http://x"],
        "--base-url changes nothing",
    ),
    "no pass": (["--passes", "0"], "--passes"),
    "one pass": (["--passes", "1"], "no other order"),
    "a negative seed": (["--seed", "-1"], "--seed"),
    "a metric of practice groups": (["--measure", "x.y"], "by their return alone"),
    "a database without its folder": (["--database", "sqlite:///x"], "needs --store"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_words_are_refused_with_a_reason(name):
    words, match = BAD[name]
    with pytest.raises(ConfigError, match=match):
        said("calibrate", "--groups", "2", *words)


def test_missing_things_are_named(folder, tmp_path):
    for command in ("calibrate", "score"):
        with pytest.raises(DataError, match="no trajectory store"):
            said(command, "--store", str(tmp_path / "gone"))
    assert not (tmp_path / "gone").exists()
    with pytest.raises(DataError, match="no trajectory store"):
        said("score")  # the default folder
    with pytest.raises(DataError, match="cannot be read"):
        said("score", "--store", str(folder), "--backend", "cassette", "--cassette", "gone.json")
    with pytest.raises(DataError, match="does not tell the figure"):
        said("score", "--store", str(folder), "--measure", "skill")
    with pytest.raises(ConfigError, match="no such batch"):
        said("score", "--store", str(folder), "--batch", "gone")
    words = ["--backend", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"]
    with pytest.raises(ConfigError, match="rubric"):
        said("score", "--store", str(folder), *words, "--rubric", str(tmp_path / "gone.txt"))


def test_a_library_that_is_missing_is_named(monkeypatch):
    module = "agent_gym.evaluation.judge.endpoint"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError, match=r"agent-gym\[llm\]"):
        said("score", "--backend", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "m")


def test_an_empty_store_has_nothing_to_judge(tmp_path):
    TrajectoryStore.open(folder=tmp_path / "empty").close()
    with pytest.raises(DataError, match="no group of two"):
        said("score", "--store", str(tmp_path / "empty"))
    with pytest.raises(ConfigError, match="too few groups"):
        said("calibrate", "--store", str(tmp_path / "empty"))
