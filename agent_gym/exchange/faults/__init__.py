"""Faults at the border of a venue: the plan, the injector that draws, the gateway that suffers."""

from agent_gym.exchange.faults.errors import (
    VenueDisconnected,
    VenueRateLimited,
    VenueRejected,
    VenueTimeout,
)
from agent_gym.exchange.faults.gateway import (
    Ack,
    FaultyGateway,
    Gateway,
    HasQuantity,
    Positions,
)
from agent_gym.exchange.faults.injector import Fault, FaultInjector
from agent_gym.exchange.faults.plan import (
    DelayedAckRule,
    DisconnectRule,
    DuplicateAckRule,
    FaultKind,
    FaultPlan,
    FaultRule,
    PartialRule,
    RateLimitRule,
    RejectRule,
    RequestKind,
    StaleDataRule,
    TimeoutRule,
)
from agent_gym.exchange.faults.venue_gateway import ClientOrder, VenueGateway, open_line

__all__ = [
    "Ack",
    "ClientOrder",
    "DelayedAckRule",
    "DisconnectRule",
    "DuplicateAckRule",
    "Fault",
    "FaultInjector",
    "FaultKind",
    "FaultPlan",
    "FaultRule",
    "FaultyGateway",
    "Gateway",
    "HasQuantity",
    "PartialRule",
    "Positions",
    "RateLimitRule",
    "RejectRule",
    "RequestKind",
    "StaleDataRule",
    "TimeoutRule",
    "VenueDisconnected",
    "VenueGateway",
    "VenueRateLimited",
    "VenueRejected",
    "VenueTimeout",
    "open_line",
]
