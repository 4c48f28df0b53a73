"""Agents that Stable-Baselines3 has trained: their settings, their files, and how they act."""
