"""Models: lineage, the gate's evidence, who serves."""

from __future__ import annotations

from collections.abc import Mapping

from agent_gym.apps.dashboard.figures.models import (
    ModelFigures,
    ModelList,
    ModelRow,
    model_figures,
    model_list,
)
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.pages.model_tools import tools
from agent_gym.apps.dashboard.parts import HASH, facts, folded, model_link, stamp, table, when_ns
from agent_gym.apps.dashboard.view import Block, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.files import to_json
from agent_gym.pipeline.registry.deployment import RegistryState
from agent_gym.pipeline.registry.ledger import HistoryEntry

TONES = {"champion": "good", "shadow": "info", "canary": "info", "full": "good"}


def view(visit: Visit) -> View:
    """Return the list of models, or the one that was asked for."""
    words, name = visit.words, visit.query.get("model")
    if name:
        return _one(words, model_figures(visit.service, name))
    found = model_list(visit.service)
    if not found.rows:
        body = empty(words, "models.none", visit.command("agent-gym harness"))
        none = card(words("nav.models"), body)
        return View(words("nav.models"), (Markup("none", none),))
    blocks = (
        Markup("state", card(words("models.now"), _state(words, found.state, found.versions))),
        Markup("list", _list(words, found), wide=True),
        Markup("history", _history(words, found.history, found.versions), wide=True),
    )
    return View(words("nav.models"), blocks)


def _state(words: Words, state: RegistryState, versions: Mapping[str, str]) -> Safe:
    def named(model: str | None) -> Safe:
        return model_link(model, versions.get(model or ""))

    rows: list[tuple[str, Part]] = [
        (words("home.champion"), el("b", named(state.champion), id="champion")),
        (words("model.previous"), el("b", named(state.previous), id="previous")),
    ]
    rollout = state.rollout
    if rollout is not None:
        stage, status = words(f"models.{rollout.stage}"), words.said(rollout.status)
        said = f" {stage}, {status}, {rollout.stage_pairs} {words('models.pairs')}"
        rows.append((words("model.rollout"), text(named(rollout.model), said)))
        rows.append((words("models.watch"), words.said(rollout.monitor.decision().words)))
        if rollout.reason:
            rows.append((words("models.reason"), rollout.reason))
    if state.cooldown_until_ns:
        rows.append((words("models.cooldown"), f"{when_ns(state.cooldown_until_ns)} UTC"))
    return facts(rows)


def _list(words: Words, found: ModelList) -> Safe:
    rows: list[list[Part]] = [
        [
            model_link(row.model.model_hash, row.model.version),
            el("code", row.model.model_hash[:12]),
            _serves(words, row),
            words.said(row.model.status),
            _gate(words, row),
            model_link(row.model.base_model, found.versions.get(row.model.base_model or "")),
            row.model.batch_id or "-",
            stamp(row.model.created_ns),
        ]
        for row in found.rows
    ]
    names = ("version", "hash", "serves", "status", "gate", "from", "batch", "made")
    return table(words("nav.models"), [words(f"models.{name}") for name in names], rows)


def _serves(words: Words, row: ModelRow) -> Safe:
    if not row.serves:
        return text("-")
    tone = TONES.get(row.serves, "")
    return el("span", words(f"models.{row.serves}"), class_=f"tag {tone}".strip())


def _gate(words: Words, row: ModelRow) -> Safe:
    if row.verdict is None:
        return el("span", words("models.not_judged"), class_="faint")
    tone, key = ("good", "models.passed") if row.verdict.promoted else ("bad", "models.failed")
    sign = "✓" if row.verdict.promoted else "✗"
    return el(
        "span", f"{sign} {words(key)}", class_=f"tag {tone}", title=words.said(row.verdict.sentence)
    )


def _history(words: Words, entries: tuple[HistoryEntry, ...], versions: Mapping[str, str]) -> Safe:
    rows: list[list[Part]] = []
    for entry in entries:
        model = str(entry.data.get("model", ""))
        told = ("model", "promoted") if "sentence" in entry.data else ("model",)
        said = {key: value for key, value in entry.data.items() if key not in told}
        rows.append(
            [
                str(entry.position),
                stamp(entry.at_ns),
                words.said(entry.event),
                model_link(model, versions.get(model)),
                el(
                    "span",
                    *(
                        el("span", _detail(words, key, value), class_="detail")
                        for key, value in said.items()
                    ),
                ),
            ]
        )
    heads = [words(f"models.{name}") for name in ("number", "when", "event", "which", "details")]
    return table(words("models.history"), heads, rows, story=True)


def _detail(words: Words, key: str, value: object) -> str:
    shown = value[:12] if isinstance(value, str) and len(value) == HASH else str(value)
    return f"{words.known('detail', key)}: {words.said(shown)}"


def _one(words: Words, found: ModelFigures) -> View:
    model = found.row.model
    rows: list[tuple[str, Part]] = [
        (words("models.serves"), _serves(words, found.row)),
        (words("models.status"), words.said(model.status)),
        (words("models.hash"), el("code", model.model_hash)),
        (words("models.signed"), el("code", found.signed_by)),
        (words("models.made"), f"{when_ns(model.created_ns)} UTC"),
        (words("models.batch"), model.batch_id or "-"),
    ]
    blocks: list[Block] = [
        Markup(
            "about",
            text(
                el("p", link("/dashboard/models", words("models.all")), class_="small"),
                card(model.version, facts(rows)),
            ),
        ),
        Markup("state", card(words("models.now"), _state(words, found.state, found.versions))),
        Markup("gate", card(words("models.evidence"), _evidence(words, found.row))),
        Markup("lineage", card(words("models.lineage"), _lineage(words, found))),
        Markup("history", _history(words, found.history, found.versions), wide=True),
        Markup(
            "manifest",
            folded(words("models.manifest"), el("pre", to_json(found.manifest))),
        ),
    ]
    return View(words("models.one", name=model.version), tuple(blocks))


def _evidence(words: Words, row: ModelRow) -> Safe:
    verdict = row.verdict
    if verdict is None:
        return el("p", words("models.no_evidence"), class_="faint")
    said = words(
        "models.look", set=verdict.sealed_set, n=verdict.look, alpha=f"{verdict.alpha:.4g}"
    )
    rows: list[list[Part]] = [
        [
            words.said(check.name),
            el("span", "✓" if check.passed else "✗", class_="better" if check.passed else "worse"),
            words.said(check.words),
        ]
        for check in verdict.checks
    ]
    heads = [words("models.check"), words.head(words("models.passed")), words("models.details")]
    return text(
        el("p", words.said(verdict.sentence), id="verdict"),
        el("p", said, class_="small faint"),
        table(words("models.checks"), heads, rows, story=True),
    )


def _lineage(words: Words, found: ModelFigures) -> Safe:
    if not found.lineage and not found.children:
        return el("p", words("models.no_lineage"), class_="faint")
    parts: list[Part] = []
    for key, models in (("models.parents", found.lineage), ("models.children", found.children)):
        if models:
            items = [
                el(
                    "li",
                    model_link(each.model_hash, each.version),
                    " ",
                    el("code", each.model_hash[:12]),
                )
                for each in models
            ]
            parts += [el("h3", words(key)), el("ol", *items, class_="lineage")]
    return text(*parts)


PAGE = Page("/models", "models", view, tools=tools)
