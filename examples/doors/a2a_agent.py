"""An agent with an agent card (A2A 1.0): long while the close is above its average of 20 bars.

python examples/doors/a2a_agent.py 8101 &
agent-gym backtest --agent door/a2a --param url=http://127.0.0.1:8101 --market synthetic/btc-1h
"""

import sys

import uvicorn
from fastapi import FastAPI, Request
from http_agent import decide

app = FastAPI()


@app.get("/.well-known/agent-card.json")
def card(request: Request):
    way = {"url": f"{request.base_url}a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    skill = {"id": "decide", "name": "Decide", "description": "A target a bar", "tags": ["trading"]}
    return {"name": "average", "description": "Follows an average", "version": "1.0.0"} | {
        "supportedInterfaces": [way],
        "capabilities": {},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [skill],
    }


@app.post("/a2a")
async def send(request: Request):
    asked = await request.json()
    message = asked["params"]["message"]
    data = decide(message["parts"][0]["data"] | {"session": message["contextId"]})
    said = {"messageId": f"re-{message['messageId']}", "contextId": message["contextId"]}
    said |= {"role": "ROLE_AGENT", "parts": [{"data": data}]}
    return {"jsonrpc": "2.0", "id": asked["id"], "result": {"message": said}}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
