from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from agent_gym.agents.desk import RecentContext
from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.training.desk import (
    DriftMonitor,
    ModelStore,
    PromotionConfig,
    RetrainingConfig,
    RetrainingLoop,
    TrainingModule,
)
from agent_gym.training.desk.planted import PlantedLaw, draw, store_planted
from tests.training.learning_samples import QUICK

HOUR, DAY, SPACING = 3600.0, 86_400.0, 1800.0
LAW = PlantedLaw((1.8, -1.4), 0.0, decoys=1)
SHORT = PromotionConfig(shadow_signals=60, shadow_days=1.0)


class Desk:
    """A desk with a planted law, its loop, and a time that goes on."""

    def __init__(self, folder: Path, law: PlantedLaw = LAW, **config: object) -> None:
        self.ctx = RecentContext(maxlen=100_000)
        self.training = TrainingModule(self.ctx, config=QUICK)
        chosen = RetrainingConfig(**({"horizon": "1h", "promotion": SHORT} | config))
        clock = ManualClock()
        self.store = ModelStore(folder, clock)
        self.loop = RetrainingLoop(self.training, config=chosen, store=self.store, clock=clock)
        self.now = 0.0
        self.live(700, law)

    def live(self, n: int, law: PlantedLaw = LAW, shift: float = 0.0) -> None:
        drawn = draw(law, n, Seeds(round(self.now)))
        drawn.X[:, -1] += shift  # of a column that tells nothing
        self.now = store_planted(self.ctx, drawn, start=self.now, spacing_s=SPACING)
        self.now += 3 * HOUR

    def run(self, **how: object):
        return self.loop.run_retraining(now=self.now, **how)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def promoted(folder: Path, **config: object) -> Desk:
    desk = Desk(folder, **config)
    assert desk.run().status == "shadow"
    desk.live(70)
    assert desk.run().status == "promoted"
    return desk


def test_from_shadow_to_office_and_back(tmp_path):
    desk = Desk(tmp_path)
    first = desk.run()
    assert first.status == "shadow"
    assert first.triggers == ("time: never trained", "volume: 700 new labels")
    assert desk.store.champion() is None
    again = desk.run()
    assert (again.status, again.reason) == ("skipped", "no trigger")
    desk.live(40)
    assert desk.run().status == "skipped"  # neither the signals nor the days are enough
    desk.live(40)
    report = desk.run()
    assert report.status == "promoted"
    assert report.champion == first.challenger == desk.store.champion().version
    assert [r.kind for r in desk.store.actions()] == ["shadow", "skipped", "promoted"]


def test_rollback_restores_bytes(tmp_path):
    desk = promoted(tmp_path)
    before = (tmp_path / "champion.json").read_bytes()
    models = {k: v for k, v in content(tmp_path).items() if k.startswith("models")}
    first = desk.store.champion().version
    desk.live(30)
    other = desk.training.train_model(desk.training.prepare_dataset(desk.now - DAY, "1h"))
    desk.store.promote(desk.store.add(other.model, other.manifest))
    assert desk.store.champion().version == other.model.version != first
    assert desk.loop.rollback() == first
    assert (tmp_path / "champion.json").read_bytes() == before
    after = content(tmp_path)
    assert all(after[name] == body for name, body in models.items())
    assert desk.store.champion().version == first
    assert desk.loop.rollback() is None
    assert desk.store.champion() is None
    with pytest.raises(StoreError, match="no champion"):
        desk.loop.rollback()
    assert [r.kind for r in desk.store.actions()][-2:] == ["rolled_back", "rolled_back"]


def test_a_held_lock_is_said_and_nothing_is_done(tmp_path):
    desk = Desk(tmp_path)
    with (tmp_path / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        report = desk.run()
        assert (report.status, report.reason) == ("locked", "another retraining is under way")
        with pytest.raises(StoreError, match="under way"):
            desk.loop.rollback()
        assert content(tmp_path) == {}
    assert desk.run().status == "shadow"


@pytest.mark.parametrize("error", [RuntimeError("out of luck"), MemoryError(), StoreError("full")])
def test_a_crash_in_training_leaves_the_champion(tmp_path, monkeypatch, error):
    desk = promoted(tmp_path)
    office = (tmp_path / "champion.json").read_bytes()
    version = desk.store.champion().version
    desk.live(250)

    def crash(*_args, **_how):
        raise error

    monkeypatch.setattr("agent_gym.training.desk.training.build", crash)
    report = desk.run()
    assert report.status == "failed"
    assert type(error).__name__ in report.reason
    assert "the champion stays" in report.reason
    assert (tmp_path / "champion.json").read_bytes() == office
    assert desk.store.champion().version == version
    assert desk.store.actions()[-1].kind == "failed"
    assert desk.run().reason == "cooling down for 24 h after the last attempt"
    monkeypatch.undo()
    assert desk.run(reason="try again").status in {"candidate", "shadow"}


def test_over_budget_is_a_failure(tmp_path):
    desk = Desk(tmp_path, budget_s=1e-9)

    class Slow(ManualClock):
        def monotonic_s(self) -> float:
            self.sleep_s(1.0)
            return super().monotonic_s()

    desk.loop._clock = Slow()
    report = desk.run()
    assert report.status == "failed"
    assert "training takes too long" in report.reason


def test_dry_run_changes_nothing(tmp_path):
    desk = Desk(tmp_path)
    report = desk.run(dry_run=True)
    assert (report.status, report.reason) == ("dry_run", "would be shadow")
    assert content(tmp_path) == {}
    assert desk.run().status == "shadow"
    desk.live(70)
    before = content(tmp_path)
    assert desk.run(dry_run=True).reason == "would be promoted"
    assert content(tmp_path) == before


def test_triggers_by_time_volume_hand_and_their_limits(tmp_path):
    desk = Desk(tmp_path, PlantedLaw.null(0.5, 3))
    assert desk.run().status == "candidate"
    assert desk.run(reason="I say so").reason == "nothing new since the last training"
    desk.live(20, PlantedLaw.null(0.5, 3))
    assert desk.run().reason == "no trigger"
    by_hand = desk.run(reason="I say so")
    assert (by_hand.status, by_hand.triggers) == ("candidate", ("manual: I say so",))
    desk.live(200, PlantedLaw.null(0.5, 3))
    by_volume = desk.run()
    assert "volume: 200 new labels" in by_volume.triggers
    desk.live(10, PlantedLaw.null(0.5, 3))
    assert desk.run().reason == "no trigger"
    desk.now += 7 * DAY
    assert desk.run().triggers == ("time: a period has passed",)
    assert desk.loop.run_retraining(now=0.0).reason == "this time lies before the last attempt"


def test_drift_asks_for_training_and_may_put_the_champion_on_hold(tmp_path):
    desk = promoted(tmp_path, hold_on_drift=True)
    assert not desk.store.champion().on_hold
    desk.live(150, LAW.turned())
    report = desk.run()
    assert any(name.startswith("drift: ") for name in report.triggers)
    assert "loss" in {alarm.sensor for alarm in report.drift}
    assert desk.store.champion().on_hold
    assert report.status in {"candidate", "shadow"}
    desk.loop.rollback()
    assert not (tmp_path / "hold.json").exists()


def test_moving_features_do_not_end_a_shadow_but_rising_losses_do(tmp_path):
    desk = Desk(tmp_path, promotion=PromotionConfig())  # a shadow of 200 signals and 7 days
    first = desk.run().challenger
    desk.live(210, shift=2.0)
    report = desk.run()
    assert (report.status, report.reason, report.drift) == ("skipped", "no trigger", ())
    assert desk.store.state().shadow.version == first
    data = desk.training.prepare_dataset(desk.now, "1h")
    watched = desk.store.model(first)
    heard = DriftMonitor(watched, data.feature_names).follow(data.take(data.t > watched.as_of))
    assert "ks" in {alarm.sensor for alarm in heard}  # it was there, and passed over
    desk.live(100, LAW.turned(), shift=2.0)
    report = desk.run()
    assert {alarm.sensor for alarm in report.drift} <= {"loss", "ece"}
    assert any(name.startswith("drift: loss") or "ece" in name for name in report.triggers)


def test_too_little_data_is_an_answer(tmp_path):
    ctx = RecentContext()
    ctx.store_signal(
        {"signal_id": "signal1", "strategy": "m", "params": {"amount": 0.1}, "timestamp": 1.0}
    )
    loop = RetrainingLoop(TrainingModule(ctx), ctx, store=tmp_path)
    report = loop.run_retraining(now=DAY)
    assert report.status == "insufficient"
    assert "200 are needed" in report.reason
    json.dumps(report.as_dict(), allow_nan=False)


def test_a_thin_shadow_ends_after_a_while(tmp_path):
    desk = Desk(tmp_path)
    assert desk.run().status == "shadow"
    desk.now += 61 * DAY
    report = desk.run()
    assert report.status == "retired"
    assert "it took too long; shadow: 0 of 60" in report.reason


def test_a_challenger_that_fails_in_its_shadow_is_retired(tmp_path):
    desk = Desk(tmp_path)
    assert desk.run().status == "shadow"
    desk.live(80, LAW.turned())
    report = desk.run()
    assert report.status == "retired"
    assert "no better than accept_none in its shadow" in report.reason
    assert desk.store.champion() is None


def test_a_log_that_was_touched_is_refused(tmp_path):
    desk = Desk(tmp_path)
    desk.run()
    log = tmp_path / "actions.jsonl"
    log.write_text(log.read_text().replace("shadow", "shadoW", 1))
    with pytest.raises(StoreError, match="chain"):
        desk.store.actions()


def test_a_crash_between_promotion_and_note_is_mended(tmp_path):
    desk = Desk(tmp_path)
    version = desk.run().challenger
    desk.store.promote(version)  # and then the power fails
    desk.live(70)
    assert desk.run().status in {"skipped", "candidate"}
    assert desk.store.state().shadow is None
    assert desk.store.champion().version == version


def test_the_loop_repeats_itself(tmp_path):
    versions = [Desk(tmp_path / name).run().challenger for name in ("a", "b")]
    assert versions[0] == versions[1]
    first, second = content(tmp_path / "a"), content(tmp_path / "b")
    assert first.keys() == second.keys()
    same = [name for name in first if first[name] == second[name]]
    assert {n for n in first if n.endswith(("model.npz", "state.json"))} <= {*same}
