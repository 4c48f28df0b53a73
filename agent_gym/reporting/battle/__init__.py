"""Battles as people watch them: a page that plays a replay, and videos of it.

Belongs here: the viewer, the pictures of a battle, GIF and MP4.
May import: core, envs (the battle), evaluation.battle. The encoder is imported with ``videos``.
Hands on: text and bytes; who writes them where is decided above.
"""

from agent_gym.reporting.battle.page import film_page, outcome, viewer_page

__all__ = ["film_page", "outcome", "viewer_page"]
