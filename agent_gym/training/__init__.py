"""Learners: from a world or from stored steps to an artifact.

Belongs here: datasets, models, calibration, checkpoints, retraining.
May import: core, markets, exchange, envs, agents, rollouts, evaluation.
Hands on: artifacts with a manifest, and the rule by which one replaces another.
"""
