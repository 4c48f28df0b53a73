import pytest
from sqlalchemy import select, text

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.evaluation.promotion import alpha_of, judge_promotion
from agent_gym.pipeline.registry import (
    ModelDeploymentService,
    RefusedDeployment,
    RolloutPolicy,
    SealedSetSpent,
    in_canary,
)
from agent_gym.rollouts.database import ModelDeployment, TrainedModel
from tests.pipeline.registry_samples import Site, evidence_of, gains_of


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


def served(site, n=300):
    return [site.service.served(f"agent-{i}") for i in range(n)]


def events(site):
    return [entry.event for entry in site.service.history()]


def rows(site, table, *columns):
    with site.store.database.reading() as session:
        return [tuple(row) for row in session.execute(select(*columns).order_by(table.id))]


def test_a_rollout_goes_through_shadow_and_canary_to_all(site):
    old, new = site.ready("old", "new")
    assert set(served(site)) == {old}
    assert site.service.deploy(new).stage == "shadow"
    assert set(served(site)) == {old}
    rollout = site.service.advance("canary")
    chosen = [in_canary(f"agent-{i}", rollout.salt, 10.0) for i in range(300)]
    assert [model == new for model in served(site)] == chosen
    assert 10 <= sum(chosen) <= 55
    site.service.advance("full")
    state = site.service.state()
    assert (state.champion, state.previous) == (new, old)
    assert set(served(site)) == {new}
    assert rows(site, TrainedModel, TrainedModel.model_id, TrainedModel.status) == [
        (old, "archived"),
        (new, "deployed"),
    ]
    kept = rows(
        site, ModelDeployment, ModelDeployment.stage, ModelDeployment.traffic_share,
        ModelDeployment.status,
    )  # fmt: skip
    assert kept == [
        ("full", 1.0, "replaced"),
        ("shadow", 0.0, "replaced"),
        ("canary", 0.1, "replaced"),
        ("full", 1.0, "active"),
    ]
    assert site.registry.ledger.check_history() == ()


def test_rollback_drill(site):
    """Harm in full service: one transaction, the old model answers everybody, and it stays so."""
    old, new, third = site.ready("old", "new", "third")
    site.service.deploy(new)
    site.service.advance("canary")
    site.service.advance("full")
    assert set(served(site)) == {new}
    decisions = [site.service.observe(f"e{i}", 0.01, -0.02) for i in range(60) if _open(site)]
    assert [decision.action for decision in decisions[-2:]] == ["keep", "roll_back"]
    assert len(decisions) <= 40
    state = site.service.state()
    assert (state.champion, state.previous, state.rollout) == (old, None, None)
    assert set(served(site)) == {old}
    last = site.service.history()[-1]
    assert (last.event, last.data["model"], last.data["champion"]) == ("rolled back", new, old)
    assert last.data["reason"].startswith("automatic: roll back:")
    assert site.registry.load(old).model_hash == old  # kept warm
    with pytest.raises(RefusedDeployment, match=r"cools down .*60 s are left"):
        site.service.deploy(third)
    site.clock.advance_ns(61 * SECOND_NS)
    with pytest.raises(RefusedDeployment, match="rolled back before"):
        site.service.deploy(new)
    assert site.service.deploy(third).model == third
    assert site.registry.ledger.check_history() == ()


def _open(site):
    return site.service.state().rollout is not None


@pytest.mark.parametrize("stage", ["shadow", "canary"])
def test_a_rollback_before_full_service_leaves_the_champion(site, stage):
    old, new = site.ready("old", "new")
    site.service.deploy(new)
    if stage == "canary":
        site.service.advance("canary")
        assert new in served(site)
    state = site.service.rollback("looks odd")
    assert (state.champion, state.rollout) == (old, None)
    assert set(served(site)) == {old}
    status = rows(site, ModelDeployment, ModelDeployment.model_id, ModelDeployment.status)
    assert status[0] == (old, "active")
    assert status[-1] == (new, "rolled_back")
    with pytest.raises(RefusedDeployment, match="nothing to roll back"):
        site.service.rollback("again")  # never forward to the bad one


def test_a_former_champion_can_be_named(site):
    one, two, three = site.ready("one", "two", "three")
    assert site.service.ways_back() == frozenset()
    site.service.deploy(two)
    assert site.service.ways_back() == frozenset()  # the champion serves, two never did
    site.service.advance("canary")
    site.service.advance("full")
    site.judge(three, sealed_set="later")
    site.service.deploy(three)
    assert site.service.ways_back() == {one}
    for wrong in (three, two[::-1]):
        with pytest.raises((RefusedDeployment, ConfigError)):
            site.service.rollback("no", wrong)
    state = site.service.rollback("two was bad all along", one)
    assert (state.champion, state.rollout) == (one, None)
    assert site.service.ways_back() == frozenset()  # two was champion, and was taken back
    for failed in (two, three):
        with pytest.raises(RefusedDeployment):
            site.service.rollback("no", failed)
    site.clock.advance_ns(61 * SECOND_NS)
    with pytest.raises(RefusedDeployment, match="rolled back before"):
        site.service.deploy(two)


def test_a_duplicate_deploy_is_one_effect(site):
    old, new = site.ready("old", "new")
    first = site.service.deploy(new)
    told = len(site.service.history())
    assert site.service.deploy(new) == first
    for stage in ("canary", "full"):
        reached = site.service.advance(stage)
        assert site.service.advance(stage) == reached
    assert site.service.deploy(new).stage == "full"
    assert site.service.install(old).champion == new
    assert len(site.service.history()) == told + 2
    assert len(rows(site, ModelDeployment, ModelDeployment.id)) == 4


def test_only_one_rollout_at_a_time(site):
    _, two, three = site.ready("one", "two", "three")
    site.service.deploy(two)
    with pytest.raises(RefusedDeployment, match="another rollout is under way"):
        site.service.deploy(three)
    with pytest.raises(RefusedDeployment, match="one after the other"):
        site.service.advance("full")
    site.service.advance("canary")
    site.service.advance("full")
    with pytest.raises(RefusedDeployment, match="another champion"):
        site.service.deploy(three)  # it has won against one, not against two


def test_completed_is_not_deployed(site):
    """Defect 11: training that has ended puts nothing into service; only the gate does."""
    old, new, worse = site.add("old"), site.add("new"), site.add("worse")
    with pytest.raises(RefusedDeployment, match="no champion"):
        site.service.deploy(new)
    with pytest.raises(RefusedDeployment, match="no model serves"):
        site.service.served("agent")
    site.service.install(old)
    with pytest.raises(RefusedDeployment, match="champion already"):
        site.service.install(new)
    with pytest.raises(RefusedDeployment, match="has not judged"):
        site.service.deploy(new)
    assert not site.judge(worse, mean=-0.005).promoted
    with pytest.raises(RefusedDeployment, match="promoted: no, because superiority"):
        site.service.deploy(worse)
    assert set(served(site)) == {old}
    assert site.judge(new).promoted
    assert site.service.deploy(new).model == new


def test_one_good_run_is_not_enough(site):
    """Defect 11, later form: one run within 95 % of the best is no evidence."""
    old, new = site.add("old"), site.add("new")
    site.service.install(old)
    look = site.registry.sealed.spend("sealed", new)
    verdict = judge_promotion(evidence_of([0.05], old, new), look)
    site.registry.sealed.record(look, verdict)
    with pytest.raises(RefusedDeployment, match="1 sealed pairs are fewer than the 20"):
        site.service.deploy(new)


def test_a_candidate_that_failed_does_not_shop_for_another_sealed_set(site):
    old, new = site.add("old"), site.add("new")
    site.service.install(old)
    assert not site.judge(new, mean=0.001, sealed_set="first").promoted
    assert site.judge(new, mean=0.02, sealed_set="second").promoted
    with pytest.raises(RefusedDeployment, match="promoted: no, because superiority"):
        site.service.deploy(new)


def test_the_canary_is_no_list(site):
    """Defect 12: the share is by a hash of each agent, in any order, and grows without leaving."""
    agents = [f"agent-{i}" for i in range(1_000)]
    ten = {agent for agent in agents if in_canary(agent, "salt", 10.0)}
    assert {agent for agent in reversed(agents) if in_canary(agent, "salt", 10.0)} == ten
    assert ten != set(agents[:100])
    assert 60 <= len(ten) <= 140
    assert ten < {agent for agent in agents if in_canary(agent, "salt", 30.0)}
    other = {agent for agent in agents if in_canary(agent, "other", 10.0)}
    assert len(ten & other) < 40  # not always the same agents bear the risk
    before = {agent: site_share(agent) for agent in agents[:50]}
    assert {agent: site_share(agent) for agent in reversed(agents[:50])} == before


def site_share(agent):
    return in_canary(agent, "salt", 50.0)


def test_an_episode_counts_once(site):
    _, new = site.ready("old", "new")
    with pytest.raises(RefusedDeployment, match="no rollout"):
        site.service.observe("e0", 0.0, 0.0)
    site.service.deploy(new)
    assert site.service.observe("e1", 0.01, 0.0).pairs == 1
    assert site.service.observe("e1", 0.01, 0.0).pairs == 1
    with pytest.raises(DataError, match="told before with other returns"):
        site.service.observe("e1", 0.01, 0.5)
    assert site.service.observe("e2", 0.01, 0.0).pairs == 2
    for i in range(3, 60):
        if not _open(site):
            break
        last = (f"e{i}", site.service.observe(f"e{i}", 0.05, 0.0))
    assert last[1].action == "roll_back"
    assert site.service.observe(last[0], 0.05, 0.0) == last[1]  # told again after a kill
    with pytest.raises(RefusedDeployment, match="no rollout"):
        site.service.observe("late", 0.05, 0.0)
    assert events(site).count("rolled back") == 1


def test_stages_ask_for_evidence(site):
    _, new = site.ready("old", "new")
    service = ModelDeploymentService(
        site.registry, RolloutPolicy(min_pairs_shadow=2, min_pairs_canary=1)
    )
    service.deploy(new)
    service.observe("e1", 0.0, 0.01)
    with pytest.raises(RefusedDeployment, match=r"too little .* in shadow .*1 paired .*at least 2"):
        service.advance("canary")
    service.observe("e2", 0.0, 0.01)
    service.advance("canary")
    with pytest.raises(RefusedDeployment, match="in canary"):
        service.advance("full")
    service.observe("e3", 0.0, 0.01)
    assert service.advance("full").stage == "full"


def test_the_rollout_of_another_model_is_not_touched(site):
    _, new = site.ready("old", "new")
    site.service.deploy(new)
    with pytest.raises(RefusedDeployment, match="another model is rolled out"):
        site.service.observe("e1", 0.0, 0.1, "0" * 64)
    with pytest.raises(RefusedDeployment, match="another model is rolled out"):
        site.service.advance("canary", "0" * 64)
    assert site.service.observe("e1", 0.0, 0.1, new).action == "keep"


def test_a_set_that_shares_a_snapshot_is_as_worn_as_the_other(site):
    sealed = site.registry.sealed
    first = sealed.spend("set", "a", members=["s1", "s2"])
    grown = sealed.spend("grown", "b", members=["s1", "s2", "s3"])
    assert (first.number, grown.number) == (1, 2)
    assert grown.alpha < first.alpha
    assert sealed.spend("apart", "b", members=["s4"]).number == 1
    assert sealed.spend("newest", "c", members=["s3"]).number == 2


def test_every_look_is_counted_and_spends_its_share(site):
    site.add("old")
    sealed = site.registry.sealed
    looks = [sealed.spend("set", f"candidate-{i}") for i in range(5)]
    assert [look.number for look in looks] == [1, 2, 3, 4, 5]
    assert [look.alpha for look in looks] == [alpha_of(k) for k in range(1, 6)]
    assert sum(look.alpha for look in looks) < 0.05
    assert sealed.spend("set", "candidate-1") == looks[1]  # the same look, not a new one
    assert sealed.spend("other set", "candidate-1").number == 1
    assert events(site).count("sealed look") == 6
    with pytest.raises(ConfigError, match="one error rate"):
        sealed.spend("set", "candidate-9", alpha=0.1)


def test_the_sealed_budget_outlives_the_process_and_ends(tmp_path):
    first = Site(tmp_path, max_looks=2)
    first.registry.sealed.spend("set", "one")
    first.close()
    again = Site(tmp_path, max_looks=2)
    assert [look.candidate for look in again.registry.sealed.looks("set")] == ["one"]
    assert again.registry.sealed.spend("set", "two").number == 2
    with pytest.raises(SealedSetSpent, match="fresh sealed set"):
        again.registry.sealed.spend("set", "three")
    assert again.registry.sealed.spend("set", "one").number == 1
    assert again.registry.sealed.spend("fresh", "three").number == 1


def test_a_verdict_stands(site):
    old, new = site.add("old"), site.add("new")
    sealed = site.registry.sealed
    look = sealed.spend("sealed", new)
    bad = judge_promotion(evidence_of(gains_of(-0.01), old, new), look)
    good = judge_promotion(evidence_of(gains_of(0.03), old, new), look)
    assert (bad.promoted, good.promoted) == (False, True)
    sealed.record(look, bad)
    sealed.record(look, bad)
    with pytest.raises(DataError, match="one verdict"):
        sealed.record(look, good)
    assert sealed.verdict(new) == bad
    assert events(site).count("verdict") == 1
    uncounted = look.model_copy(update={"number": 2, "alpha": alpha_of(2)})
    with pytest.raises(DataError, match="never counted"):
        sealed.record(uncounted, good.model_copy(update={"look": 2, "alpha": alpha_of(2)}))
    with pytest.raises(DataError, match="another look"):
        sealed.record(uncounted, good)


def test_history_is_only_added_to_and_notices_every_change(site):
    old, new = site.ready("old", "new")
    site.service.deploy(new)
    database = site.store.database
    for statement in (
        "update registry_history set event = 'nothing' where position = 2",
        "delete from registry_history where position = 2",
    ):
        with (
            pytest.raises(StoreError, match="only added to"),
            database.writing() as db,
        ):
            db.execute(text(statement))
    assert site.registry.ledger.check_history() == ()
    with database.writing() as db:
        db.execute(text("drop trigger registry_history_no_update"))
        db.execute(text("drop trigger registry_history_no_delete"))
        db.execute(text("update registry_history set event = 'nothing' where position = 2"))
    assert site.registry.ledger.check_history() == ("entry 2 (nothing) was changed",)
    with database.writing() as db:
        db.execute(text("update registry_history set event = 'registered' where position = 2"))
        db.execute(text("delete from registry_history where position = 6"))
    assert "5 are left" in site.registry.ledger.check_history()[0]
    with database.writing() as db:
        db.execute(text("delete from registry_history where position = 3"))
    assert site.registry.ledger.check_history() == ("entry 3 is missing",)
    assert "history: entry 3 is missing" in site.registry.verify()
    assert site.service.state().champion == old


def test_a_rollback_says_why(site):
    site.ready("old")
    with pytest.raises(RefusedDeployment, match="has a reason"):
        site.service.rollback("  ")
