"""Steps are on disk as they happen: an end by force takes only what was not written yet."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from agent_gym.apps.cli.main import run
from agent_gym.apps.sandbox.journal import BEGUN, STEPS, Keeping, recover, was_killed
from agent_gym.apps.sandbox.params import Params
from agent_gym.core.errors import StoreError
from agent_gym.rollouts.database import TrajectoryStore
from agent_gym.rollouts.store import StepStore
from tests.apps.sandbox_samples import ROOT, market, session_of

BARS, FIRST = 40, 50
ORDER = {"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.1"}


def begun(folder):
    """Return a session in which an account has bought something and some bars have passed."""
    session = session_of([market(120)], folder=folder)
    session.trading.place("ann", Params(ORDER))
    session.step(BARS)
    return session


def rows_of(folder):
    with TrajectoryStore.open(folder=folder / "trajectories") as store:
        rows = {row.agent: row for row in store.page().rows}
        return rows, {name: store.steps(row.trajectory_id) for name, row in rows.items()}


def test_no_step_is_kept_in_memory_and_each_is_in_the_store_in_the_end(tmp_path):
    session = begun(tmp_path)
    folder = tmp_path / "out"
    assert was_killed(folder)  # or under way
    session.write_results()
    assert not was_killed(folder)
    assert not (folder / STEPS).exists()
    rows, steps = rows_of(tmp_path)
    equity = [mark.equity for mark in session.floor.marks["ann"]]
    assert rows["ann"].status == "completed"
    assert rows["ann"].n_steps == BARS + 1 == len(equity) - 1
    assert steps["ann"].reward == pytest.approx(np.diff(np.log(equity)), abs=1e-12)
    assert steps["ann"].t.tolist() == list(range(BARS + 1))
    assert np.array_equal(steps["ann"].observation[:, -1], equity[:-1])
    assert "trade #1" in steps["ann"].rationale[0]
    assert not any(steps["ben"].rationale)


KILL_ITSELF = """
import os, signal, sys, time
from pathlib import Path
from tests.apps.test_sandbox_journal import begun, BARS
from agent_gym.rollouts.store import StepStore
folder = Path(sys.argv[1])
session = begun(folder)
session.witness._journal._sink.flush()
steps = StepStore.open(folder / "out" / "steps")
while steps.table().num_rows < 2 * BARS:
    time.sleep(0.01)
session.step(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_session_is_recovered_up_to_its_last_chunk(tmp_path):
    words = [sys.executable, "-c", KILL_ITSELF, str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, timeout=280, check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    folder = tmp_path / "out"
    assert was_killed(folder)
    assert StepStore.open(folder / STEPS).manifest.status == "partial"
    keeping = Keeping("session", folder, trajectories=tmp_path / "trajectories")
    found = recover(keeping)
    assert found.keys() == {"ann", "ben"}
    assert BARS <= found["ann"]["steps"] <= BARS + 1
    rows, steps = rows_of(tmp_path)
    assert rows["ann"].status == "interrupted"
    assert "killed" in rows["ann"].error["what"]
    grown = np.exp(np.sum(steps["ann"].reward))
    assert rows["ann"].final_balance == pytest.approx(10_000.0 * grown)
    again = begun(tmp_path / "again")
    whole = [mark.equity for mark in again.floor.marks["ann"]]
    assert np.array_equal(steps["ann"].observation[:BARS, -1], whole[:BARS])
    assert not was_killed(folder)
    with pytest.raises(StoreError, match="no session here that was killed"):
        recover(keeping)
    again.finish()


def test_a_session_that_runs_is_not_recovered(tmp_path):
    session = begun(tmp_path)
    keeping = Keeping("session", tmp_path / "out", trajectories=tmp_path / "trajectories")
    with pytest.raises(StoreError, match="another run is writing"):
        recover(keeping)
    session.write_results()
    assert rows_of(tmp_path)[0]["ann"].status == "completed"


def test_a_full_disk_ends_the_journal_and_not_the_session(tmp_path, caplog):
    session = begun(tmp_path)

    def full(_step):
        raise StoreError("no room", remedy="Make some")

    session.witness._journal._sink._encoder.write = full
    session.step(5)
    assert "without a journal" in caplog.text
    assert session.floor.venue.t == FIRST - 1 + BARS + 5
    found = session.write_results()
    assert found["ann"]["trajectory"] is None
    summary = json.loads((tmp_path / "out" / "session.json").read_text())
    assert "no room" in summary["trajectories_lost"]
    assert (tmp_path / "out" / "ann" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--recover",), "by its name"), (("--recover", "--name", "nothing"), "no session here")],
)
def test_what_cannot_be_recovered_is_told(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    assert run(["sandbox", "--json", *words], as_json=True) != 0
    assert said in json.loads(capsys.readouterr().out)["what"]


def test_a_name_whose_session_was_killed_is_not_taken_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AGENT_GYM_HOME", str(tmp_path))
    folder = tmp_path / "sandbox" / "mine"
    folder.mkdir(parents=True)
    (folder / BEGUN).write_text("{}")
    options = ["--market", "synthetic/btc-1h", "--bars", "300", "--name", "mine", "--port", "0"]
    assert run(["sandbox", "--json", *options], as_json=True) != 0
    told = json.loads(capsys.readouterr().out)
    assert "--recover" in told["remedy"]
