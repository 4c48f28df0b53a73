"""Bots for tests of nights: small programs that know nothing of the gym but an address and keys."""

from __future__ import annotations

from agent_gym.core.registry import Ref
from agent_gym.evaluation.scenarios import BotConfig, ScenarioConfig, Subject, Suite

CLIENT = """
import hashlib, hmac, json, os, time, urllib.error, urllib.parse, urllib.request

URL, KEY, SECRET = (os.environ["SANDBOX_" + name] for name in ("URL", "KEY", "SECRET"))
SYMBOL = "BTCUSDT"

def ask(method, path, signed=False, **params):
    if signed:
        params |= {"timestamp": int(time.time() * 1000), "recvWindow": 60000}
    query = urllib.parse.urlencode(params)
    if signed:
        digest = hmac.new(SECRET.encode(), query.encode(), hashlib.sha256).hexdigest()
        query += "&signature=" + digest
    request = urllib.request.Request(f"{URL}{path}?{query}", None, {"X-MBX-APIKEY": KEY},
                                     method=method)
    return json.load(urllib.request.urlopen(request, timeout=30))

def order(side, **more):
    return ask("POST", "/api/v3/order", True, symbol=SYMBOL, side=side, type="MARKET", **more)

def closes():
    rows = ask("GET", "/api/v3/klines", symbol=SYMBOL, interval="1h", limit=6)
    return [float(row[4]) for row in rows[:-1]]

def step():
    return ask("POST", "/sandbox/step")["finished"]
"""

HOLDER = """
from client import closes, order, step

COST = 4000
held = 0
while True:
    if held == 0:
        held = order("BUY", quoteOrderQty=COST)["executedQty"]
    closes()
    if step():
        break
"""
CRASHER = "from client import step\nstep()\nraise SystemExit('lost my mind')\n"
SILENT = "from client import step\nwhile not step():\n    pass\n"
LEAVER = "from client import order\norder('BUY', quoteOrderQty=4000)\n"
HANGER = "import time\ntime.sleep(600)\n"
ENDLESS = """
from client import closes, order

bought = False
while True:  # as on a real exchange: look, trade, look again; nobody says that it is over
    rows = closes()
    if not bought and rows[-1] > rows[0]:
        bought = bool(order("BUY", quoteOrderQty=4000))
"""
GREEDY = HOLDER.replace("COST = 4000", "COST = 8000")
POOR = """
from urllib.error import HTTPError

from client import order, step

for cost in (1e9, 2e9):
    try:
        order("BUY", quoteOrderQty=cost)
    except HTTPError as refused:
        assert refused.code == 400
step()
"""


def bot(folder, source, **more):
    """Return a bot of a source in a folder of its own."""
    folder.mkdir(parents=True)
    (folder / "client.py").write_text(CLIENT)
    (folder / "bot.py").write_text(source)
    return BotConfig(command="python bot.py", folder=folder, **more).settled(folder, "test")


def session(**params):
    """Return a short session on an hourly market."""
    given = {"bars": 12, "history": 8} | params
    return ScenarioConfig(name="hours", type="sandbox_session", n_seeds=2, params=given)


def suite(**params):
    return Suite(id="bots", scenarios=(session(**params),))


def subject(config):
    return Subject(Ref(use="core-agent"), Ref(use="rules/sma-cross"), None, config)
