"""The places at which a fault can be planted into a desk scenario; a healthy run plants none."""

from __future__ import annotations

from agent_gym.agents.desk.core_agent import DeskPlan
from agent_gym.agents.desk.routes import Route
from agent_gym.agents.desk.view import DeskView
from agent_gym.exchange.costs import Costs


class Sabotage:
    """Leaves everything as it is; a planted fault overrides one of the methods.

    Scenarios pass what they build through these doors, so that a fault needs no patching: the
    desk's plan, what the desk sees, how long its agents take, and the venue's costs and lines.
    """

    def plan(self, plan: DeskPlan) -> DeskPlan:
        """Return the desk's plan; a fault gives a subclass with one part made otherwise."""
        return plan

    def view(self, view: DeskView) -> DeskView:
        """Return what the desk gets to see."""
        return view

    def latency_ms(self, latency_ms: float) -> float:
        """Return how long an agent takes."""
        return latency_ms

    def costs(self, costs: Costs) -> Costs:
        """Return what the venue charges."""
        return costs

    def route(self, route: Route) -> Route:
        """Return a line to the venue."""
        return route

    def value_at_risk(self, value_at_risk: float) -> float:
        """Return the risk figure that the desk's limits rest on."""
        return value_at_risk
