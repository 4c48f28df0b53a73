"""A job keeps the settings that it began with; a control is judged and never served."""

import pytest

from agent_gym.core.errors import AgentGymError
from agent_gym.pipeline.automation import stages
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness import workspace
from agent_gym.pipeline.harness.workspace import LoopFolder
from tests.pipeline.kill_points import CONFIG, JOB, Inline, fixed_duel, opened, prepare


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace, "make_executor", Inline)
    monkeypatch.setattr(stages, "duel", fixed_duel(0.1))
    monkeypatch.setattr(stages, "replay_equal", lambda model, snapshot: True)
    prepare(tmp_path)
    return tmp_path


def done(place, job):
    with opened(place) as work, running(work, LoopFolder(place).workflows(work.store)) as runtime:
        return runtime.run(job), work.champion()


def test_its_own_settings_hold_whoever_goes_on_with_it(place):
    job = JOB.model_copy(update={"config": CONFIG.model_copy(update={"rounds": 1})})
    outcome, _ = done(place, job)  # those of the process have two rounds
    assert len(outcome.stages["training"]["rounds"]) == 1
    assert not (place / "jobs" / "job" / "round-1").exists()


def test_a_control_that_passes_is_not_served(place):
    with opened(place) as work:
        before = work.champion()
    outcome, champion = done(place, JOB.model_copy(update={"shuffle_rewards": True}))
    assert outcome.ending == "control passed"
    assert champion == before


def test_a_rehearsal_with_lost_episodes_deploys_nothing(place, monkeypatch):
    good = fixed_duel(0.1)

    def lossy(champion, challenger, snapshots, executor, progress):
        found = good(champion, challenger, snapshots, executor, progress)
        lost = ("challenger on x: timeout",) if "rehearsal" in snapshots[0].parts else ()
        return type(found)(found.pairs, found.figures, lost)

    with monkeypatch.context() as patch:
        patch.setattr(stages, "duel", lossy)
        with pytest.raises(AgentGymError, match="episodes of the rehearsal failed"):
            done(place, JOB)
    outcome, champion = done(place, JOB)  # nothing stands in its way
    assert outcome.ending == "promoted"
    assert champion == outcome.challenger
