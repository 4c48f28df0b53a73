import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk import AgentResponse
from agent_gym.agents.desk.agent_io import ScriptedAgent
from agent_gym.agents.desk.answers import AgentTimedOut, AgentUnreachable
from agent_gym.agents.desk.flow import (
    FlowPolicy,
)
from tests.agents.desk_flows import (
    OK,
    ROUTE,
    Broker,
    C,
    Context,
    Desk,
    S,
    decision,
    filled,
    refused,
    signal,
)

# the breaker


def test_the_breaker_opens_for_one_agent_and_spares_the_others():
    risk = ScriptedAgent([AgentUnreachable("gone")], latency=[0.0])
    policy = FlowPolicy(max_retries=0)
    desk = Desk(risk=risk, policy=policy)
    results = [desk.run(f"s{i}") for i in range(8)]
    assert risk.asked == 5
    assert {r.code for r in results} == {C.AGENT_UNAVAILABLE}
    assert desk.flow.breakers["risk"].state == "open"
    assert desk.flow.breakers["strategy"].state == "closed"
    desk.clock.sleep_s(30)
    desk.run("probe")
    assert (risk.asked, desk.flow.breakers["risk"].state) == (6, "open")


def test_a_refusal_is_no_failure():
    desk = Desk(risk=ScriptedAgent([refused(C.RISK_LEVERAGE)]))
    for i in range(9):
        desk.run(f"s{i}")
    assert desk.flow.breakers["risk"].state == "closed"


def test_an_open_breaker_lets_no_order_out():
    desk = Desk()
    for _ in range(5):
        desk.flow.breakers["execution"].failure(desk.clock.now_ns())
    result = desk.run()
    assert (result.state, result.code) == (S.FAILED, C.AGENT_UNAVAILABLE)
    assert desk.agents["execution"].asked == 0
    assert desk.path()[-2:] == [S.RISK_OK, S.FAILED]


# orders that got no clear answer


def test_a_timeout_that_reached_the_broker_is_not_sent_again():
    broker = Broker(["reached"])
    result = Desk(execution=broker).run()
    assert (result.state, result.filled) == (S.FILLED, 1.0)
    assert (broker.sent, broker.asked, broker.orders["s1"]) == (1, 1, [1.0])


def test_a_timeout_that_never_arrived_is_sent_again_after_asking():
    broker = Broker(["lost", "lost"])
    result = Desk(execution=broker, policy=FlowPolicy(deadline_ms=1e5)).run()
    assert (result.state, result.retries, broker.sent, broker.asked) == (S.FILLED, 2, 3, 2)
    assert broker.orders["s1"] == [1.0]


def test_after_the_last_retry_it_is_certain_that_nothing_was_traded():
    broker = Broker(["lost"] * 9)
    result = Desk(execution=broker, policy=FlowPolicy(deadline_ms=1e5)).run()
    assert (result.state, result.code, result.uncertain) == (S.FAILED, C.AGENT_TIMEOUT, False)
    assert (broker.sent, broker.orders) == (3, {})


def test_a_broker_that_does_not_say_is_told_to_take_the_order_back():
    broker = Broker(["reached"], fill=0.0, deaf=9)
    result = Desk(execution=broker, policy=FlowPolicy(deadline_ms=1e5)).run()
    assert (broker.sent, broker.cancelled) == (1, 1)
    assert (result.state, result.filled, result.uncertain) == (S.FAILED, 0.0, False)


def test_without_a_way_to_ask_an_order_is_never_sent_again():
    execution = ScriptedAgent([AgentTimedOut("no answer"), filled(1.0)])
    result = Desk(execution=execution).run()
    assert (execution.asked, result.state, result.uncertain) == (1, S.FAILED, True)


def test_a_late_answer_is_the_truth_about_an_order():
    desk = Desk(policy=FlowPolicy(execution_ms=100))

    def slow(request):
        desk.clock.sleep_s(0.2)
        return filled(1.0)

    desk.io.register("execution", slow)
    result = desk.run()
    assert (result.state, result.filled) == (S.FILLED, 1.0)


@settings(max_examples=80)
@given(
    st.lists(st.sampled_from(["ok", "reached", "lost"]), max_size=5),
    st.integers(0, 6),
    st.sampled_from([1.0, 0.5, 0.0]),
)
def test_no_order_is_ever_placed_twice(script, deaf, fill):
    broker = Broker(script, fill=fill, rest=1.0 - fill, deaf=deaf)
    desk = Desk(execution=broker, policy=FlowPolicy(deadline_ms=1e6))
    result = desk.run()
    placed = broker.orders.get("s1", [])
    assert len(placed) <= 1
    if not result.uncertain:
        assert result.filled == (fill if placed else 0.0)


def test_a_flow_that_resends_without_asking_would_be_seen():
    class Blind(Broker):
        """Planted: says that it never saw an order that it has."""

        def state(self, request, clock):
            return None

    broker = Blind(["reached"])
    Desk(execution=broker, policy=FlowPolicy(deadline_ms=1e5)).run()
    assert len(broker.orders["s1"]) == 2


# compensation


def test_the_rest_of_a_partial_is_taken_back():
    broker = Broker(fill=0.4, rest=0.6)
    result = Desk(execution=broker).run()
    assert (result.state, result.code) == (S.PARTIAL, C.EXEC_PARTIAL_EXPIRED)
    assert (result.filled, result.rest_cancelled, broker.cancelled) == (0.4, True, 1)


def test_a_rest_that_fills_while_it_is_taken_back_counts():
    class Racing(Broker):
        def cancel(self, request, clock):
            self.cancelled += 1
            return filled(1.0)

    result = Desk(execution=Racing(fill=0.4, rest=0.6)).run()
    assert (result.state, result.filled, result.code) == (S.FILLED, 1.0, None)


def test_a_cancel_that_fails_is_tried_again_and_then_told():
    class Stuck(Broker):
        def cancel(self, request, clock):
            self.cancelled += 1
            raise AgentTimedOut("no answer")

    broker = Stuck(fill=0.4, rest=0.6)
    result = Desk(execution=broker).run()
    assert broker.cancelled == 3
    assert (result.state, result.rest_cancelled, result.uncertain) == (S.PARTIAL, False, True)


def test_a_rest_is_taken_back_even_after_the_deadline():
    class Slow(Broker):
        def answer(self, request, clock):
            clock.sleep_s(request.deadline_ms / 1e3)
            return filled(0.4, rest=0.6)

    broker = Slow(fill=0.4)
    result = Desk(execution=broker, policy=FlowPolicy(deadline_ms=300)).run()
    assert (result.rest_cancelled, broker.cancelled) == (True, 1)


# the same id


def test_a_repeat_gets_the_first_result_and_nothing_is_sent():
    desk = Desk()
    first, steps = desk.run(), len(desk.steps)
    again = desk.run(size=5.0)
    assert again.repeated
    assert (again.state, again.filled, again.responses) == (first.state, 1.0, first.responses)
    assert desk.agents["execution"].asked == 1
    assert len(desk.steps) == steps


def test_a_repeat_whose_result_is_forgotten_is_still_not_sent():
    desk = Desk(policy=FlowPolicy(remember=2))
    for name in ("s1", "s2", "s3"):
        desk.run(name)
    again = desk.run("s1")
    assert (again.repeated, again.code) == (True, C.DUP_DUPLICATE_ID)
    assert desk.agents["execution"].asked == 3


def test_a_run_that_broke_off_keeps_its_claim():
    def interrupted(request):
        raise KeyboardInterrupt

    desk = Desk()
    desk.io.register("execution", interrupted)
    with pytest.raises(KeyboardInterrupt):
        desk.run()
    desk.io.register("execution", ScriptedAgent())
    assert desk.run().code is C.DUP_DUPLICATE_ID


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(ROUTE), st.sampled_from(["a", "b", "c"])), max_size=12))
def test_repeats_from_within_never_execute_twice(plan):
    """Signals come in while others stand before an agent: each agent call handles the next ones."""
    desk, orders, todo = Desk(), [], list(plan)

    def agent(name):
        def answer(request):
            while todo and todo[0][0] == name:
                desk.run(todo.pop(0)[1])
            if name == "execution":
                orders.append(request.signal.signal_id)
                return filled(request.size)
            return OK

        return answer

    for name in ROUTE:
        desk.io.register(name, agent(name))
    for name in ("a", "b", "a", "c", "b"):
        desk.run(name)
    assert sorted(orders) == sorted(set(orders))
    assert set(orders) == {"a", "b", "c"}
    ends = [step.signal_id for step in desk.steps if step.after.is_end]
    assert sorted(ends) == sorted(set(ends))


def test_repeats_from_many_threads_execute_once():
    desk, orders = Desk(), []
    gate = threading.Barrier(8)

    def execute(request):
        orders.append(request.signal.signal_id)
        return filled(1.0)

    desk.io.register("execution", execute)

    def send():
        gate.wait()
        for i in range(40):
            desk.run(f"s{i}")

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(orders) == sorted(f"s{i}" for i in range(40))


def test_paper_never_reaches_the_execution_agent():
    desk = Desk()

    def paper(request):
        return AgentResponse(request.trace_id, "execution", "ok", payload={"filled": request.size})

    result = desk.flow.run(signal(), decision(), Context(), desk.clock, paper=paper)
    assert (result.state, desk.agents["execution"].asked) == (S.FILLED, 0)
