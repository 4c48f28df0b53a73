"""Agents that come to the gym: by MCP and by A2A, as users write them, in both languages."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from mcp import Client

from agent_gym.apps.api.agent_card import card_router
from agent_gym.apps.mcp_gym import create_gym_server
from agent_gym.apps.visit_desk import VisitDesk
from agent_gym.core import Ref, Seeds, names
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.visit import Visit, VisitBook, VisitError
from agent_gym.markets.source import open_market
from tests.doors.door_samples import EXAMPLES, ROOT, needs_node
from tests.doors.test_door_agents import Average

LANGUAGES = [
    pytest.param((sys.executable, "py"), id="python"),
    pytest.param(("node", "js"), id="javascript", marks=needs_node),
]
GYM = [sys.executable, "-c", "from agent_gym.apps.cli.main import main; main()", "mcp"]


def market():
    return open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 120}), Seeds(0))


@pytest.fixture(scope="module")
def expected():
    return BacktestEngine().run(market(), Average(), 0).equity_hash


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_mcp_client_trades_as_the_same_agent_in_process(language, expected):
    program, ending = language
    words = GYM if ending == "js" else []
    assert run(program, str(EXAMPLES / f"mcp_client.{ending}"), *words) == expected


@pytest.fixture(scope="module")
def endpoint():
    app = FastAPI()
    app.include_router(card_router(VisitDesk(VisitBook())))
    running = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    socket = running.config.bind_socket()
    thread = threading.Thread(target=running.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    running.should_exit = True
    thread.join(30)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_a2a_client_trades_as_the_same_agent_in_process(language, endpoint, expected):
    program, ending = language
    said = run(program, str(EXAMPLES / f"a2a_client.{ending}"), endpoint, "no-token-needed-here")
    assert said == expected


def test_the_tools_of_the_gym():
    async def look():
        async with Client(create_gym_server(VisitDesk(VisitBook()))) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            markets = await client.call_tool("list_markets", {})
            scenarios = await client.call_tool("list_scenarios", {})
            asked = {"agent": "rules/sma-cross", "params": {"fast": 5, "slow": 20}, "bars": 200}
            ran = await client.call_tool("run_backtest", asked)
            wrong = [
                await client.call_tool("run_backtest", asked | {"agent": "rules/nothing"}),
                await client.call_tool("run_backtest", asked | {"params": {"fats": 5}}),
                await client.call_tool("run_backtest", asked | {"agent": "door/pipe"}),
                await client.call_tool("begin_session", {"market": "file"}),
                await client.call_tool("begin_session", {"bars": 1}),
                await client.call_tool("decide", {"session": "visit-9", "target": 1.0}),
                await client.call_tool("nothing", {}),
            ]
            return tools, markets, scenarios, ran, wrong

    tools, markets, scenarios, ran, wrong = asyncio.run(look())
    assert {"list_agents", "list_markets", "list_scenarios", "run_backtest", "decide"} <= tools
    assert "synthetic/btc-1h" in markets.structured_content["markets"]
    assert "file" not in markets.structured_content["markets"]
    assert scenarios.structured_content["scenarios"] == list(names("scenario"))
    bars = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 200}), Seeds(0))
    own = BacktestEngine().run(bars, Ref(use="rules/sma-cross", params={"fast": 5, "slow": 20}))
    assert ran.structured_content["equity_hash"] == own.equity_hash
    assert ran.structured_content["final_equity"] == own.equity[-1]
    assert all(each.is_error for each in wrong)
    assert all(each.structured_content["what"] for each in wrong)


def test_a_trusted_client_may_name_more():
    book = VisitBook(trusted=True)
    assert {"file", "exchange"} <= set(book.markets())
    assert "door/pipe" in book.agents()
    assert "door/pipe" not in VisitBook().agents()
    assert "llm" not in VisitBook().agents()


def test_a_visit_ends_and_tells_its_figures_only_then():
    visit = Visit(market())
    with pytest.raises(VisitError, match="not over"):
        visit.results()
    with pytest.raises(VisitError, match="finite"):
        visit.step(float("nan"))
    assert visit.step(1.0, times=10_000)["finished"]
    with pytest.raises(VisitError, match="is over"):
        visit.step(1.0)
    held = BacktestEngine().run(market(), Ref(use="rules/buy-hold"))
    assert visit.results().equity_hash == held.equity_hash


def test_sessions_are_limited_and_can_be_given_up():
    desk = VisitDesk(VisitBook(most=1))
    assert desk.call("begin_session", {"bars": 50})[0]
    well, said = desk.call("begin_session", {"bars": 50})
    assert not well
    assert "too many" in said["what"]
    assert desk.call("end_session", {"session": "visit-1"}) == (
        True,
        {"session": "visit-1", "finished": False, "figures": None},
    )
    assert desk.call("begin_session", {"bars": 50})[0]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("nonsense", -32700),
        ("[" * 100_000, -32700),
        ([], -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "message/send"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": []}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {}}}, -32602),
    ],
)
def test_messages_that_are_none(body, code):
    app = FastAPI()
    app.include_router(card_router(VisitDesk(VisitBook())))
    sent = {"content": body} if isinstance(body, str) else {"json": body}
    reply = TestClient(app).post("/a2a", **sent)
    assert reply.status_code == 200
    assert reply.json()["error"]["code"] == code
