"""Reinforcement learning: Stable-Baselines3 on Gymnasium and on our markets, exact to the bit.

Belongs here: the trainer and its parts, checkpoints, experiments, search, export.
May import: core, envs, agents, evaluation, rollouts. Torch and Stable-Baselines3 are used here.
Hands on: a folder for each run (config, result, curves, models, checkpoints).
"""
