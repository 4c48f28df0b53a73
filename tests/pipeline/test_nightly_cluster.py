"""A suite on a cluster that loses a node: the report has the bytes of the local run."""

import pytest
from nightly_samples import asked, clock_at, contents, stand_still, tiny_suite

from agent_gym.pipeline.nightly import Workspace, prepare, run_suite
from agent_gym.pipeline.nightly.run import Silence
from agent_gym.rollouts.choice import executing

pytestmark = pytest.mark.alone


class Killing(Silence):
    """Kills a node when some episodes are there."""

    def __init__(self, kill, after):
        self.kill, self.left = kill, after

    def advance(self, scenario, n=1, error=None):
        before, self.left = self.left, self.left - n
        if before > 0 >= self.left:
            self.kill()


def report(home, watch, workers):
    suite = tiny_suite(n_seeds=60)
    found = run_suite(asked(suite, workers=workers), Workspace(home), clock=clock_at(), watch=watch)
    return found, contents(home)


def test_the_report_does_not_depend_on_a_node_that_is_lost(cluster, tmp_path, monkeypatch):
    # Workers of tests are forked from a server that has loaded much, those of a node are not.
    monkeypatch.setattr(prepare, "code_identity", stand_still)
    here, ours = report(tmp_path / "here", Silence(), 1)
    for _ in range(2):
        cluster.add()
    watch = Killing(cluster.kill, after=40)
    try:
        with executing("ray", cluster.address):
            there, theirs = report(tmp_path / "there", watch, 3)
    finally:
        cluster.shrink()
    assert watch.left <= 0
    assert here.exit_code == there.exit_code == 0
    assert theirs == ours
