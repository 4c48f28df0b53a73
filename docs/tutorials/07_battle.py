"""Battle: train a team for a moment, record a battle, prove that it happened, and watch it.

Run it with ``python docs/tutorials/07_battle.py``. It needs ``agent-gym[rl]``. Three marines fight
three others. So short a training wins next to nothing; docs/results/marl.md has long ones.
"""

import shutil

from agent_gym.core import DataError
from agent_gym.core.files import home, write_text
from agent_gym.envs.battle import MAPS
from agent_gym.evaluation.battle import (
    ScriptPlayer,
    Start,
    behaviour,
    film_of,
    open_team,
    read_replay,
    record,
    verify,
    write_replay,
)
from agent_gym.reporting.battle import viewer_page
from agent_gym.training.marl import shipped_config, train_team

folder = home() / "tutorials" / "07_battle"
shutil.rmtree(folder, ignore_errors=True)

# 1. Train with MAPPO: 1,600 steps, a hundredth and less of what it takes.
few = {"episodes": 8, "final_episodes": 50}
training = train_team(
    shipped_config("mappo", {"env_steps": 1_600, "evaluation": few}), folder / "team"
)
final = training.final
print(f"mappo on 3m, {training.env_steps:,} steps")
print(f"  won {final.wins} of {final.episodes} fresh battles; so few steps teach next to nothing")

# 2. Record one battle of the team, and one of a script that shoots at one target, from one start.
start = Start(seed=7, episode=1)
players = {"trained": open_team(folder / "team"), "focus": ScriptPlayer("focus")}
print("\nthe same start, battle by battle")
for name, player in players.items():
    replay = record(player, MAPS["3m"], start)
    path = folder / "replays" / f"{name}.battle.jsonl"
    write_replay(path, replay)
    # 3. Verify: played again from map, seed and actions, every state must have its hash.
    verify(read_replay(path))
    figures = behaviour(film_of(replay))
    won = "won " if replay.header.won else "lost"
    shown = "  ".join(f"{key} {figures[key]:.2f}" for key in ("survival", "damage_exchange"))
    print(f"  {name:<8} {won} after {replay.header.steps:>3} steps  {shown}  verified")

    # 4. The viewer: one file, any browser, no network.
    write_text(folder / f"{name}.html", viewer_page(replay))

# 5. A replay that somebody has changed is refused. Here one marine goes another way in step 1.
changed = folder / "replays" / "changed.battle.jsonl"
told = (folder / "replays" / "focus.battle.jsonl").read_text()
write_text(changed, told.replace('"actions":[4,4,4]', '"actions":[4,4,5]', 1))
try:
    verify(read_replay(changed))
    print("\nthe changed replay went through, which must not be")
except DataError as error:
    print(f"\na changed replay is refused: {error.what} ({error.where})")

print(f"\nwatch it: open {folder / 'focus.html'} or trained.html beside it in a browser")
