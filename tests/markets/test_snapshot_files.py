from __future__ import annotations

import json
import lzma
import subprocess
import sys

import pytest

from agent_gym.core.errors import DataError
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.content import content_hash
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.snapshot.public_file import load_snapshot, problems
from agent_gym.markets.snapshot.sealed import load_truth, truth_path

SMALL = SnapshotConfig(duration_minutes=600, prediction_markets=2, perpetual_markets=1, agents=4)


@pytest.fixture(scope="module")
def made():
    return BenchmarkDataGenerator(SMALL).generate(0)


def test_both_files_come_back_as_they_were(made, tmp_path):
    path = made.save(tmp_path)
    snapshot = load_snapshot(path)
    assert snapshot.id == made.snapshot.id == path.name.split(".")[0]
    assert snapshot.posts == made.snapshot.posts
    assert (snapshot.columns.close == made.snapshot.columns.close).all()
    assert load_truth(truth_path(path), snapshot) == made.truth


def test_equal_seeds_make_equal_bytes(made, tmp_path):
    one = made.save(tmp_path / "one")
    other = BenchmarkDataGenerator(SMALL).generate(0).save(tmp_path / "other")
    assert one.read_bytes() == other.read_bytes()
    assert truth_path(one).read_bytes() == truth_path(other).read_bytes()


def test_a_week_of_minutes_takes_less_than_a_megabyte(tmp_path):
    """The original repeated the whole state in every tick: 4.4 MB for 528 ticks."""
    week = SnapshotConfig(
        duration_minutes=10_080,
        tick_interval_s=60,
        prediction_markets=10,
        perpetual_markets=5,
        posts_per_market=60.0,
        half_life_ticks=120.0,
    )
    path = BenchmarkDataGenerator(week).generate(12_345).save(tmp_path)
    assert path.stat().st_size < 1_000_000


def changed(path, change, *, rehash):
    whole = json.loads(lzma.decompress(path.read_bytes()))
    change(whole["body"])
    if rehash:
        whole["hash"] = content_hash(whole["body"])
    path.write_bytes(lzma.compress(json.dumps(whole).encode()))


def test_one_changed_number_is_refused(made, tmp_path):
    path = made.save(tmp_path)
    changed(path, lambda body: body["columns"]["close"][0].__setitem__(3, 1), rehash=False)
    with pytest.raises(DataError, match="hash"):
        load_snapshot(path)


def _drop_post(body):
    body["posts"].reverse()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body["columns"]["close"][0].pop(), "shape|holds what"),
        (lambda body: body["resolutions"].pop(), "not resolved"),
        (_drop_post, "order of time"),
        (lambda body: body["posts"][0].__setitem__(1, "nobody"), "unknown"),
        (lambda body: body.pop("authors"), "lacks"),
        (lambda body: body.__setitem__("version", "9"), "another version"),
        (lambda body: body["config"].__setitem__("tik", 1), "tik"),
    ],
)
def test_content_that_is_out_of_order_is_refused_in_words(made, tmp_path, change, words):
    path = made.save(tmp_path)
    changed(path, change, rehash=True)
    with pytest.raises(Exception, match=words) as caught:
        load_snapshot(path)
    assert type(caught.value).__name__ in ("DataError", "ConfigError")


@pytest.mark.parametrize("content", [b"", b"not packed", lzma.compress(b"{"), lzma.compress(b"[]")])
def test_what_is_no_snapshot_is_refused_in_words(tmp_path, content):
    path = tmp_path / "a.snapshot.xz"
    path.write_bytes(content)
    with pytest.raises(DataError):
        load_snapshot(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        load_snapshot(tmp_path / "nowhere.snapshot.xz")


def test_the_sealed_file_of_another_snapshot_is_refused(made, tmp_path):
    path = made.save(tmp_path)
    other = BenchmarkDataGenerator(SMALL).generate(1).save(tmp_path)
    with pytest.raises(DataError, match="does not belong"):
        load_truth(truth_path(other), load_snapshot(path))


def test_a_changed_truth_is_refused(made, tmp_path):
    path = made.save(tmp_path)
    flip = made.truth.outcomes["pm-1"]
    changed(
        truth_path(path),
        lambda body: body["outcomes"].__setitem__("pm-1", not flip),
        rehash=True,
    )
    with pytest.raises(DataError, match="does not belong"):
        load_truth(truth_path(path), load_snapshot(path))


def test_the_public_file_holds_neither_seed_nor_hidden_evidence(made, tmp_path):
    body = json.loads(lzma.decompress(made.save(tmp_path).read_bytes()))["body"]
    assert "seed" not in body
    assert "seed" not in body["config"]
    said = json.dumps(body)
    hidden = [one for one in made.truth.posts if len(str(one.evidence)) > 8]
    assert hidden
    assert not any(str(one.evidence) in said for one in hidden)


def test_players_cannot_reach_the_seal():
    """Nothing that an agent plays through may even load the code that opens it."""
    code = (
        "import sys, agent_gym.envs.benchmark.session, agent_gym.rollouts.play\n"
        "print([m for m in sys.modules if m.startswith('agent_gym.markets.snapshot')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = told.stdout
    assert "agent_gym.markets.snapshot.public_file" in loaded
    for name in ("sealed", "generator", "news", "prices"):
        assert f"snapshot.{name}" not in loaded


def test_a_whole_snapshot_has_no_problems(made):
    assert problems(made.snapshot) == []
