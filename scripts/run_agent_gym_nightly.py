"""Play the nightly suite and compare it with the baseline: the same as ``agent-gym nightly``."""

import sys

from agent_gym.apps.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "nightly")
    main()
