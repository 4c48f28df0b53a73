"""An endpoint that speaks as OpenAI's does: BUY while the close is above its average.

python examples/doors/openai_agent.py 8102 &
agent-gym backtest --agent door/openai --param model=average \
    --param url=http://127.0.0.1:8102/v1 --market synthetic/btc-1h
"""

import re
import sys

import uvicorn
from fastapi import FastAPI

app = FastAPI()


@app.post("/v1/chat/completions")
def complete(asked: dict):
    text = asked["messages"][-1]["content"]
    closes = [float(word) for word in re.search("close: (.*)\\.", text)[1].split(", ")]
    word = "BUY" if closes[-1] > sum(closes) / len(closes) else "HOLD"
    choice = {"index": 0, "finish_reason": "stop"}
    choice["message"] = {"role": "assistant", "content": word}
    head = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
    return head | {"choices": [choice]}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
