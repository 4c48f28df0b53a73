"""Every planted defect is found by its check, and its healthy twin is left alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from agent_gym.core.registry import Ref
from agent_gym.evaluation.audit import audit
from tests.evaluation import audit_clocks as clocks
from tests.evaluation import audit_learners as learners
from tests.evaluation import audit_networks as nets
from tests.evaluation import audit_samples as samples
from tests.evaluation import audit_signals as signals
from tests.evaluation import audit_worlds as worlds
from tests.evaluation.audit_samples import BARS, subject_of
from tests.samples import random_bars

HERE, ELSEWHERE = "determinism here", "determinism elsewhere"
LESSONS = 6
QUIET = random_bars(360, 5, kind="spot", sigma=0.002)  # no bar in which the leak would act
SPECIAL = {
    HERE: Ref(use="determinism", params={"processes": 0}),
    ELSEWHERE: Ref(use="determinism", params={"processes": 1, "episodes": 1}),
}


@cache  # several defects have the same twin
def report_on(subject, check):
    return audit(replace(subject, lessons=LESSONS), [SPECIAL.get(check, check)])


def late_volume():
    """Bars whose volume tells of the bar before: turned round it tells of the next."""
    moves = np.append(0.0, np.diff(np.log(BARS.close)))
    return replace(BARS, volume=np.where(np.roll(moves, 1) > 0.0, 2e6, 5e5))


def on(world, agent=None):
    return subject_of(agent, world=world)


def optioned(factory):
    return subject_of(factory, config=samples.OptionsConfig())


PLANTED = {
    # defect: (broken, healthy twin, check, severity, words of the finding)
    "no policy gradient": (
        subject_of(nets.NoPolicyGradient),
        subject_of(nets.Trader),
        "learning",
        "error",
        "never move: policy.0.weight",
    ),
    "broadcast loss": (
        subject_of(nets.Broadcast),
        subject_of(nets.Forecaster),
        "learning",
        "error",
        "does not learn the planted bandit",
    ),
    "sign error": (
        subject_of(nets.SignError),
        subject_of(nets.Trader),
        "learning",
        "error",
        "the wrong way round",
    ),
    "look-ahead fit": (
        subject_of(samples.LookAheadFit),
        subject_of(samples.Follower),
        "look-ahead",
        "error",
        "looks ahead",
    ),
    "series one bar off": (
        subject_of(samples.Peeker),
        subject_of(samples.Follower),
        "look-ahead",
        "error",
        "looks ahead",
    ),
    "sparse look-ahead": (
        subject_of(samples.SparsePeeker),
        subject_of(samples.SparseFollower),
        "look-ahead",
        "error",
        "looks ahead",
    ),
    "sparse look-ahead in a quiet market": (
        subject_of(samples.SparsePeeker, bars=QUIET),
        subject_of(samples.SparseFollower, bars=QUIET),
        "look-ahead",
        "error",
        "looks ahead",
    ),
    "look-ahead feature": (
        on(worlds.Centred, worlds.MoveFollower),
        on(worlds.Paper, worlds.MoveFollower),
        "look-ahead",
        "error",
        "move changed before the bars",
    ),
    "look-ahead world on its own": (
        on(worlds.Centred),
        on(worlds.Paper),
        "look-ahead",
        "error",
        "cannot know yet: move",
    ),
    "back door to the data": (
        on(samples.taped_world, samples.BackDoor),
        on(samples.taped_world, samples.CountsAnew),
        "look-ahead",
        "error",
        "all that was seen is the same",
    ),
    "two doors, two minds": (
        subject_of(samples.TwoMinds),
        subject_of(samples.Follower),
        "look-ahead",
        "error",
        "targets() and act() decide differently",
    ),
    "leak canary": (
        subject_of(samples.Greedy),
        subject_of(samples.FixedWidth),
        "leak-canary",
        "error",
        "takes whatever column",
    ),
    "column of another bar": (
        subject_of(samples.VolumeReader, bars=late_volume()),
        subject_of(samples.Follower, bars=late_volume()),
        "time-reversal",
        "warning",
        "reverse order",
    ),
    "dead option": (
        optioned(samples.DeadOption),
        optioned(samples.Optioned),
        "options",
        "error",
        "option memory changes nothing",
    ),
    "constant feature": (
        on(worlds.ConstantColumn, worlds.VolumeFollower),
        on(worlds.Paper, worlds.VolumeFollower),
        "features",
        "error",
        "volume is constant at 1000",
    ),
    "constant inside": (
        subject_of(samples.ConstantInside),
        subject_of(samples.Follower),
        "features",
        "warning",
        "needs volume",
    ),
    "padded zeros": (
        on(worlds.Padded, worlds.Whole),
        on(worlds.Paper, worlds.Whole),
        "features",
        "error",
        "pad_0 is all zero",
    ),
    "padded zeros in a world on its own": (
        on(worlds.Padded),
        on(worlds.Masked),
        "features",
        "error",
        "pad_3 is all zero",
    ),
    "padded inputs of a network": (
        subject_of(nets.PaddedInputs),
        subject_of(nets.Trader),
        "learning",
        "warning",
        "75% of the columns of policy.0.weight never move",
    ),
    "masked values are read": (
        subject_of(samples.MaskIgnorer),
        subject_of(samples.MaskHonourer),
        "features",
        "warning",
        "masked as unknown",
    ),
    "reward against cash": (
        on(worlds.AgainstCash),
        on(worlds.Paper),
        "accounting",
        "error",
        "reward is not the change of equity",
    ),
    "same-bar fill": (
        on(worlds.SameBar),
        on(worlds.Paper),
        "accounting",
        "error",
        "at the close on which they were decided",
    ),
    "lost fee": (
        on(worlds.LostFee),
        on(worlds.Paper),
        "accounting",
        "error",
        "lost or counted twice",
    ),
    "equity that is not there": (
        on(worlds.OldMark),
        on(worlds.Paper),
        "accounting",
        "error",
        "not cash plus position",
    ),
    "dropout while acting": (
        subject_of(nets.Dropping),
        subject_of(nets.Undropped),
        "evaluation-mode",
        "error",
        "training mode",
    ),
    "noise while acting": (
        subject_of(nets.HandmadeNoise),
        subject_of(nets.Trader),
        "evaluation-mode",
        "warning",
        "keeps getting other decisions",
    ),
    "save without a network": (
        subject_of(nets.HalfSaved),
        subject_of(nets.Trader),
        "save-load",
        "error",
        "policy.0.weight",
    ),
    "saved as a pickle": (
        subject_of(learners.Pickler),
        subject_of(learners.Linear),
        "save-load",
        "error",
        "holds pickles",
    ),
    "global generator of NumPy": (
        subject_of(samples.GlobalDice),
        subject_of(samples.SeededDice),
        HERE,
        "error",
        "global generator",
    ),
    "global generator of Python": (
        subject_of(samples.PlainGlobalDice),
        subject_of(samples.SeededDice),
        HERE,
        "error",
        "global generator",
    ),
    "global generator of torch": (
        subject_of(nets.GlobalInit),
        subject_of(nets.Trader),
        HERE,
        "error",
        "global generator",
    ),
    "randomness of the system": (
        subject_of(samples.Address),
        subject_of(samples.SeededDice),
        HERE,
        "error",
        "Two runs with the same seed",
    ),
    "the hour of the machine": (
        subject_of(clocks.ClockWatcher),
        subject_of(clocks.TimesItself),
        HERE,
        "error",
        "depend on the clock of the machine",
    ),
    "the weekday of the machine": (
        subject_of(clocks.CalendarReader),
        subject_of(clocks.SessionTrader),
        HERE,
        "error",
        "depend on the clock of the machine",
    ),
    "one hour of the day": (
        subject_of(clocks.NightWorker),
        subject_of(clocks.TimesItself),
        HERE,
        "error",
        "depend on the clock of the machine",
    ),
    "the day of the import": (
        subject_of(clocks.BornLate),
        subject_of(clocks.TimesItself),
        ELSEWHERE,
        "error",
        "Another process whose clock is ahead",
    ),
    "order of a set": (
        subject_of(samples.HashOrder),
        subject_of(samples.SortedOrder),
        ELSEWHERE,
        "error",
        "Another process",
    ),
    "memory in the class": (
        subject_of(samples.SharedMemory),
        subject_of(samples.Follower),
        HERE,
        "error",
        "plays beside it",
    ),
    "memory that survives reset": (
        subject_of(samples.KeepsCounting),
        subject_of(samples.CountsAnew),
        HERE,
        "error",
        "After reset()",
    ),
    "non-pure act": (
        subject_of(samples.Scribbler),
        subject_of(samples.Follower),
        "purity",
        "error",
        "writes into the observations",
    ),
    "decisions that change later": (
        subject_of(samples.OneArray),
        subject_of(samples.NewArray),
        "purity",
        "error",
        "change after they were handed over",
    ),
    "clamped metric": (
        subject_of(signals.Clamped),
        subject_of(signals.Unclamped),
        "clamps",
        "warning",
        "lambda sits at 0.46",
    ),
    "metric that reaches its clamp late": (
        subject_of(signals.LateClamped),
        subject_of(signals.Unclamped),
        "clamps",
        "warning",
        "lambda sits at 0.46",
    ),
    "metric that is never filled": (
        subject_of(signals.NeverFilled),
        subject_of(signals.Unclamped),
        "clamps",
        "warning",
        "never filled",
    ),
    "clipped weights": (
        subject_of(learners.ClippedWeights),
        subject_of(learners.Linear),
        "clamps",
        "warning",
        "in slope are exactly at its largest size",
    ),
    "loss that stands still": (
        subject_of(learners.StillLoss),
        subject_of(learners.Linear),
        "learning",
        "error",
        "loss squared stands still",
    ),
}
NAMES = list(PLANTED)


def test_there_are_enough_defects():
    assert len(PLANTED) >= 15


@pytest.mark.parametrize("defect", NAMES)
def test_the_defect_is_found(defect):
    broken, _, check, severity, words = PLANTED[defect]
    report = report_on(broken, check)
    found = [f for f in report.findings(severity) if words in f.what]
    assert len(found) == 1, report.as_dict()
    assert found[0].fix
    assert found[0].evidence or severity == "unchecked"
    assert report.failed == (severity == "error")


@pytest.mark.parametrize("defect", NAMES)
def test_the_healthy_twin_is_left_alone(defect):
    _, healthy, check, _, _ = PLANTED[defect]
    report = report_on(healthy, check)
    assert report.findings("error", "warning") == ()
    assert report.findings("fine")
    assert not report.failed
