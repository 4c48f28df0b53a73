"""A bot that trades at the gym's A2A endpoint: long while the close is above its average.

agent-gym serve &
python examples/doors/a2a_client.py http://127.0.0.1:8000 TOKEN
"""

import sys

import requests

base, token = sys.argv[1:]
http = requests.Session()
http.headers.update({"Authorization": f"Bearer {token}", "A2A-Version": "1.0"})
card = http.get(f"{base}/.well-known/agent-card.json").json()
url = card["supportedInterfaces"][0]["url"]


def call(name, **arguments):
    message = {"messageId": "1", "role": "ROLE_USER"}
    message["parts"] = [{"data": {"call": name, "arguments": arguments}}]
    request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    return http.post(url, json=request).json()["result"]["message"]["parts"][0]["data"]


seen, closes = call("begin_session", market="synthetic/btc-1h", bars=120), []
while not seen["finished"]:
    closes = [*closes, seen["features"]["close"]][-20:]
    target = 1.0 if closes[-1] > sum(closes) / len(closes) else 0.0
    seen = call("decide", session=seen["session"], target=target)
print(call("end_session", session=seen["session"])["equity_hash"])
