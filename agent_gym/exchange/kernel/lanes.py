"""Doors 2 and 3: many accounts, one step at a time; a batch of one is the single step.

A lane that ended is marked, and the next call opens a new episode for it instead of acting (the
Gymnasium ``NEXT_STEP`` rule). Episode windows come from a stateless hash of (seed, lane, episode),
so results do not depend on how many lanes there are, on shards or on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.exchange.kernel import layout, memory, parts
from agent_gym.exchange.kernel.layout import (
    CONTEXT,
    LANE,
    LANE_DONE,
    LANE_LIQUIDATED,
    Account,
)
from agent_gym.exchange.kernel.memory import pointer, prefetch
from agent_gym.exchange.kernel.parts import (
    NEAR,
    apply_bar,
    decide,
    idle,
    load_terms,
    log_ratio,
    near_log,
    open_account,
    set_want,
)

PARTS = (parts, layout, memory)
AHEAD = 8
INVALID = 1 << 32  # more than any count of ended episodes
BLOCK = 64
AGE_UNIT = 0.01  # the age of a trade is shown in hundreds of bars
TERMS_OFFSET = CONTEXT.fields["terms"][1]  # type: ignore[index]


@inlined
def mix(seed: int, lane: int, episode: int) -> int:
    """Hash three integers into 63 bits (splitmix64's finaliser over a Weyl step for each)."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(lane + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z += np.uint64(0xD1B54A32D192ED03) * np.uint64(episode + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(z >> np.uint64(1))


@inlined
def first_bar(seed: int, lane: int, episode: int, first: int, last: int, at_random: int) -> int:
    """Return the bar at whose close an episode begins."""
    if at_random == 0 or last <= first:
        return first
    return first + mix(seed, lane, episode) % (last - first + 1)


@inlined
def take(lane: Any) -> Account:
    """Read the account of a lane into registers."""
    return Account(
        lane.cash,
        lane.pos,
        lane.avg,
        lane.real,
        lane.fees,
        lane.slip,
        lane.fund,
        lane.ins,
        lane.eq,
        lane.want,
    )


@inlined
def put(lane: Any, a: Account, t: int) -> None:
    """Write an account back to its lane, as it stands after bar t."""
    lane.cash, lane.pos, lane.avg, lane.real = a.cash, a.pos, a.avg, a.real
    lane.fees, lane.slip, lane.fund, lane.ins = a.fees, a.slip, a.fund, a.ins
    lane.eq, lane.want, lane.t = a.eq, a.want, t


@inlined
def open_lane(ctx: Any, lane: Any, queue: Any, e: int) -> None:
    """Open a new episode in one lane."""
    last = ctx.n_bars - 1 - ctx.episode_bars
    number = e * ctx.lane_step + ctx.lane_offset
    t = first_bar(ctx.seed, number, lane.episode, ctx.first, last, ctx.random_start)
    lane.end = min(t + ctx.episode_bars, ctx.n_bars - 1)
    lane.entered, lane.flags, lane.trades = t, 0, 0
    lane.peak, lane.growth, lane.frac = 0.0, 0.0, 0.0
    lane.episode += 1
    for j in range(ctx.latency + 1):
        queue[e, j] = np.nan
    put(lane, open_account(ctx.cash), t)


@inlined
def trade_lanes(context: int, lo: int, hi: int, last_lane: int, margin: bool) -> int:
    """Move the accounts of lanes lo..hi through their next bar; ended ones open a new episode.

    The equity before the bar is left in ``rewards``, 0 for a new episode, and the equity after it
    in ``worth``. Returns how many episodes ended.
    """
    ctx = carray(pointer(context), (1,), CONTEXT)[0]
    terms = load_terms(context + TERMS_OFFSET)
    bars_at, features_at, stride = ctx.bars, ctx.features, ctx.stride
    row = carray(pointer(bars_at), (ctx.n_bars, 8), np.float64)
    lanes = carray(pointer(ctx.lanes), (last_lane,), LANE)
    actions = carray(pointer(ctx.actions), (hi,), np.float64)
    choices = carray(pointer(ctx.actions), (hi,), np.int64)
    levels = carray(pointer(ctx.levels), (max(ctx.n_levels, 1),), np.float64)
    rewards = carray(pointer(ctx.rewards), (hi,), np.float64)
    worth = carray(pointer(ctx.worth), (hi,), np.float64)
    terminated = carray(pointer(ctx.terminated), (hi,), np.uint8)
    truncated = carray(pointer(ctx.truncated), (hi,), np.uint8)
    n_levels, latency, units = ctx.n_levels, ctx.latency, ctx.sizing_units == 1
    depth, ruin, autoreset = latency + 1, ctx.ruin, ctx.autoreset == 1
    queue = carray(pointer(ctx.queue), (hi, depth), np.float64)
    events = 0
    for e in range(lo, hi):
        if e + AHEAD < last_lane:
            ahead = lanes[e + AHEAD].t + 1
            prefetch(bars_at + ahead * 64)
            prefetch(features_at + ahead * stride)
            prefetch(features_at + ahead * stride + 64)
        lane = lanes[e]
        if lane.flags & LANE_DONE:
            if autoreset:
                open_lane(ctx, lane, queue, e)
            rewards[e], terminated[e], truncated[e] = 0.0, 0, 0
            worth[e] = max(lane.eq, ruin)
            continue
        t = lane.t + 1
        frac = levels[choices[e]] if n_levels > 0 else actions[e]
        changed = frac != lane.frac
        equity, want = lane.eq, lane.want
        if latency == 0:
            if changed:
                want = decide(equity, frac, row[t - 1, 3], row[t - 1, 7], units, terms)
                lane.frac = frac
        else:
            queue[e, t % depth] = np.nan
            if changed:
                lane.frac = frac
                asked = decide(equity, frac, row[t - 1, 3], row[t - 1, 7], units, terms)
                queue[e, t % depth] = asked
            due = queue[e, (t + 1) % depth]
            if due == due:
                want = due
        rewards[e] = equity
        cash, held = lane.cash, lane.pos
        if idle(cash, held, want, row[t, 1], row[t, 2], row[t, 5], terms, margin):
            equity = cash + held * row[t, 3]
            lane.eq, lane.want, lane.t = equity, want, t
        else:
            a, fill, forced = apply_bar(
                set_want(take(lane), want),
                row[t, 0],
                row[t, 1],
                row[t, 2],
                row[t, 3],
                row[t, 4],
                row[t, 5],
                row[t, 6],
                row[t, 7],
                terms,
                margin,
            )
            put(lane, a, t)
            equity = a.eq
            if fill.qty != 0.0:
                lane.trades += 1
                if held * a.pos <= 0.0:
                    lane.entered = t
            if margin and forced.qty != 0.0:
                lane.trades += 1
                lane.flags |= LANE_LIQUIDATED
        worth[e] = max(equity, ruin)
        ended = equity <= ruin
        cut = t >= lane.end and not ended
        terminated[e], truncated[e] = ended, cut
        if ended or cut:
            lane.flags |= LANE_DONE
            events += 1
    return events


@inlined
def grow_lanes(context: int, lo: int, hi: int) -> int:
    """Write the log growth of lanes lo..hi into ``gains``, and 1 / worth in place of ``worth``.

    It is log_ratio without its branch, so that several lanes go through one instruction. Returns
    for how many lanes the growth is too large for it.
    """
    ctx = carray(pointer(context), (1,), CONTEXT)[0]
    rewards = carray(pointer(ctx.rewards), (hi,), np.float64)
    worth = carray(pointer(ctx.worth), (hi,), np.float64)
    gains = carray(pointer(ctx.gains), (hi,), np.float64)
    far = 0
    for e in range(lo, hi):
        before, after = rewards[e], worth[e]
        x = (after - before) / (after + before) if before > 0.0 else 0.0
        far += abs(x) > NEAR
        gains[e] = near_log(x)
        worth[e] = 1.0 / after
    return far


@inlined
def show_lanes(context: int, lo: int, hi: int) -> None:
    """Write rewards and observations of lanes lo..hi: the market's row, then the account's own."""
    far = grow_lanes(context, lo, hi)
    ctx = carray(pointer(context), (1,), CONTEXT)[0]
    wide = ctx.wide == 1
    words = ctx.n_features * (2 if wide else 1)
    row_bytes = (ctx.n_features + 6) * (8 if wide else 4)
    row = carray(pointer(ctx.bars), (ctx.n_bars, 8), np.float64)
    lanes = carray(pointer(ctx.lanes), (hi,), LANE)
    rewards = carray(pointer(ctx.rewards), (hi,), np.float64)
    scales = carray(pointer(ctx.worth), (hi,), np.float64)
    gains = carray(pointer(ctx.gains), (hi,), np.float64)
    obs_at, features_at, stride = ctx.obs, ctx.features, ctx.stride
    ruin, linear, per_cash = ctx.ruin, ctx.linear_reward == 1, 1.0 / ctx.cash
    for e in range(lo, hi):
        lane = lanes[e]
        reward, scale, t = gains[e], scales[e], lane.t
        before = rewards[e]
        if before > 0.0:
            if linear:
                reward = (lane.eq - before) * per_cash
            elif far:
                reward = log_ratio(max(lane.eq, ruin), before)
        growth = lane.growth + reward
        peak = max(lane.peak, growth)
        lane.growth, lane.peak, rewards[e] = growth, peak, reward
        source = carray(pointer(features_at + t * stride), (words,), np.int32)
        sink = carray(pointer(obs_at + e * row_bytes), (words,), np.int32)
        for j in range(words):
            sink[j] = source[j]
        close, pos = row[t, 3], lane.pos
        position = pos * close * scale
        pnl = pos * (close - lane.avg) * scale
        costs = (lane.fees + lane.slip + lane.fund) * per_cash
        age = float((t - lane.entered) * (pos != 0.0)) * AGE_UNIT
        drawdown = peak - growth
        own_at = obs_at + e * row_bytes + words * 4
        if wide:
            own = carray(pointer(own_at), (6,), np.float64)
            own[0], own[1], own[2] = position, pnl, growth
            own[3], own[4], own[5] = costs, age, drawdown
        else:
            slim = carray(pointer(own_at), (6,), np.float32)
            slim[0], slim[1], slim[2] = position, pnl, growth
            slim[3], slim[4], slim[5] = costs, age, drawdown


@inlined
def illegal_actions(context: int, lo: int, hi: int) -> int:
    """Return how many actions of lanes lo..hi are no legal choice, or not a finite number."""
    ctx = carray(pointer(context), (1,), CONTEXT)[0]
    actions = carray(pointer(ctx.actions), (hi,), np.float64)
    choices = carray(pointer(ctx.actions), (hi,), np.int64)
    n_levels, count = ctx.n_levels, 0
    if n_levels > 0:
        for e in range(lo, hi):
            count += choices[e] < 0 or choices[e] >= n_levels
    else:
        for e in range(lo, hi):
            count += not abs(actions[e]) < 1e300
    return count


@inlined
def step_lanes(context: int, lo: int, hi: int, margin: bool) -> int:
    """Step lanes lo..hi of a context; returns how many episodes ended, 0 mostly.

    If any action is illegal nothing moves, and the result is INVALID or more.

    Trading and showing take turns over blocks of lanes: two short loops keep more lanes in flight
    than one long one, and a block stays in the nearest cache between them.
    """
    events = illegal_actions(context, lo, hi) * INVALID
    if events:
        return events
    for begin in range(lo, hi, BLOCK):
        end = min(begin + BLOCK, hi)
        events += trade_lanes(context, begin, end, hi, margin)
        show_lanes(context, begin, end)
    return events


@door("int64(int64, int64, int64)", parts=PARTS)
def step_spot(context: int, lo: int, hi: int) -> int:
    """Step lanes lo..hi without margin; returns the events, see trade_lanes."""
    return step_lanes(context, lo, hi, False)


@door("int64(int64, int64, int64)", parts=PARTS)
def step_margin(context: int, lo: int, hi: int) -> int:
    """Step lanes lo..hi with funding, margin and liquidation."""
    return step_lanes(context, lo, hi, True)


@door("void(int64, int64, int64)", parts=PARTS)
def restart(context: int, lo: int, hi: int) -> None:
    """Open a new episode in lanes lo..hi and show its first observation."""
    ctx = carray(pointer(context), (1,), CONTEXT)[0]
    lanes = carray(pointer(ctx.lanes), (hi,), LANE)
    queue = carray(pointer(ctx.queue), (hi, ctx.latency + 1), np.float64)
    rewards = carray(pointer(ctx.rewards), (hi,), np.float64)
    terminated = carray(pointer(ctx.terminated), (hi,), np.uint8)
    truncated = carray(pointer(ctx.truncated), (hi,), np.uint8)
    worth = carray(pointer(ctx.worth), (hi,), np.float64)
    for e in range(lo, hi):
        open_lane(ctx, lanes[e], queue, e)
        rewards[e], terminated[e], truncated[e] = 0.0, 0, 0
        worth[e] = ctx.cash
    show_lanes(context, lo, hi)
