"""The desk: the Core Agent, from a signal that comes in to what came of it.

Belongs here: reading, filtering and deciding signals, asking the agents, trading over routes,
guarding positions, and the memory and the log of all that. It knows no venue and no market: routes
and views are brought to it. ``HttpAgent`` is taken from its own module, ``http_agent``: it brings
an HTTP library along, which a desk without one should not have to load.
"""

from agent_gym.agents.desk.acceptor import Acceptor, Score
from agent_gym.agents.desk.agent_io import AgentIO, RemoteAgent
from agent_gym.agents.desk.breaker import BreakerPolicy, CircuitBreaker
from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.context_reader import ContextReader
from agent_gym.agents.desk.core_agent import CoreAgent, DeskConfig, DeskPlan, Handled
from agent_gym.agents.desk.execution import RoutedExecution
from agent_gym.agents.desk.execution_agent import RoutedExecutionAgent
from agent_gym.agents.desk.execution_terms import ExecutionOrder, ExecutionPolicy, ExecutionReport
from agent_gym.agents.desk.features import FEATURE_NAMES, signal_features
from agent_gym.agents.desk.filter import FILTER_RULES, SignalFilter
from agent_gym.agents.desk.filter_case import Case, FilterRule
from agent_gym.agents.desk.filter_config import FilterConfig
from agent_gym.agents.desk.flow import FlowManager
from agent_gym.agents.desk.flow_run import FlowPolicy
from agent_gym.agents.desk.flow_states import FlowResult, FlowState, Transition
from agent_gym.agents.desk.log import CoreAgentLogger
from agent_gym.agents.desk.log_chain import LogReport
from agent_gym.agents.desk.log_check import replay, verify
from agent_gym.agents.desk.logic import LogicExecutor
from agent_gym.agents.desk.logic_rules import DEFAULT_RULES, LogicConfig, default_rules
from agent_gym.agents.desk.logic_table import Plan, Rule, Situation
from agent_gym.agents.desk.process_agent import ProcessAgent
from agent_gym.agents.desk.protection import (
    DrawdownBreaker,
    ProtectionKeeper,
    ProtectionPolicy,
    ProtectionStatus,
)
from agent_gym.agents.desk.rejections import MEANINGS, RejectCode
from agent_gym.agents.desk.routes import (
    Route,
    RouteBusy,
    RouteDown,
    RouteError,
    RouteOrder,
    RouteRefused,
    RouteState,
    RouteTimeout,
)
from agent_gym.agents.desk.schemas import (
    AgentRequest,
    AgentResponse,
    Decision,
    FilterResult,
    Outcome,
    PnLSnapshot,
    Rejection,
    Signal,
    SignalFeatures,
    SignalParams,
    plain,
)
from agent_gym.agents.desk.scripted_agent import Latency, ScriptedAgent
from agent_gym.agents.desk.signals import BadSignal, parse_signal
from agent_gym.agents.desk.view import DeskView, Holdings, Quote

__all__ = [
    "DEFAULT_RULES",
    "FEATURE_NAMES",
    "FILTER_RULES",
    "MEANINGS",
    "Acceptor",
    "AgentIO",
    "AgentRequest",
    "AgentResponse",
    "BadSignal",
    "BreakerPolicy",
    "Case",
    "CircuitBreaker",
    "ContextReader",
    "CoreAgent",
    "CoreAgentLogger",
    "Decision",
    "DeskConfig",
    "DeskPlan",
    "DeskView",
    "DrawdownBreaker",
    "ExecutionOrder",
    "ExecutionPolicy",
    "ExecutionReport",
    "FilterConfig",
    "FilterResult",
    "FilterRule",
    "FlowManager",
    "FlowPolicy",
    "FlowResult",
    "FlowState",
    "Handled",
    "Holdings",
    "Latency",
    "LogReport",
    "LogicConfig",
    "LogicExecutor",
    "Outcome",
    "Plan",
    "PnLSnapshot",
    "ProcessAgent",
    "ProtectionKeeper",
    "ProtectionPolicy",
    "ProtectionStatus",
    "Quote",
    "RecentContext",
    "RejectCode",
    "Rejection",
    "RemoteAgent",
    "Route",
    "RouteBusy",
    "RouteDown",
    "RouteError",
    "RouteOrder",
    "RouteRefused",
    "RouteState",
    "RouteTimeout",
    "RoutedExecution",
    "RoutedExecutionAgent",
    "Rule",
    "Score",
    "ScriptedAgent",
    "Signal",
    "SignalFeatures",
    "SignalFilter",
    "SignalParams",
    "Situation",
    "Transition",
    "default_rules",
    "parse_signal",
    "plain",
    "replay",
    "signal_features",
    "verify",
]
