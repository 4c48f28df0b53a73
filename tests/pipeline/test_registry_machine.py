"""The pointer as a state machine: whatever is asked in whatever order, its laws hold."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agent_gym.core.clock import SECOND_NS
from agent_gym.pipeline.registry import RefusedDeployment
from tests.pipeline.registry_samples import Site

NAMES = ("a", "b", "c", "d")
STAGES = ("shadow", "canary", "full")
AGENTS = [f"agent-{i}" for i in range(12)]


class PointerMachine(RuleBasedStateMachine):
    """Holds a model of the registry that is simple enough to be right."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.site = Site(self.folder)
        self.hashes, self.failed, self.beaten = {}, set(), {}
        self.champion = self.rollout = None
        self.until_ns, self.told = 0, 0

    def teardown(self):
        assert self.site.registry.verify() == ()
        self.site.close()
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self):
        self.hashes = {name: self.site.add(name) for name in NAMES}
        self.site.service.install(self.hashes["a"])
        self.champion = "a"

    @rule(name=st.sampled_from(NAMES))
    def judge(self, name):
        if (name, self.champion) not in self.beaten and name != self.champion:
            number = len(self.beaten)
            verdict = self.site.judge(self.hashes[name], sealed_set=f"set-{number}")
            assert verdict.promoted
            self.beaten[name, self.champion] = True

    @rule(name=st.sampled_from(NAMES))
    def deploy(self, name):
        under_way = self.rollout is not None and self.rollout[0] == name
        allowed = under_way or (
            name != self.champion
            and name not in self.failed
            and (self.rollout is None or self.rollout[1] == "full")
            and self.site.clock.now_ns() >= self.until_ns
            and (name, self.champion) in self.beaten
        )
        if not allowed:
            with pytest.raises(RefusedDeployment):
                self.site.service.deploy(self.hashes[name])
            return
        made = self.site.service.deploy(self.hashes[name])
        if not under_way:
            self.rollout = (name, "shadow", self.champion)
        assert made.stage == self.rollout[1]

    @rule(stage=st.sampled_from(STAGES))
    def advance(self, stage):
        there = None if self.rollout is None else STAGES.index(self.rollout[1])
        if there is None or STAGES.index(stage) not in (there, there + 1):
            with pytest.raises(RefusedDeployment):
                self.site.service.advance(stage)
            return
        self.site.service.advance(stage)
        name, _, before = self.rollout
        self.rollout = (name, stage, before)
        if stage == "full":
            self.champion = name

    @rule()
    def roll_back(self):
        if self.rollout is None:
            with pytest.raises(RefusedDeployment):
                self.site.service.rollback("drill")
            return
        self.site.service.rollback("drill")
        self._taken_back()

    @precondition(lambda self: self.rollout is not None)
    @rule()
    def harm(self):
        for episode in range(100):
            key = f"{len(self.site.service.history())}-{episode}"
            if self.site.service.observe(key, 0.03, -0.03).action == "roll_back":
                self._taken_back()
                return
        raise AssertionError("harm was not found")

    @rule(seconds=st.sampled_from([1, 61]))
    def wait(self, seconds):
        self.site.clock.advance_ns(seconds * SECOND_NS)

    @rule()
    def restart(self):
        self.site.close()
        clock, self.site = self.site.clock, Site(self.folder)
        self.site.clock.advance_ns(clock.now_ns() - self.site.clock.now_ns())

    @invariant()
    def agrees(self):
        if not self.hashes:
            return
        state = self.site.service.state()
        assert state.champion == self.hashes[self.champion]
        found = None if state.rollout is None else (state.rollout.model, state.rollout.stage)
        model = None if self.rollout is None else (self.hashes[self.rollout[0]], self.rollout[1])
        assert found == model
        allowed = {state.champion}
        if self.rollout is not None and self.rollout[1] == "canary":
            allowed.add(self.hashes[self.rollout[0]])
        served = {self.site.service.served(agent) for agent in AGENTS}
        assert served <= allowed
        assert not served & {self.hashes[name] for name in self.failed}
        told = len(self.site.service.history())
        assert told >= self.told  # history never shrinks
        self.told = told

    def _taken_back(self):
        name, stage, before = self.rollout
        if stage == "full":
            self.champion = before
        self.failed.add(name)
        self.rollout = None
        self.until_ns = self.site.clock.now_ns() + 60 * SECOND_NS


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


PointerMachine.TestCase.settings = settings(max_examples=8, stateful_step_count=18, deadline=None)
TestPointer = PointerMachine.TestCase
