"""Fresh seeds: has both sides played again, and believes nothing of it unchecked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from typing_extensions import override

from agent_gym.evaluation.gate.cases import Case
from agent_gym.evaluation.gate.comparability import by_name, scenario_difference
from agent_gym.evaluation.gate.paired import IntArray, Table
from agent_gym.evaluation.gate.rows import Row, Unreadable, read_row, table_of
from agent_gym.evaluation.gate.samples import Rerun, ScenarioSamples, SuiteSamples
from agent_gym.evaluation.gate.stages import Fresh

Told: TypeAlias = Callable[[Mapping[str, int]], None]


class FreshSeeds(Fresh):
    """Plays flagged cases again, scenario by scenario.

    The second time it asks for more seeds than the first and uses those that are new; a rerun that
    gives the same seeds for a longer list again loses nothing.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        candidate: SuiteSamples,
        rerun: Rerun,
        told: Told | None = None,
    ) -> None:
        self._told = told
        self._cases = cases
        self._known = by_name(candidate)
        self._rerun = rerun
        self._used = {
            name: {sample.seed for sample in scenario.samples}
            for name, scenario in self._known.items()
        }
        self._asked: dict[str, int] = {}
        self.rows: dict[int, Row] = {}
        self.problems: dict[int, Unreadable] = {}
        self.played: dict[str, list[ScenarioSamples]] = {}

    @override
    def __call__(self, rows: IntArray, n_seeds: IntArray, *, again: bool) -> Table:
        wanted: dict[str, int] = {}
        for row, n in zip(rows.tolist(), n_seeds.tolist(), strict=True):
            name = self._cases[row].scenario
            wanted[name] = max(wanted.get(name, 0), n)
        if self._told is not None and not again:
            self._told(wanted)
        sides: dict[str, tuple[ScenarioSamples, ScenarioSamples, list[int]] | str] = {}
        totals = {name: n + self._asked.get(name, 0) for name, n in wanted.items()}
        for total in sorted(set(totals.values())):
            names = sorted(name for name, n in totals.items() if n == total)
            sides |= self._play(names, total, wanted)
        for name, n in wanted.items():
            self._asked[name] = self._asked.get(name, 0) + n
        return table_of(
            [self._read(row, sides[self._cases[row].scenario]) for row in rows.tolist()]
        )

    def _play(
        self, names: Sequence[str], total: int, wanted: dict[str, int]
    ) -> dict[str, tuple[ScenarioSamples, ScenarioSamples, list[int]] | str]:
        base, cand = self._rerun(names, total)
        old, new = by_name(base), by_name(cand)
        if set(old) != set(names) or set(new) != set(names):
            return dict.fromkeys(names, "the rerun played other scenarios than it was asked for")
        return {name: self._checked(old[name], new[name], total, wanted[name]) for name in names}

    def _checked(
        self, old: ScenarioSamples, new: ScenarioSamples, total: int, n: int
    ) -> tuple[ScenarioSamples, ScenarioSamples, list[int]] | str:
        name = new.name
        changed = scenario_difference(old, new) or scenario_difference(self._known[name], new)
        if changed:
            return f"the rerun played another situation: {changed}"
        seeds = {sample.seed for sample in old.samples}
        if seeds != {sample.seed for sample in new.samples}:
            return "the rerun played different seeds on the two sides"
        unseen = sorted(seeds - self._used[name])
        if len(seeds) != total or len(unseen) < n:
            found = f"{len(seeds)} seeds, {len(unseen)} of them new"
            return f"the rerun gave {found}; asked for {total}, {n} of them new"
        self._used[name] |= seeds
        self.played.setdefault(name, []).append(new)
        return old, new, unseen[:n]

    def _read(
        self, row: int, sides: tuple[ScenarioSamples, ScenarioSamples, list[int]] | str
    ) -> Row | None:
        if isinstance(sides, str):
            self.problems[row] = Unreadable(f"on fresh seeds: {sides}")
            return None
        found = read_row(sides[0], sides[1], self._cases[row].metric, sides[2])
        if isinstance(found, Unreadable):
            self.problems[row] = Unreadable(f"on fresh seeds: {found.why}", found.seeds)
            return None
        self.rows[row] = found
        return found
