"""What training looks like: pages, plots, tables and videos from the folders of stored runs.

Belongs here: reading run folders, figures over seeds as pictures, the offline page, videos, the
table of results. Nothing is trained here, and every figure is drawn anew from the CSV files.
``writing`` writes files; all else hands back text or bytes.
"""

from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.rl.page import html_page
from agent_gym.reporting.rl.results import results_page, results_table
from agent_gym.reporting.rl.runs import Arm, Run, read_arms
from agent_gym.reporting.rl.verdict import Verdict, verdict_of
from agent_gym.reporting.rl.videos import record_episode
from agent_gym.reporting.rl.writing import (
    ReportFiles,
    film_episodes,
    write_lander_results,
    write_report,
)

__all__ = [
    "Arm",
    "Clip",
    "ReportFiles",
    "Run",
    "Verdict",
    "film_episodes",
    "html_page",
    "read_arms",
    "record_episode",
    "results_page",
    "results_table",
    "verdict_of",
    "write_lander_results",
    "write_report",
]
