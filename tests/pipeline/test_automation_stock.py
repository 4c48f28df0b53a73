"""What is there to train on, how good it is, and how a batch leaves as files."""

import json

import numpy as np
import pytest
from automation_samples import POLICY, opened, record
from pyarrow import ipc

from agent_gym.core.clock import HOUR_NS
from agent_gym.pipeline.automation.export import export_grouped_for_grpo
from agent_gym.pipeline.automation.readiness import ReadinessPolicy, readiness
from agent_gym.pipeline.automation.stock import CHECKS, data_quality, stock_of
from agent_gym.rollouts.database import BatchRequest

POLICY_OF_TESTS = ReadinessPolicy(
    min_trajectories=6, min_groups=2, min_group_size=3, spacing_hours=1
)


@pytest.fixture
def store(tmp_path):
    with opened(tmp_path) as store:
        yield store


def test_an_empty_store_has_no_quality(store):
    assert data_quality(store, 50) is None
    stock = stock_of(store, POLICY_OF_TESTS)
    assert (stock.unused, stock.full_groups, stock.last_training_ns) == (0, 0, None)


def test_good_recordings_are_ready(store):
    record(store)
    stock = stock_of(store, POLICY_OF_TESTS)
    assert (stock.unused, stock.full_groups, stock.quality) == (6, 2, 1.0)
    assert readiness(stock, POLICY_OF_TESTS, store.clock.now_ns()).ready


def test_what_was_not_drawn_fails_one_check(store):
    record(store, deterministic=True)
    assert data_quality(store, 50) == pytest.approx(1 - 1 / len(CHECKS))


def test_a_damaged_file_fails_all_checks(store):
    record(store, groups=1)
    (path,) = (path for path in store.files.folder.rglob("*") if path.is_file())
    path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    assert data_quality(store, 50) == 0.0


def test_judging_and_claiming(store):
    record(store)
    batch = store.batches.claim(BatchRequest(batch_id="b1", min_group_size=3, max_groups=1))
    assert batch is not None
    assert stock_of(store, POLICY_OF_TESTS).unused == 3
    store.batches.complete("b1", store.batches.ids("b1"))
    stock = stock_of(store, POLICY_OF_TESTS)
    assert stock.last_training_ns is not None
    later = stock.last_training_ns + HOUR_NS
    reasons = readiness(stock, POLICY_OF_TESTS, later - 1).reason
    assert "3 more unused" in reasons
    assert "must lie between" in reasons
    assert "must lie between" not in readiness(stock, POLICY_OF_TESTS, later).reason


def test_a_batch_leaves_as_it_is(store, tmp_path):
    record(store)
    store.batches.claim(BatchRequest(batch_id="b1", min_group_size=3))
    found = export_grouped_for_grpo(store, "b1", tmp_path / "out")
    assert (found.groups, found.trajectories, found.steps) == (2, 6, 6 * 16)
    groups = [json.loads(line) for line in (found.folder / "groups.jsonl").read_text().splitlines()]
    ids = [one["trajectory_id"] for group in groups for one in group["trajectories"]]
    assert sorted(ids) == sorted(store.batches.ids("b1"))
    assert {group["policy_version"] for group in groups} == {POLICY.version}
    table = ipc.open_file(found.folder / "steps.arrow").read_all()
    for group in groups:
        for one in group["trajectories"]:
            steps = store.steps(one["trajectory_id"])
            rows = table.filter(
                np.array(
                    [name == one["trajectory_id"] for name in table["trajectory_id"].to_pylist()]
                )
            )
            assert rows["log_prob"].to_pylist() == steps.log_prob.tolist() == one["log_probs"]
            assert rows["observation"].to_pylist() == steps.observation.tolist()
            assert sum(one["rewards"]) == pytest.approx(one["reward"])
    first = (
        (found.folder / "groups.jsonl").read_bytes(),
        (found.folder / "steps.arrow").read_bytes(),
    )
    again = export_grouped_for_grpo(store, "b1", tmp_path / "again").folder
    assert first == ((again / "groups.jsonl").read_bytes(), (again / "steps.arrow").read_bytes())
