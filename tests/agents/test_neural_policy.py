import json
import re
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pytest
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import (
    About,
    model_hash_of,
    read_artifact,
    read_manifest,
    write_artifact,
)
from agent_gym.agents.neural import FeatureLayout, NeuralConfig, NeuralPolicy, PolicyInputs
from agent_gym.core.errors import AgentError, DataError, StoreError
from agent_gym.core.seeds import Seeds

INPUTS = PolicyInputs(market=("price", "news"), account=("cash",))
NAMES = ("a/price", "a/news", "b/price", "b/news", "account/cash")


def policy(seed=0, sample=None, **settings):
    return NeuralPolicy.create(NeuralConfig(**settings), INPUTS, Seeds(seed), sample)


def test_columns_are_found_by_name():
    layout = FeatureLayout.of(NAMES)
    assert layout.markets == ("a", "b")
    assert layout.columns(INPUTS).tolist() == [[0, 1, 4], [2, 3, 4]]
    more = FeatureLayout.of(("account/cash", "x/extra", "x/news", "x/price", "account/debt"))
    assert more.columns(INPUTS).tolist() == [[3, 2, 0]]


def test_names_without_a_market_are_one_market():
    layout = FeatureLayout.of(("close", "volume"))
    assert layout.markets == ("",)
    assert layout.columns(PolicyInputs(market=("volume",))).tolist() == [[1]]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a/price", "b/news"), "same features"),
        (("a/price", "a/news", "b/news", "b/price"), "same order"),
        (("account/cash",), "that of a market"),
    ],
)
def test_layouts_that_no_network_can_share_are_refused(names, words):
    with pytest.raises(AgentError, match=words):
        FeatureLayout.of(names)


def test_a_missing_feature_is_named():
    with pytest.raises(AgentError, match="also a/news, account/cash"):
        FeatureLayout.of(("a/price",)).columns(INPUTS)


def test_chances_are_chances_and_start_nearly_equal():
    log_probs = policy().log_probs(Seeds(1).rng().normal(size=(50, 2, 3)))
    assert log_probs.shape == (50, 2, 3)
    assert np.allclose(np.exp(log_probs).sum(-1), 1.0, atol=1e-14)
    assert np.abs(np.exp(log_probs) - 1 / 3).max() < 0.05


def test_a_row_alone_and_in_a_batch_are_the_same():
    rows = Seeds(2).rng().normal(size=(40, 3))
    net = policy(hidden=(32, 16))
    alone = np.stack([net.log_probs(row[None])[0] for row in rows])
    assert np.abs(alone - net.log_probs(rows)).max() < 1e-12


def test_extreme_inputs_give_finite_answers():
    log_probs = policy().log_probs(np.array([[1e300, -1e300, 0.0], [1e9, 1e9, 1e9]]))
    assert np.isfinite(log_probs).all()


def test_a_sample_scales_the_inputs():
    rng = Seeds(3).rng()
    sample = rng.normal(size=(500, 3)) * [1e4, 1.0, 0.0] + [1e5, 0.0, 7.0]
    net = policy(sample=sample)
    assert net.weights["offset"] == pytest.approx([1e5, 0.0, 7.0], rel=0.1, abs=0.2)
    assert net.weights["scale"] == pytest.approx([1e-4, 1.0, 1.0], rel=0.1)  # 1 where nothing moves
    assert net.version != policy().version


def test_the_version_is_that_of_weights_and_settings():
    net = policy()
    assert net.version == policy().version
    others = [
        policy(seed=1),
        policy(clip=5.0),
        policy(levels=(-0.5, 0.0, 0.5)),
        policy(hidden=(8,)),
    ]
    assert len({net.version, *(other.version for other in others)}) == 5
    weights = {name: array.copy() for name, array in net.weights.items()}
    weights["layers.0.bias"][3] = 1e-300  # the smallest change
    assert net.with_weights(weights).version != net.version


def test_a_policy_cannot_be_changed_by_hand():
    with pytest.raises(ValueError, match="read-only"):
        policy().weights["layers.0.bias"][0] = 1.0


def test_it_comes_back_from_its_folder_to_the_bit(tmp_path):
    net = policy(seed=5, hidden=(8, 4))
    about = About(parents=("0" * 64,), data_hash="d", config={"lr": 0.1})
    manifest = net.save(tmp_path / "model", about)
    again = NeuralPolicy.load(tmp_path / "model")
    assert again.version == net.version == manifest.model_hash == model_hash_of(net.files)
    assert all(np.array_equal(again.weights[n], net.weights[n]) for n in net.weights)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "manifest.json",
        "policy.json",
        "policy.safetensors",
    ]
    assert read_manifest(tmp_path / "model").parents == about.parents
    other = net.save(tmp_path / "other")  # where it comes from does not change what it is
    assert other.model_hash == manifest.model_hash


def test_saving_again_replaces_and_foreign_folders_are_left_alone(tmp_path):
    policy(seed=1).save(tmp_path / "model")
    policy(seed=2).save(tmp_path / "model")
    assert NeuralPolicy.load(tmp_path / "model").version == policy(seed=2).version
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(StoreError, match="other files"):
        policy().save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize("name", ["policy.safetensors", "policy.json", "manifest.json"])
def test_one_changed_byte_is_refused(tmp_path, name):
    policy().save(tmp_path / "m")
    path = tmp_path / "m" / name
    content = bytearray(path.read_bytes())
    hashes = [m.start() for m in re.finditer(rb"[0-9a-f]{64}", bytes(content))]
    place = hashes[0] if hashes else len(content) // 2
    content[place] = ord("0") if content[place] != ord("0") else ord("1")
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged"):
        NeuralPolicy.load(tmp_path / "m")


def test_missing_and_additional_files_are_refused(tmp_path):
    policy().save(tmp_path / "m")
    (tmp_path / "m" / "model.pkl").write_bytes(b"x")
    with pytest.raises(DataError, match="not those of its manifest"):
        NeuralPolicy.load(tmp_path / "m")
    (tmp_path / "m" / "model.pkl").unlink()
    (tmp_path / "m" / "policy.json").unlink()
    with pytest.raises(DataError, match="not those of its manifest"):
        NeuralPolicy.load(tmp_path / "m")
    with pytest.raises(DataError, match="cannot be read"):
        NeuralPolicy.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["../evil.json", "/etc/passwd", "a/b.json", "x"])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    manifest = write_artifact(tmp_path / "m", "neural/market", {"a.json": b"{}"})
    files = {name: manifest.files["a.json"]}
    lines = f"{name} {files[name]}\n".encode()
    forged = manifest.model_dump(mode="json") | {"files": files, "model_hash": sha(lines)}
    (tmp_path / "m" / "manifest.json").write_text(json.dumps(forged))
    with pytest.raises(DataError, match="file name"):
        read_artifact(tmp_path / "m", "neural/market")


def sha(content):
    return sha256(content).hexdigest()


def test_a_link_is_not_followed(tmp_path):
    policy().save(tmp_path / "m")
    target = tmp_path / "m" / "policy.json"
    content = target.read_bytes()
    (tmp_path / "outside.json").write_bytes(content)
    target.unlink()
    target.symlink_to(tmp_path / "outside.json")
    with pytest.raises(DataError, match="a link"):
        NeuralPolicy.load(tmp_path / "m")


def broken(files):
    yield {"policy.json": b"{}", "policy.safetensors": files["policy.safetensors"]}
    yield {"policy.json": files["policy.json"], "policy.safetensors": b"\x00" * 20}
    yield {"policy.json": files["policy.json"]}
    wide = {"offset": np.zeros(9)}
    yield {"policy.json": files["policy.json"], "policy.safetensors": bytes_of(wide)}


def test_well_hashed_nonsense_is_refused_too(tmp_path):
    for number, files in enumerate(broken(policy().files)):
        folder = tmp_path / str(number)
        write_artifact(folder, "neural/market", files)
        with pytest.raises(DataError, match=r"no neural policy|do not fit"):
            NeuralPolicy.load(folder)
    write_artifact(tmp_path / "k", "llm/market", policy().files)
    with pytest.raises(DataError, match="another kind"):
        NeuralPolicy.load(tmp_path / "k")


def test_weights_that_are_no_numbers_are_refused():
    net = policy()
    bad = net.weights["layers.1.bias"].copy()
    bad[0] = np.nan
    with pytest.raises(AgentError, match="not a number"):
        net.with_weights({"layers.1.bias": bad})


@pytest.mark.parametrize(
    "wrong", [{"levels": (1.0, 0.0)}, {"levels": (0.0,)}, {"hidden": ()}, {"hidden": (0,)}]
)
def test_odd_shapes_are_refused(wrong):
    with pytest.raises(ValueError, match=r"levels|hidden"):
        NeuralConfig(**wrong)


def test_layers_have_names_in_order():
    widths = (3, 8, 4, 3)
    net = policy(hidden=(8, 4))
    shapes = [net.weights[f"layers.{i}.weight"].shape for i in range(3)]
    assert shapes == list(pairwise(widths))


HOLDING = PolicyInputs(market=("price", "position"))


def holding(inertia):
    return NeuralPolicy.create(NeuralConfig(inertia=inertia), HOLDING, Seeds(0))


def test_inertia_keeps_what_is_held():
    rows = np.array([[0.3, -1.0], [0.3, 0.0], [0.3, 1.0], [0.3, 0.4]])
    chances = np.exp(holding(3.0).log_probs(rows))
    assert chances.argmax(axis=1).tolist() == [0, 1, 2, 1]
    assert chances[:3].max(axis=1) == pytest.approx([0.95, 0.91, 0.95], abs=0.01)
    free = np.exp(holding(0.0).log_probs(rows))
    assert free.max() < 0.36


def test_inertia_is_part_of_the_policy_and_survives_its_file(tmp_path):
    own = holding(3.0)
    assert own.version != holding(2.0).version
    own.save(tmp_path / "own")
    again = NeuralPolicy.load(tmp_path / "own")
    rows = np.array([[0.1, 0.7]])
    assert np.array_equal(again.log_probs(rows), own.log_probs(rows))


def test_inertia_needs_a_position_to_lean_to():
    with pytest.raises(AgentError, match="must see what it holds"):
        policy(inertia=1.0)
