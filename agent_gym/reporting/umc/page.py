"""The page of a walk: the answer first, then the money, then the beliefs, then the doubts."""

from __future__ import annotations

from agent_gym.evaluation.page import Answer, Origin, Page, pairs, section, tiles, whole_page
from agent_gym.evaluation.protocol.verdict import Verdict
from agent_gym.evaluation.tearsheet.sections import LIGHTS
from agent_gym.evaluation.umc_walk import UmcRun
from agent_gym.markets.bars import source_words
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import format_time
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT
from agent_gym.reporting.canvas import plot
from agent_gym.reporting.text import many, number, visible
from agent_gym.reporting.umc import market, mind, money, tables

HEADLINES = {
    "evidence of edge": "There is evidence of an edge",
    "promising": "Promising, and not yet evidence",
    "no evidence of edge": "No evidence of an edge",
    "worse than baseline": "Worse than a simple baseline",
}
UNJUDGED = Verdict("no evidence of edge", "nothing was judged", ())


def html_page(run: UmcRun) -> str:
    """Return the page; equal runs give equal text."""
    verdict = run.arm.verdict or UNJUDGED
    headline, symbol = HEADLINES[verdict.word], _name(run)
    sections = (
        section("Where the bars come from", _source(run)),
        section("What it earned", _equity(run), _position(run)),
        section("Beside baselines", tables.comparison(run), tables.differences(run), note=COMPARED),
        section("The market", _candles(run)),
        section("What it believed", _heads(run), _outlook(run)),
        section("Free energy", _energy(run)),
        section("Information and lambda", _curiosity(run), note=lambda_note(run)),
        section("Break-even", tables.break_even(run), note=BREAK_EVEN),
        section("Echoes", *crowd_parts(run), note=ECHOES if run.echoes is not None else ""),
        section("Folds", tables.folds(run), note=_folds_note(run)),
        section("Trials and verdict", tables.checks(run.arm), note=_trials(run, verdict)),
    )
    page = Page(
        kind="UMC",
        about=f"walked forward on {symbol}",
        title=f"{headline} - UMC on {symbol}",
        answer=Answer(LIGHTS[verdict.word], verdict.word, headline, (verdict.why,), _figures(run)),
        sections=sections,
        origin=_origin(run),
    )
    return whole_page(page)


COMPARED = (
    "Same bars, same account, same costs and timing for all. Intervals resample days in blocks; "
    "those of the differences hold for all baselines together. Random timing is UMC's own series "
    "of positions, turned by random numbers of bars, so turnover is the same: the row shows the "
    "mean of these draws and where most of them lie, and p above how rare it is among them to grow "
    "as much as UMC."
)
BREAK_EVEN = (
    "By the closes of the first training segment, before any model: a forecast that has the "
    "stated correlation with the move earns what a round trip costs."
)
ECHOES = (
    "A crowd of simple traders lives on the same tested bars and moves none of them. Nothing of it "
    "reaches the model. The numbers below test the gate between them on a market whose law is "
    "known; with the gate held open to a planted pattern they must break."
)
FOLDS = (
    "Every fold learned from the bars before its test, and from those alone. The exact and the "
    "Kalman tier learn them anew; a recurrent tier or an actor begins from the weights of the fold "
    "before, which had seen earlier bars only."
)


def _name(run: UmcRun) -> str:
    """Return what was traded; where a file does not say, the file."""
    symbol = run.bars.instrument.symbol
    return run.bars.provenance.origin if symbol == UNKNOWN_INSTRUMENT.symbol else symbol


def _figures(run: UmcRun) -> str:
    figures, net, standing = run.results.metrics, run.arm.net, run.arm.standing
    band = f"{number(net.low, 3)} to {number(net.high, 3)}"
    cells = [
        (f"{number(net.estimate, 3)} bp", f"net a bar, {band}"),
        (number(standing.sharpe, 3), "yearly Sharpe ratio"),
        (f"{100 * figures.max_drawdown:.1f} %", "deepest drawdown"),
        (number(standing.psr, 3), "PSR: chance that the ratio is above 0"),
        (number(standing.dsr, 3), f"DSR over {many(standing.trials, 'trial')}"),
        (number(run.arm.p_random, 3), "p of random timing, same turnover"),
    ]
    return tiles(cells)


def _source(run: UmcRun) -> str:
    data, instrument = run.bars.describe(), run.bars.instrument
    tested = run.results.ts
    return pairs(
        {
            "Source": source_words(data),
            "Instrument": f"{instrument.symbol}, {instrument.exchange}, {instrument.kind}",
            "Bars": f"{len(run.bars):,} of {format_period(run.bars.period_ns)}",
            "First and last": f"{format_time(int(run.bars.ts[0]))} to "
            f"{format_time(int(run.bars.ts[-1]))}",
            "Tested": f"{len(run.trace) - 1:,} bars, {format_time(int(tested[0]))} to "
            f"{format_time(int(tested[-1]))}",
            "Fills": f"{len(run.results.fills):,}",
            "Hash": data["fingerprint"],
        }
    )


def _equity(run: UmcRun) -> str:
    label = "Equity of UMC and of the baselines, and the drawdown of UMC"
    return plot("equity", label, lambda width: money.equity(run, width))


def _position(run: UmcRun) -> str:
    return plot("position", "Position over time", lambda width: money.position(run, width))


def _candles(run: UmcRun) -> str:
    caption = "" if run.trace.regime[0] else "Macrostates are drawn when they are followed: --macro"
    return plot(
        "candles", "Price of the tested bars", lambda width: market.candles(run, width), caption
    )


def _heads(run: UmcRun) -> str:
    caption = (
        "A head is a law that the market may follow. 'walk' says that nothing can be known: where "
        "it is believed, nothing is traded."
    )
    return plot("heads", "Chance of each head", lambda width: mind.heads(run, width), caption)


def _outlook(run: UmcRun) -> str:
    label = "Expected return with its error, and coherence"
    return plot("outlook", label, lambda width: mind.outlook(run, width))


def _energy(run: UmcRun) -> str:
    caption = (
        "Above: how much less free energy the planner expects of its choice than of holding "
        "nothing. Below: minus the log density, in deviations, that the model had given to "
        "the bar that came."
    )
    label = "Free energy saved, and surprise"
    return plot("energy", label, lambda width: mind.energy(run, width), caption)


def _curiosity(run: UmcRun) -> str:
    return plot("curiosity", "Information gain and lambda", lambda w: mind.curiosity(run, w))


def lambda_note(run: UmcRun) -> str:
    """Say where lambda was, and what that is worth."""
    share = run.lam.share_at_bounds
    nothing = (
        "Recorded bars show the same whatever is held, so all positions inform alike and no lambda "
        "changed a trade here."
    )
    if share is None:
        return f"Lambda is fixed. {nothing}"
    held = f"Lambda stood at a bound for {100 * share:.0f} % of the time."
    doubt = " Where its bounds hold it, its value confirms nothing." if share > 0.0 else ""
    return f"{held}{doubt} {nothing}"


def _folds_note(run: UmcRun) -> str:
    why = dict.fromkeys(f"{row['tier']}: {row['why']}" for row in run.tiers())
    return f"{FOLDS} {visible('; '.join(why), 1_000)}."


def crowd_parts(run: UmcRun) -> list[str]:
    """Return the picture of the crowd and the leakage; nothing without a crowd."""
    if run.echoes is None:
        return []
    crowd = run.echoes
    drawn = plot(
        "echoes",
        "Fitness of the echoes by generation",
        lambda width: market.generations(crowd, width),
        f"{crowd.size} echoes on {crowd.bars:,} bars. Fitness is growth after costs over the "
        "window before a renewal, less what a family has in common with its best.",
    )
    return [drawn, tables.leakage(run.leakage) if run.leakage is not None else ""]


def _trials(run: UmcRun, verdict: Verdict) -> str:
    standing = run.arm.standing
    pbo = "not known" if standing.pbo is None else f"{standing.pbo:.2f}"
    return (
        f"{many(standing.trials, 'trial')} on this market so far, {standing.effective_trials} of "
        f"them apart; PBO {pbo}. Verdict: {verdict.word}."
    )


def _origin(run: UmcRun) -> Origin:
    manifest = run.evaluation.manifest
    facts = {
        "Config hash": manifest.config_hash,
        "Commit": manifest.commit or "not known",
        "Seeds": ", ".join(map(str, manifest.seeds)),
        "Equity hash": run.results.equity_hash,
    }
    return Origin((manifest.command,), facts, manifest.model_dump(mode="json"))
