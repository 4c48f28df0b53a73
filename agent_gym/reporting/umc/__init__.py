"""The page of a walk of UMC: what it earned, what it believed, and whether any of it is evidence.

Hands on ``html_page``.
"""

from agent_gym.reporting.umc.page import html_page

__all__ = ["html_page"]
