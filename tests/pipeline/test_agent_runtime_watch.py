"""A rollout is watched while agents live on it, and taken back when they show harm."""

import pytest

from agent_gym.pipeline.runtime import stored_calls
from agent_gym.pipeline.runtime import watch as module
from tests.pipeline.service_samples import TICKS, Loop


@pytest.fixture
def loop(tmp_path):
    made = Loop(tmp_path)
    yield made
    made.close()


def lived(loop, markets, **given):
    with loop.runtime(**given) as runtime:
        runtime.add("ann", points=TICKS * markets)
        for _ in range(TICKS * markets):
            runtime.tick()


def pairs(loop):
    return loop.deployments.state().rollout.stage_pairs


def test_a_market_at_its_best_is_one_more_pair(loop):
    loop.install()
    loop.promote(5)
    before = pairs(loop)
    lived(loop, 2, explore=0.0)
    assert pairs(loop) == before + 2


def test_what_was_drawn_says_nothing(loop):
    loop.install()
    loop.promote(5)
    before = pairs(loop)
    lived(loop, 1, explore=1.0)
    assert pairs(loop) == before


def test_harm_takes_a_served_model_back(loop, monkeypatch):
    first = loop.install()
    new = loop.promote(5)
    assert loop.deployments.state().champion == new
    monkeypatch.setattr(module, "best_return", lambda model, snapshot: 5.0)  # it did far better
    lived(loop, 12, explore=0.0)
    assert loop.deployments.state().champion == first
    models = [each.call.model for each in stored_calls(loop.store, agent_id="ann")]
    assert models[0] == new
    assert models[-1] == first


def test_a_watch_that_fails_costs_no_market(loop, monkeypatch, caplog):
    loop.install()
    loop.promote(5)

    def fails(model, snapshot):
        raise OSError("no disk")

    monkeypatch.setattr(module, "best_return", fails)
    lived(loop, 1, explore=0.0)
    assert len(loop.store.page().rows) == 1
    assert "was not told of a market" in caplog.text
