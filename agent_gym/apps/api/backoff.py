"""Who guesses must wait: after some wrong secrets for one token it is not looked at for a while."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_gym.core.clock import Clock, SystemClock

FREE_TRIES = 10
LONGEST_WAIT_S = 60.0
MOST_REMEMBERED = 10_000
Guess = tuple[str, str]


@dataclass(slots=True)
class Backoff:
    """Counts wrong secrets in a row, by where they come from and whose token they are for.

    The first ten cost nothing; then the wait doubles from a second to a minute. Whoever calls from
    elsewhere, or has another token, does not wait.
    """

    clock: Clock = field(default_factory=SystemClock)
    _wrong: dict[Guess, tuple[int, float]] = field(default_factory=dict)

    def waits(self, guess: Guess) -> bool:
        """Return whether a guess comes too early to be looked at."""
        return self.clock.monotonic_s() < self._wrong.get(guess, (0, 0.0))[1]

    def note(self, guess: Guess, *, right: bool) -> None:
        """Remember how a guess came out; a right one forgets the wrong ones."""
        tries = self._wrong.pop(guess, (0, 0.0))[0] + 1
        if right:
            return
        beyond = tries - FREE_TRIES
        wait_s = min(2.0 ** min(beyond, 10), LONGEST_WAIT_S) if beyond >= 0 else 0.0
        self._wrong[guess] = (tries, self.clock.monotonic_s() + wait_s)
        while len(self._wrong) > MOST_REMEMBERED:
            del self._wrong[next(iter(self._wrong))]
