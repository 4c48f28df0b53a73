"""Kills at every point of a rollout, and several processes at once; children are forks."""

import os
import shutil
import signal
import sys

import pytest
from sqlalchemy import event, func, select
from sqlalchemy.engine import Engine

from agent_gym.pipeline.registry import RefusedDeployment
from agent_gym.pipeline.registry.tables import PAIRS, ROLLOUTS
from agent_gym.rollouts.database import ModelDeployment, TrainedModel
from tests.pipeline.registry_samples import Site

WATCHED = {"open", "os.rename", "os.mkdir", "os.link", "os.remove", "os.rmdir", "sqlite3.connect"}


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


def rollout(site):
    """The whole way of a model; every step may be asked for again after a kill."""
    old, new = site.add("old"), site.add("new")
    site.service.install(old)
    if site.registry.sealed.verdict(new) is None:
        site.judge(new)
    if "rolled back" not in [entry.event for entry in site.service.history()]:
        site.service.deploy(new)
        if site.service.state().rollout.stage == "shadow":
            site.service.advance("canary")
        for i in range(3):
            site.service.observe(f"e{i}", 0.0, 0.01)
        site.service.advance("full")
        site.service.rollback("drill")
    return old, new


def outcome(site):
    state = site.service.state()
    with site.store.database.reading() as session:
        counts = [
            session.scalar(select(func.count()).select_from(table))
            for table in (TrainedModel, ModelDeployment, ROLLOUTS, PAIRS)
        ]
    events = [entry.event for entry in site.service.history()]
    return (state.champion, state.previous, state.rollout, counts, events)


def in_child(work):
    """Run something in a fork; return its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = work()
        finally:
            os._exit(code or 0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def killed_at(folder, point):
    """Run the rollout in a child that is killed at its nth touch of disk or database."""
    left = [point]

    def touch(*_):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def work():
        sys.addaudithook(lambda name, _: touch() if name in WATCHED else None)
        event.listen(Engine, "before_cursor_execute", touch)
        event.listen(Engine, "after_cursor_execute", touch)
        event.listen(Engine, "commit", touch)
        rollout(Site(folder))
        return 7 if left[0] > 0 else 0

    return in_child(work)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("whole"))
    rollout(site)
    found = outcome(site)
    site.close()
    return found


def points_in_all(folder):
    low, high = 1, 64
    while killed_at(folder / f"size {high}", high) != 7:
        low, high = high, 2 * high
    while high - low > high // 16:  # so that few of the points that are tried lie beyond the end
        middle = (low + high) // 2
        if killed_at(folder / f"size {middle}", middle) == 7:
            high = middle
        else:
            low = middle
    return low, high


def test_a_kill_at_any_point_leaves_old_or_new_and_going_on_ends_the_same(tmp_path, expected):
    last, beyond = points_in_all(tmp_path)
    tried = sorted({*range(1, beyond, max(1, beyond // 40)), last})
    killed = 0
    for point in tried:
        folder = tmp_path / f"point {point}"
        folder.mkdir()
        code = killed_at(folder, point)
        assert code in (-signal.SIGKILL, 7)
        killed += code == -signal.SIGKILL
        site = Site(folder)
        assert site.registry.ledger.check_history() == ()
        check_consistent(site)
        rollout(site)
        champion, previous, under_way, counts, events = outcome(site)
        assert (champion, previous, under_way) == expected[:3]
        assert (counts, events) == expected[3:]
        assert site.registry.verify() == ()
        site.close()
        shutil.rmtree(folder)
    assert killed >= 30


def check_consistent(site):
    """Whatever was kept is a state of the rollout, and the tables of the store agree with it."""
    state, events = site.service.state(), [entry.event for entry in site.service.history()]
    assert (state.champion is None) == ("installed" not in events)
    with site.store.database.reading() as session:
        active = session.execute(
            select(ModelDeployment.model_id, ModelDeployment.stage).where(
                ModelDeployment.status == "active"
            )
        ).all()
    full = [model for model, stage in active if stage == "full"]
    assert full == ([] if state.champion is None else [state.champion])
    if state.rollout is not None and state.rollout.stage != "full":
        assert (state.rollout.model, state.rollout.stage) in [tuple(row) for row in active]
    if state.champion is not None:
        assert site.registry.load(state.champion).model_hash == state.champion


def race(folder, works):
    """Start children that wait for one another, then act; return their exit codes."""
    ready, go = os.pipe()
    children = []
    for work in works:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.close(go)
                os.read(ready, 1)  # ends when the parent closes its end
                code = work(Site(folder))
            finally:
                os._exit(code)
        children.append(child)
    os.close(ready)
    os.close(go)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def deploying(model):
    def work(site):
        try:
            site.service.deploy(model)
        except RefusedDeployment:
            return 3
        return 0

    return work


def test_two_processes_never_both_win(tmp_path):
    site = Site(tmp_path)
    models = site.ready("one", "two", "three", "four")
    site.close()
    codes = race(tmp_path, [deploying(model) for model in models[1:]])
    assert sorted(codes) == [0, 3, 3]
    again = Site(tmp_path)
    assert again.service.state().rollout.model == models[1 + codes.index(0)]
    assert again.registry.ledger.check_history() == ()
    with again.store.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(ROLLOUTS)) == 1


def test_the_same_wish_of_many_processes_is_one_effect(tmp_path):
    site = Site(tmp_path)
    _, new = site.ready("one", "two")
    site.close()

    def work(site):
        site.add("fresh")
        site.service.deploy(new)
        site.service.advance("canary")
        site.service.observe("the same episode", 0.0, 0.01)
        site.registry.sealed.spend("another set", "candidate")
        return 0

    assert race(tmp_path, [work] * 3) == [0, 0, 0]
    again = Site(tmp_path)
    assert [model.version for model in again.registry.models()] == ["v1.0.0", "v1.0.1", "v1.0.2"]
    events = [entry.event for entry in again.service.history()]
    for told in ("deployed", "advanced"):
        assert events.count(told) == 1
    assert events.count("registered") == 3
    assert again.service.state().rollout.monitor.decision().pairs == 1
    assert len(again.registry.sealed.looks("another set")) == 1
    assert again.registry.verify() == ()
