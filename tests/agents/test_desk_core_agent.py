import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_gym.agents.desk import (
    AgentResponse,
    LogicExecutor,
    Outcome,
    RecentContext,
    RejectCode,
    Rule,
)
from agent_gym.agents.desk.agent_io import AgentIO, ScriptedAgent
from agent_gym.agents.desk.answers import AgentUnreachable
from agent_gym.agents.desk.core_agent import DeskConfig, DeskPlan
from agent_gym.agents.desk.flow import FlowPolicy, FlowState
from agent_gym.agents.desk.log import CoreAgentLogger, entries
from agent_gym.agents.desk.protection import DrawdownBreaker
from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from tests.agents.desk_samples import (
    BTC,
    NOW,
    RAW,
    VIEW,
    FixedAcceptor,
    golden_rows,
    raw_signal,
    view_of,
)
from tests.agents.desk_venue import Line, Venue

ROWS = golden_rows("desk_flow.jsonl")
C, S = RejectCode, FlowState


class Played(ScriptedAgent):
    """A scripted agent that takes its lines from a golden file."""

    def __init__(self, lines):
        super().__init__([self._spoken(line) for line in lines] if lines else None)
        self.slow = [isinstance(line, dict) and "$slow" in line for line in lines]

    def _spoken(self, line):
        if isinstance(line, dict) and "$raise" in line:
            return AgentUnreachable("gone") if line["$raise"] == "gone" else ValueError("boom")
        return line

    def _latency_ms(self, number):
        slow = self.slow and self.slow[min(number, len(self.slow) - 1)]
        return 1e9 if slow else 20.0


class Desk:
    def __init__(self, agents=None, plan=None, acceptor=None, logger=None, db=None):
        self.io = AgentIO()
        self.agents = {}
        for name in ("strategy", "risk", "execution"):
            self.agents[name] = Played((agents or {}).get(name, []))
            self.io.register(name, self.agents[name])
        self.clock = ManualClock(int(NOW) * 10**9)
        self.context = RecentContext(db=db)
        self.core = (plan or DeskPlan()).open(
            io=self.io, context=self.context, seeds=Seeds(7), acceptor=acceptor, logger=logger
        )

    def handle(self, raw=RAW, view=VIEW):
        return self.core.handle(raw, view, self.clock)

    @property
    def asked(self):
        return sum(agent.asked for agent in self.agents.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_the_end_is_the_one_written_down(row):
    desk = Desk(row.get("agents"))
    handled = desk.handle(raw_signal(row.get("signal", {})), view_of(row))
    assert (handled.code, handled.state) == (row["code"], row["state"])
    if "asked" in row:
        assert desk.asked == row["asked"]
    for name in {"retries", "filled", "uncertain"} & set(row):
        assert getattr(handled.flow, name) == row[name], name
    refused = [record.code for record in desk.context.get_recent_rejections()]
    traded = handled.flow is not None and handled.flow.filled > 0.0
    assert refused == ([] if handled.code is None or traded else [handled.code])


def test_every_agent_and_exec_code_has_rows():
    given = [row["code"] for row in ROWS]
    for code in C:
        if code.family in {"agent", "exec"}:
            assert code.value in given


def test_a_wrong_reason_would_be_seen():
    class WrongCode(DeskPlan):
        def make_flow(self, io, *more):
            inner = super().make_flow(io, *more)

            class Flow:
                def run(self, *args, **named):
                    result = inner.run(*args, **named)
                    wrong = {C.AGENT_TIMEOUT: C.AGENT_ERROR}
                    return replace(result, code=wrong.get(result.code, result.code))

            return Flow()

    row = next(row for row in ROWS if row["code"] == "agent.timeout")
    assert Desk(row["agents"], WrongCode()).handle().code != row["code"]


# the registry and the parts


def test_the_registry_knows_the_desk():
    plan = make("desk", Ref(use="core-agent", params={"flow": {"deadline_ms": 900}}))
    assert isinstance(plan, DeskPlan)
    assert plan.config.flow.deadline_ms == 900
    with pytest.raises(ConfigError):
        make("desk", Ref(use="core-agent", params={"flow": {"max_retries": 3}}))
    with pytest.raises(ConfigError):
        make("desk", Ref(use="core-agent", params={"flows": {}}))


def test_the_plan_makes_every_part():
    plan = DeskPlan(DeskConfig())
    line = Line(Venue())
    keeper = plan.make_protection(line)
    assert isinstance(plan.make_breaker([keeper]), DrawdownBreaker)
    assert plan.make_execution([line], Seeds(1)).working == ()


def test_one_part_can_be_another():
    class Cautious(DeskPlan):
        def make_filter(self, acceptor=None, seeds=None):
            inner = super().make_filter(acceptor, seeds)

            class Filter:
                def check(self, signal, view, context):
                    result = inner.check(signal, view, context)
                    return replace(result, accepted=False, code=C.OPS_MAINTENANCE)

            return Filter()

    assert Desk(plan=Cautious()).handle().code is C.OPS_MAINTENANCE


def test_a_rule_that_breaks_its_law_trades_nothing_and_is_told(tmp_path):
    class Broken(DeskPlan):
        def make_logic(self):
            grow = Rule(
                "grow", 1, lambda at, plan: True, lambda at, plan: replace(plan, size=9.0), "x"
            )
            return LogicExecutor([grow])

    with CoreAgentLogger(tmp_path, ManualClock()) as logger:
        desk = Desk(plan=Broken(), logger=logger)
        handled = desk.handle()
    assert (handled.code, desk.asked) == (C.OPS_CONFIG_ERROR, 0)
    assert "desk.trouble" in [entry.event for entry in entries(tmp_path)]


def test_a_filter_that_accepts_what_cannot_be_read_trades_nothing():
    class Blind(DeskPlan):
        def make_filter(self, acceptor=None, seeds=None):
            inner = super().make_filter(acceptor, seeds)

            class Filter:
                def check(self, signal, view, context):
                    return replace(inner.check(signal, view, context), accepted=True, code=None)

            return Filter()

    desk = Desk(plan=Blind())
    assert desk.handle({"nonsense": 1}).code is C.OPS_CONFIG_ERROR
    assert desk.asked == 0
    desk.handle()
    again = desk.handle()  # and the flow does not trade an id twice
    assert (again.code, desk.agents["execution"].asked) == (C.DUP_DUPLICATE_ID, 1)
    assert again.outcome is None


# what is kept


def test_all_that_is_learned_is_in_the_context():
    desk = Desk()
    handled = desk.handle()
    context = desk.context
    assert [record.signal_id for record in context.get_recent_signals()] == ["g1"]
    assert [r.agent for r in context.get_responses()] == ["strategy", "risk", "execution"]
    assert context.get_outcomes() == [handled.outcome]
    assert context.get_decisions() == [handled.decision]
    assert (handled.outcome.label, handled.outcome.filled) == ("flat", 0.1)
    assert handled.latency_ms == pytest.approx(60.0)
    times = [at for at, _ in context.known("response")]
    assert times == pytest.approx([NOW + 0.02, NOW + 0.04, NOW + 0.06])
    desk.core.settle(Outcome("g1", "win", 0.1, closed_at=NOW + 60), desk.clock)
    assert [outcome.label for outcome in context.get_outcomes()] == ["flat", "win"]


def test_what_was_not_known_yet_is_not_seen():
    desk = Desk()
    desk.handle()
    assert len(desk.context.as_of(NOW + 0.03).get_responses()) == 1


def test_labels_of_what_was_not_traded():
    assert Desk(
        {"risk": [{"status": "reject", "code": "risk.leverage"}]}
    ).handle().outcome.label == ("rejected")
    assert Desk({"risk": [{"$raise": "boom"}]}).handle().outcome.label == "unfilled"
    assert Desk().handle(RAW | {"timestamp": 0}).outcome is None


def test_agents_get_the_digest_of_the_context():
    desk = Desk()
    desk.handle()
    assert {len(request.context_digest) > 8 for request, _ in desk.io.records} == {True}
    quiet = Desk(plan=DeskPlan(DeskConfig(flow=FlowPolicy(send_digest=False))))
    quiet.handle()
    assert {request.context_digest for request, _ in quiet.io.records} == {""}


def test_paper_signals_never_reach_the_execution_agent():
    plan = DeskPlan(DeskConfig(filter={"epsilon_pass": 1.0}))
    desk = Desk(plan=plan, acceptor=FixedAcceptor(0.1, 0.5))
    handled = desk.handle()
    assert handled.filter_result.paper
    assert (handled.state, handled.outcome.counterfactual) == (S.FILLED, True)
    assert handled.outcome.avg_price == BTC.ask
    assert (desk.agents["risk"].asked, desk.agents["execution"].asked) == (1, 0)
    assert handled.outcome.filled < 0.1


def test_the_same_seed_gives_the_same_story():
    def story():
        desk = Desk({"risk": [{"$raise": "boom"}, {"status": "ok"}]})
        for number in range(10):
            now = desk.clock.now_ns() / 1e9
            quotes = {name: replace(q, timestamp=now) for name, q in VIEW.quotes.items()}
            desk.handle(
                RAW | {"signal_id": f"s{number}", "timestamp": now},
                replace(VIEW, now=now, quotes=quotes),
            )
            desk.clock.sleep_s(10)
        return desk.context.digest()

    assert story() == story()


# whatever comes in

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "signal_id": st.sampled_from(["a", "b", "c"]) | ANYTHING,
        "strategy": st.sampled_from(["momentum"]) | ANYTHING,
        "params": st.fixed_dictionaries(
            {"amount": st.floats(0.01, 0.2) | ANYTHING},
            optional={"side": st.sampled_from(["buy", "sell"]) | ANYTHING, "price": ANYTHING},
        ),
        "timestamp": st.just(NOW) | ANYTHING,
        "source": st.just("bus") | ANYTHING,
    },
)
ANSWERS = st.sampled_from(
    [
        {"status": "ok"},
        {"status": "ok", "payload": {"filled": 0.01}},
        {"status": "reject", "code": "risk.leverage"},
        {"status": "reject", "code": "exec.exchange_reject"},
        {"$raise": "boom"},
        {"$slow": True},
    ]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(WISHES | ANYTHING, max_size=6), st.lists(ANSWERS, max_size=4))
def test_whatever_comes_in_there_is_a_code_or_an_order(wishes, answers):
    desk = Desk({"risk": answers, "execution": answers[::-1]})
    orders = []
    keep = desk.agents["execution"].answer

    def answer(request, clock):
        orders.append((request.signal.signal_id, request.attempt))
        return keep(request, clock)

    desk.agents["execution"].answer = answer
    desk.io.register("execution", desk.agents["execution"])
    for wish in wishes:
        handled = desk.handle(wish)
        assert handled.state.is_end
        assert (handled.code is None) == (handled.state is S.FILLED)
    assert len(orders) == len(set(orders))  # no id and attempt twice: a repeat sends nothing


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=12))
def test_repeated_ids_never_execute_twice(names):
    desk = Desk(plan=DeskPlan(DeskConfig(filter={"near_duplicate_s": 0.0})))
    first = {}
    for name in names:
        handled = desk.handle(RAW | {"signal_id": name, "strategy": name})
        if name in first:
            assert handled.code is C.DUP_DUPLICATE_ID
        first.setdefault(name, handled)
    assert desk.agents["execution"].asked == len(set(names))


def test_an_answer_record_passes_through():
    desk = Desk()
    desk.io.register("risk", lambda request: AgentResponse(request.trace_id, "risk", "ok"))
    assert desk.handle().state is S.FILLED


def test_an_id_is_not_traded_again_after_a_crash_in_the_middle(tmp_path):
    def dies(request):
        raise KeyboardInterrupt

    desk = Desk(db=tmp_path / "context.db")
    desk.io.register("execution", dies)
    with pytest.raises(KeyboardInterrupt):
        desk.handle()
    desk.context.close()
    again = Desk(db=tmp_path / "context.db")
    assert again.handle().code is C.DUP_DUPLICATE_ID
    assert again.asked == 0
    again.context.close()
