"""A judge behind a real HTTP server on this machine, with everything that can go wrong there."""

import json

import pytest
from judge_samples import answer_of, chat, group_of
from judge_server import completion, serving
from pydantic import ValidationError

from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.judge import (
    BackendFailed,
    JudgeConfig,
    JudgeRequest,
    Refused,
    RelativeJudge,
    TimedOut,
)

endpoint = pytest.importorskip("agent_gym.evaluation.judge.endpoint")
REQUEST = JudgeRequest("g", chat(("system", "rules"), ("user", "records")), {})
AT_ONCE = {"retry-after-ms": "1"}


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def backend(url, clock=None, **more):
    config = endpoint.EndpointConfig(base_url=url, model="judge-1", **more)
    return endpoint.OpenAIBackend(config, *([clock] if clock else []))


def replies(*found):
    """Answer with one after the other, the last one for ever."""
    return lambda asked, number: found[min(number, len(found)) - 1]


def fails(play, error, match, **more):
    with serving(play) as server, pytest.raises(error, match=match) as caught:
        backend(server.url, **more).answer(REQUEST)
    return server, caught.value


def test_a_question_is_asked_as_such_endpoints_want_it():
    with serving(replies((200, {}, completion("an answer")))) as server:
        assert backend(server.url).answer(REQUEST) == "an answer"
    assert server.asked == [
        {
            "model": "judge-1",
            "messages": [
                {"role": "system", "content": "rules"},
                {"role": "user", "content": "records"},
            ],
            "temperature": 0.0,
            "max_tokens": 4096,
            "response_format": {"type": "json_object"},
        }
    ]
    with serving(replies((200, {}, completion("an answer")))) as server:
        backend(server.url, temperature=None, json_mode=False, completion_tokens=True).answer(
            REQUEST
        )
    assert set(server.asked[0]) == {"model", "messages", "max_completion_tokens"}


def test_a_whole_group_is_judged_over_http():
    def play(asked, number):
        labels = asked["messages"][1]["content"].rsplit("Labels to score: ", 1)[1].split(", ")
        return 200, {}, completion(answer_of({name: n / 10 for n, name in enumerate(labels)}))

    group, truth = group_of([1, 5, 9])
    with serving(play) as server:
        judge = RelativeJudge(backend(server.url), JudgeConfig(passes=4), workers=2)
        found = judge.judge(group)
    assert set(found.scores) == set(truth)
    assert len(server.asked) == 4
    assert list(found.scores.values()) == pytest.approx([0.1] * 3)  # by place alone: nothing left


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503])
def test_what_passes_is_asked_again(status):
    good = (200, {}, completion("at last"))
    with serving(replies((status, AT_ONCE, b"{}"), (status, AT_ONCE, b"busy"), good)) as server:
        assert backend(server.url).answer(REQUEST) == "at last"
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [429, 500])
def test_what_does_not_pass_is_a_failure_after_a_bounded_number_of_tries(status):
    server, error = fails(
        replies((status, AT_ONCE, b"<html>")), BackendFailed, f"said {status}", retries=2
    )
    assert len(server.asked) == 3
    assert error.kind == "unavailable"


def test_a_failing_endpoint_costs_its_passes_and_not_the_run():
    def play(asked, number):
        return (500, AT_ONCE, b"") if number % 2 else (200, {}, completion("I'd rather not."))

    group, _ = group_of([1, 5])
    with serving(play) as server:
        found = RelativeJudge(backend(server.url, retries=0), JudgeConfig(passes=2)).judge(group)
    assert not found.judged
    assert [one.failures[0].kind for one in found.passes] == ["unavailable", "unavailable"]
    assert len(server.asked) == 3  # 500; words, and 500 at the repair


@pytest.mark.parametrize("status", [400, 422])
def test_a_question_that_is_refused_is_not_asked_again(status):
    body = b'{"error": {"message": "use max_completion_tokens\\u202e' + b"x" * 5_000 + b'"}}'
    server, error = fails(replies((status, {}, body)), BackendFailed, f"said {status}")
    assert len(server.asked) == 1
    assert "use max_completion_tokens?" in error.found  # the reason, but visible and short
    assert len(error.found) < 400


@pytest.mark.parametrize(
    ("status", "words"), [(401, "let us in"), (403, "let us in"), (404, "no such model")]
)
def test_what_no_other_pass_can_mend_ends_the_run(status, words):
    group, _ = group_of([1, 5])
    with serving(replies((status, {}, b"{}"))) as server, pytest.raises(ConfigError, match=words):
        RelativeJudge(backend(server.url), JudgeConfig(passes=4)).judge(group)
    assert len(server.asked) == 1


def test_a_silent_endpoint_is_given_up():
    def play(asked, number):
        server.over.wait(30)
        return 200, {}, completion("too late")

    with serving(play) as server, pytest.raises(TimedOut) as caught:
        backend(server.url, timeout_s=0.2, retries=0).answer(REQUEST)
    assert caught.value.kind == "timeout"


def test_a_reply_that_stops_half_way_is_given_up():
    def play(asked, number):
        def pieces():
            yield b'{"choices": '
            server.over.wait(30)

        return 200, {"content-length": "1000"}, pieces()

    with serving(play) as server, pytest.raises(TimedOut):
        backend(server.url, timeout_s=0.2, retries=0).answer(REQUEST)


class Racing(ManualClock):
    """A clock that is a minute later whenever it is looked at."""

    def monotonic_s(self):
        self.sleep_s(60.0)
        return super().monotonic_s()


def test_a_reply_that_drips_is_given_up():
    def play(asked, number):
        return 200, {}, (b" " for _ in range(100_000))

    with serving(play) as server, pytest.raises(TimedOut, match="too slowly"):
        backend(server.url, clock=Racing(), timeout_s=90).answer(REQUEST)


def test_a_flood_is_cut_off():
    def play(asked, number):
        return 200, {}, (b" " * 65_536 for _ in range(1_000))

    fails(play, BackendFailed, "too large")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>gateway</html>",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{}]}',
        b'{"choices":' * 50_000,
        completion(None),
    ],
)
def test_nonsense_is_a_failure(body):
    _, error = fails(replies((200, {}, body)), BackendFailed, "replied")
    assert error.kind == "unavailable"


def test_a_lost_connection_is_a_failure():
    def play(asked, number):
        return 200, {"content-length": "500"}, b'{"choices"'

    with serving(play) as server:
        url = server.url
        with pytest.raises(BackendFailed):
            backend(url, timeout_s=2, retries=0).answer(REQUEST)
    with pytest.raises(BackendFailed, match="cannot be reached"):
        backend(url, retries=0).answer(REQUEST)


def test_a_model_that_will_not_is_a_refusal():
    for reply in (
        completion(None, message={"refusal": "I do not judge"}),
        completion("", finish_reason="content_filter"),
    ):
        server, error = fails(replies((200, {}, reply)), Refused, "would not")
        assert error.kind == "refused"
        assert len(server.asked) == 1


def test_an_answer_that_was_cut_off_is_not_taken():
    fails(replies((200, {}, completion('{"scores"', finish_reason="length"))), BackendFailed, "cut")


def test_the_key_goes_to_the_endpoint_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret-123")
    with serving(replies((200, {}, completion("x")))) as server:
        asked = backend(server.url, key_variable="JUDGE_KEY")
        asked.answer(REQUEST)
    assert server.headers[0]["authorization"] == "Bearer secret-123"
    assert "secret-123" not in repr(asked)
    assert "secret-123" not in json.dumps(asked.config.model_dump())
    monkeypatch.setenv("JUDGE_KEY", "another")
    assert backend(server.url, key_variable="JUDGE_KEY").version == asked.version
    assert backend(server.url, temperature=0.5).version != asked.version


def test_a_key_is_not_sent_over_an_open_line(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-123")
    for url in ("http://example.org/v1", "http://10.0.0.1/v1", "http://[2001:db8::1]/v1"):
        with pytest.raises(ConfigError, match="open line"):
            backend(url)
    for url in ("https://example.org/v1", "http://localhost:1/v1", "http://[::1]:1/v1"):
        assert backend(url).model == "judge-1"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert backend("http://example.org/v1").model == "judge-1"


@pytest.mark.parametrize(
    "url", ["example.org", "ftp://x/v1", "http://", "https://me:secret@x/v1", "https://x/v1?key=1"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ValidationError):
        endpoint.EndpointConfig(base_url=url, model="m")
