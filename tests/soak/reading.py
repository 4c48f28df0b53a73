"""Reads one state of the database with plain SQL, in one transaction that cannot write."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.soak.look import Calls, Rows

TICK = "agent-tick"
TRAJECTORIES = (
    "select trajectory_id, n_steps, status, terminated, truncated, total_reward, final_balance, "
    "final_pnl, step_file, first_row from trajectories order by id"
)
ENDED = ("completed", "failed")
AWAY = (sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError)
CONNECT_S, STATEMENT_S = 5, 20


class Reader:
    """Asks questions within one transaction."""

    def __init__(self, connection: Any, *, sqlite: bool) -> None:
        self._connection, self._sqlite = connection, sqlite

    def all(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows by the names of their columns."""
        return [dict(row) for row in self._connection.execute(statement).fetchall()]

    @property
    def tick(self) -> str:
        """The number of a tick, out of its event."""
        return "json_extract(data, '$.tick')" if self._sqlite else "(data->>'tick')::int"


@contextmanager
def reading(url: str | None, home: Path) -> Iterator[Reader]:
    """Yield a reader of one state."""
    if url is None:
        path = home / "trajectories" / "trajectories.db"
        if not path.exists():
            raise sqlite3.OperationalError("no database yet")
        with closing(sqlite3.connect(path, STATEMENT_S, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("pragma query_only = on")
            connection.execute("begin")
            yield Reader(connection, sqlite=True)
        return
    options = f"-c statement_timeout={STATEMENT_S * 1000}"
    with psycopg.connect(
        url, connect_timeout=CONNECT_S, options=options, row_factory=dict_row
    ) as found:
        found.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        found.read_only = True
        yield Reader(found, sqlite=False)
        found.rollback()


def rows(reader: Reader, wanted: set[tuple[str, int]]) -> Rows:
    """Return one state; of the ticks that are wanted, those that are there."""
    return Rows(
        agents={
            row["agent_id"]: row
            for row in reader.all("select agent_id, tick, points, status from service_agents")
        },
        calls=_calls(reader),
        ticks=_ticks(reader, wanted),
        trajectories=reader.all(TRAJECTORIES),
        step_files={
            row["file_hash"]: row
            for row in reader.all("select file_hash, n_rows, state from step_files")
        },
        pointers=reader.all("select * from registry_pointer"),
        models={
            row["model_id"]: row["status"]
            for row in reader.all("select model_id, status from trained_models")
        },
        serving=[
            row["model_id"]
            for row in reader.all(
                "select model_id from model_deployments where status = 'active' and stage = 'full'"
            )
        ],
        history=reader.all("select * from registry_history order by position"),
        batches=[
            row["batch_id"]
            for row in reader.all(
                f"select batch_id from training_batches where status not in {ENDED}"
            )
        ],
    )


def _calls(reader: Reader) -> dict[str, Calls]:
    t = reader.tick
    found = reader.all(
        f"select subject, count(*) as n, count(distinct {t}) as k, min({t}) as low, "
        f"max({t}) as high from events where kind = '{TICK}' group by subject"
    )
    return {row["subject"]: Calls(row["n"], row["k"], row["low"], row["high"]) for row in found}


def _ticks(reader: Reader, wanted: set[tuple[str, int]]) -> set[tuple[str, int]]:
    if not wanted:
        return set()
    found = reader.all(f"select subject, {reader.tick} as tick from events where kind = '{TICK}'")
    return wanted & {(row["subject"], row["tick"]) for row in found}


def waiting(home: Path) -> dict[str, int]:
    """Return the trajectories that wait in the outbox, and their steps."""
    found: dict[str, int] = {}
    for path in (home / "trajectories" / "outbox").glob("*.json"):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))["rows"]
        except FileNotFoundError:
            continue  # it has just been delivered
        for row in document["trajectories"]:
            found[row["trajectory_id"]] = row["n_steps"]
    return found


def jobs(home: Path) -> dict[str, str]:
    """Return the trainings that have not come to an end, by their status."""
    found: dict[str, str] = {}
    for path in (home / "trajectories").glob("workflows*.db"):
        with closing(sqlite3.connect(path, STATEMENT_S)) as connection:
            connection.execute("pragma query_only = on")
            found |= connection.execute(
                "select workflow_uuid, status from workflow_status where status != 'SUCCESS'"
            ).fetchall()
    return found
