"""Long while the close is above its average of 20 bars.

agent-gym backtest --agent door/pipe --param command="python examples/doors/pipe_agent.py" \
    --market synthetic/btc-1h --bars 2000
"""

import json
import sys

for line in sys.stdin:
    question = json.loads(line)
    answer = {"id": question["id"]}
    if question["ask"] == "hello":
        answer["protocol"] = 1
    elif question["ask"] == "start":
        column, closes = question["episode"]["features"].index("close"), []
    elif question["ask"] == "act":
        closes = [*closes, question["features"][column]][-20:]
        answer["target"] = 1.0 if closes[-1] > sum(closes) / len(closes) else 0.0
    print(json.dumps(answer), flush=True)
