from __future__ import annotations

import numpy as np
import pytest

from agent_gym.core.errors import ConfigError
from agent_gym.envs.benchmark import world as world_module
from agent_gym.envs.benchmark.features import MARKET_FEATURES
from agent_gym.evaluation.benchmark import probe, verify
from agent_gym.evaluation.benchmark.probe import probe_leaks, visible_rows
from agent_gym.evaluation.benchmark.verify import observed, verify_snapshot
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.markets.snapshot.sealed import truth_path
from tests.envs.benchmark_samples import made

SET = [made(seed) for seed in range(60)]


def test_nothing_leaks_beyond_the_stated_law():
    rows = probe_leaks(SET, shares=(0.3, 0.6))
    assert [row.tick for row in rows] == [12, 24]
    assert not any(row.leaks for row in rows)
    assert max(row.bayes for row in rows) < np.log(2.0)


@pytest.mark.parametrize("strength", [0.6, 2.0])
def test_a_planted_leak_is_found(monkeypatch, strength):
    """A column that knows the outcome a little, under noise, gives itself away."""
    column = MARKET_FEATURES.index("volatility")

    def leaky(snapshot, last):
        rows = visible_rows(snapshot, last).copy()
        for m, market in enumerate(snapshot.predictions):
            answer = next(one for one in snapshot.resolutions if one.market == market.id)
            sign = 1.0 if answer.outcome == "yes" else -1.0
            rows[:, m * len(MARKET_FEATURES) + column] += strength * sign
        return rows

    monkeypatch.setattr(probe, "visible_rows", leaky)
    assert any(row.leaks for row in probe_leaks(SET, shares=(0.3, 0.6)))


def test_too_few_snapshots_prove_nothing():
    with pytest.raises(ConfigError, match="too few"):
        probe_leaks(SET[:10])


def test_a_good_snapshot_passes_every_check(tmp_path):
    findings = verify_snapshot(made(0).save(tmp_path))
    assert [one.check for one in findings if not one.passed] == []
    assert len(findings) == 5


def test_the_sealed_file_changes_no_byte_of_any_observation(tmp_path):
    path = made(0).save(tmp_path)
    before = observed(path)
    truth_path(path).write_bytes(b"anything else")
    assert observed(path) == before
    truth_path(path).unlink()
    assert observed(path) == before
    assert observed(made(1).save(tmp_path)) != before


def test_a_world_that_peeks_is_caught(tmp_path, monkeypatch):
    """Planted: observations that depend on whether the sealed file is there."""
    path = made(0).save(tmp_path)
    plain = load_snapshot

    def peeking(where):
        snapshot = plain(where)
        size = truth_path(where).stat().st_size if truth_path(where).exists() else 0
        closes = snapshot.closes.copy()
        closes[:, 0] += 1e-3 * size
        snapshot.__dict__["closes"] = closes
        return snapshot

    monkeypatch.setattr(world_module, "load_snapshot", peeking)
    failed = [one.check for one in verify_snapshot(path) if not one.passed]
    assert failed == ["sealed"]


def test_another_generator_is_not_the_same(tmp_path, monkeypatch):
    class Other(verify.BenchmarkDataGenerator):
        def generate(self, seed):
            return super().generate(seed + 1)

    path = made(0).save(tmp_path)
    monkeypatch.setattr(verify, "BenchmarkDataGenerator", Other)
    assert "determinism" in [one.check for one in verify_snapshot(path) if not one.passed]


def test_the_proof_of_a_config_reports_leaks_and_earnings():
    heard = []
    findings = verify.verify_generator(
        made(0).snapshot.config, range(40), lambda done, total: heard.append((done, total))
    )
    assert heard[-1] == (40, 40)
    checks = [one.check for one in findings]
    assert checks.count("no leak") == 4
    assert {"the optimum earns", "dice lose", "learnable"} <= set(checks)
    assert [one.words for one in findings if not one.passed and one.check != "learnable"] == []
