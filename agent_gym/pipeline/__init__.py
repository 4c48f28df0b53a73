"""Durable workflows over the rest: what runs every night, and what its result decides.

Belongs here: orchestration, locks, resuming, baselines, history.
May import: every room but apps.
Hands on: files in the workspace and an exit code.
"""
