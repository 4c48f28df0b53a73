"""Backtests that were saved: listed, read back, and drawn as they were."""

import json
from shutil import copytree

import numpy as np
import pytest

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import compare
from agent_gym.evaluation.saved import (
    last_fills,
    last_positions,
    read_backtest,
    save_comparison,
    saved_backtests,
)
from agent_gym.evaluation.tearsheet import sheet_of
from agent_gym.evaluation.tearsheet.linked import MOST_CANDLES, MOST_POINTS
from agent_gym.markets.source import open_market

BARS = 6_000


@pytest.fixture(scope="module")
def comparison():
    bars = open_market(Ref(use="synthetic/btc-1h", params={"n_bars": BARS}), Seeds(1))
    return compare(BacktestEngine(BacktestConfig()), bars, Ref(use="rules/sma-cross"))


@pytest.fixture(scope="module")
def folder(comparison, tmp_path_factory):
    made = tmp_path_factory.mktemp("backtests")
    sheet = sheet_of(comparison.main, comparison.baselines, label=comparison.subject)
    save_comparison(comparison, sheet, made / "one")
    return made


def test_what_was_saved_comes_back(folder, comparison):
    (listed,) = saved_backtests(folder)
    assert listed.name == "one"
    saved = read_backtest(folder, "one")
    assert saved.results == json.loads(json.dumps(comparison.payload()))
    last = last_positions(folder, "one").to_dicts()[0]
    assert last["equity"] == comparison.main.equity[-1]
    fills = last_fills(folder, "one", 3)
    newest = comparison.main.fills[-3:][::-1]
    assert fills["price"].to_list() == newest["price"].tolist()


def test_the_linked_chart_has_all_panels_and_keeps_the_look(folder, comparison):
    option = read_backtest(folder, "one").charts["linked"]
    assert [axis["gridIndex"] for axis in option["xAxis"]] == [0, 1, 2, 3]
    assert [axis["gridIndex"] for axis in option["yAxis"]] == [0, 1, 2, 3]
    assert option["axisPointer"]["link"] == [{"xAxisIndex": "all"}]
    by_name = {each["name"]: each for each in option["series"]}
    assert len(by_name["price"]["data"]) <= MOST_CANDLES
    own = by_name[comparison.subject]
    assert (own["xAxisIndex"], own["yAxisIndex"]) == (1, 1)
    drawn = np.array([value for _, value in own["data"]])
    assert drawn.size <= MOST_POINTS + 4
    whole = comparison.main.equity / comparison.main.equity[0] * 100.0
    assert drawn.max() == pytest.approx(whole.max(), rel=1e-3)
    assert drawn[-1] == pytest.approx(whole[-1], rel=1e-3)
    bought = len(by_name["bought"]["data"]) + len(by_name["sold"]["data"])
    assert bought == len(comparison.main.fills)
    assert by_name["drawdown, %"]["xAxisIndex"] == 2


@pytest.mark.parametrize("name", ["nothing", "..", "../one", "one/../one", "", "/etc", "one\0"])
def test_a_name_that_is_no_backtest_is_refused(folder, name):
    with pytest.raises(ConfigError, match="no such backtest"):
        read_backtest(folder, name)


def test_a_broken_file_is_named(folder, tmp_path):
    for text in ("{", "[]"):
        place = tmp_path / text.replace("[", "b") / "one"
        place.mkdir(parents=True)
        (place / "results.json").write_text(text)
        (place / "equity.parquet").touch()
        with pytest.raises(DataError, match=r"backtest"):
            read_backtest(place.parent, "one")


def test_everything_in_the_folder_of_results_is_found(folder, tmp_path):
    places = ("backtests/one", "backtests/demo", "demo", "sandbox/s1/ann", "mine")
    for place in (*places, "reports/runs/n1", ".demo.tmp", "a/b/c/d/e"):
        copytree(folder / "one", tmp_path / place)
    (tmp_path / "umc" / "walk").mkdir(parents=True)
    (tmp_path / "umc" / "walk" / "results.json").write_text("{}")
    names = [each.name for each in saved_backtests(tmp_path)]
    assert names == ["backtests/demo", "demo", "mine", "one", "sandbox/s1/ann"]
    for name in names:
        assert read_backtest(tmp_path, name).charts
        assert len(last_fills(tmp_path, name, 1)) == len(last_positions(tmp_path, name)) == 1


def test_a_short_session_has_no_ratios(folder, tmp_path):
    place = copytree(folder / "one", tmp_path / "sandbox" / "s1" / "ann")
    results = json.loads((place / "results.json").read_text())
    results["manifest"]["config"]["sandbox"] = {}
    for years, shown in ((1.0, True), (0.01, False)):
        results["metrics"]["years"] = years
        (place / "results.json").write_text(json.dumps(results))
        found = read_backtest(tmp_path, "sandbox/s1/ann").results
        arms = [found, *found["baselines"].values()]
        assert any(arm["metrics"]["sharpe"] is not None for arm in arms) == shown
        assert found["metrics"]["max_drawdown"] == results["metrics"]["max_drawdown"]
