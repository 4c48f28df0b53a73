"""``agent-gym snapshot``: benchmark snapshots, made, proven and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import EXIT_RUN, emit, table
from agent_gym.apps.cli.snapshot_files import snapshot_files
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import configure, unknown
from agent_gym.evaluation.benchmark.verify import Finding, verify_generator, verify_snapshot
from agent_gym.markets.snapshot.config import SCENARIOS, SnapshotConfig
from agent_gym.markets.snapshot.generator import BenchmarkDataGenerator, Made
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.markets.snapshot.sealed import load_truth, truth_path
from agent_gym.markets.snapshot.types import Snapshot
from agent_gym.markets.snapshot.wording import sign, write
from agent_gym.rollouts.progress import progress_bar

app = typer.Typer(no_args_is_help=True)
PROOF_SEED = 1_000_000  # proofs use seeds of their own, far from those that people play
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Paths = Annotated[list[Path], typer.Argument(metavar="FILE", help="Snapshots, or folders of them.")]


@app.command()
@writes("benchmark snapshots")
def generate(
    scenario: Annotated[
        str, typer.Option(help=f"{', '.join(SCENARIOS)}, or all.", show_default=True)
    ] = "bull",
    seed: Annotated[int, typer.Option(min=0, help="First seed; 0 is one like any other.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="Snapshots of each scenario.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder; default: snapshots in the folder of results.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Field of the config; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make snapshots: for each a public file, and a sealed one with its truth."""
    folder = home() / "snapshots" if out is None else out
    names = list(SCENARIOS) if scenario == "all" else [scenario]
    configs = [_config(name, setting or []) for name in names]
    rows: list[dict[str, Any]] = []
    with progress_bar("snapshots") as progress:
        for config in configs:
            maker = BenchmarkDataGenerator(config)
            for number in range(seed, seed + count):
                made = maker.generate(number)
                rows.append(_row(made, made.save(folder), number))
                progress(len(rows), len(configs) * count, {"status": "ok"})
    emit({"folder": str(folder), "snapshots": rows}, as_json=as_json, view=_made_view(rows))


@app.command()
def verify(
    files: Paths,
    proofs: Annotated[
        int, typer.Option(min=0, help="Fresh snapshots for the leak probe; 0 leaves it out.")
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """Prove that snapshots can be made again, that nothing leaks, and that they can be won."""
    found: list[tuple[str, Finding]] = []
    configs: dict[str, SnapshotConfig] = {}
    for path in snapshot_files(files):
        snapshot = load_snapshot(path)
        configs[snapshot.config.model_dump_json()] = snapshot.config
        found += [(snapshot.id[:12], one) for one in verify_snapshot(path)]
    if proofs:
        seeds = range(PROOF_SEED, PROOF_SEED + proofs)
        for config in configs.values():
            with progress_bar(f"proof of {config.scenario}") as progress:
                findings = verify_generator(
                    config, seeds, lambda done, total: progress(done, total, {"status": "ok"})
                )
            found += [(config.scenario, one) for one in findings]
    passed = all(one.passed for _, one in found)
    payload = {
        "passed": passed,
        "findings": [{"subject": subject, **one.as_dict()} for subject, one in found],
    }
    rows: list[tuple[object, ...]] = [
        (subject, one.check, "yes" if one.passed else "NO", one.words) for subject, one in found
    ]
    view = table("Proofs", ("of", "check", "holds", "found"), rows)
    emit(payload, as_json=as_json, view=view)
    if not passed:
        raise typer.Exit(EXIT_RUN)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Public file of a snapshot.")],
    posts: Annotated[int, typer.Option(min=0, help="How many posts to show.")] = 10,
    sealed: Annotated[bool, typer.Option(help="Open the sealed truth, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Describe a snapshot: its markets, its posts and, if asked for, its truth."""
    snapshot = load_snapshot(file)
    payload = describe(snapshot, posts)
    if sealed:
        truth = load_truth(truth_path(file), snapshot)
        payload["truth"] = {
            "seed": truth.seed,
            "outcomes": truth.outcomes,
            "optimal_actions": len(truth.optimal_actions),
        }
    rows: list[tuple[object, ...]] = [
        (one["tick"], one["market"], one["author"], one["text"]) for one in payload["posts"]
    ]
    title = f"{snapshot.config.scenario} {snapshot.id}: {snapshot.ticks} ticks"
    view = table(title, ("tick", "market", "author", "post"), rows)
    emit(payload, as_json=as_json, view=view)


def describe(snapshot: Snapshot, posts: int) -> dict[str, Any]:
    """Return a snapshot as plain values, without its numbers."""
    return {
        "id": snapshot.id,
        "config": snapshot.config.model_dump(mode="json"),
        "predictions": [
            {"id": one.id, "question": one.question, "resolve_tick": one.resolve_tick}
            for one in snapshot.predictions
        ],
        "perpetuals": [{"id": one.id, "ticker": one.ticker} for one in snapshot.perpetuals],
        "n_posts": len(snapshot.posts),
        "posts": [
            {
                "tick": post.tick,
                "market": post.market,
                "author": sign(snapshot.author_of[post.author]),
                "text": write(snapshot, post),
            }
            for post in snapshot.posts[:posts]
        ],
    }


def _config(scenario: str, settings: list[str]) -> SnapshotConfig:
    if scenario not in SCENARIOS:
        raise unknown("scenario", scenario, tuple(SCENARIOS))
    given: dict[str, Any] = {"scenario": scenario}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError("a setting is NAME=VALUE", where="--set", found=setting)
        given[name] = value
    return configure(SnapshotConfig, given, where="snapshot")


def _row(made: Made, path: Path, seed: int) -> dict[str, Any]:
    return {
        "id": made.snapshot.id,
        "scenario": made.snapshot.config.scenario,
        "seed": seed,
        "file": str(path),
        "bytes": path.stat().st_size,
        "posts": len(made.snapshot.posts),
    }


def _made_view(rows: list[dict[str, Any]]) -> Any:
    cells: list[tuple[object, ...]] = [
        (row["scenario"], row["seed"], row["posts"], row["bytes"], row["file"]) for row in rows
    ]
    return table("Snapshots", ("scenario", "seed", "posts", "bytes", "file"), cells)
