"""What a player sees in words: the same state, for whoever reads instead of reckoning."""

from __future__ import annotations

from agent_gym.envs.benchmark.floor import Floor
from agent_gym.markets.snapshot.wording import sign, write


def describe(floor: Floor, equity: float) -> str:
    """Return the state at this tick, with the posts of this tick."""
    snapshot = floor.snapshot
    lines = [
        f"Tick {floor.tick} of {snapshot.ticks}. Equity {equity:.2f}, cash {floor.cash():.2f}, "
        f"started with {floor.config.cash:.2f}. Budget of a market {floor.budget:.2f}.",
        "Markets:",
        *(_market(floor, m) for m in range(floor.n_markets)),
    ]
    posts = snapshot.posts_at[floor.tick]
    lines.append("News of this tick:" if posts else "News of this tick: none.")
    for post in posts:
        author = snapshot.author_of[post.author]
        lines.append(f"- [{post.market}] {sign(author)}: {write(snapshot, post)}")
    return "\n".join(lines)


def _market(floor: Floor, m: int) -> str:
    snapshot, name, price = floor.snapshot, floor.snapshot.market_ids[m], floor.prices[m]
    held = floor.held_share(m)
    holds = f"you hold {held:+.2f} of the budget" if held else "you hold nothing"
    if m < floor.n_questions:
        spec = snapshot.predictions[m]
        answer = floor.questions[m].outcome
        if answer is not None:
            return f"- {name}: {spec.question} Resolved: {answer.upper()}."
        ends = spec.resolve_tick
        return f"- {name}: {spec.question} YES costs {price:.3f}, ends at tick {ends}; {holds}."
    contract = snapshot.perpetuals[m - floor.n_questions]
    change = price / contract.initial_price - 1.0
    return f"- {name}: {contract.ticker} perpetual at {price:.6g} ({change:+.1%}); {holds}."
