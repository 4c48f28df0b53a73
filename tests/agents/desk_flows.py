"""A flow with scripted agents and a broker that loses answers, for tests."""

from agent_gym.agents.desk import Decision, RejectCode, Signal, SignalParams
from agent_gym.agents.desk.agent_io import AgentIO, ScriptedAgent
from agent_gym.agents.desk.answers import AgentTimedOut
from agent_gym.agents.desk.flow import (
    FlowManager,
    FlowPolicy,
    FlowState,
)
from agent_gym.core.clock import ManualClock
from agent_gym.core.seeds import Seeds

S = FlowState
C = RejectCode
ROUTE = ("strategy", "risk", "execution")
OK = {"status": "ok"}


class Context:
    def digest(self):
        return "d1"


def signal(name="s1"):
    return Signal(name, "momentum", SignalParams(1.0), 0.0)


def decision(name="s1", size=1.0, action="execute", route=ROUTE, code=None):
    return Decision(name, action, size, route, code, (), f"trace-{name}")


def filled(units, **more):
    return {"status": "ok", "payload": {"filled": units, **more}}


def refused(code):
    return {"status": "reject", "code": code.value}


class Broker:
    """An execution agent that keeps orders by signal id; ``script`` says how each send goes.

    "ok": answered; "reached": takes the order, the answer is lost; "lost": never arrives.
    """

    def __init__(self, script=(), fill=1.0, rest=0.0, deaf=0):
        self.script, self.fill, self.rest = list(script), fill, rest
        self.deaf = deaf  # questions about state that get no answer
        self.orders, self.sent, self.asked, self.cancelled = {}, 0, 0, 0

    def answer(self, request, clock):
        self.sent += 1
        step = self.script.pop(0) if self.script else "ok"
        name = request.signal.signal_id
        if step != "lost":
            self.orders.setdefault(name, []).append(request.size)
        if step != "ok":
            clock.sleep_s(request.deadline_ms / 1e3)
            raise AgentTimedOut("no answer")
        return filled(self.fill * request.size, rest=self.rest)

    def state(self, request, clock):
        self.asked += 1
        if self.deaf:
            self.deaf -= 1
            raise AgentTimedOut("no answer")
        if request.signal.signal_id not in self.orders:
            return None
        return filled(self.fill * request.size, rest=self.rest)

    def cancel(self, request, clock):
        self.cancelled += 1
        known = request.signal.signal_id in self.orders
        return filled(self.fill * request.size if known else 0.0, rest=0.0)


class Desk:
    def __init__(self, strategy=None, risk=None, execution=None, policy=None, seeds=None):
        self.io = AgentIO()
        self.agents = {
            "strategy": strategy or ScriptedAgent(),
            "risk": risk or ScriptedAgent(),
            "execution": execution or ScriptedAgent(),
        }
        for name, agent in self.agents.items():
            self.io.register(name, agent)
        self.steps, self.answers = [], []
        self.clock = ManualClock(1_700_000_000 * 10**9)
        self.flow = FlowManager(
            self.io,
            policy or FlowPolicy(),
            seeds or Seeds(1),
            self.steps.append,
            lambda response, at_ns: self.answers.append((response.agent, response.status, at_ns)),
        )

    def run(self, name="s1", **more):
        return self.flow.run(signal(name), decision(name, **more), Context(), self.clock)

    def path(self, name="s1"):
        return [step.after for step in self.steps if step.signal_id == name]
