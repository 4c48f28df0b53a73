"""The night at a terminal: progress while it runs, tables when it is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.evaluation.gate.diff import Finding
from agent_gym.reporting.nightly.documents import report_document
from agent_gym.reporting.nightly.markdown import change
from agent_gym.reporting.nightly.pairs import Pairs
from agent_gym.reporting.nightly.run import NightlyResult, NightlyRun
from agent_gym.reporting.nightly.verdict import (
    BROKEN,
    SAME_WORDS,
    WORDS,
    by_severity,
    counts,
    explanation,
    headline,
    light,
    severity,
    troubles,
    word_of,
)
from agent_gym.reporting.text import (
    chance,
    interval,
    many,
    number,
    one_line,
    span,
    two_numbers,
)

PLAIN_EVERY_S = 5.0
RATE_OVER_S, MOST_MARKS = 30.0, 5_000
MOST_ROWS, WIDE = 40, 130
STYLES = {"good": "green", "unsure": "yellow", "bad": "red"}
SIGNS = {"good": "GOOD", "unsure": "NOT SURE", "bad": "BAD"}


class ConsoleProgress:
    """Shows how far a run is: a moving bar on a terminal, a line now and then elsewhere.

    Seeds that were found done are counted as done, but not in the rate that the remaining time is
    guessed from.

    Example:
        >>> import io
        >>> with ConsoleProgress("nightly", 2, Console(file=io.StringIO())) as progress:
        ...     progress.start("thin_book", kept=1)
        ...     progress.advance("thin_book")
        >>> progress.done, progress.errors
        (2, 0)
    """

    def __init__(
        self, title: str, total: int, console: Console | None = None, clock: Clock | None = None
    ) -> None:
        self._title, self.total = one_line(title, 40), total
        self._console = console or Console(stderr=True)
        self._clock = clock or SystemClock()
        self._began_s = self._said_s = self._clock.monotonic_s()
        self.done = self.kept = self.errors = 0
        self._scenario, self._begun = "", False
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._marks: deque[tuple[float, int]] = deque(maxlen=MOST_MARKS)

    def __enter__(self) -> Self:
        self._began_s = self._said_s = self._clock.monotonic_s()
        return self

    def _begin(self) -> None:
        """Say that it begins; a question that is refused before its first seed shows nothing."""
        self._begun = True
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[told]}"),
                TimeElapsedColumn(),
                console=self._console,
            )
            self._bar.start()
            self._task = self._bar.add_task(escape(self._title), total=self.total, told="")
        else:
            self._print(f"{self._title}: {many(self.total, 'seed')} to play")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()
        elif self._begun or isinstance(error, KeyboardInterrupt):
            took = span(self._clock.monotonic_s() - self._began_s)
            word = "stopped" if kind or self.done < self.total else "done"
            told = f"{self.done}/{self.total}, {many(self.errors, 'error')}"
            self._print(f"{self._title}: {word}, {told}, {took}")

    def start(self, scenario: str, kept: int = 0) -> None:
        """Begin a scenario of which so many seeds were found done."""
        if not self._begun:
            self._begin()
        self._scenario = one_line(scenario, 40)
        self.done += kept
        self.kept += kept
        self._show()

    def advance(self, scenario: str, n: int = 1, error: str | None = None) -> None:
        """Count seeds that have just been played; an error is said at once."""
        if not self._begun:
            self._begin()
        self._scenario = one_line(scenario, 40)
        self.done += n
        if error is not None:
            self.errors += n
            self.note(f"{self._scenario}: {one_line(error)}")
        self._mark()
        self._show()

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._print(f"{self._title}: {one_line(text, 500)}")

    def __call__(self, done: int, total: int, row: dict[str, Any]) -> None:
        """Take the progress of an executor, whose rows tell scenario, status and error."""
        failed = row.get("status") != "ok"
        said = str(row.get("error") or row.get("status")) if failed else None
        self.total = total + self.kept
        self.advance(str(row.get("scenario", "")), done + self.kept - self.done, said)

    @property
    def remaining_s(self) -> float | None:
        """Return the seconds that are left at the rate of late, None as long as there is none.

        The rate counts from the first seed that was done: what comes before is mostly the start of
        processes.
        """
        played = self.done - self.kept
        mark = next((mark for mark in self._marks if mark[1] < played), None)
        if mark is None:
            return None
        rate = (self._clock.monotonic_s() - mark[0]) / (played - mark[1])
        return rate * max(0, self.total - self.done)

    def _mark(self) -> None:
        """Remember how far it is, for as long as that tells the rate; a start may be slow."""
        now_s = self._clock.monotonic_s()
        self._marks.append((now_s, self.done - self.kept))
        while self._marks[0][0] < now_s - RATE_OVER_S:
            self._marks.popleft()

    def _state(self) -> str:
        left = self.remaining_s
        parts = (
            f"{self.done}/{self.total}",
            many(self.errors, "error"),
            f"{span(left)} left" if left is not None and self.done < self.total else "",
            self._scenario,
        )
        return ", ".join(part for part in parts if part)

    def _show(self) -> None:
        if self._bar is not None:
            told = ", ".join(self._state().split(", ")[1:])
            self._bar.update(self._task, completed=self.done, total=self.total, told=escape(told))
            return
        now_s = self._clock.monotonic_s()
        if now_s - self._said_s >= PLAIN_EVERY_S:
            self._said_s = now_s
            self._print(f"{self._title}: {self._state()}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def summary_view(result: NightlyResult) -> RenderableType:
    """Return what ``--print-summary`` shows: the answer and what broke; see replay_lines()."""
    colour, found = light(result), counts(result)
    same = found["unchanged"] + found["no_difference_seen"]
    parts: list[RenderableType] = [
        Text.assemble((f"{SIGNS[colour]}: ", f"bold {STYLES[colour]}"), (headline(result), "bold")),
        Text(explanation(result)),
        Text(
            f"{found['improvement']} better, {same} of {many(sum(found.values()), 'metric')} "
            f"without a difference, run {one_line(result.run.run_id)}",
            style="dim",
        ),
    ]
    for trouble in troubles(result.run):
        said = f"{one_line(trouble.scenario)}: {one_line(trouble.why)}"
        parts.append(Text.assemble((f"{trouble.kind} ", "bold red"), said))
    findings = by_severity(result.diff.findings if result.diff else ())
    shown = [each for each in findings if word_of(each) not in SAME_WORDS]
    if shown:
        parts.append(comparison_table(shown[:MOST_ROWS]))
        if len(shown) > MOST_ROWS:
            parts.append(Text(f"... and {len(shown) - MOST_ROWS} more"))
    return Group(*(part for part in parts if not isinstance(part, Text) or part.plain))


def replay_lines(result: NightlyResult) -> tuple[str, ...]:
    """Return the commands that play the worst seeds again, under a heading.

    They are for copying, so print them with ``soft_wrap``: a console of 80 columns would cut them.
    """
    pairs = Pairs(result)
    findings = by_severity(result.diff.findings if result.diff else ())
    broken = [each for each in findings if word_of(each) in BROKEN]
    replays = [pairs.worst(each)[0].replay for each in broken[:5] if each.worst_seeds]
    return ("Play the worst seeds again:", *(f"  {line}" for line in replays)) if replays else ()


class ComparisonTable:
    """Findings as a table that puts less beside each other where there is little room."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = findings

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE
        made = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        made.add_column("metric", overflow="fold")
        for head in ("verdict", "base", "new") if wide else ():
            made.add_column(head, justify="left" if head == "verdict" else "right", no_wrap=True)
        for head in ("change", "95 % of the loss", "p", "n"):
            made.add_column(head, justify="right", no_wrap=True)
        for finding in self._findings:
            name, word, levels, rest = _cells(finding)
            first = (name, word, *levels) if wide else (Text.assemble(name, "\n  ", word),)
            made.add_row(*first, *rest)
        yield made


def _cells(finding: Finding) -> tuple[Text, Text, list[Text], list[Text]]:
    base, cand = two_numbers(finding.base, finding.cand)
    word = word_of(finding)
    style = "red" if word in BROKEN else "green" if word == "improvement" else ""
    unit = f" {one_line(finding.unit, 20)}" if finding.unit else ""
    p = finding.p_holm if finding.p_holm is not None else finding.p
    critical = ", critical" if severity(finding) == "critical" else ""
    rest = [
        Text(change(finding), style=style),
        Text(interval(finding.ci95)),
        Text(chance(p)),
        Text(str(finding.n)),
    ]
    name, said = Text(one_line(finding.id, 100)), Text(WORDS[word] + critical, style=style)
    return name, said, [Text(base), Text(cand + unit)], rest


def comparison_table(findings: Sequence[Finding]) -> ComparisonTable:
    """Return findings as a table: change, interval, p and n, ``~`` where nothing was seen."""
    return ComparisonTable(findings)


def run_view(run: NightlyRun) -> RenderableType:
    """Return what ``run --print`` shows: every metric of every scenario."""
    made = Table(
        title=f"Run {escape(one_line(run.run_id))}", title_justify="left", header_style="bold"
    )
    for head in ("scenario", "metric", "mean", "sd", "n", "unit"):
        left = head in ("scenario", "metric", "unit")
        made.add_column(head, justify="left" if left else "right", overflow="fold")
    wrong: list[RenderableType] = []
    notes: list[RenderableType] = []
    for scenario in report_document(run)["scenarios"]:
        notes += [Text(f"{one_line(scenario['name'])}: {note}") for note in scenario["notes"]]
        if scenario["status"] != "ok":
            said = f"{one_line(scenario['name'])}: {one_line(scenario['error'])}"
            wrong.append(Text.assemble((f"{scenario['status']} ", "bold red"), said))
        for at, (name, figures) in enumerate(scenario["metrics"].items()):
            made.add_row(
                Text(scenario["name"] if at == 0 else ""),
                Text(name),
                Text(number(figures["mean"])),
                Text(number(figures["sd"], 3)),
                Text(str(figures["n"])),
                Text(one_line(figures["unit"], 20)),
            )
    return Group(made, *wrong, *notes)
