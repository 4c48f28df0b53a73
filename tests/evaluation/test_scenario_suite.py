from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import Field
from typing_extensions import override

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.metric import Metric, Tolerance
from agent_gym.evaluation.scenarios.scenario import Episode, Scenario, Subject
from agent_gym.evaluation.scenarios.suite import (
    ScenarioConfig,
    Suite,
    fixed_seeds,
    fresh_seeds,
    load_suite,
    play_seed,
)
from agent_gym.evaluation.scenarios.trace import Trace


class CoinConfig(Config):
    tosses: int = Field(default=10, ge=1)
    hours: float = 1.0
    wrong: str = ""


@register("scenario", "test_coins", CoinConfig)
class Coins(Scenario):
    version = 3
    metrics = (
        Metric(
            name="heads",
            unit="share",
            direction="up",
            meaning="share of heads",
            tolerance=Tolerance(rel=0.1, abs=0.2),
        ),
        Metric(name="edges", unit="n", direction="down", meaning="coins on edge"),
    )

    def __init__(self, config: CoinConfig) -> None:
        self.config = config

    @override
    def play(self, seeds: Seeds, subject: Subject) -> Episode:
        trace = Trace()
        tosses = seeds.child("coins").rng().random(self.config.tosses)
        for i, value in enumerate(tosses.tolist()):
            trace.note("toss", i, value)
        figures: dict[str, float | None] = {"heads": float((tosses < 0.5).mean()), "edges": None}
        if self.config.wrong == "nan":
            figures["heads"] = float("nan")
        if self.config.wrong == "missing":
            del figures["edges"]
        if self.config.wrong == "extra":
            figures["tails"] = 0.5
        return Episode(figures, trace.digest(), len(trace))


ENTRY = {"name": "coins", "type": "test_coins", "params": {"tosses": 20}}


def write(folder: Path, value: object, name: str = "suite.json") -> Path:
    path = folder / name
    text = json.dumps(value) if name.endswith("json") else yaml.safe_dump(value)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_list_and_a_mapping_in_json_and_yaml_are_the_same_suite(tmp_path: Path) -> None:
    whole = {"id": "suite", "scenarios": [ENTRY]}
    made = [
        load_suite(write(tmp_path, value, name))
        for value in (whole, [ENTRY])
        for name in ("suite.json", "suite.yaml")
    ]
    assert all(suite == made[0] for suite in made)
    assert made[0].scenarios[0].params == {"tosses": 20}


def test_a_custom_scenario_is_played(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, [ENTRY]))
    seeds = fixed_seeds(suite.id, suite.scenarios[0])
    episodes = [play_seed(suite.scenarios[0], suite.subject(), seed) for seed in seeds]
    again = [play_seed(suite.scenarios[0], suite.subject(), seed) for seed in seeds]
    assert episodes == again
    assert len({episode.trajectory_hash for episode in episodes}) == len(seeds) == 24
    assert all(episode.events == 20 for episode in episodes)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"type": "signal_troughput"}, "Did you mean 'signal_throughput'"),
        ({"type": "execution-fallback"}, "Did you mean 'execution_fallback'"),
        ({"params": {"toses": 20}}, "Did you mean 'tosses'"),
        ({"tolerances": {"head": {"rel": 0.1}}}, "Did you mean 'heads'"),
        ({"tolerance": {}}, "Did you mean 'tolerances'"),
        ({"n_seed": 3}, "Did you mean 'n_seeds'"),
        ({"params": {"tosses": 0}}, "tosses"),
        ({"tolerances": {"heads": {"rel": -1.0}}}, "rel"),
        ({"name": "../up"}, "name"),
        ({"source": {"kind": "recorded", "path": "x.jsonl"}}, "take no 'source'"),
        ({"hours": 2.0, "params": {"hours": 3.0}}, "given twice"),
        ({"n_seeds": 0}, "n_seeds"),
    ],
)
def test_what_is_unknown_or_out_of_range_is_an_error(
    tmp_path: Path, change: dict[str, object], hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_suite(write(tmp_path, [ENTRY | change]))
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("a.json", '[{"name": "a", "name": "b"}]', "'name' is given twice"),
        ("a.yaml", "scenarios:\n- name: a\n  name: b\n", "'name' is given twice"),
        ("a.yaml", "a: &x [1]\nb: *x\n", "aliases"),
        ("a.yaml", "a: !!python/object/apply:os.getcwd []\n", "python"),
        ("a.json", "[" * 50 + "]" * 50, "nested too deeply"),
        ("a.json", "[" * 200_000, "nested too deeply"),
        ("a.yaml", "[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("a.json", '[{"seed": NaN}]', "NaN"),
        ("a.json", '[{"seed": 1}', "JSON"),
        ("a.json", '"' + "x" * 1_100_000 + '"', "too large"),
        ("a.json", "[]", "scenarios"),
        ("a.json", "7", "no scenarios"),
        ("a.json", '{"scenarios": 7}', "no scenarios"),
        ("a.json", "[7]", "not a mapping"),
        ("a.toml", "x = 1", "ending"),
        ("a.yaml", "", "no scenarios"),
    ],
)
def test_a_file_that_hides_something_is_refused(
    tmp_path: Path, name: str, text: str, hint: str
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_suite(path)
    assert hint in str(caught.value)


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    binary = tmp_path / "b.json"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "absent.json", tmp_path, binary):
        with pytest.raises(ConfigError):
            load_suite(path)


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="coins"):
        load_suite(write(tmp_path, [ENTRY, ENTRY]))


def test_a_tolerance_that_gives_one_part_keeps_the_other() -> None:
    config = ScenarioConfig(name="c", type="test_coins", tolerances={"heads": Tolerance(rel=0.5)})
    assert config.metrics()[0].tolerance == Tolerance(rel=0.5, abs=0.2)
    assert config.metrics()[1] == Coins.metrics[1]


@pytest.mark.parametrize("wrong", ["nan", "missing", "extra"])
def test_a_scenario_that_breaks_its_word_is_an_error(wrong: str) -> None:
    config = ScenarioConfig(name="c", type="test_coins", params={"wrong": wrong})
    with pytest.raises(DataError):
        play_seed(config, Subject(), 1)


def test_identity_knows_what_makes_results_comparable() -> None:
    config = ScenarioConfig(name="c", type="test_coins")

    def other(**change: object) -> dict[str, str]:
        return config.model_copy(update=change).identity()

    same = config.identity()
    assert same["version"] == "3"
    assert other(n_seeds=5) == same
    assert other(tolerances={"heads": Tolerance(rel=0.9)}) == same
    assert other(params={"tosses": 10}) == same  # the default, said aloud
    assert other(params={"tosses": 11}) != same
    assert other(hours=2.0) != same
    assert other(seed=1) != same


def test_seeds_are_pinned_and_streams_apart() -> None:
    config = ScenarioConfig(name="calm", type="test_coins", n_seeds=200)
    fixed, fresh = fixed_seeds("s", config), fresh_seeds("s", "2026-11-16", "calm", 200)
    assert len({*fixed, *fresh}) == 400
    assert all(0 <= seed < 2**48 for seed in (*fixed, *fresh))
    assert fresh_seeds("s", "2026-11-17", "calm", 200) != fresh
    assert fixed_seeds("t", config) != fixed
    assert fixed_seeds("s", config.model_copy(update={"seed": 1})) != fixed
    # These two numbers are a promise: a baseline of last year is paired with tonight by them.
    assert fixed[0] == 55_189_180_032_073
    assert fresh[0] == 130_852_838_502_513


def test_seeds_are_the_same_in_another_process() -> None:
    code = (
        "from agent_gym.evaluation.scenarios.suite import ScenarioConfig, fixed_seeds;"
        "print(fixed_seeds('s', ScenarioConfig(name='calm', type='x', n_seeds=3)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    config = ScenarioConfig(name="calm", type="x", n_seeds=3)
    assert done.stdout.strip() == str(fixed_seeds("s", config))


def test_a_recorded_path_is_looked_for_beside_the_suite(tmp_path: Path) -> None:
    suite = Suite.model_validate(
        {"scenarios": [ENTRY | {"source": {"kind": "recorded", "path": "log.jsonl"}}]}
    )
    assert suite.scenarios[0].source == {"kind": "recorded", "path": "log.jsonl"}


def test_a_trace_takes_plain_values_only() -> None:
    trace = Trace()
    trace.note("odd", 1, {"a": 1})  # type: ignore[arg-type]
    with pytest.raises(DataError):
        trace.digest()
    first, second = Trace(), Trace()
    first.note("n", 1, 1.0)
    second.note("n", 1, 1)
    assert first.digest() != second.digest()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "- {name: a, type: test_coins, params: {flips: .nan}}",
            "[1].params.flips is not a number",
        ),
        ("- {name: a, type: test_coins, hours: -.inf}", "[1].hours is infinite"),
        ("scenarios: [{name: a, tolerances: {heads: {rel: .NaN}}}]", "is not a number"),
    ],
)
def test_yaml_numbers_that_are_none_are_refused_by_name(tmp_path, text, said):
    path = tmp_path / "suite.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_suite(path)
    assert said in str(error.value)
