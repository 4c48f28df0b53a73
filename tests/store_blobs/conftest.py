"""Blob stores to test: the same contract on a folder and on a real S3 server."""

import pytest

from agent_gym.rollouts.blobs import open_blobs
from tests.store_blobs import s3_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    if s3_server.program() is None:
        pytest.skip("moto's server is not installed: `make test` puts it into .venv-s3")
    server = s3_server.Server(tmp_path_factory.mktemp("s3") / "log")
    yield server
    server.end()


@pytest.fixture
def bucket(s3, monkeypatch):
    """The address of an empty bucket; the environment says how to get there."""
    for name, value in s3_server.KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3.port}")
    return f"s3://{s3.new_bucket()}/some/prefix"


@pytest.fixture
def proxy(s3, bucket, monkeypatch):
    made = s3_server.Proxy(s3.port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{made.port}")
    yield made
    made.end()


@pytest.fixture(params=["folder", "s3"])
def url(request, tmp_path):
    if request.param == "folder":
        return f"file://{tmp_path / 'shelf'}"
    return request.getfixturevalue("bucket")


@pytest.fixture
def blobs(url, tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)
    return open_blobs("steps", tmp_path / "near", ".bin", url)
