"""Check: does every field of the config change something?"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice

from pydantic import Field

from agent_gym.core.registry import Config, register
from agent_gym.core.types import Agent, Inspectable, Learner
from agent_gym.evaluation.audit.alternatives import acts_on, is_switch, others
from agent_gym.evaluation.audit.changed_bars import lesson
from agent_gym.evaluation.audit.finding import Finding, error, fine, note, unchecked
from agent_gym.evaluation.audit.stream import Stream, bits, record, replay
from agent_gym.evaluation.audit.subject import Greedy, Subject, teach, weights_of
from agent_gym.rollouts.play import attempt


class OptionsConfig(Config):
    """How hard the check tries before it calls an option dead."""

    tries: int = Field(default=10, ge=1, description="other values of a field that are tried")
    partners: int = Field(default=3, ge=0, description="other values tried beside a switch")
    lesson_bars: int = Field(default=240, ge=48, description="bars that are traded and learned")


@register("check", "options", OptionsConfig)
class Options:
    """Sets each field to other values and looks for a difference in what is decided or learned."""

    looks_for = "fields of the config that change nothing"
    wants_agent = True

    def __init__(self, config: OptionsConfig) -> None:
        self._config = config

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Try near values first; most options show themselves at once."""
        config = subject.config
        if config is None or not type(config).model_fields:
            yield unchecked("It has no options.")
            return
        behaviour = _Behaviour(subject, self._config.lesson_bars)
        alive: list[str] = []
        for name, field in type(config).model_fields.items():
            aside = acts_on(field)
            if aside is not None:
                yield unchecked(
                    f"The option {name} says that it acts on {aside}, not on decisions."
                )
                continue
            tried, switch = self._try(behaviour, config, name)
            if tried == 0:
                yield unchecked(f"No other valid value was found for the option {name}.")
            elif switch is None:
                yield error(
                    f"The option {name} changes nothing: no decision and no weight is different "
                    "under any other value that was tried.",
                    "Use it, refuse the values that cannot act, or take it out",
                    value=str(getattr(config, name)),
                    values_tried=tried,
                )
            else:
                alive.append(name)
                if switch:
                    yield note(f"The option {name} acts only with {switch}.")
        if alive:
            yield fine(f"These options change something: {', '.join(alive)}.", options=len(alive))

    def _try(self, behaviour: _Behaviour, config: Config, name: str) -> tuple[int, str | None]:
        """Return how many values were tried, and what had to be switched first, "" for nothing.

        None instead of a switch means that nothing made a difference.
        """
        tried = 0
        for other in islice(others(config, name), self._config.tries):
            tried += 1
            if behaviour.of(other) != behaviour.of(config):
                return tried, ""
        for partner in type(config).model_fields if tried else ():
            if partner == name or not is_switch(config, partner):
                continue
            for base in islice(others(config, partner), self._config.partners):
                for other in islice(others(base, name), self._config.partners):
                    tried += 1
                    if behaviour.of(other) != behaviour.of(base):
                        return tried, f"{partner}={getattr(base, partner)}"
        return tried, None


class _Behaviour:
    """What an agent does and learns under a config, as a hash."""

    def __init__(self, subject: Subject, lesson_bars: int) -> None:
        self._subject = subject
        self._lesson = lesson(subject.bars, lesson_bars, subject.seed)
        self._streams = [subject.stream, subject.watch(self._lesson)]
        self._known: dict[str, str] = {}

    def of(self, config: Config) -> str:
        key = config.model_dump_json()
        if key not in self._known:
            self._known[key] = self._look(config)
        return self._known[key]

    def _look(self, config: Config) -> str:
        digest = blake2b(digest_size=16)

        def watch() -> None:
            agent = self._taught(config)
            for name, value in sorted(weights_of(agent).items()):
                digest.update(f"{name}{value.shape}".encode() + value.tobytes())
            for stream in self._streams:
                for made in replay(agent, stream):
                    digest.update(bits(made))

        status, failure = attempt(watch)
        if status == "interrupted":
            raise KeyboardInterrupt
        return f"{failure['error']}: {failure['what']}" if failure else digest.hexdigest()

    def _taught(self, config: Config) -> Agent:
        agent = self._subject.agent(config)
        past: Stream = self._streams[1]
        if isinstance(agent, Learner):
            teach(agent, past)
        elif isinstance(agent, Inspectable):
            record(self._subject.world(self._lesson), agent, self._subject.seed)
        if isinstance(agent, Greedy):
            agent.act_greedily()
        return agent
