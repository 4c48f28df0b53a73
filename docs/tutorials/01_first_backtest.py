"""First backtest: make a market, run a rule over it, and read the result beside baselines.

Run it with ``python docs/tutorials/01_first_backtest.py``. It needs no network and no files.
The market is generated, so no figure below says anything about a real one.
"""

from agent_gym.core import Ref, Seeds
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import compare
from agent_gym.markets.source import open_market

# 1. A market. The same name, parameters and seed always give the same bars.
market = Ref(use="synthetic/btc-1h", params={"n_bars": 4_000})
bars = open_market(market, Seeds(7))
print(f"market       {len(bars):,} bars of {bars.describe()['period']}, {bars.instrument.symbol}")
print(f"fingerprint  {bars.fingerprint}")

# 2. What trading costs. Everything that is left out has a default; see docs/venue.md.
config = BacktestConfig(capital=10_000, taker_bps=10, slippage_bps=1, participation=0.1)
engine = BacktestEngine(config)

# 3. An agent by name, and its run. Decisions are made at a close and traded at the next open.
agent = Ref(use="rules/sma-cross", params={"fast": 24, "slow": 168})
results = engine.run(bars, agent, seed=1)
print(f"\n{results.agent}: {len(results.fills)} fills, {len(results.trips.closed)} round trips")
print(f"  return       {100 * results.metrics.total_return:8.2f} %")
print(f"  max drawdown {100 * results.metrics.max_drawdown:8.2f} %")
print(f"  fees         {results.metrics.fees:8.2f}")
print(f"  slippage     {results.metrics.slippage:8.2f}")

# 4. A figure alone says little. The same bars, costs and timing for the baselines:
print("\nbeside the baselines, after costs")
for label, run in compare(engine, bars, agent, seed=1).runs.items():
    sharpe = "-" if run.metrics.sharpe is None else f"{run.metrics.sharpe:.2f}"
    print(f"  {label:<34} return {100 * run.metrics.total_return:8.2f} %   Sharpe {sharpe:>6}")

# 5. Costs matter. Run the same decisions on a venue that charges nothing.
free = BacktestConfig(taker_bps=0, slippage_bps=0, half_spread_bps=0, impact=0, participation=None)
gift = BacktestEngine(free).run(bars, agent, seed=1)
lost = gift.metrics.total_return - results.metrics.total_return
print(f"\nwithout any cost the return would differ by {100 * lost:.2f} percentage points")

# 6. Runs are equal to the bit, and a result says how to make it again.
again = engine.run(bars, agent, seed=1)
assert again.equity_hash == results.equity_hash
print(f"\nequity hash  {results.equity_hash} (twice)")
print(f"config hash  {results.manifest.config_hash}")
