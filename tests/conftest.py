"""Settings that all tests share."""

import multiprocessing
import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("shared")

# The server from which worker processes are forked has these ready; each would import them anew.
multiprocessing.set_forkserver_preload(
    [
        "agent_gym.pipeline.automation.recording",
        "agent_gym.pipeline.nightly.crew",
        "agent_gym.training.rl.jobs",
    ]
)

# Read as doctests they would be imported a second time, under another name, and register twice.
collect_ignore_glob = ["*_samples.py", "*/tiny_scenarios.py"]
