"""What is known to spoil such a loop, one test for each: learning, promotion and rollout."""

import numpy as np
import pytest

from agent_gym.agents.artifact import read_artifact
from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.core.manifest import fingerprint
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.promotion import judge_promotion
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.learning import learn, recorded
from agent_gym.pipeline.registry import RefusedDeployment, in_canary
from agent_gym.rollouts.database import (
    BatchRequest,
    JudgmentRecord,
    ModelDeployment,
    TrajectoryFilter,
    TrajectoryStore,
)
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.neural import NeuralLearner
from agent_gym.training.grpo.signal_market import SignalSnapshots
from tests.pipeline.automation_samples import MARKET, POLICY, record
from tests.pipeline.registry_samples import Site, evidence_of, gains_of

CONFIG = GRPOConfig(updates=30, epochs=1, credit="reward_to_go", max_staleness=30)
AGENTS = [f"agent-{k}" for k in range(200)]


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


@pytest.fixture
def store(tmp_path):
    with TrajectoryStore.open(folder=tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


def judged(site, model, gains, sealed_set="sealed"):
    """Let the gate judge a model by some paired differences, and write that down."""
    look = site.registry.sealed.spend(sealed_set, model)
    evidence = evidence_of(gains, site.service.state().champion, model, sealed_set)
    verdict = judge_promotion(evidence, look)
    site.registry.sealed.record(look, verdict)
    return verdict


def used(store):
    rows = store.page(TrajectoryFilter(used_in_training=True), limit=1_000).rows
    return {row.trajectory_id for row in rows}


def test_09_exactly_what_was_learned_from_is_marked_as_used(store, tmp_path):
    record(store, groups=3, size=4)
    store.batches.claim(BatchRequest(batch_id="b"))
    held = set(store.batches.ids("b"))
    record(store, groups=5, size=4)  # the last two groups are new: they come too late
    folder = JobFolder(tmp_path / "job")
    told = learn(
        TrainingJob(job_id="j"), folder, NeuralLearner(POLICY), store.read_batch("b"), CONFIG
    )
    store.batches.complete("b", told["trained_ids"])
    assert set(told["trained_ids"]) <= held
    assert len(held) == 12
    assert used(store) == set(told["trained_ids"])
    assert store.counts().unused == 20 - len(used(store))
    manifest, _ = read_artifact(folder.policy, "neural/market")
    assert manifest.data_hash == fingerprint(told["trained_ids"])


def test_10_every_trajectory_has_its_own_reward_its_own_group_and_its_log_probs(store):
    record(store, groups=2, size=3)
    record(store, groups=2, size=4, deterministic=True)  # says nothing of its chances
    store.batches.claim(BatchRequest(batch_id="b"))
    batch = store.read_batch("b")
    rows = recorded(batch)
    assert len(rows) == 6
    for k, name in enumerate(rows.ids):
        row, steps = store.get(name), store.steps(name)
        assert rows.returns[k] == pytest.approx(row.total_reward)
        assert rows.group_keys[k] == row.group_key
        assert rows.log_probs[k].tolist() == steps.log_prob.tolist()
        assert np.isfinite(rows.log_probs[k]).all()
    groups = {key: rows.group_keys.count(key) for key in rows.group_keys}
    assert list(groups.values()) == [3, 3]
    about = {"group_id": "g", "judge_model": "m", "judge_version": "1"}
    one, other = rows.ids[:2]
    store.judgments.add(
        [
            JudgmentRecord(trajectory_id=one, overall_score=0.9, **about),
            JudgmentRecord(trajectory_id=other, overall_score=0.2, **about),
        ]
    )
    scores = [store.get(name).judge_score for name in rows.ids]
    assert scores == [0.9, 0.2, None, None, None, None]


def test_11_a_trained_model_does_not_serve_until_the_gate_lets_it(site):
    old, new = site.add("old"), site.add("new")
    site.service.install(old)
    with pytest.raises(RefusedDeployment):
        site.service.deploy(new)
    assert not judged(site, new, [5.0], "one run").promoted  # one run, however good
    with pytest.raises(RefusedDeployment):
        site.service.deploy(new)
    almost = site.add("almost")
    assert not judged(site, almost, gains_of(-0.001, n=40), "slightly worse").promoted
    better = site.add("better")
    assert judged(site, better, gains_of(0.02, n=40), "better").promoted
    assert {site.service.served(name) for name in AGENTS} == {old}
    assert site.service.deploy(better).stage == "shadow"
    assert {site.service.served(name) for name in AGENTS} == {old}


def test_12_a_rollout_goes_by_hash_is_watched_and_comes_back_by_itself(site):
    old, new = site.ready("old", "new")
    site.service.deploy(new)
    salt = site.service.advance("canary").salt
    chosen = [name for name in AGENTS if site.service.served(name) == new]
    assert 3 <= len(chosen) <= 50
    assert chosen != AGENTS[: len(chosen)]
    assert chosen == [name for name in AGENTS if in_canary(name, salt, 10.0)]
    for k in range(60):
        if site.service.observe(f"e{k}", 0.01, -0.02).action == "roll_back":
            break
    assert 1 < k < 59
    assert {site.service.served(name) for name in AGENTS} == {old}
    with site.store.database.reading() as session:
        found = [(row.model_id, row.stage, row.status) for row in session.query(ModelDeployment)]
    assert found == [
        (old, "full", "active"),
        (new, "shadow", "replaced"),
        (new, "canary", "rolled_back"),
    ]
    assert site.registry.ledger.check_history() == ()


def pair_by_pair(policy, snapshots):
    """Return what a policy is expected to earn on each snapshot."""
    return np.array(
        [
            MARKET.expected(
                policy,
                SignalSnapshots(
                    snapshots.moves[k : k + 1], snapshots.seen[k : k + 1], snapshots.luck[k : k + 1]
                ),
            )
            for k in range(len(snapshots.moves))
        ]
    )


def test_14_a_gain_counts_against_a_control_and_beyond_chance(site, store, tmp_path):
    old = site.add("old")
    site.service.install(old)
    lucky = [3.0, *gains_of(0.0, n=23)]
    assert np.mean(lucky) > 0.1
    verdict = judged(site, site.add("lucky"), lucky, "luck")
    assert not verdict.promoted
    assert "superiority" in verdict.sentence
    assert judged(site, site.add("steady"), gains_of(0.1, n=24), "skill").promoted

    def trained(job_id, start, **control):
        batch_id = f"batch-{job_id}"
        record(store, groups=16, size=8, policy=start)
        chosen = TrajectoryFilter(agent_version=start.version)
        store.batches.claim(BatchRequest(batch_id=batch_id, chosen=chosen))
        folder = JobFolder(tmp_path / job_id)
        job = TrainingJob(job_id=job_id, **control)
        learn(job, folder, NeuralLearner(start), store.read_batch(batch_id), CONFIG)
        return NeuralPolicy.load(folder.policy)

    sealed = MARKET.snapshots(Seeds(9).child("sealed"), 40)
    first = trained("first", POLICY)
    control = trained("control", first, shuffle_rewards=True)
    assert control.version != first.version
    start, middle, end = (pair_by_pair(one, sealed) for one in (POLICY, first, control))
    assert judged(site, site.add("first"), (middle - start).tolist(), "first").promoted
    assert not judged(site, site.add("control"), (end - middle).tolist(), "control").promoted


def test_15_three_wins_of_three_are_no_evidence(site):
    old, new = site.add("old"), site.add("new")
    site.service.install(old)
    verdict = judged(site, new, [0.5, 0.6, 0.7])
    assert not verdict.promoted
    assert "3 pairs" in verdict.sentence or "3 sealed pairs" in verdict.sentence, verdict.sentence
    with pytest.raises(RefusedDeployment):
        site.service.deploy(new)
    assert {site.service.served(name) for name in AGENTS} == {old}
