"""Why a model cannot go further, told before anybody tries."""

import pytest

from agent_gym.core.clock import SECOND_NS
from agent_gym.pipeline.registry import ModelDeploymentService, RefusedDeployment, RolloutPolicy
from tests.pipeline.registry_samples import Site


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    made = Site(tmp_path)
    yield made
    made.close()


def test_a_refusal_is_told_before_it_is_asked_for(site):
    """What a look says is what the change raises, and a look changes nothing."""
    service = site.service

    def agrees(model, stage, words):
        before = (service.state(), len(service.history()))
        told = service.refusal(model, stage)
        assert (service.state(), len(service.history())) == before
        with pytest.raises(RefusedDeployment, match=words) as raised:
            service.deploy(model) if stage == "shadow" else service.advance(stage, model)
        assert told.as_dict() == raised.value.as_dict()

    old, new, third, worse = (site.add(name) for name in ("old", "new", "third", "worse"))
    agrees(new, "shadow", "no champion")
    service.install(old)
    agrees(old, "shadow", "champion already")
    agrees(new, "shadow", "has not judged")
    assert not site.judge(worse, mean=-0.005, sealed_set="a").promoted
    agrees(worse, "shadow", "has not let this model through")
    assert site.judge(new, sealed_set="b").promoted
    assert site.judge(third, sealed_set="c").promoted
    agrees(new, "canary", "no rollout is under way")
    assert service.refusal(new, "shadow") is None
    service.deploy(new)
    agrees(third, "shadow", "another rollout is under way")
    agrees(third, "canary", "another model is rolled out")
    assert service.refusal(new, "canary") is None
    patient = ModelDeploymentService(site.registry, RolloutPolicy(min_pairs_shadow=3))
    assert patient.refusal(new, "canary").found == "0 paired episodes"
    service.rollback("drill")
    agrees(third, "shadow", "cools down")
    site.clock.advance_ns(61 * SECOND_NS)
    agrees(new, "shadow", "rolled back before")
    assert service.refusal(third, "shadow") is None
    service.deploy(third)
