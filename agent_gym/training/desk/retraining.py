"""RetrainingLoop: trains again when there is a reason to, and never worsens what is in office."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from msgspec.structs import replace as changed

from agent_gym.agents.desk.context import RecentContext
from agent_gym.core.clock import SECOND_NS, Clock, SystemClock
from agent_gym.core.errors import AgentGymError, StoreError
from agent_gym.training.desk.config import DAY_S, RetrainingConfig
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.drift import DriftAlarm, DriftMonitor, Sensor
from agent_gym.training.desk.model import DeskModel
from agent_gym.training.desk.online import prequential
from agent_gym.training.desk.promotion import PromotionRule, Ruling
from agent_gym.training.desk.store import LoopState, ModelStore, Shadow, default_root
from agent_gym.training.desk.training import TrainingModule, TrainResult
from agent_gym.training.desk.triggers import cooling, triggers

Status: TypeAlias = Literal[
    "skipped",
    "locked",
    "insufficient",
    "failed",
    "candidate",
    "shadow",
    "promoted",
    "retired",
    "dry_run",
]


class OverBudgetError(AgentGymError):
    """Training took longer than it may."""


@dataclass(frozen=True, slots=True)
class RetrainReport:
    """What one run of the loop did, and why.

    ``candidate`` failed the rule and is only kept; ``shadow`` passed it and now watches;
    ``retired`` failed after its shadow; ``dry_run`` says what would have been done.
    """

    status: Status
    reason: str
    at: float
    triggers: tuple[str, ...] = ()
    champion: str | None = None
    challenger: str | None = None
    drift: tuple[DriftAlarm, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "status": self.status,
            "reason": self.reason,
            "at": self.at,
            "triggers": list(self.triggers),
            "champion": self.champion,
            "challenger": self.challenger,
            "drift": [alarm.as_dict() for alarm in self.drift],
            "details": self.details,
        }


class RetrainingLoop:
    """Looks whether to train again, trains, and promotes by the rule.

    Call ``run_retraining`` as often as you like, from cron or after each batch of outcomes: without
    a reason, or with nothing new, it does nothing and says so.

    Args:
        training: Prepares tables and trains.
        ctx: What the desk remembers; None takes the one of ``training``.
        config: When to train, and the rule of promotion.
        store: Where acceptors are kept, or that folder.
        clock: Tells the time if ``run_retraining`` is not told it, and measures the budget.
    """

    def __init__(
        self,
        training: TrainingModule,
        ctx: RecentContext | None = None,
        config: RetrainingConfig | None = None,
        *,
        store: ModelStore | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.training = training
        self.ctx = ctx or training.ctx
        self.config = config or RetrainingConfig()
        self._clock = clock or SystemClock()
        kept = store or default_root()
        self.store = kept if isinstance(kept, ModelStore) else ModelStore(kept, self._clock)
        self._rule = PromotionRule(self.config.promotion, training.config, training.seeds)

    def run_retraining(
        self, now: float | None = None, reason: str | None = None, dry_run: bool = False
    ) -> RetrainReport:
        """Run the loop once.

        Args:
            now: Epoch seconds; nothing known later is used. By default the clock's time.
            reason: A person's reason to train now; it counts as a trigger and ends a cool-down.
            dry_run: Say what would be done, train if need be, change nothing.
        """
        moment = self._clock.now_ns() / SECOND_NS if now is None else now
        with self.store.lock() as alone:
            if not alone:
                return RetrainReport("locked", "another retraining is under way", moment)
            report = self._run(moment, reason, dry_run)
            if not dry_run:
                self._log(report)
            return report

    def rollback(self) -> str | None:
        """Put the last champion back into office; a challenger in shadow is sent away."""
        with self.store.lock() as alone:
            if not alone:
                raise StoreError(
                    "another retraining is under way",
                    where=str(self.store.root),
                    remedy="Wait until it has ended",
                )
            back_to = self.store.rollback()
            self.store.remember(changed(self.store.state(), shadow=None))
            return back_to

    def _log(self, report: RetrainReport) -> None:
        """Seal what was done; a skip only if the one before was not for the same reason."""
        if report.status == "skipped":
            last = self.store.actions()[-1:]
            if last and (last[0].kind, last[0].body.get("reason")) == ("skipped", report.reason):
                return
        self.store.log(report.status, report.as_dict())

    def _run(self, now: float, reason: str | None, dry_run: bool) -> RetrainReport:
        state = self.store.state()
        champion = self.store.champion()
        blank = RetrainReport(
            "skipped", "", now, champion=None if champion is None else champion.version
        )
        if state.attempted_at is not None and now < state.attempted_at:
            return replace(blank, reason="this time lies before the last attempt")
        dataset = self.training.prepare_dataset(as_of=now, horizon=self.config.horizon)
        if state.shadow is not None:
            ended = self._review(blank, state, champion, dataset, dry_run)
            if ended is not None:
                return ended
        alarms = self._alarms(champion, dataset, state)
        found = triggers(self.config, state, now, dataset, alarms, reason)
        report = replace(
            blank,
            triggers=found,
            drift=tuple(alarms),
            challenger=None if state.shadow is None else state.shadow.version,
        )
        quiet = self._quiet(report, state, dataset, reason)
        if quiet:
            return replace(report, reason=quiet)
        return self._train(report, state, dataset, dry_run)

    def _quiet(
        self, report: RetrainReport, state: LoopState, dataset: Dataset, reason: str | None
    ) -> str:
        """Return why nothing is trained now, empty if something is."""
        if not report.triggers:
            return "no trigger"
        if dataset.hash == state.dataset_hash:
            return "nothing new since the last training"
        if reason is None and cooling(self.config, state, report.at):
            return f"cooling down for {self.config.cool_down_hours:g} h after the last attempt"
        return ""

    def _alarms(
        self, champion: DeskModel | None, dataset: Dataset, state: LoopState
    ) -> list[DriftAlarm]:
        """Return the alarms over what came after the model was made, newer than the last fit.

        While a challenger is in shadow it is the one that is followed, and only by what it says:
        features that go on moving must not send one challenger after the other away.
        """
        watched, heard = champion, get_args(Sensor)
        if state.shadow is not None:
            watched, heard = self.store.model(state.shadow.version), ("loss", "ece")
        rows = dataset if watched is None else dataset.take(dataset.t > watched.as_of)
        monitor = DriftMonitor(
            watched, dataset.feature_names, self.config.drift, self.training.seeds
        )
        last = -math.inf if state.trained_at is None else state.trained_at
        found = monitor.follow(rows)
        return [alarm for alarm in found if alarm.at > last and alarm.sensor in heard]

    def _review(
        self,
        blank: RetrainReport,
        state: LoopState,
        champion: DeskModel | None,
        dataset: Dataset,
        dry_run: bool,
    ) -> RetrainReport | None:
        """Promote or retire a challenger whose shadow is over; None while it goes on."""
        shadow = state.shadow
        if shadow is None:
            return None
        if champion is not None and champion.version == shadow.version:
            self.store.remember(changed(state, shadow=None))  # a crash came after the promotion
            return None
        lacks = self._rule.shadowed(dataset.take(dataset.t > shadow.since))
        if lacks and blank.at - shadow.since <= self.config.promotion.shadow_max_days * DAY_S:
            return None
        if lacks:
            ruling = Ruling(False, (f"it took too long; {lacks}",), {})
        else:
            unseen = dataset.take(dataset.t >= shadow.unseen_from)
            model = self.store.model(shadow.version)
            ruling = self._rule.review(model, champion, unseen, shadow.since)
        report = replace(
            blank,
            status="promoted" if ruling.passed else "retired",
            reason="; ".join(ruling.reasons) or "better in its shadow too",
            challenger=shadow.version,
            details={"shadow": ruling.as_dict()},
        )
        if dry_run:
            return replace(report, status="dry_run", reason=f"would be {report.status}")
        if ruling.passed:
            self.store.promote(shadow.version)
            report = replace(report, champion=shadow.version)
        self.store.remember(changed(state, shadow=None))
        return report

    def _train(
        self, report: RetrainReport, state: LoopState, dataset: Dataset, dry_run: bool
    ) -> RetrainReport:
        if not dry_run:
            state = changed(state, attempted_at=report.at)
            self.store.remember(state)
            if self.config.hold_on_drift and report.drift and state.shadow is None:
                self.store.hold(f"drift: {report.drift[0].sensor}")
        champion = self.store.champion()
        try:
            result = self.training.train_model(dataset, champion, on_stage=self._budget())
            ruling = self._judged(result, champion)
        except Exception as error:  # noqa: BLE001 - the border at which a failed stage is a record
            why = f"{type(error).__name__}: {error}"
            return replace(report, status="failed", reason=f"{why}; the champion stays")
        if result.model is None or ruling is None:
            return replace(
                report,
                status="insufficient",
                reason=result.reason,
                details={"dataset": dataset.as_dict()},
            )
        report = replace(
            report,
            status="shadow" if ruling.passed else "candidate",
            reason="; ".join(ruling.reasons) or "passed; it now watches in shadow",
            challenger=result.model.version,
            details={
                "training": result.as_dict(),
                "ruling": ruling.as_dict(),
                "companion": prequential(dataset),
            },
        )
        if dry_run:
            return replace(report, status="dry_run", reason=f"would be {report.status}")
        self._keep(report, result, state)
        return report

    def _judged(self, result: TrainResult, champion: DeskModel | None) -> Ruling | None:
        if result.model is None or result.test is None:
            return None
        return self._rule.judge(result.model, champion, result.test)

    def _keep(self, report: RetrainReport, result: TrainResult, state: LoopState) -> None:
        if result.model is None or result.test is None:
            return
        version = self.store.add(result.model, result.manifest)
        shadow = state.shadow
        if report.status == "shadow":
            shadow = Shadow(version, report.at, float(result.test.t[0]))
        self.store.remember(
            changed(state, trained_at=report.at, dataset_hash=result.dataset.hash, shadow=shadow)
        )

    def _budget(self) -> Any:
        end = self._clock.monotonic_s() + self.config.budget_s

        def check(stage: str) -> None:
            if self._clock.monotonic_s() > end:
                raise OverBudgetError(
                    "training takes too long",
                    where=f"before stage {stage}",
                    expected=f"{self.config.budget_s:g} s",
                    remedy="Allow a larger budget_s, or a shorter window_days",
                )

        return check
