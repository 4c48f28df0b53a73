"""The same registry on a real PostgreSQL."""

import pytest
from sqlalchemy import text

from agent_gym.core.errors import StoreError
from agent_gym.pipeline.registry import RefusedDeployment
from tests.pipeline.registry_samples import Site
from tests.rollouts import postgres


@pytest.fixture(scope="module")
def url():
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = postgres.new_server()
    yield server.url(server.new_database())
    postgres.end(server)


def test_a_rollout_and_its_history_are_the_same_on_postgresql(url, tmp_path):
    site = Site(tmp_path, url=url)
    old, new = site.ready("old", "new")
    site.service.deploy(new)
    site.service.advance("canary")
    assert site.service.observe("e1", 0.0, 0.01).pairs == 1
    assert site.service.observe("e1", 0.0, 0.01).pairs == 1
    site.service.advance("full")
    assert site.service.served("agent") == new
    assert site.service.rollback("drill").champion == old
    with pytest.raises(RefusedDeployment, match="cools down"):
        site.service.deploy(new)
    for statement in ("update registry_history set event = 'x'", "truncate registry_history"):
        with pytest.raises(StoreError, match="only added to"), site.store.database.writing() as db:
            db.execute(text(statement))
    site.close()
    again = Site(tmp_path, url=url)
    assert again.registry.verify() == ()
    events = [entry.event for entry in again.service.history()]
    assert events[-1] == "rolled back"
    assert len(events) == 9
    again.close()
