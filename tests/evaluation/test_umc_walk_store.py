"""A walk in a folder, and what can be asked of it."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.evaluation.umc_walk import explain, open_run, write_run
from agent_gym.markets.parquet import write_bars
from agent_gym.markets.quality import format_time
from tests.evaluation.umc_walk_samples import FLAT_COST, known_bars, small_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("run")
    write_run(made, small_run())
    return made


def test_a_run_comes_back_as_it_was(folder):
    run, kept = small_run(), open_run(folder)
    assert kept.trace.ts.tolist() == run.trace.ts.tolist()
    assert kept.trace.columns["lambda"].tobytes() == run.trace.columns["lambda"].tobytes()
    assert kept.config == FLAT_COST
    assert kept.results["provenance"]["fingerprint"] == known_bars().fingerprint
    assert kept.results["manifest"]["command"].startswith("agent-gym umc backtest")
    one, other = run.folds[1].agent.weights(), kept.fold(2).agent.weights()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_every_decision_can_be_explained_by_the_agent_that_made_it(folder):
    kept = open_run(folder)
    moved = np.flatnonzero(np.diff(kept.trace.columns["chosen"])) + 1
    for row in (0, int(moved[0]), int(moved[-1]), len(kept.trace) - 1):
        told = explain(kept, int(kept.trace.ts[row]))
        assert told.same
        assert told.chosen == kept.trace.columns["chosen"][row]
        assert told.held == kept.trace.columns["held"][row]
        planned = {level.position: level.planned for level in told.levels}
        assert planned[told.chosen] == min(value for value in planned.values() if value is not None)
        assert sum(head.chance for head in told.heads) == pytest.approx(1.0)
        assert told.sentence.endswith(".")
    assert "went from" in explain(kept, int(kept.trace.ts[moved[0]])).sentence


def test_a_time_between_closes_belongs_to_the_close_before(folder):
    kept = open_run(folder)
    at = int(kept.trace.ts[10])
    assert explain(kept, at + kept.bars.period_ns - 1).ts_ns == at


@pytest.mark.parametrize("side", [-1, 1])
def test_a_time_outside_of_the_test_says_which_are_there(folder, side):
    kept = open_run(folder)
    edge = kept.trace.ts[0] - 1 if side < 0 else kept.trace.ts[-1] + 2 * kept.bars.period_ns
    with pytest.raises(ConfigError) as wrong:
        explain(kept, int(edge))
    assert format_time(int(kept.trace.ts[0])) in str(wrong.value)
    assert format_time(int(kept.trace.ts[-1])) in str(wrong.value)


def test_another_version_that_says_something_else_is_noticed(folder, tmp_path):
    write_run(tmp_path, small_run())
    table = pq.read_table(tmp_path / "trace.parquet")
    place = table.column_names.index("chosen")
    other = table.set_column(place, "chosen", [np.full(len(table), 0.123)])
    pq.write_table(other, tmp_path / "trace.parquet")
    kept = open_run(tmp_path)
    assert not explain(kept, int(kept.trace.ts[5])).same


def test_a_folder_without_a_run_is_refused(tmp_path, folder):
    with pytest.raises(ConfigError, match="no run here"):
        open_run(tmp_path / "nowhere")
    write_json(tmp_path / "results.json", {"agent": "rules/flat"})
    with pytest.raises(ConfigError, match="not one of UMC"):
        open_run(tmp_path)
    write_run(tmp_path, small_run())
    write_bars(tmp_path / "bars.parquet", known_bars(1_500, 2))
    with pytest.raises(DataError, match="not those that were walked over"):
        open_run(tmp_path)
