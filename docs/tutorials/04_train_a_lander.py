"""Train a lander: PPO on LunarLander for a few thousand steps, judged on fresh episodes.

Run it with ``python docs/tutorials/04_train_a_lander.py``. It needs ``agent-gym[rl]``. So short a
run does not land, and the script says so. ``make train-lander`` trains for 250,000 steps and does.
"""

import shutil

from agent_gym.core.files import home
from agent_gym.reporting.rl import write_report
from agent_gym.training.rl.config import read_trainer_config
from agent_gym.training.rl.experiment_config import shipped_config
from agent_gym.training.rl.trainer import create_trainer_from_config

folder = home() / "tutorials" / "04_train_a_lander"
shutil.rmtree(folder, ignore_errors=True)

# 1. The settings are those that ship as lander-ppo, but for how long and how often it is looked at.
settings = read_trainer_config(shipped_config("lander-ppo")).model_dump()
settings["steps"] = 6_144
settings["evaluation"] |= {"every": 2_048, "episodes": 4, "final_episodes": 10}
trainer = create_trainer_from_config(settings, seed=0, folder=folder / "seed_0")
print(f"{settings['algo']} on {settings['env']}, {settings['steps']:,} steps, seed 0")

# 2. Train. Every 2,048 steps four greedy episodes choose which model is kept.
result = trainer.train(say=print)
print(f"\nkept is the model after {result.best_step:,} steps")

# 3. The judge: ten fresh episodes, which chose nothing and were not seen in training.
print(f"mean return of fresh episodes {result.final_mean:.0f}")
print(f"95 % interval                 {result.final_low:.0f} to {result.final_high:.0f}")
print(f"share that reached 200        {100 * result.share_above_200:.0f} %")
if result.final_mean < 200:
    print("It does not land: 200 is a landing, and so few steps do not teach one.")

# 4. A page that needs no network: verdict, curve, episodes, settings, how to make it again.
report = write_report(folder, videos=False)
print(f"\npage    {report.page}")
print(f"model   {folder / 'seed_0' / 'best'}")

# 5. The same by commands, to the end. It takes about two minutes of processor time.
print("\nagent-gym train --config lander-ppo --seeds 1   trains until it lands, with a video")
print("agent-gym evaluate lander-ppo --episodes 100    judges it on more fresh episodes")
print("agent-gym watch lander-ppo --out lander.mp4     films one of them")
