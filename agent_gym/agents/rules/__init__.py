"""Rules: agents whose target follows from past prices by a formula.

Each rule decides a target position as a fraction of equity, between -1 and 1, and is out (0) until
it has seen enough bars. It reads the features it names in ``needs`` (``close``; ``rules/breakout``
also ``high`` and ``low``) and nothing else. A rule is one compiled step function with three
doors that agree bit for bit: ``act`` for one bar, ``targets`` for a series, ``lanes`` for many
accounts at once.

A new rule is one module: slot numbers, a Config, the inlined step, two doors and a factory; take
``momentum`` as the pattern. Names: rules/flat, rules/buy-hold and rules/random (``baselines``),
rules/sma-cross, rules/momentum, rules/mean-reversion, rules/breakout, rules/rsi,
rules/vol-target. Modules load when a name is first asked for, so this door imports none of them.
"""

from agent_gym.agents.rules.rule import Formula, Lanes, Rule, RuleConfig

__all__ = ["Formula", "Lanes", "Rule", "RuleConfig"]
