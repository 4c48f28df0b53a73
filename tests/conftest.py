"""Settings that all tests share."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("shared")

# Read as doctests they would be imported a second time, under another name, and register twice.
collect_ignore_glob = ["*_samples.py", "*/tiny_scenarios.py"]
