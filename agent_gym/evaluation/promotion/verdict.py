"""The verdict: every check in words with its numbers, and one sentence for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import Field, ValidationError, model_validator

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config

Figure: TypeAlias = float | int | str | bool | None
# A verdict that does not tell these was not made by the gate.
ALWAYS_ASKED = ("integrity", "superiority", "non_inferiority")


class Check(Config):
    """One question that was asked, what was found, and whether that will do."""

    name: str
    passed: bool
    words: str
    figures: dict[str, Figure] = Field(default_factory=dict)


class Verdict(Config):
    """Whether a candidate may replace the champion, and every reason for it."""

    champion: str
    challenger: str
    sealed_set: str
    look: int = Field(ge=1)
    alpha: float
    checks: tuple[Check, ...]

    @model_validator(mode="after")
    def _whole(self) -> Verdict:
        names = [check.name for check in self.checks]
        if missing := [name for name in ALWAYS_ASKED if name not in names]:
            raise ValueError(f"a verdict needs the check {missing[0]}")
        if len(set(names)) < len(names):
            raise ValueError("a check is told once")
        return self

    @property
    def promoted(self) -> bool:
        """Return whether every check has passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Return the checks that stand in the way."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def sentence(self) -> str:
        """Return the outcome in words: ``promoted: no, because ...``."""
        if self.promoted:
            return f"promoted: yes, {self.check('superiority').words}"
        return "promoted: no, because " + "; ".join(
            f"{check.name}: {check.words}" for check in self.failed
        )

    def check(self, name: str) -> Check:
        """Return one check by its name."""
        for found in self.checks:
            if found.name == name:
                return found
        raise DataError(
            "there is no such check",
            found=name,
            expected=", ".join(check.name for check in self.checks),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        said = {"promoted": self.promoted, "sentence": self.sentence}
        return self.model_dump(mode="json") | said

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        """Return the verdict that was written; one that contradicts itself is refused."""
        fields = dict(values)
        promoted, sentence = fields.pop("promoted", None), fields.pop("sentence", None)
        try:
            verdict = cls.model_validate(fields)
        except ValidationError as error:
            raise DataError("this is no verdict", found=str(error).splitlines()[0]) from error
        if (promoted, sentence) != (verdict.promoted, verdict.sentence):
            raise DataError(
                "a verdict contradicts its own checks",
                found=f"promoted {promoted}",
                expected=f"promoted {verdict.promoted}",
                remedy="It was changed after it was made: judge the candidate again",
            )
        return verdict
