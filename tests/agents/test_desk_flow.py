import re
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk.agent_io import ScriptedAgent
from agent_gym.agents.desk.answers import AgentUnreachable
from agent_gym.agents.desk.flow import (
    STEPS,
    FlowPolicy,
    check_step,
)
from agent_gym.core.errors import AgentError
from agent_gym.core.seeds import Seeds
from tests.agents.desk_flows import (
    OK,
    C,
    Desk,
    S,
    filled,
    refused,
)

WAYS = [
    # agents, decision, end, code, path
    ({}, {}, S.FILLED, None, [S.PLANNED, S.RISK_OK, S.SUBMITTED, S.FILLED]),
    (
        {"execution": ScriptedAgent([filled(0.4)])}, {}, S.PARTIAL, C.EXEC_PARTIAL_EXPIRED,
        [S.PLANNED, S.RISK_OK, S.SUBMITTED, S.PARTIAL],
    ),
    (
        {"execution": ScriptedAgent([refused(C.EXEC_INSUFFICIENT_FUNDS)])}, {}, S.REJECTED,
        C.EXEC_INSUFFICIENT_FUNDS, [S.PLANNED, S.RISK_OK, S.SUBMITTED, S.REJECTED],
    ),
    (
        {"execution": ScriptedAgent([ValueError("x")])}, {}, S.FAILED, C.AGENT_ERROR,
        [S.PLANNED, S.RISK_OK, S.SUBMITTED, S.FAILED],
    ),
    (
        {"risk": ScriptedAgent([refused(C.RISK_LEVERAGE)])}, {}, S.REJECTED, C.RISK_LEVERAGE,
        [S.PLANNED, S.REJECTED],
    ),
    (
        {"strategy": ScriptedAgent([AgentUnreachable("gone")])}, {}, S.FAILED,
        C.AGENT_UNAVAILABLE, [S.PLANNED, S.FAILED],
    ),
    (
        {"risk": ScriptedAgent(latency=[1e6])}, {}, S.FAILED, C.AGENT_TIMEOUT,
        [S.PLANNED, S.FAILED],
    ),
    ({}, {"action": "reject", "code": C.OPS_KILL_SWITCH}, S.REJECTED, C.OPS_KILL_SWITCH,
     [S.REJECTED]),
    ({}, {"action": "defer", "code": C.MARKET_MARKET_CLOSED}, S.REJECTED, C.MARKET_MARKET_CLOSED,
     [S.REJECTED]),
    ({}, {"route": ("strategy", "execution")}, S.REJECTED, C.OPS_CONFIG_ERROR, [S.REJECTED]),
    ({}, {"route": ("strategy", "risk")}, S.REJECTED, C.OPS_CONFIG_ERROR, [S.REJECTED]),
    ({}, {"route": ("execution", "risk")}, S.REJECTED, C.OPS_CONFIG_ERROR, [S.REJECTED]),
    ({}, {"route": ("risk", "execution"), "action": "reduce"}, S.FILLED, None,
     [S.PLANNED, S.RISK_OK, S.SUBMITTED, S.FILLED]),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[2]}-{way[3]}")
def test_every_way_through_the_states(way):
    agents, decided, end, code, path = way
    desk = Desk(**agents)
    result = desk.run(**decided)
    assert (result.state, result.code) == (end, code)
    assert desk.path() == path
    assert [step.before for step in desk.steps] == [S.FILTERED, *path[:-1]]
    assert desk.steps[-1].code is code
    assert result.state.is_end


def test_the_table_of_steps_is_the_one_of_the_design():
    ends = {S.FILLED, S.PARTIAL, S.FAILED, S.REJECTED}
    assert {state for state in S if state.is_end} == ends
    allowed = {(before, after) for before, afters in STEPS.items() for after in afters}
    chain = [S.NEW, S.FILTERED, S.PLANNED, S.RISK_OK, S.SUBMITTED]
    for before, after in product(S, S):
        if (before, after) in allowed:
            check_step(before, after, "s1")
            assert after in ends or (before, after) in pairwise(chain)
        else:
            with pytest.raises(AgentError, match="no such step"):
                check_step(before, after, "s1")


def test_the_page_tells_the_same_table():
    page = Path(__file__).resolve().parents[2] / "docs" / "core_agent.md"
    told = page.read_text(encoding="utf-8").partition("### The states")[2].partition("\n- **")[0]
    rows = re.findall(r"^\| `(\w+)` \| (`.+) \|$", told, re.MULTILINE)
    found = {before: set(re.findall(r"`(\w+)`", afters)) for before, afters in rows}
    assert found == {b.value: {a.value for a in afters} for b, afters in STEPS.items() if afters}


def test_agents_may_make_an_order_smaller_but_not_larger():
    smaller = Desk(
        strategy=ScriptedAgent([{"status": "ok", "payload": {"size": 0.8, "side": "buy"}}]),
        risk=ScriptedAgent([{"status": "ok", "payload": {"size": 0.5}}]),
    )
    result = smaller.run()
    assert (result.state, result.size, result.filled) == (S.FILLED, 0.5, 0.5)
    for payload in ({"size": 1.1}, {"size": 0.0}, {"size": -1.0}, {"side": "sell"}):
        desk = Desk(risk=ScriptedAgent([{"status": "ok", "payload": payload}]))
        result = desk.run()
        assert (result.state, result.code) == (S.FAILED, C.AGENT_CONTRADICTORY)
        assert desk.agents["execution"].asked == 0


def test_a_fill_above_the_order_is_a_contradiction_and_not_lost():
    result = Desk(execution=ScriptedAgent([filled(1.5)])).run()
    assert (result.state, result.code, result.filled) == (S.FAILED, C.AGENT_CONTRADICTORY, 1.5)


def test_an_order_without_a_word_on_fills_is_uncertain():
    result = Desk(execution=ScriptedAgent([OK])).run()
    assert (result.state, result.code, result.uncertain) == (S.FAILED, C.AGENT_ERROR, True)


# retries


@pytest.mark.parametrize("code", [c for c in C if c.family not in {"agent"}])
def test_only_retryable_codes_are_asked_again(code):
    risk = ScriptedAgent([refused(code)])
    desk = Desk(risk=risk, policy=FlowPolicy(deadline_ms=1e6))
    result = desk.run()
    assert risk.asked == (3 if code.retryable else 1)
    assert result.retries == risk.asked - 1
    assert result.code is code


def test_the_second_try_may_succeed():
    risk = ScriptedAgent([ValueError("once"), ValueError("twice"), OK])
    result = Desk(risk=risk).run()
    assert (result.state, result.retries) == (S.FILLED, 2)
    assert [r.attempt for r in result.responses if r.agent == "risk"] == [1, 2, 3]


def test_retries_wait_with_jitter_drawn_from_seeds():
    def waits(seed, name="s1"):
        policy = FlowPolicy(deadline_ms=1e6, backoff_ms=100, jitter=0.5)
        risk = ScriptedAgent([ValueError("x")], latency=[0.0])
        desk = Desk(risk=risk, policy=policy, seeds=Seeds(seed))
        desk.run(name)
        times = [at for agent, _, at in desk.answers if agent == "risk"]
        return [(b - a) / 1e6 for a, b in pairwise(times)]

    first, second = waits(1)
    assert 50 <= first <= 150
    assert 100 <= second <= 300
    assert waits(1) == [first, second]
    assert waits(2) != [first, second]
    assert waits(1, "s2") != [first, second]  # each signal has its own draws
    assert len({round(first), round(second / 2)}) == 2


def test_what_other_signals_do_never_shifts_a_signals_jitter():
    def path(names):
        desk = Desk(risk=ScriptedAgent([ValueError("x")], latency=[0.0]))
        took = {}
        for name in names:
            desk.flow.breakers["risk"].__init__()
            took[name] = desk.run(name).latency_ms
        return took["s9"]

    assert path(["s9"]) == pytest.approx(path(["s1", "s2", "s9"]), abs=1e-4)


# deadlines


def test_a_signal_never_takes_longer_than_its_deadline():
    policy = FlowPolicy(deadline_ms=1_000, strategy_ms=400, risk_ms=400, execution_ms=400)
    desk = Desk(
        strategy=ScriptedAgent(latency=[399.0]),
        risk=ScriptedAgent(latency=[399.0]),
        execution=ScriptedAgent(latency=[399.0]),
        policy=policy,
    )
    result = desk.run()
    assert (result.state, result.code) == (S.FAILED, C.AGENT_TIMEOUT)
    assert result.latency_ms == pytest.approx(1_000)
    assert result.uncertain  # it was sent, and nobody can be asked


def test_no_retry_is_begun_that_cannot_end_in_time():
    policy = FlowPolicy(deadline_ms=500, risk_ms=480, backoff_ms=100, jitter=0.0)
    risk = ScriptedAgent([ValueError("x")], latency=[440.0])
    result = Desk(strategy=ScriptedAgent(latency=[0.0]), risk=risk, policy=policy).run()
    assert (risk.asked, result.code) == (1, C.AGENT_ERROR)


def test_an_order_is_not_sent_when_the_time_is_over():
    policy = FlowPolicy(deadline_ms=500, risk_ms=500)
    execution = ScriptedAgent()
    clock_eater = ScriptedAgent(latency=[480.0])
    desk = Desk(ScriptedAgent(latency=[20.0]), clock_eater, execution, policy=policy)
    result = desk.run()
    assert (result.state, result.code, execution.asked) == (S.FAILED, C.AGENT_TIMEOUT, 0)
    assert desk.path() == [S.PLANNED, S.RISK_OK, S.FAILED]
    assert not result.uncertain


@settings(max_examples=60)
@given(st.lists(st.floats(0, 900), min_size=3, max_size=12), st.integers(0, 2))
def test_whatever_the_latencies_the_deadline_holds(latencies, retries):
    policy = FlowPolicy(deadline_ms=1_000, max_retries=retries)
    agents = [ScriptedAgent(latency=latencies[i::3]) for i in range(3)]
    result = Desk(*agents, policy=policy).run()
    assert result.latency_ms <= 1_000 + 1e-3
    assert result.state.is_end
