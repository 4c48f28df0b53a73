"""Case 37: an address that was not named is not spoken to, however it is written."""

from __future__ import annotations

import socket

import pytest

from agent_gym.agents.desk.http_agent import HttpAgent
from agent_gym.agents.doors.words import DoorError
from agent_gym.core import Ref, make
from agent_gym.core.errors import ConfigError
from tests.doors.door_samples import start

pytestmark = pytest.mark.case(37)
URLS = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0.0.0.0/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::]/",
    "http://localhost.example.org/",
    "http://127.0.0.1.example.org/",
    "http://127.0.0.1@example.org/",
    "http://127.0.0.1:80@example.org/",
    "http://example.org#@127.0.0.1/",
    "http://example.org\\@127.0.0.1/",
    "http://127.0.0.1\\@example.org/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/",
    "http://127\u30020.0.1/",
    "http:///etc/passwd",
    "file:///etc/passwd",
    "gopher://127.0.0.1:70/_x",
    "ftp://127.0.0.1/",
    "unix:///var/run/docker.sock",
    "//127.0.0.1/",
    "127.0.0.1",
    "",
]


@pytest.fixture
def asked(monkeypatch):
    """Note whose address was asked for, and give none."""
    hosts = []

    def resolve(host, *_, **__):
        hosts.append(host)
        raise socket.gaierror("no names here")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return hosts


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("door", ["door/http", "door/a2a"])
def test_a_door_speaks_to_named_hosts_alone(asked, door, url):
    with pytest.raises((ConfigError, DoorError)):
        make("agent", Ref(use=door, params={"url": url, "answer_s": 1.0})).reset(start())
    assert set(asked) <= {"127.0.0.1", "::1", "localhost"}


@pytest.mark.parametrize("url", URLS)
def test_the_desk_speaks_to_named_hosts_alone(asked, url):
    with pytest.raises(ConfigError):
        HttpAgent(url)
    assert asked == []


def test_a_named_host_is_asked_for_by_its_name(asked):
    params = {"url": "http://agents.example.org/", "hosts": ["agents.example.org"]}
    with pytest.raises(DoorError, match="no connection"):
        make("agent", Ref(use="door/http", params=params)).reset(start())
    assert set(asked) == {"agents.example.org"}
