import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, field_validator

from agent_gym.core import (
    ActionSpec,
    Config,
    ConfigError,
    DataError,
    ManualClock,
    Ref,
    Seeds,
    StoreError,
    SystemClock,
    make,
    names,
    register,
)
from agent_gym.core.files import atomic_path, to_json, write_json, write_text
from agent_gym.core.manifest import describe, fingerprint
from agent_gym.core.registry import configure, entry
from agent_gym.core.types import EpisodeStart, Role


def test_errors_say_what_where_found_expected_and_remedy():
    error = DataError("bad price", where="row 3", found=-1, expected="> 0", remedy="Drop it")
    assert str(error) == "bad price (at row 3; found -1; expected > 0). Drop it"
    assert error.as_dict()["error"] == "DataError"
    kind, fields = error.__reduce__()
    again = kind(*fields)
    assert (type(again), str(again)) == (DataError, str(error))


@given(st.integers(0, 2**63), st.text(), st.text())
def test_seed_tree_is_addressed_by_name(root, one, two):
    assert Seeds(root).child(one).as_uint64() == Seeds(root).child(one).as_uint64()
    if one != two:
        assert Seeds(root).child(one).as_uint64() != Seeds(root).child(two).as_uint64()
    assert Seeds(root).child(one, two) == Seeds(root).child(one).child(two)


def test_siblings_do_not_disturb_each_other():
    alone = Seeds(1).child("b").rng().random(5).tolist()
    Seeds(1).child("a").rng().random(100)
    assert Seeds(1).child("b").rng().random(5).tolist() == alone
    assert Seeds(0).rng().random() != Seeds(1).rng().random()
    with pytest.raises(ValueError, match="at least 0"):
        Seeds(-1)


def test_clocks():
    clock = ManualClock(10)
    clock.sleep_s(2.0)
    assert clock.now_ns() == 2_000_000_010
    assert clock.monotonic_s() == 2.0
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance_ns(-1)
    before = SystemClock().monotonic_s()
    assert SystemClock().monotonic_s() >= before
    assert SystemClock().now_ns() > 1_700_000_000_000_000_000


class LampConfig(Config):
    watts: float = 5.0


@register("metric", "test/lamp", LampConfig)
def lamp(config):
    return config.watts


def test_registry_makes_names_and_suggests():
    assert make("metric", Ref(use="test/lamp", params={"watts": 7})) == 7.0
    assert "test/lamp" in names("metric")
    with pytest.raises(ConfigError, match="Did you mean 'test/lamp'"):
        make("metric", Ref(use="test/lmap"))
    with pytest.raises(ConfigError, match="Did you mean 'watts'"):
        make("metric", Ref(use="test/lamp", params={"wats": 7}))
    with pytest.raises(ConfigError, match="finite"):
        make("metric", Ref(use="test/lamp", params={"watts": float("nan")}))
    with pytest.raises(ConfigError, match="twice"):
        register("metric", "test/lamp", LampConfig)(lamp)
    with pytest.raises(ConfigError, match="watts"):
        configure(LampConfig, {"watts": "dim"}, where="here")


class SocketConfig(Config):
    name: str = Field(default="EU", pattern="^[A-Z]+$")

    @field_validator("name")
    @classmethod
    def _known(cls, name):
        if name == "XX":
            raise ValueError("Socket XX is of no Country")
        return name


def test_a_refusal_keeps_the_case_of_names_and_patterns():
    with pytest.raises(ConfigError) as error:
        configure(SocketConfig, {"name": "eu"}, where="here")
    assert error.value.what == "parameter 'name': string should match pattern '^[A-Z]+$'"
    with pytest.raises(ConfigError) as error:
        configure(SocketConfig, {"name": "XX"}, where="here")
    assert error.value.what == "parameter 'name': Socket XX is of no Country"
    with pytest.raises(ConfigError) as error:
        configure(SocketConfig, {"name": "e" * 1_000}, where="here")
    assert len(error.value.found) < 300
    with pytest.raises(ConfigError, match="not a number"):
        configure(LampConfig, {"watts": float("nan")}, where="here")


@pytest.mark.parametrize("kind", ["agent", "market", "world", "team"])
def test_every_announced_name_is_registered_by_its_module(kind):
    assert names(kind)
    for name in names(kind):
        assert issubclass(entry(kind, name).config, Config)


def test_listing_names_imports_no_kernel():
    code = (
        "import sys; from agent_gym.core import names; names('agent');print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_core_install_needs_no_torch():
    code = (
        "import sys; import agent_gym.envs, agent_gym.rollouts, agent_gym.agents;"
        "print('torch' in sys.modules or 'stable_baselines3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def _write_half(target):
    with atomic_path(target) as path:
        path.write_text("half")
        raise RuntimeError


def test_files_are_whole_or_absent(tmp_path):
    target = tmp_path / "deep" / "file.txt"
    write_text(target, "old")
    with pytest.raises(RuntimeError):
        _write_half(target)
    assert target.read_text() == "old"
    assert [p.name for p in target.parent.iterdir()] == ["file.txt"]
    write_json(target, {"b": 1, "a": [1, 2]})
    assert json.loads(target.read_text()) == {"a": [1, 2], "b": 1}
    with pytest.raises(ValueError, match="Out of range"):
        write_json(target, {"x": float("nan")})
    assert json.loads(target.read_text()) == {"a": [1, 2], "b": 1}


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(StoreError, match="cannot write here"):
        write_text(blocked / "below.txt", "y")


def test_manifest_is_the_same_for_equal_runs():
    def run():
        return describe(argv=["agent-gym", "x y"], config={"b": 2, "a": 1}, data={}, seeds=(0,))

    assert run() == run()
    assert run().command == "agent-gym 'x y'"
    assert run().config_hash == fingerprint({"a": 1, "b": 2}) != fingerprint({"a": 1, "b": 3})
    assert to_json(run().model_dump(mode="json"))


@given(st.floats(-3, 3))
def test_targets_are_encoded_to_the_nearest_legal_action(target):
    discrete = ActionSpec(n=3, levels=(-1.0, 0.0, 1.0))
    chosen = discrete.levels[discrete.encode(target)]
    assert abs(chosen - target) == min(abs(level - target) for level in discrete.levels)
    assert ActionSpec(low=-0.5, high=0.5).encode(target) == float(np.clip(target, -0.5, 0.5))


def test_a_missing_column_is_named():
    start = EpisodeStart(Role("r"), ("close",), ActionSpec(), Seeds(0))
    assert start.column("close") == 0
    with pytest.raises(LookupError, match="shows no feature 'open'"):
        start.column("open")


KERNEL = """
from agent_gym.core.kernels import door, inlined
import part

@door("int64(int64)", parts=(part,))
def entry(x):
    return part.add(x)
"""
PART = """
from agent_gym.core.kernels import inlined

@inlined
def add(x):
    return x + {n}
"""


def test_an_edit_in_another_file_is_never_served_from_a_stale_cache(tmp_path):
    (tmp_path / "entry_file.py").write_text(KERNEL)
    results = []
    for n in (10, 1000):
        (tmp_path / "part.py").write_text(PART.format(n=n))
        code = "import entry_file; print(entry_file.entry(1))"
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        results.append(int(done.stdout))
    assert results == [11, 1001]


def test_no_file_of_the_package_unpickles_or_evaluates():
    package = Path(importlib.import_module("agent_gym").__file__).parent
    words = ("import pickle", "cloudpickle", "torch.load", "joblib", "eval(", "exec(", "marshal")
    offenders = [
        f"{path.name}: {word}"
        for path in package.rglob("*.py")
        for word in words
        if word in path.read_text()
    ]
    assert offenders == []
