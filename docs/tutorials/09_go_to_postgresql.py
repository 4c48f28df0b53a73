"""Go to PostgreSQL: record the same episodes in SQLite and in PostgreSQL, and read the same back.

Run it with ``python docs/tutorials/09_go_to_postgresql.py``. It needs ``agent-gym[service]`` and
the programs of PostgreSQL (on Debian: ``apt-get install postgresql``). The server that it starts
lives in a temporary folder, listens on no network and is gone afterwards.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_gym.agents import Independent
from agent_gym.core import Ref, Seeds, make
from agent_gym.core.clock import SystemClock
from agent_gym.core.types import Role
from agent_gym.envs import MarketConfig, MarketWorld
from agent_gym.markets.source import open_market
from agent_gym.rollouts import run_episode
from agent_gym.rollouts.database import TrajectoryContext, TrajectoryRecorder, TrajectoryStore

# 1. A server to throw away. You have one already: then its URL is all you need.
places = [
    *filter(None, [shutil.which("initdb")]),
    *Path("/usr/lib/postgresql").glob("*/bin/initdb"),
]
if not places:
    sys.exit("this needs PostgreSQL: no initdb was found. On Debian: apt-get install postgresql")
programs = Path(places[0]).resolve().parent
known = {each.pw_name for each in pwd.getpwall()}
user = None if os.geteuid() else ("postgres" if "postgres" in known else "nobody")  # never as root


def serve(place: Path) -> subprocess.Popen[bytes]:
    """Start a server in a folder, reachable by a socket in it alone."""
    shutil.chown(place, user or os.geteuid())
    init = [
        programs / "initdb",
        "-D",
        place / "data",
        "--username=gym",
        "--auth=trust",
        "--no-sync",
    ]
    subprocess.run(init, user=user, cwd=place, check=True, stdout=subprocess.DEVNULL)
    settings = ("listen_addresses=", "port=5432", f"unix_socket_directories={place}", "fsync=off")
    words = [word for setting in settings for word in ("-c", setting)]
    with (place / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", place / "data", *words], user=user, cwd=place, stderr=log
        )
    while not (place / ".s.PGSQL.5432").exists() and server.poll() is None:
        SystemClock().sleep_s(0.05)
    return server


# 2. What is played: four episodes of a rule. Nothing in it knows where it is kept.
bars = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 1_000}), Seeds(7))
world = MarketWorld(MarketConfig(episode_bars=200), bars)
team = Independent({Role("trader"): make("agent", Ref(use="rules/momentum"))})


def record(store: TrajectoryStore) -> list[tuple[object, ...]]:
    """Play into a store and return what is read back from it."""
    with TrajectoryRecorder(store) as recorder:
        for seed in range(4):
            recorder.begin(TrajectoryContext(snapshot_id="btc", agent_version="v1", seed=seed))
            run_episode(world, team, f"episode-{seed}", Seeds(seed), [recorder])
    kept = []
    for row in store.page(sort="total_reward").rows:
        steps = store.steps(row.trajectory_id)
        kept.append((row.trajectory_id, row.seed, len(steps), row.total_reward, steps.reward.sum()))
    return kept


# 3. Twice the same: without a URL the store is SQLite in its folder, with one it is PostgreSQL.
#    Steps lie in files beside it either way. Tables are made when it is opened.
with tempfile.TemporaryDirectory(prefix="pg-") as name:
    folder = Path(name)
    folder.chmod(0o755)  # the user of the server must get through
    (folder / "server").mkdir()
    server = serve(folder / "server")
    url = f"postgresql://gym@/postgres?host={folder / 'server'}"
    try:
        with TrajectoryStore.open(folder=folder / "sqlite") as store:
            in_sqlite = record(store)
        with TrajectoryStore.open(url, folder=folder / "postgresql") as store:
            in_postgresql = record(store)
    finally:
        server.terminate()
        server.wait(60)

# 4. The same figures, to the last bit, and the same ids: an id is a hash of what was played.
print(f"{'trajectory':<34} seed  steps      SQLite  PostgreSQL")
for one, other in zip(in_sqlite, in_postgresql, strict=True):
    print(f"{one[0]:<34} {one[1]:>4}  {one[2]:>5}  {one[3]:+10.6f}  {other[3]:+10.6f}")
print(f"all rows and steps the same: {'yes' if in_sqlite == in_postgresql else 'NO'}")
print("\nYour server: export AGENT_GYM_DATABASE=postgresql://USER@HOST/NAME")
print("Then the commands that keep trajectories (harness, serve, sandbox, judge) use it.")
