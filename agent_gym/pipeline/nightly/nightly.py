"""The night: run, compare, write everything, and say by the exit code how it was.

Nothing here computes a figure; each step is a function of its own, and whatever goes wrong in one
leaves the files of the night before as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import DataError
from agent_gym.evaluation.gate import Diff, SuiteSamples, judge, night_of
from agent_gym.pipeline.nightly.baseline import (
    Approval,
    Baseline,
    NoBaseline,
    load_baseline,
    point,
    write_baseline,
)
from agent_gym.pipeline.nightly.compare import contradicted, fewer_seeds
from agent_gym.pipeline.nightly.crew import Crew, LocalCrew
from agent_gym.pipeline.nightly.ending import politely_ended, undisturbed
from agent_gym.pipeline.nightly.exits import exit_code, refusal
from agent_gym.pipeline.nightly.folders import sweep
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.lock import one_run
from agent_gym.pipeline.nightly.options import NightlyOptions, RunOptions
from agent_gym.pipeline.nightly.past import Memory, night_body, remembered_suite
from agent_gym.pipeline.nightly.prepare import Prepared, nightly_run, prepare, uncounted, widened
from agent_gym.pipeline.nightly.proof import proof_of, prove
from agent_gym.pipeline.nightly.publish import publish, texts
from agent_gym.pipeline.nightly.quarantine import proposed, read_quarantine
from agent_gym.pipeline.nightly.rerun import FreshRerun, Pace, frozen_crew
from agent_gym.pipeline.nightly.run import SILENCE, Played, Player, Watch, suite_samples
from agent_gym.pipeline.nightly.setup import changed_libraries, subject_of
from agent_gym.pipeline.nightly.times import iso
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.reporting.nightly import NightlyResult
from agent_gym.reporting.nightly.verdict import contradictions


@dataclass(frozen=True, slots=True)
class NightlyOutcome:
    """How the night went.

    Attributes:
        exit_code: 0, 1, 3, 4 or 130.
        result: What the outputs were made from.
        places: Where they are.
        played: Episodes that were played.
        kept: Episodes that were found in the ledger.
        approved: The id of the new baseline, if this run became one.
        messages: What the reader must know beside the verdict.
    """

    exit_code: int
    result: NightlyResult
    places: dict[str, Path]
    played: int
    kept: int
    approved: str | None = None
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class References:
    """What the night is compared with; a problem says why there is no baseline."""

    baseline: Baseline | None = None
    anchor: SuiteSamples | None = None
    problem: str = ""
    anchor_problem: str = ""


@dataclass(slots=True)
class Compared:
    """What the gate said, and the fresh seeds it asked for."""

    diff: Diff | None = None
    rerun: FreshRerun | None = None
    complete: bool = True
    problem: str = ""
    contradicted: tuple[str, ...] = ()


def run_nightly(
    options: RunOptions,
    decisions: NightlyOptions,
    workspace: Workspace,
    *,
    clock: Clock | None = None,
    watch: Watch = SILENCE,
) -> NightlyOutcome:
    """Play a suite, compare it with the baseline, write all outputs, and return the exit code.

    Raises:
        ConfigError: The question itself is wrong; nothing was written.
        LockHeld: Another run is under way here.
        StoreError: Something could not be written; older files are as they were.
        DataError: A baseline was to be approved over one that is broken.
    """
    clock = clock or SystemClock()
    with one_run(workspace.lock, clock, " ".join(options.command)), politely_ended():
        sweep(*workspace.folders())
        references = read_references(workspace, decisions.approval)
        baseline = references.baseline
        prepared = prepare(options, clock, None if baseline is None else baseline.record.id)
        with Ledger(workspace.ledger) as ledger:
            prepared, player, played = play_known(prepared, ledger, watch)
            night = _Night(workspace, clock, decisions, prepared, references, ledger)
            compared = night.compare(played, player)
            return night.settle(replace(played, complete=compared.complete), compared)


def read_references(workspace: Workspace, approval: Approval | None) -> References:
    """Return the baseline and the anchor, or what is wrong with them."""
    try:
        baseline, problem = load_baseline(workspace), ""
    except NoBaseline as error:
        baseline, problem = None, str(error)
    except DataError as error:
        if approval is not None:
            raise
        baseline, problem = None, str(error)
    try:
        return References(baseline, load_baseline(workspace, "anchor").samples, problem)
    except NoBaseline:
        return References(baseline, None, problem)
    except DataError as error:
        return References(baseline, None, problem, str(error))


def play_all(prepared: Prepared, player: Player) -> Played:
    """Play the fixed seeds, and two of each scenario again; Ctrl-C gives what is done so far."""
    try:
        played = player.play(prepared.tasks)
        if played.complete:
            played = player.repeat(played, prepared.tasks, prepared.setup.date)
    except KeyboardInterrupt:
        return player.found(prepared.tasks)
    return played


def play_known(prepared: Prepared, ledger: Ledger, watch: Watch) -> tuple[Prepared, Player, Played]:
    """Play everything under a hash of all code that really ran, whatever text showed before.

    Modules that were loaded while playing although no source imports them by name widen the hash:
    then episodes of another state of theirs are never served as tonight's.
    """
    player = prepared.player(ledger, watch)
    played = play_all(prepared, player)
    new = uncounted(prepared, played.loaded)
    if not new or not played.complete:
        return prepared, player, played
    wider = widened(prepared, new)
    if wider.code.code_hash == prepared.code.code_hash:
        return prepared, player, played
    player = wider.player(ledger, watch)
    player.adopt(played, prepared.tasks)
    again = play_all(wider, player)
    note = f"loaded by no import that a source shows, counted now: {', '.join(sorted(new))}"
    return wider, player, replace(again, notes=(note, *again.notes))


@dataclass(frozen=True, slots=True)
class _Night:
    workspace: Workspace
    clock: Clock
    decisions: NightlyOptions
    prepared: Prepared
    references: References
    ledger: Ledger

    def compare(self, played: Played, player: Player) -> Compared:
        """Ask the gate; Ctrl-C while it plays fresh seeds leaves the night incomplete."""
        baseline, prepared = self.references.baseline, self.prepared
        compared = Compared(complete=played.complete, problem=self.references.problem)
        if baseline is None:
            return compared
        suite = prepared.options.suite
        candidate = suite_samples(suite, prepared.run_id, played, suite.scenarios)
        compared.problem = fewer_seeds(baseline.samples, candidate)
        if compared.problem:
            return compared
        if self._same_code:
            compared.contradicted = contradicted(baseline.samples, candidate)
        if played.complete:
            compared.rerun = self._rerun(baseline, player, played, candidate)
            if compared.contradicted:
                self._distrust(compared.rerun, baseline)
        try:
            compared.diff = self._judge(baseline, candidate, compared.rerun)
        except KeyboardInterrupt:
            compared.complete = False
        except DataError as error:  # the baseline's code does not play here as it once did
            compared.problem = str(error)
        if not compared.complete:
            compared.diff = None
            compared.problem = "the run was stopped before it could be compared"
        return compared

    def _judge(self, baseline: Baseline, candidate: SuiteSamples, rerun: FreshRerun | None) -> Diff:
        return judge(
            baseline.samples,
            candidate,
            rerun,
            self.decisions.policy,
            history=self._memory().history,
            quarantine=read_quarantine(self.workspace, self.clock),
            anchor=self.references.anchor,
            told=None if rerun is None else rerun.announce,
        )

    def _rerun(
        self, baseline: Baseline, player: Player, played: Played, candidate: SuiteSamples
    ) -> FreshRerun:
        options = self.prepared.options
        subject = subject_of(baseline.setup.subject)
        same = baseline.setup.code_hash == self.prepared.code.code_hash
        crew = (
            LocalCrew(subject, options.workers, options.timeout_s, baseline.setup.imports)
            if same
            else self._frozen(baseline)
        )
        return FreshRerun(
            suite=options.suite,
            date=self.prepared.setup.date,
            baseline=baseline,
            old=Player(self.ledger, crew, baseline.setup.code_hash, subject, player.watch),
            new=player,
            pinned=candidate,
            proof=None if same else proof_of(baseline, self.workspace.caches),
            pace=Pace.of(played, options.workers, twice=self.decisions.policy.repeat),
        )

    def _distrust(self, rerun: FreshRerun, baseline: Baseline) -> None:
        """Ask the frozen code: the hash has missed something, so what was proved need not hold."""
        rerun.proof = proof_of(baseline, self.workspace.caches)
        rerun.proof.unlink(missing_ok=True)
        rerun.old = replace(rerun.old, crew=self._frozen(baseline))

    def _frozen(self, baseline: Baseline) -> Crew:
        options = self.prepared.options
        return frozen_crew(baseline, self.workspace.caches, options.workers, options.timeout_s)

    def settle(self, played: Played, compared: Compared) -> NightlyOutcome:
        """Write everything, approve if asked, and remember the night."""
        result = self._result(played, compared)
        why_not = refusal(result, self.decisions.approval)
        code = exit_code(
            result,
            fail_on_regression=self.decisions.fail_on_regression,
            fail_on_unsure=self.decisions.fail_on_unsure,
            approval=self.decisions.approval,
            refused=why_not is not None,
            anchor_problem=bool(self.references.anchor_problem),
        )
        outputs = texts(result)
        with undisturbed():
            places = publish(self.workspace, result, self.prepared.setup, outputs)
            self._remember(result, code)
        approved = None
        if self.decisions.approval is not None and why_not is None:
            approved = self._approve(result, self.decisions.approval)
        if self.decisions.set_anchor and why_not is None and result.run.status == "complete":
            point(self.workspace, "anchor", approved or load_baseline(self.workspace))
        return NightlyOutcome(
            exit_code=code,
            result=result,
            places=places,
            played=played.played,
            kept=played.kept,
            approved=None if approved is None else approved.record.id,
            messages=tuple(
                text
                for text in (
                    why_not,
                    compared.problem if approved is None else "",
                    *contradictions(result),
                    self.references.anchor_problem,
                    *self._proposed(compared.diff),
                )
                if text
            ),
        )

    def _result(self, played: Played, compared: Compared) -> NightlyResult:
        rerun, baseline = compared.rerun, self.references.baseline
        memory = self._memory()
        notes = [
            *self._notes(compared),
            *(f"set aside, its checksum did not fit: {row}" for row in self.ledger.set_aside),
        ]
        run = nightly_run(
            self.prepared,
            played,
            iso(self.clock.now_ns()),
            {} if rerun is None else rerun.seeds,
            tuple(notes),
        )
        return NightlyResult(
            run=run,
            diff=compared.diff,
            problem=compared.problem,
            baseline=None if baseline is None else baseline.record,
            baseline_samples=None if baseline is None else baseline.samples,
            fresh=None if rerun is None else rerun.sides(run.run_id),
            past=memory.past(self.decisions.policy),
            last_success_at=memory.last_success_at,
            contradicted=tuple(sorted({*played.stale, *compared.contradicted})),
        )

    def _notes(self, compared: Compared) -> list[str]:
        baseline, notes = self.references.baseline, []
        if compared.contradicted:
            notes.append(
                f"the same code, but not the baseline's figures: {', '.join(compared.contradicted)}"
            )
        if self.references.anchor_problem:
            notes.append(f"the anchor could not be read: {self.references.anchor_problem}")
        if baseline is not None:
            changed = changed_libraries(baseline.setup, self.prepared.setup)
            if changed:
                notes.append(f"libraries differ from the baseline's: {', '.join(changed)}")
        return notes

    def _memory(self) -> Memory:
        name = remembered_suite(self.prepared.options.suite.id, planted=False)
        return Memory(self.ledger, name, self.prepared.run_id)

    @property
    def _same_code(self) -> bool:
        """Return whether the baseline was made by this code and this subject."""
        baseline, setup = self.references.baseline, self.prepared.setup
        return baseline is not None and (
            baseline.setup.code_hash == setup.code_hash and baseline.setup.subject == setup.subject
        )

    def _remember(self, result: NightlyResult, code: int) -> None:
        run = result.run
        night = night_of(run.samples, result.diff, run.created_at, same_code=self._same_code)
        name = remembered_suite(run.suite_id, planted=self.prepared.planted)
        self.ledger.record(run.run_id, name, run.created_at, night_body(result, night, code))

    def _proposed(self, diff: Diff | None) -> list[str]:
        """Return what a person ought to put into quarantine."""
        if diff is None or self.prepared.planted:
            return []
        held = read_quarantine(self.workspace, self.clock)
        history, policy = self._memory().history, self.decisions.policy
        return proposed(diff, history, held, policy, same_code=self._same_code)

    def _approve(self, result: NightlyResult, approval: Approval) -> Baseline:
        """Write the baseline, see that its frozen code plays as it did, and move the pointer."""
        baseline = write_baseline(
            self.workspace, result, self.prepared.setup, approval, iso(self.clock.now_ns())
        )
        prove(baseline, self._frozen(baseline), proof_of(baseline, self.workspace.caches))
        point(self.workspace, "current", baseline)
        return baseline
