"""The figures of an evaluation by name, as the table, the page and the JSON all read them."""

from __future__ import annotations

from agent_gym.evaluation.figures import Figure
from agent_gym.evaluation.protocol.report import ArmReport

EVALUATION_FIGURES = (
    Figure("net_bp_per_bar", "net", "bp/bar", digits=3),
    Figure("gross_bp_per_bar", "gross", "bp/bar", digits=3),
    Figure("share_of_attainable", "share of attainable", digits=2),
    Figure("psr", "PSR", digits=3),
    Figure("dsr", "DSR", digits=3),
    Figure("pbo", "PBO", digits=2),
    Figure("p_random", "p of random timing", digits=3),
    Figure("lockbox_growth", "growth in the lockbox", "%", 100.0),
)


def figures_of(arm: ArmReport) -> dict[str, float | int | None]:
    """Return the figures of one arm, those of its ledger too where there is one."""
    own: dict[str, float | int | None] = {
        "net_bp_per_bar": arm.net.estimate,
        "gross_bp_per_bar": arm.gross.estimate,
        "share_of_attainable": None if arm.share is None else arm.share.estimate,
        "psr": arm.standing.psr,
        "dsr": arm.standing.dsr,
        "pbo": arm.standing.pbo,
        "p_random": arm.p_random,
        "lockbox_growth": arm.lockbox_growth,
    }
    return own if arm.run is None else arm.run.metrics.as_dict() | own
