"""Fill a folder so that the dashboard has much to show: 10,000 runs, 1,000,000 steps.

    python -m scripts.seed_dashboard FOLDER [--runs 10000] [--steps 1000000]
    agent-gym serve --folder FOLDER

Everything is written through the stores themselves; figures are drawn, not played, so it takes a
minute or two, and as long again the first time, when kernels are compiled. The folder must be new
or empty.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import HOUR_NS, MINUTE_NS, SystemClock
from agent_gym.core.files import atomic_path, write_json
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import battle_map
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.baselines import compare
from agent_gym.evaluation.battle import ENDING, ScriptPlayer, Start, record, write_replay
from agent_gym.evaluation.promotion import (
    Evidence,
    Figures,
    Integrity,
    Pair,
    judge_promotion,
)
from agent_gym.evaluation.saved import save_comparison
from agent_gym.evaluation.tearsheet import sheet_of
from agent_gym.markets.snapshot.config import SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator
from agent_gym.markets.source import open_market
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.harness.first_champion import untrained
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.reporting.encoding import encode
from agent_gym.rollouts.database import JudgmentRecord, TrajectoryStore
from agent_gym.rollouts.database.encoding import Layout, StepRows
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.result import RunFolder, TrainingResult
from scripts.seed_nights import seed_runs

FPS = 25
NAMES = ("mid return 5", "volatility", "spread", "position", "cash")
LAYOUT = Layout(1, len(NAMES))
RATIONALES = {1.0: "trend is up, so buy", 0.0: "no edge, hold", -1.0: "momentum faded, so sell"}
HOLDS_BELOW = 0.4
MARKET, BARS, BACKTEST_SEED = "synthetic/btc-1h", 4_000, 3
UNSEEN: dict[str, Any] = {
    "run_id": "seed",
    "role": "trader",
    "agent_version": "seeded",
    "snapshot_id": None,
    "scenario_id": "benchmark-seeded",
    "rules_version": "1",
    "group_key": "seeded/1/seeded",
    "window_id": None,
    "window_hours": 1,
    "purpose": "evaluation",
    "wall_ms": 10.0,
    "status": "completed",
    "terminated": True,
    "truncated": False,
    "error": None,
    "has_log_probs": True,
    "n_policy_versions": 1,
    "trainable": False,
    "final_balance": 10_000.0,
    "posts_created": 0,
    "reward_components": {},
    "metrics": {},
    "details": {"feature_names": list(NAMES)},
    "judge_score": None,
    "judge_reasoning": None,
    "judged_ns": None,
    "used_in_training": False,
    "trained_in_batch": None,
    "first_row": 0,
}
"""What every seeded trajectory says alike: not judged, not trained on."""
Columns: TypeAlias = dict[str, NDArray[Any]]


def main() -> None:
    """Read the words of the command line, and fill the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--trajectories", type=int, default=400)
    said = parser.parse_args()
    told = seed(said.folder, runs=said.runs, steps=said.steps, trajectories=said.trajectories)
    print(json.dumps(told, indent=2))  # noqa: T201 - what a script is for


def seed(folder: Path, *, runs: int, steps: int, trajectories: int = 400) -> dict[str, str]:
    """Fill a folder; return the names of what is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    now = int(SystemClock().now_ns())
    last = seed_runs(folder, runs, now)
    seed_backtest(folder)
    seed_training(folder)
    seed_battle(folder)
    loop = LoopFolder(folder)
    snapshots = loop.snapshots("train")
    snapshots.mkdir(parents=True)
    generator = BenchmarkDataGenerator(SnapshotConfig(duration_minutes=300, tick_interval_s=900))
    paths = [generator.generate(seed=number).save(snapshots) for number in range(3)]
    with loop.opened(AutomationConfig(workers=1)) as stages:
        champion, challenger = seed_models(stages, paths, folder)
        short = seed_trajectory(stages.store, "rules/momentum", 600, number=0)
        for number in range(1, trajectories):
            seed_trajectory(stages.store, "rules/momentum", 40, number=number)
        long = seed_trajectory(stages.store, "rules/breakout", steps, number=trajectories)
        seed_judgment(stages.store, short)
    return {
        "run": last,
        "champion": champion,
        "challenger": challenger,
        "trajectory": short,
        "long_trajectory": long,
    }


def seed_models(stages: Stages, paths: list[Path], folder: Path) -> tuple[str, str]:
    """Register a champion and two challengers; the gate lets the first of them through."""
    hashes: list[str] = []
    for number in range(3):
        place = folder / "made" / str(number)
        untrained(paths, Seeds(number)).save(place)
        base = hashes[0] if hashes else None
        hashes.append(stages.registry.add(place, base_model=base).model_hash)
    stages.deployments.install(hashes[0])
    for model, gain in ((hashes[1], 0.02), (hashes[2], -0.01)):
        sealed_set = f"sealed-{model[:8]}"
        look = stages.registry.sealed.spend(sealed_set, model)
        evidence = _evidence(hashes[0], model, sealed_set, gain)
        stages.registry.sealed.record(look, judge_promotion(evidence, look))
    return hashes[0], hashes[1]


def _evidence(champion: str, challenger: str, sealed_set: str, gain: float) -> Evidence:
    rng = Seeds(1).child("gains").rng()
    pairs = tuple(
        Pair(snapshot_id=f"s{i}", slice=f"slice-{i % 2}", champion=c, challenger=c + gain + g)
        for i, (c, g) in enumerate(
            zip(
                rng.normal(0.0, 0.05, 24).tolist(), rng.normal(0.0, 0.008, 24).tolist(), strict=True
            )
        )
    )
    whole = Integrity(
        artifact_hash_ok=True,
        policy_loads=True,
        replay_equal=True,
        snapshots_hash_ok=True,
        data_manifest_ok=True,
    )
    figures = Figures(
        max_drawdown=0.1,
        ruined=0,
        invalid_rate=0.0,
        latency_ms=2.0,
        entropy=0.4,
        kl_to_champion=0.2,
    )
    return Evidence(
        champion=champion,
        challenger=challenger,
        sealed_set=sealed_set,
        pairs=pairs,
        integrity=whole,
        figures=figures,
    )


def seed_trajectory(
    store: TrajectoryStore, agent: str, steps: int, *, number: int, said: str = ""
) -> str:
    """Write one trajectory, as columns from the start; return its id.

    Args:
        store: Where to.
        agent: Who played.
        steps: How many.
        number: Chooses what is drawn.
        said: What the agent saw and said, in place of the usual words.
    """
    now = int(store.clock.now_ns())
    numbers, rows = _drawn_steps(steps, number, now - steps * MINUTE_NS, said)
    trajectory = fingerprint([agent, steps, number])[:32]
    written = store.files.write([(trajectory, steps)], [rows.batch()], LAYOUT.schema())
    file = {
        "file_hash": written.file_hash,
        "n_rows": written.n_rows,
        "n_bytes": written.n_bytes,
        "n_trajectories": 1,
        "state": "whole",
        "created_ns": now,
    }
    row = {
        **UNSEEN,
        **_played(numbers),
        "trajectory_id": trajectory,
        "episode_id": f"episode-{number}",
        "agent": agent,
        "seed": number,
        "end_ns": now,
        "step_file": written.file_hash,
        "steps_hash": written.file_hash,
        "created_ns": now - number * HOUR_NS,
    }
    store.record({"step_files": [file], "trajectories": [row], "llm_calls": []})
    return trajectory


def _drawn_steps(steps: int, number: int, start_ns: int, said: str) -> tuple[Columns, StepRows]:
    """Draw what a trajectory holds: its numbers, and all of it as rows of a file."""
    rng = Seeds(number).child("trajectory").rng()
    drawn = rng.normal(size=(steps, 1))
    numbers = {
        "t": np.arange(steps, dtype=np.int64),
        "ts": start_ns + np.arange(steps, dtype=np.int64) * MINUTE_NS,
        "action": np.where(np.abs(drawn) > HOLDS_BELOW, np.sign(drawn), 0.0),
        "reward": rng.normal(0.0, 0.001, steps),
        "terminated": np.arange(steps) == steps - 1,
        "truncated": np.zeros(steps, np.bool_),
        "log_prob": rng.normal(-0.7, 0.1, steps),
        "observation": rng.normal(size=(steps, len(NAMES))),
    }
    told = {"confidence": rng.random(steps), "edge_bp": rng.normal(0.0, 3.0, steps)}
    words: dict[str, list[str | None]] = {
        "rationale": [said or RATIONALES[side] for side in numbers["action"][:, 0].tolist()],
        "text": [said or f"price moved {at % 7 - 3} bp" for at in range(steps)],
        "info": [None] * steps,
    }
    return numbers, StepRows(LAYOUT, numbers, ["seeded"] * steps, told, words)


def _played(numbers: Columns) -> dict[str, Any]:
    """Return what a row of the store says about drawn steps."""
    earned = float(numbers["reward"].sum())
    return {
        "start_ns": int(numbers["ts"][0]),
        "n_steps": len(numbers["t"]),
        "total_reward": earned,
        "final_pnl": earned,
        "trades_executed": int((np.diff(numbers["action"][:, 0]) != 0).sum()),
    }


def seed_judgment(store: TrajectoryStore, trajectory_id: str) -> None:
    """Let a judge say something of a trajectory."""
    store.judgments.add(
        [
            JudgmentRecord(
                trajectory_id=trajectory_id,
                group_id="seeded",
                judge_model="seeded judge",
                judge_version="1",
                overall_score=0.73,
                component_scores={"discipline": 0.8, "timing": 0.66},
                reasoning="It waited for an edge and cut its losses.",
                strengths=("patient",),
                weaknesses=("late exits",),
            )
        ]
    )


def seed_backtest(folder: Path) -> None:
    """Run an agent over a synthetic market, beside baselines."""
    bars = open_market(Ref(use=MARKET, params={"n_bars": BARS}), Seeds(BACKTEST_SEED))
    market = ["--market", MARKET, "--bars", str(BARS), "--seed", str(BACKTEST_SEED)]
    for name in ("rules/momentum", "rules/mean-reversion"):
        command = ["agent-gym", "backtest", "--agent", name, *market, "--plot"]
        engine = BacktestEngine(BacktestConfig(), command=command)
        compared = compare(engine, bars, Ref(use=name), BACKTEST_SEED)
        sheet = sheet_of(compared.main, compared.baselines, label=compared.subject)
        save_comparison(compared, sheet, folder / "backtests" / name.replace("/", "-"))


def seed_training(folder: Path, steps: int = 200_000) -> None:
    """Write two arms of three seeds each: done, but for the last seed, which is under way."""
    for arm, level in (("ppo", 240.0), ("a2c", 120.0)):
        for seed_number in range(3):
            _training_run(folder / "experiments" / "lander" / arm, seed_number, level, steps)
    with atomic_path(folder / "videos" / "lander-ppo.mp4") as video:
        video.write_bytes(encode(_film(), FPS))


def _film() -> Iterator[NDArray[np.uint8]]:
    """Yield a white block that comes down a dark picture."""
    for at in range(FPS):
        frame = np.full((96, 160, 3), 20, np.uint8)
        frame[2 * at : 2 * at + 16, 72:88] = 255
        yield frame


def _training_run(arm: Path, seed_number: int, level: float, steps: int) -> None:
    files = RunFolder(arm / f"seed_{seed_number}")
    files.path.mkdir(parents=True)
    rng = Seeds(seed_number).child(arm.name).rng()
    config = TrainerConfig(algo=arm.name, env="LunarLander-v3", steps=steps)
    write_json(files.config, config.model_dump(mode="json"))
    running = arm.name == "a2c" and seed_number == 2
    looks = np.arange(10_000, steps // 2 if running else steps + 1, 10_000)
    means = level - (level + 200.0) * np.exp(-looks / (0.2 * steps))
    rows = [
        f"{step},{at},{mean + float(rng.normal(0.0, 20.0))!r},300"
        for step, mean in zip(looks.tolist(), means.tolist(), strict=True)
        for at in range(5)
    ]
    heads = "step,seed,reward,length"
    files.evaluations.write_text("\n".join([heads, *rows]) + "\n")
    finals = [f"{steps},{at},{float(rng.normal(level, 15.0))!r},250" for at in range(20)]
    files.metrics.write_text("step,loss\n" + "".join(f"{step},0.1\n" for step in looks.tolist()))
    for step in looks[::5].tolist():
        (files.checkpoints / f"step_{step:012d}").mkdir(parents=True)
    if running:
        return
    files.final_episodes.write_text("\n".join([heads, *finals]) + "\n")
    result = TrainingResult(
        status="done",
        algo=arm.name,
        env="LunarLander-v3",
        seed=seed_number,
        steps=steps,
        best_step=steps,
        best_mean=level,
        final_mean=level,
        wall_s=120.0,
        state_hash=None,
        config=config.model_dump(mode="json"),
        manifest={},
    )
    write_json(files.result, result.model_dump(mode="json"))


def seed_battle(folder: Path, battles: int = 3) -> None:
    """Play some battles by a script, and keep them."""
    battle = battle_map("3m")
    player = ScriptPlayer("focus")
    for number in range(1, battles + 1):
        path = folder / "replays" / f"3m-{player.name}-seed0-{number:04d}{ENDING}"
        write_replay(path, record(player, battle, Start(0, number)))


if __name__ == "__main__":
    main()
