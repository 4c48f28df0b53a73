"""Recorded play that goes wrong on chosen snapshots, for workers of their own."""

import os

from agent_gym.core.clock import SystemClock
from agent_gym.pipeline.automation.recording import RecordedPlay

ENDINGS = "AGENT_GYM_TEST_ENDINGS"


class ClumsyPlay(RecordedPlay):
    """Does what the environment says for its snapshot, in the middle of its episodes."""

    def run(self):
        ending = dict(said.split("=") for said in os.environ[ENDINGS].split(",")).get(
            self.snapshot.name.partition(".")[0]
        )
        if ending == "dies":
            self.model_copy(update={"repeats": 1}).played()
            os._exit(9)
        while ending == "hangs":
            SystemClock().sleep_s(0.05)
        return self.played()

    def played(self):
        return RecordedPlay.run(self)
