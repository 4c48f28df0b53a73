from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from agent_gym.agents.llm.agent import LlmAgent
from agent_gym.agents.team import Independent
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.envs.benchmark.world import TRADER
from agent_gym.rollouts.database.records import LlmCallRecord
from agent_gym.rollouts.play import EpisodeResult, run_episode
from agent_gym.training.llm.snapshots import Steps
from tests.agents.llm_samples import world

Play = Callable[[dict[str, Any], int], tuple[int, bytes]]
OVER = Event()


def said(text: str) -> bytes:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    usage = {"prompt_tokens": 21, "completion_tokens": 1, "total_tokens": 22}
    whole = {"id": "c", "object": "chat.completion", "created": 0, "model": "served-model"}
    return json.dumps(whole | {"choices": [choice], "usage": usage}).encode()


@contextmanager
def serving(play: Play) -> Iterator[tuple[str, list[dict[str, Any]], list[str | None]]]:
    asked: list[dict[str, Any]] = []
    keys: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append(json.loads(body))
            keys.append(self.headers["authorization"])
            status, reply = play(asked[-1], len(asked))
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("retry-after-ms", "1")
            self.send_header("content-length", str(len(reply)))
            try:
                self.end_headers()
                self.wfile.write(reply)
            except OSError:  # the other side had enough
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked, keys
    finally:
        server.shutdown()
        server.server_close()


def agent(url: str, **endpoint: object) -> LlmAgent:
    params = {"model": "some-model", "endpoint": {"url": url, "timeout_s": 5.0} | endpoint}
    made = make("agent", Ref(use="llm", params=params))
    assert isinstance(made, LlmAgent)
    return made


def episode(own: LlmAgent) -> tuple[EpisodeResult, Steps]:
    kept = Steps()
    return run_episode(world(), Independent({TRADER: own}), "one", Seeds(0), [kept]), kept


def test_it_asks_and_obeys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-key")
    with serving(lambda asked, number: (200, said("SELL" if number % 2 else "buy!"))) as found:
        url, asked, keys = found
        own = agent(url, key_variable="MY_KEY", guided_choice=True)
        result, kept = episode(own)
    assert result.status == "ok"
    assert len(asked) == own.counts["asked"] == len(own.calls) > 4
    assert own.counts["failed"] == own.counts["invalid"] == 0
    assert set(keys) == {"Bearer secret-key"}
    first, call = asked[0], own.calls[0]
    assert first["model"] == "some-model"
    assert first["guided_choice"] == ["SELL", "HOLD", "BUY"]
    assert [one["role"] for one in first["messages"]] == ["system", "user"]
    assert first["messages"][1]["content"] == call.user_prompt
    assert call.system_prompt == first["messages"][0]["content"]
    assert (call.response, call.action_type) == ("SELL", "SELL")
    assert (call.prompt_tokens, call.details["model"]) == (21, "served-model")
    assert call.model_version == own.version
    assert call.log_prob is None
    LlmCallRecord(**call.as_record())
    actions = np.array([step.decision.action for step in kept.steps])
    assert set(np.unique(actions)) == {-1.0, 0.0, 1.0}
    # Its chances are unknown: nothing of it may look as if GRPO could use it.
    assert all("log_prob" not in (step.decision.signals or {}) for step in kept.steps)


def test_an_answer_of_no_use_is_counted_and_the_position_stays() -> None:
    with serving(lambda asked, number: (200, said("BUY" if number == 1 else "as you like"))) as got:
        own = agent(got[0])
        result, kept = episode(own)
    assert result.status == "ok"
    assert own.counts["invalid"] == own.counts["asked"] - 1 > 2
    assert [call.action_type for call in own.calls] == ["BUY"] + [None] * (len(own.calls) - 1)
    assert own.calls[1].details["invalid"] is True
    assert own.calls[1].response == "as you like"
    last = np.asarray(kept.steps[-1].decision.action)
    assert sorted(last) == [0.0, 1.0]
    told = sum((step.decision.signals or {}).get("invalid", 0.0) for step in kept.steps)
    assert told == own.counts["invalid"]


@pytest.mark.parametrize("retries", [0, 2])
def test_a_failure_that_passes_is_borne_and_others_are_bounded(retries: int) -> None:
    with serving(lambda asked, number: (503, b"{}")) as (url, asked, _):
        own = agent(url, retries=retries, give_up_after=3)
        result, kept = episode(own)
    assert result.status == "ok"
    assert result.steps == 20
    assert len(asked) == 3 * (retries + 1)  # then nobody asks any more
    assert own.counts["failed"] == own.counts["asked"] == len(own.calls) > 4
    assert "InternalServerError" in own.calls[0].details["error"]
    assert own.calls[-1].details["error"] == "not asked: 3 failures in a row"
    assert not any(np.any(step.decision.action) for step in kept.steps)


def test_one_retry_is_enough_for_one_hiccup() -> None:
    def play(asked: dict[str, Any], number: int) -> tuple[int, bytes]:
        return (503, b"{}") if number == 1 else (200, said("HOLD"))

    with serving(play) as (url, asked, _):
        own = agent(url, retries=1)
        episode(own)
    assert own.counts["failed"] == 0
    assert len(asked) == own.counts["asked"] + 1


def test_a_new_episode_asks_again() -> None:
    with serving(lambda asked, number: (401, b'{"error": {"message": "no"}}')) as (url, asked, _):
        own = agent(url, give_up_after=1)
        episode(own)
        episode(own)
    assert len(asked) == 2  # a refusal is not tried again


@pytest.mark.parametrize(
    "reply", [b"", b"not json", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{}]}', b"null"]
)
def test_garbage_is_never_fatal(reply: bytes) -> None:
    with serving(lambda asked, number: (200, reply)) as (url, _, _):
        own = agent(url, retries=0)
        result, _ = episode(own)
    assert result.status == "ok"
    assert own.counts["failed"] + own.counts["invalid"] == own.counts["asked"] > 0


def test_nobody_there_is_never_fatal() -> None:
    with serving(lambda asked, number: (200, b"")) as (url, _, _):
        pass
    own = agent(url, retries=0, give_up_after=1)
    result, _ = episode(own)
    assert result.status == "ok"
    assert own.counts["failed"] == own.counts["asked"] > 0


def test_a_server_that_hangs_costs_its_time_and_no_more() -> None:
    def play(asked: dict[str, Any], number: int) -> tuple[int, bytes]:
        OVER.wait(20.0)
        return 200, said("BUY")

    with serving(play) as (url, asked, _):
        own = agent(url, retries=0, give_up_after=1, timeout_s=0.2)
        result, _ = episode(own)
        OVER.set()
    assert result.status == "ok"
    assert len(asked) == 1
    assert "Timeout" in own.calls[0].details["error"]


def test_what_is_asked_of_whom_is_its_version() -> None:
    def version(model: str = "m", url: str = "http://a/v1", **more: object) -> str:
        params = {"model": model, "endpoint": {"url": url}, **more}
        made = make("agent", Ref(use="llm", params=params))
        assert isinstance(made, LlmAgent)
        return made.version

    versions = {
        version(),
        version("n"),
        version(url="http://b/v1"),
        version(temperature=0.5),
        version(prompt={"question": "{news}?"}),
    }
    assert len(versions) == 5
    assert version() == version()
