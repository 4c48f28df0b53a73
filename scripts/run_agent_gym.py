"""Play a suite of scenarios and report it: the same as ``agent-gym run``."""

import sys

from agent_gym.apps.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "run")
    main()
