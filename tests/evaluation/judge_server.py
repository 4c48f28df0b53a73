"""A real HTTP server on this machine that plays an endpoint, a good one or a bad one."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


def completion(text, **choice):
    message = {"role": "assistant", "content": text} | choice.pop("message", {})
    said = {"index": 0, "finish_reason": "stop", "message": message} | choice
    return json.dumps({"id": "c", "object": "chat.completion", "choices": [said]}).encode()


class Endpoint:
    """Answers with what ``play(asked, number)`` returns: (status, headers, body or pieces)."""

    def __init__(self, play):
        self.play, self.asked, self.headers, self.over = play, [], [], Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@contextmanager
def serving(play):
    endpoint = Endpoint(play)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            endpoint.asked.append(json.loads(body))
            endpoint.headers.append({name.lower(): self.headers[name] for name in self.headers})
            status, headers, reply = endpoint.play(endpoint.asked[-1], len(endpoint.asked))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            pieces = [reply] if isinstance(reply, bytes) else reply
            if isinstance(reply, bytes) and "content-length" not in headers:
                self.send_header("content-length", str(len(reply)))
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    self.wfile.flush()
            except OSError:  # the other side had enough
                self.close_connection = True

        def log_message(self, *_):
            pass

    endpoint.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.server.daemon_threads = True
    thread = Thread(target=endpoint.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join(10)
