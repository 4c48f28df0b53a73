"""The files that start a cluster: well formed, closed to the outside, with a token."""

import json
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

PLACE = Path(__file__).parents[2] / "infrastructure"
CHART = {"image", "nameOverride", "fullnameOverride", "imagePullSecrets", "common", "head"} | {
    "worker",
    "additionalWorkerGroups",
    "service",
}


def read(name):
    return yaml.safe_load((PLACE / name).read_text(encoding="utf-8"))


def test_containers_publish_no_port_and_know_the_token():
    compose = read("docker/compose.yaml")
    assert compose["networks"]["inside"]["internal"] is True
    assert set(compose["services"]) == {"head", "worker"}
    for service in compose["services"].values():
        assert "ports" not in service
        assert service["networks"] == ["inside"]
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
        assert service["secrets"] == ["ray_token"]
        assert service["cap_drop"] == ["ALL"]
        assert "0.0.0.0" not in service["command"]
    assert (PLACE / "docker" / compose["secrets"]["ray_token"]["file"]).exists() is False


def test_the_image_is_of_this_package_and_not_of_root():
    lines = (PLACE / "docker" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert any("[ray" in line and "constraints.txt" in line for line in lines)
    assert [line for line in lines if line.startswith("USER")] == ["USER gym"]


def test_the_launcher_file_fits_the_schema_of_ray():
    cluster = read("ray/cluster.yaml")
    for commands in (cluster["head_start_ray_commands"], cluster["worker_start_ray_commands"]):
        assert "RAY_AUTH_MODE=token" in commands[-1]
    found = find_spec("ray")
    if found is None:
        pytest.skip("Ray is not installed: pip install 'agent-gym[ray]'")
    schema = Path(found.origin).parent / "autoscaler" / "ray-schema.json"
    jsonschema.validate(cluster, json.loads(schema.read_text(encoding="utf-8")))


def test_the_values_are_those_of_the_chart_and_open_nothing():
    values = read("helm/values.yaml")
    assert set(values) <= CHART
    assert values["service"]["type"] == "ClusterIP"
    said = {each["name"]: each for each in values["common"]["containerEnv"]}
    assert said["RAY_AUTH_MODE"]["value"] == "token"
    assert "secretKeyRef" in said["RAY_AUTH_TOKEN"]["valueFrom"]
    assert values["head"]["rayStartParams"]["include-dashboard"] == "false"
