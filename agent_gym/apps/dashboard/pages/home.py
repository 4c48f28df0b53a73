"""Home: is it good or bad tonight, who serves, and what needs attention?"""

from __future__ import annotations

from agent_gym.apps.dashboard.figures.home import Concern, HomeFigures, home_figures
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.parts import (
    SIGNS,
    ago,
    bars_picture,
    facts,
    light_tag,
    line_picture,
    meter,
    metric_link,
    model_link,
    run_link,
    when,
    when_ns,
)
from agent_gym.apps.dashboard.view import Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.reporting.text import number

FIRST_NIGHT = "agent-gym nightly --update-baseline --reason first"


def view(visit: Visit) -> View:
    """Return the first page."""
    words, found = visit.words, home_figures(visit.service)
    blocks = (
        Markup("verdict", _verdict(visit, found)),
        Markup("attention", _attention(visit, found)),
        Markup(
            "cards",
            el(
                "div",
                _champion(visit, found),
                _readiness(words, found),
                _collected(words, found),
                class_="grid",
            ),
        ),
        Markup("nights", _nights(words, found)),
        Markup("trends", _trends(words, found)),
    )
    return View(words("nav.home"), blocks)


def _verdict(visit: Visit, found: HomeFigures) -> Safe:
    words, last = visit.words, found.last
    if last is None:
        body = empty(words, "home.no_night", visit.command(FIRST_NIGHT))
        return card(words("home.tonight"), body, tone="unsure")
    said, why = found.headline
    success = found.success
    lines: list[Part] = [
        el("h2", words.said(said) or words.known("light_long", last.light)),
        el("p", words.said(why)) if why else None,
        el(
            "p",
            words.known("verdict", last.verdict),
            " · ",
            run_link(last.run_id),
            " · ",
            f"{when(last.finished_at)} UTC, {ago(words, found.age_s)}",
            class_="small",
        ),
        el(
            "p",
            words("home.last_success"),
            ": ",
            words("home.never")
            if success is None
            else text(run_link(success.run_id), f", {when(success.finished_at)} UTC"),
            class_="small",
            id="last-success",
        ),
    ]
    sign = el("div", SIGNS.get(last.light, "?"), class_="sign", aria_hidden="true")
    return el(
        "section",
        sign,
        el("div", *lines),
        class_=f"banner {last.light}",
        role="status",
        aria_label=words("home.tonight"),
    )


def _attention(visit: Visit, found: HomeFigures) -> Safe:
    words = visit.words
    suite = "" if found.last is None else found.last.suite
    items = [el("li", _concern(visit, each, suite)) for each in found.concerns]
    body = (
        el("ul", *items, class_="plainlist")
        if items
        else el("p", words("home.nothing"), class_="faint")
    )
    return card(words("home.attention"), body, id="attention")


def _concern(visit: Visit, concern: Concern, suite: str) -> Safe:
    words = visit.words
    values = dict(concern.values)
    tag = el("span", words(f"tone.{concern.tone}"), class_=f"tag {concern.tone}")
    if concern.key == "concern.metric":
        return text(tag, " ", metric_link(suite, values["name"]), " ", words.said(values["why"]))
    if "why" in values:
        values["why"] = words.said(values["why"])
    said = words(concern.key, **values)
    told = text(tag, " ", link(concern.href, said) if concern.href else said)
    if not concern.command:
        return told
    return text(told, " ", el("code", visit.command(concern.command)))


def _champion(visit: Visit, found: HomeFigures) -> Safe:
    words = visit.words
    model, rollout = found.champion, found.state.rollout
    if model is None:
        none = empty(words, "home.no_champion", visit.command("agent-gym harness"))
        return card(words("home.champion"), none)
    rows: list[tuple[str, Part]] = [
        (words("model.hash"), el("code", model.model_hash[:12])),
        (words("model.made"), f"{when_ns(model.created_ns)} UTC"),
        (words("model.previous"), model_link(found.state.previous)),
    ]
    if rollout is not None and rollout.status == "open":
        rows.append(
            (words("model.rollout"), text(model_link(rollout.model), f" ({rollout.stage})"))
        )
    big = el("p", model_link(model.model_hash, model.version), class_="big", id="champion")
    return card(words("home.champion"), big, facts(rows))


def _readiness(words: Words, found: HomeFigures) -> Safe:
    ready = found.readiness
    met = sum(each.met for each in ready.conditions)
    total = len(ready.conditions)
    title = words("home.ready") if ready.ready else words("home.not_ready", met=met, total=total)
    parts: list[Part] = [
        el("p", title, class_="big", id="readiness"),
        meter(words("home.readiness"), met / total if total else 0.0, met=ready.ready, tall=True),
    ]
    for each in ready.conditions:
        mark = "✓" if each.met else "…"
        parts.append(
            el(
                "p",
                f"{mark} {words.said(each.words)}",
                class_="small" + ("" if each.met else " faint"),
            )
        )
    return card(words("home.readiness"), *parts)


def _collected(words: Words, found: HomeFigures) -> Safe:
    counts = found.counts
    rows: list[tuple[str, Part]] = [
        (words(f"count.{name}"), words.count(counts[name]))
        for name in ("trainable", "unused", "judged", "agents_active", "agents_paused", "waiting")
        if name in counts
    ]
    big = el("p", words.count(counts["total"]), class_="big", id="trajectories")
    picture = bars_picture(words("home.per_day"), [float(each) for each in found.recorded])
    return card(
        words("home.collected"),
        big,
        facts(rows),
        el("p", words("home.per_day"), class_="small faint"),
        picture,
    )


def _nights(words: Words, found: HomeFigures) -> Safe:
    if not found.nights:
        return card(words("home.nights"), empty(words, "home.no_night"))
    strip = [
        run_link(
            night.run_id,
            SIGNS.get(night.light, "?"),
            class_=night.light,
            title=f"{when(night.created_at)} {words.known('light', night.light)}",
            aria_label=f"{when(night.created_at)}: {words.known('light', night.light)}",
        )
        for night in found.nights
    ]
    good = sum(night.light == "good" for night in found.nights)
    said = words("home.good_nights", good=good, total=len(found.nights))
    return card(
        words("home.nights"),
        el("div", *strip, class_="strip"),
        el("p", said, " ", light_tag(words, found.nights[-1].light), class_="small faint"),
    )


def _trends(words: Words, found: HomeFigures) -> Safe:
    if found.last is None or not found.trends:
        return card(words("home.trends"), el("p", words("home.no_trends"), class_="faint"))
    suite = found.last.suite
    shown = [
        el(
            "li",
            metric_link(suite, each.name),
            line_picture(words("home.trend", name=each.name, n=len(each.values)), each.values),
            el(
                "p",
                words("home.trend_last", last=number(each.values[-1]), usual=number(each.usual)),
                " ",
                el("span", words(f"direction.{each.direction}")) if each.direction else None,
                class_="small faint",
            ),
        )
        for each in found.trends
    ]
    about = el("p", words("home.trends_about"), class_="small faint")
    return card(words("home.trends"), about, el("ul", *shown, class_="grid trends"), id="trends")


PAGE = Page("/", "home", view)
