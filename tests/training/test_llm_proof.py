from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from agent_gym.agents.llm.adapter import Lora, Whole
from agent_gym.agents.llm.base import load_base
from agent_gym.agents.llm.policy import LanguagePolicy
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo import AdamConfig, SFTConfig
from agent_gym.training.llm import notes
from agent_gym.training.llm.proof import NoteCase, NoteRun, held_out, learning
from agent_gym.training.llm.snapshots import SnapshotCase, SnapshotRun
from agent_gym.training.llm.tiny import make_tiny, vocabulary
from tests.agents.llm_samples import SMALL, tiny_folder

SFT = SFTConfig(epochs=30, adam=AdamConfig(learning_rate=1e-3))
CASE = NoteCase(
    training=learning(50, 0.3).model_copy(update={"epochs": 2}),
    adapter=Whole(),
    sft=SFT,
    pool=96,
    groups=24,
    demonstrations=96,
)
SHORT = NoteCase(
    training=learning(4, 0.2).model_copy(update={"checkpoint_every": 1}),
    adapter=Lora(layers=1),
    pool=24,
    groups=6,
    members=4,
    calibration=6,
)


def begin(case: NoteCase, seed: int, folder: Path) -> NoteRun:
    return NoteRun.begin(case, seed, load_base(str(make_tiny(folder, Seeds(seed)))))


def test_the_market_knows_its_best_and_its_notes_are_apart() -> None:
    given = held_out()
    for kind in given.values():
        assert notes.best(kind) == pytest.approx(1 / 3)
        assert notes.follower(kind) == pytest.approx(0.8 / 3)
        assert notes.at_random(kind) == pytest.approx(-0.2)
    trained = {one.text for one in notes.training_notes(Seeds(0), 500)}
    assert not trained & {one.text for kind in given.values() for one in kind}
    words = [words for phrases in notes.WORDINGS.values() for words in phrases]
    assert not set(words) & {words for phrases in notes.UNSEEN.values() for words in phrases}
    assert not set(notes.TICKERS) & set(notes.UNSEEN_TICKERS)


def test_rewards_are_what_the_market_says() -> None:
    given = notes.training_notes(Seeds(1), 60)

    def even(texts: object) -> np.ndarray:
        return np.full((60, 3), -np.log(3.0))

    batch = notes.play(even, given, 50, Seeds(2), "v")
    sides, worth = batch.actions[:, 0, 0], np.repeat([note.strength for note in given], 50)
    luck = (batch.rewards[:, 0] + notes.COST * np.abs(sides)) - sides * worth
    by_note = np.where(sides == 0, np.nan, luck * np.sign(sides)).reshape(60, 50)
    assert np.nanmax(np.nanstd(by_note, axis=1)) < 1e-12  # luck is shared by the group
    assert np.nanmean(by_note, axis=1).std() == pytest.approx(notes.LUCK_SD, rel=0.35)
    assert np.all(batch.rewards[sides == 0] == 0)
    mixed = notes.shuffled(batch, Seeds(3))
    assert sorted(mixed.returns) == sorted(batch.returns)
    assert abs(np.corrcoef(mixed.returns, batch.returns)[0, 1]) < 0.1
    assert np.array_equal(mixed.actions, batch.actions)


def test_a_tiny_model_learns_beyond_its_teacher(tmp_path: Path) -> None:
    taught, learned = [], []
    for seed in range(3):
        run = begin(CASE, seed, tmp_path / f"tiny-{seed}")
        assert run.imitation is not None
        taught.append(run.imitation["seen"].greedy)
        run.train(())
        learned.append(run.scores[50]["seen"].greedy)
    assert np.mean(taught) < 0.28  # following all news is the most that it was shown
    assert np.mean(learned) > 0.30
    assert np.mean(learned) > np.mean(taught) + 0.03


def test_a_tiny_model_learns_nothing_from_shuffled_rewards(tmp_path: Path) -> None:
    mixed, found = CASE.model_copy(update={"rewards": "shuffled"}), []
    for seed in range(3, 5):
        run = begin(mixed, seed, tmp_path / f"tiny-{seed}")
        run.train(())
        found.append(run.scores[50]["seen"].expected)
    assert np.mean(found) < 0.10


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = begin(SHORT, 0, tmp_path / "a")
    expected = whole.train((), tmp_path / "whole")
    stopped = begin(SHORT, 0, tmp_path / "b")

    def stop(update: int, found: object) -> None:
        if update == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.train((0, 2), tmp_path / "state", stop)
    again = begin(SHORT, 0, tmp_path / "c")
    asked: list[int] = []
    result = again.train(
        (0, 1, 2, 3), tmp_path / "state", lambda update, found: asked.append(update)
    )
    assert asked == [2, 3, 4]
    assert result.model_after == expected.model_after
    assert result.updates == expected.updates
    for name, one in whole.learner.policy.parameters.items():
        assert torch.equal(one, again.learner.policy.parameters[name])
    again.learner.policy.save(tmp_path / "policy")
    assert LanguagePolicy.load(tmp_path / "policy").version == expected.model_after


def test_another_run_is_not_continued(tmp_path: Path) -> None:
    begin(SHORT, 0, tmp_path / "a").train((), tmp_path / "state")
    with pytest.raises(ConfigError, match="other settings"):
        begin(SHORT, 1, tmp_path / "b").train((), tmp_path / "state")


def test_the_tiny_model_has_the_size_and_the_words_it_should(tmp_path: Path) -> None:
    base = load_base(str(tiny_folder()))
    assert 400_000 < sum(one.numel() for one in base.network.parameters()) < 430_000
    words = set(vocabulary())
    assert {"BUY", "SELL", "HOLD", "demand"} <= words
    assert not words & set(notes.TICKERS)
    first, second = make_tiny(tmp_path / "a", Seeds(4)), make_tiny(tmp_path / "b", Seeds(4))
    assert load_base(str(first)).hash == load_base(str(second)).hash
    assert load_base(str(make_tiny(tmp_path / "c", Seeds(5)))).hash != load_base(str(first)).hash


def test_it_learns_from_snapshots_and_is_looked_at_on_others(tmp_path: Path) -> None:
    case = SnapshotCase(
        market=SMALL,
        training=learning(2, 0.3).model_copy(update={"credit": "reward_to_go", "scaling": "std"}),
        adapter=Whole(),
        pool=2,
        groups=2,
        members=4,
    )

    def run(name: str, rewards: str) -> tuple[str, dict[int, list[float]]]:
        found: dict[int, list[float]] = {}
        own = SnapshotRun(case.model_copy(update={"rewards": rewards}), 0, tmp_path / name)
        base = load_base(str(tiny_folder()))
        result = own.train(base, (900, 901), (0,), say=found.__setitem__)
        assert result.groups.kept >= 1
        return result.model_after, found

    first, looks = run("a", "true")
    assert sorted(looks) == [-1, 0, 2]
    assert all(len(one) == 2 for one in looks.values())
    assert run("b", "true") == (first, looks)
    assert run("c", "shuffled")[0] != first
