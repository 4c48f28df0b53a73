"""Language models go through the same loop: they play, are recorded, learn, are judged, answer."""

import pytest

from agent_gym.agents.artifact import read_manifest
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.listening import Silence
from agent_gym.pipeline.harness import snapshots
from agent_gym.pipeline.harness.options import HarnessOptions
from agent_gym.pipeline.harness.run import run_harness
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.rollouts.database import TrajectoryFilter

pytest.importorskip("transformers", reason="the extra llm is not installed")
pytest.importorskip("peft", reason="the extra llm is not installed")
TINY = pytest.importorskip("agent_gym.training.llm.tiny")

SMALL = HarnessOptions(agents=1, snapshots=2, repeats=6, rounds=2, sealed=35, force=True)
SIZE = {"duration_minutes": 20, "tick_interval_s": 60, "prediction_markets": 1}


pytestmark = pytest.mark.timeout(900)  # its processes each load a language model, on any machine


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    place = tmp_path_factory.mktemp("llm")
    base = TINY.make_tiny(place / "tiny", Seeds(0))
    folder = LoopFolder(place / "loop")
    with pytest.MonkeyPatch.context() as patch:
        small = lambda config, params, where: SnapshotConfig(**params, **SIZE)  # noqa: E731
        patch.setattr(snapshots, "configure", small)
        options = SMALL.model_copy(update={"llm": str(base)})
        outcome = run_harness(options, folder, Silence())
        yield folder, outcome


def test_it_plays_learns_and_is_judged(loop):
    folder, outcome = loop
    assert outcome.job.ending in ("promoted", "not promoted"), outcome.job.reason
    rounds = outcome.job.stages["training"]["rounds"]
    assert [one["trajectories"] for one in rounds] == [12, 8]
    assert outcome.job.challenger != outcome.champion_before
    with folder.opened(AutomationConfig()) as stages:
        for model in (outcome.champion_before, outcome.job.challenger):
            assert read_manifest(stages.registry.load(model).folder).kind == "llm"
        pairs = stages.evidence(outcome.job.job_id).pairs
        assert len(pairs) == 35
        assert {pair.champion for pair in pairs} == {0.0}  # it prefers to hold nothing


def test_every_question_and_answer_is_kept(loop):
    folder, outcome = loop
    with folder.opened(AutomationConfig()) as stages:
        rows = stages.store.page(TrajectoryFilter(purpose="training"), limit=100).rows
        calls = [call for row in rows for call in stages.store.calls(row.trajectory_id)]
        assert calls
        assert {call.response for call in calls} <= {"SELL", "FLAT", "BUY"}
        assert {call.model_version for call in calls} >= {outcome.champion_before}


def test_agents_are_answered_by_the_model_that_serves(loop):
    _, outcome = loop
    served = outcome.job.challenger if outcome.promoted else outcome.champion_before
    assert outcome.answered == {"agent-0": served}
    assert outcome.rollout_verified, outcome.rollout_words


def test_a_network_does_not_go_on_where_a_language_model_serves(loop):
    folder, _ = loop
    with pytest.raises(ConfigError, match="of another kind serves here"):
        run_harness(SMALL, folder, Silence())
