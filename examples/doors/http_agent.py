"""A server that decides: long while the close is above its average of 20 bars.

python examples/doors/http_agent.py 8100 &
agent-gym backtest --agent door/http --param url=http://127.0.0.1:8100 --market synthetic/btc-1h
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSIONS = {}  # one episode each


def decide(question):
    answer, here = {"id": question["id"]}, SESSIONS.setdefault(question["session"], {})
    if question["ask"] == "hello":
        answer["protocol"] = 1
    elif question["ask"] == "start":
        here.update(column=question["episode"]["features"].index("close"), closes=[])
    elif question["ask"] == "act":
        closes = here["closes"] = [*here["closes"], question["features"][here["column"]]][-20:]
        answer["target"] = 1.0 if closes[-1] > sum(closes) / len(closes) else 0.0
    return answer


class Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(decide(question)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
