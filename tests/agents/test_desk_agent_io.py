import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.agents.desk import AgentRequest, AgentResponse, RejectCode, Signal, SignalParams
from agent_gym.agents.desk.agent_io import AgentIO, ScriptedAgent
from agent_gym.agents.desk.answers import AgentUnreachable
from agent_gym.agents.desk.redaction import Redactor
from agent_gym.agents.desk.scripted_agent import Latency
from agent_gym.core.clock import ManualClock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds

SIGNAL = Signal("s1", "momentum", SignalParams(1.0), 0.0)


def request(agent="risk", deadline_ms=100.0):
    return AgentRequest("t1", agent, SIGNAL, 1.0, "", deadline_ms)


def told(agent, **more):
    io = AgentIO(**more)
    io.register("risk", agent)
    clock = ManualClock()
    response = io.send(request(), clock)
    assert list(io.records) == [(request(), response)]
    return response


def test_a_callable_answers_with_a_mapping_or_a_record():
    response = told(lambda request: {"status": "ok", "payload": {"size": 0.5}})
    assert response == AgentResponse("t1", "risk", "ok", payload={"size": 0.5})
    record = AgentResponse("t1", "risk", "reject", RejectCode.RISK_LEVERAGE)
    assert told(lambda request: record) == record


def test_an_async_callable_answers():
    async def agent(request):
        await asyncio.sleep(0)
        return {"status": "ok", "payload": {"size": request.size}}

    assert told(agent).payload == {"size": 1.0}


def test_an_async_agent_is_cut_off_at_its_deadline():
    cancelled = []

    async def agent(request):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    io = AgentIO()
    io.register("risk", agent)
    response = io.send(request(deadline_ms=30.0), SystemClock())
    io.close()
    assert (response.status, response.code) == ("timeout", RejectCode.AGENT_TIMEOUT)
    assert cancelled == [True]


def test_an_async_agents_own_timeout_is_its_error():
    async def agent(request):
        raise TimeoutError("the database")

    assert told(agent).code is RejectCode.AGENT_ERROR


def test_async_agents_can_be_asked_from_within_a_running_loop():
    async def agent(request):
        return {"status": "ok"}

    async def desk():
        return told(agent)

    assert asyncio.run(desk()).status == "ok"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, RejectCode.AGENT_ERROR),
        (7, RejectCode.AGENT_ERROR),
        ("ok", RejectCode.AGENT_ERROR),
        ({}, RejectCode.AGENT_ERROR),
        ({"status": "fine"}, RejectCode.AGENT_ERROR),
        ({"status": ["ok"]}, RejectCode.AGENT_ERROR),
        ({"status": "reject"}, RejectCode.AGENT_ERROR),
        ({"status": "reject", "code": "risk.mood"}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": [1]}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": {"size": math.nan}}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": {"size": "much"}}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": {"size": True}}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": {"note": {1, 2}, "x": object()}}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": {"note": 10**400}}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "payload": {"note": "x" * 70_000}}, RejectCode.AGENT_ERROR),
        ({"status": "ok", "code": "risk.leverage"}, RejectCode.AGENT_CONTRADICTORY),
        ({"status": "ok", "trace_id": "t2"}, RejectCode.AGENT_CONTRADICTORY),
        (AgentResponse("t2", "risk", "ok"), RejectCode.AGENT_CONTRADICTORY),
        (AgentResponse("t1", "strategy", "ok"), RejectCode.AGENT_CONTRADICTORY),
    ],
)
def test_nonsense_is_an_error_with_a_code(answer, code):
    response = told(lambda request: answer)
    assert (response.status, response.code) == ("error", code)
    assert len(response.payload["why"]) <= 300


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_an_agent_says_becomes_a_record(answer):
    assert told(lambda request: answer).status in {"ok", "reject", "timeout", "error"}
    assert told(lambda request: {"status": "ok", "payload": answer}).status in {"ok", "error"}


def test_a_failure_of_the_agent_is_a_record():
    def agent(request):
        raise ZeroDivisionError("x" * 10_000)

    response = told(agent)
    assert (response.status, response.code) == ("error", RejectCode.AGENT_ERROR)
    assert response.payload["why"].startswith("ZeroDivisionError: xx")
    assert len(response.payload["why"]) == 300


def test_ctrl_c_is_not_swallowed():
    def agent(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        told(agent)


def test_nobody_there_is_unavailable():
    response = AgentIO().send(request(), ManualClock())
    assert (response.status, response.code) == ("error", RejectCode.AGENT_UNAVAILABLE)
    assert told(ScriptedAgent([AgentUnreachable("gone")])).code is RejectCode.AGENT_UNAVAILABLE


def test_an_answer_that_comes_late_is_a_timeout_and_is_kept():
    clock = ManualClock()

    def agent(request):
        clock.sleep_s(0.2)
        return {"status": "ok", "payload": {"filled": 1.0}}

    io = AgentIO()
    io.register("execution", agent)
    response = io.send(request("execution"), clock)
    assert (response.status, response.latency_ms) == ("timeout", pytest.approx(200.0))
    assert response.payload["late"]["payload"] == {"filled": 1.0}


def test_an_answer_just_in_time_is_in_time():
    io = AgentIO()
    io.register("risk", ScriptedAgent(latency=[100.0, 100.001]))
    clock = ManualClock(1_700_000_000_123_456_789)
    assert io.send(request(), clock).status == "ok"
    before = clock.now_ns()
    assert io.send(request(), clock).status == "timeout"
    assert clock.now_ns() - before == 100_000_000  # nobody waits beyond the deadline


def test_scripted_latency_is_drawn_from_seeds_and_has_its_median():
    def latencies(seed):
        agent, clock = ScriptedAgent(latency=Latency(median_ms=20, sigma=0.5), seeds=seed), None
        clock = ManualClock()
        io = AgentIO()
        io.register("risk", agent)
        return [io.send(request(deadline_ms=1e9), clock).latency_ms for _ in range(2_001)]

    one = latencies(Seeds(1))
    assert one == latencies(Seeds(1))
    assert one != latencies(Seeds(2))
    assert sorted(one)[1_000] == pytest.approx(20.0, rel=0.1)


def test_scripts_go_on_with_their_last_line():
    io, clock = AgentIO(), ManualClock()
    io.register("risk", ScriptedAgent([ValueError("once"), {"status": "ok"}]))
    assert [io.send(request(), clock).status for _ in range(3)] == ["error", "ok", "ok"]


def test_secrets_are_out_before_anything_sees_them():
    answer = {"status": "ok", "payload": {"api_key": "abc", "note": "my hunter22", "n": 1}}
    response = told(lambda request: answer, redactor=Redactor(["hunter22"]))
    assert response.payload == {"api_key": "***", "note": "my ***", "n": 1}

    def fails(request):
        raise ValueError("login with hunter22 failed")

    assert "hunter22" not in str(told(fails, redactor=Redactor(["hunter22"])))


def test_a_late_answer_is_cleaned_too():
    clock, io = ManualClock(), AgentIO(redactor=Redactor(["hunter22"]))

    def agent(request):
        clock.sleep_s(9.0)
        return {"status": "ok", "payload": {"note": "hunter22"}}

    io.register("risk", agent)
    assert "hunter22" not in str(io.send(request(), clock))


def test_wrong_registrations_are_refused():
    with pytest.raises(ConfigError):
        AgentIO().register("oracle", lambda request: {})
    with pytest.raises(ConfigError):
        AgentIO().register("risk", 7)


def test_registering_anew_forgets_all_that_the_old_one_could():
    class Full(ScriptedAgent):
        def state(self, request, clock):
            return None

    io = AgentIO()
    io.register("execution", Full())
    assert io.can("execution", "state")
    assert io.ask_state(request("execution"), ManualClock()) is None
    assert io.records[-1][1].payload == {"unseen": True}
    io.register("execution", lambda request: {"status": "ok"})
    assert not io.can("execution", "state")
