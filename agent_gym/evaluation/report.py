"""One page about a run: picture, figures beside the baselines, source, how to make it again.

The file needs nothing else: the picture is inside, styles are inside, no script, no network.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from agent_gym.core.files import to_json, write_text
from agent_gym.evaluation.baselines import Comparison
from agent_gym.evaluation.charts import png
from agent_gym.evaluation.figures import FIGURES
from agent_gym.evaluation.funding import funding_words
from agent_gym.evaluation.results import BacktestResults
from agent_gym.markets.quality import format_time

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
PICTURE = "Price with trades, equity beside baselines, drawdown and position over time"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff;
       max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; max-width: 60rem; } .faint { color: #666; }
img { width: 100%; height: auto; border: 1px solid #e4e4e4; border-radius: 6px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #e4e4e4; text-align: right;
         white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #8a8a8a; } th.own, td.own { background: #eef5fa; }
td.text { text-align: left; white-space: normal; overflow-wrap: anywhere; }
pre { background: #f6f6f6; padding: .8rem; border-radius: 6px; overflow-x: auto;
      white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def write_report(path: Path, comparison: Comparison, *, title: str | None = None) -> None:
    """Write the page; equal runs give equal bytes."""
    write_text(path, page(comparison, title=title))


def page(comparison: Comparison, *, title: str | None = None, picture: bytes | None = None) -> str:
    """Return the page as HTML.

    Args:
        comparison: The run and its baselines.
        title: The headline; by default the agent.
        picture: The PNG, if it was drawn before.
    """
    run = comparison.main
    headline = title or f"Backtest of {comparison.subject}"
    image = b64encode(picture if picture is not None else png(comparison)).decode()
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(headline)}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
            f"<h1>{escape(headline)}</h1>",
            f'<p class="faint">{escape(_summary(run))}</p>',
            f'<p><img alt="{escape(PICTURE)}"',
            f'src="data:image/png;base64,{image}"></p>',
            "<h2>Figures, after costs</h2>",
            "<p>Every run has the same bars, ledger, costs and timing. A dash is a figure that is",
            "not defined. This is one market and one seed: the figures carry no error bars.</p>",
            _figures(comparison),
            *_caps(run),
            "<h2>Where the data come from</h2>",
            _pairs(_provenance(run)),
            "<h2>How to make it again</h2>",
            f"<pre>{escape(run.manifest.command)}</pre>",
            f"<p>The equity curve has the hash <code>{run.equity_hash}</code>.</p>",
            "<details><summary>Manifest</summary>",
            f"<pre>{escape(to_json(run.manifest.model_dump(mode='json')))}</pre></details>",
            "</body>\n</html>\n",
        )
    )


def _summary(run: BacktestResults) -> str:
    bars = run.bars
    span = f"{format_time(int(bars.ts[0]))} to {format_time(int(bars.ts[-1]))}"
    return (
        f"{bars.instrument.symbol} ({bars.instrument.kind}), {span}, {len(bars):,} bars, "
        f"opening cash {run.equity[0]:,.2f}, final equity {run.equity[-1]:,.2f}"
    )


def _figures(comparison: Comparison) -> str:
    own = [label == comparison.subject for label in comparison.runs]
    head = _row("th", ["", *comparison.runs], own)
    body = [
        _row(
            "td", [each.heading, *(each.text(run.metrics) for run in comparison.runs.values())], own
        )
        for each in FIGURES
    ]
    return (
        f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n'
        + "\n".join(body)
        + "\n</tbody>\n</table></div>"
    )


def _row(tag: str, cells: Iterable[str], own: list[bool]) -> str:
    first, *rest = (escape(cell) for cell in cells)
    marked = (
        f"<{tag}{' class=own' if mine else ''}>{cell}</{tag}>"
        for cell, mine in zip(rest, own, strict=True)
    )
    return f'<tr><th scope="row">{first}</th>{"".join(marked)}</tr>'


def _caps(run: BacktestResults) -> list[str]:
    if not run.caps:
        return []
    tripped = run.caps["breaker_tripped_ns"]
    rows = {"decisions": f"{run.caps['decisions']:,}"}
    rows |= {f"held back by {part}": f"{times:,}" for part, times in run.caps["bound"].items()}
    rows |= {f"forecasts from the {who}": f"{n:,}" for who, n in run.caps["forecasts"].items()}
    rows |= {} if tripped is None else {"drawdown breaker tripped": format_time(tripped)}
    return ["<h2>What risk parts did</h2>", _pairs(rows)]


def _provenance(run: BacktestResults) -> dict[str, str]:
    data = run.manifest.data
    return {
        "source": f"{data['source']} {data['origin']}" + (" (sandbox)" if data["sandbox"] else ""),
        "instrument": f"{run.bars.instrument.symbol}, {run.bars.instrument.exchange}",
        "bars": f"{data['rows']:,} of {data['period']}",
        "first bar opens": format_time(data["first_ns"]),
        "last bar opens": format_time(data["last_ns"]),
        "funding": funding_words(data["funding"], data["rows"]),
        "repairs": ", ".join(f"{k}: {v:,}" for k, v in data["repairs"].items()) or "none",
        "fingerprint": data["fingerprint"],
    }


def _pairs(rows: Mapping[str, str]) -> str:
    cells = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table>\n{cells}\n</table>"
