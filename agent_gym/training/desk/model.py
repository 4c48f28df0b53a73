"""The trained acceptor: a forest, its calibration and a threshold, stored without any pickle."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from agent_gym.agents.desk.acceptor import Score
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.tensor_file import check_archive
from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path, to_json, write_json
from agent_gym.core.types import FloatArray
from agent_gym.training.desk.calibration import Calibration
from agent_gym.training.desk.dataset import FLAG_MARK
from agent_gym.training.desk.forest import Forest

SCHEMA = "agent_gym.desk_model/1"
ARRAYS_FILE, MANIFEST_FILE = "model.npz", "manifest.json"
LARGEST_BYTES = 1 << 28
_REMEDY = "Roll back to another model, or train again"


@dataclass(frozen=True, slots=True, eq=False)
class DeskModel:
    """Scores features of a signal; it implements the desk's ``Acceptor``.

    Attributes:
        feature_names: Columns in the order of training.
        forest: The trees.
        calibration: From log odds to probability.
        threshold: A signal below is vetoed.
        as_of: Nothing known later was used, epoch seconds.
        reference: Some rows of the training table, against which drift is measured.
        conformal: Least probability by which "loss" and "win" stay in the conformal set.
        on_hold: Set after drift; then no signal is judged.
        version: A name made of the content, so equal models have equal names.
    """

    feature_names: tuple[str, ...]
    forest: Forest
    calibration: Calibration
    threshold: float
    as_of: float
    reference: FloatArray
    conformal: tuple[float, float] | None = None
    on_hold: bool = False
    version: str = field(init=False)

    def __post_init__(self) -> None:
        digest = blake2b(digest_size=6)
        digest.update(to_json(self._facts()).encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        object.__setattr__(self, "version", f"desk-{digest.hexdigest()}")

    def row(self, features: Mapping[str, float]) -> FloatArray:
        """Return features as a row of the table; an absent flag is 0, another absence is NaN."""
        values = [
            features.get(name, 0.0 if FLAG_MARK in name else math.nan)
            for name in self.feature_names
        ]
        return np.array([values], dtype=np.float64)

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """Return the probability of a win for each row of a table in the order of training."""
        return self.calibration.apply(self.forest.raw(rows))

    def aligned(self, rows: FloatArray, names: tuple[str, ...]) -> FloatArray:
        """Return a table with other columns in the order of this model."""
        place = {name: column for column, name in enumerate(names)}
        out = np.full((len(rows), len(self.feature_names)), np.nan)
        for column, name in enumerate(self.feature_names):
            if name in place:
                out[:, column] = rows[:, place[name]]
            elif FLAG_MARK in name:
                out[:, column] = 0.0
        return out

    def score(self, features: Mapping[str, float]) -> Score:
        """Return the probability of a win and whether the model will judge at all."""
        p = float(self.probabilities(self.row(features))[0])
        return Score(p, self.threshold, self.version, self._hold(p))

    def _hold(self, p: float) -> RejectCode | None:
        if self.on_hold:
            return RejectCode.MODEL_DRIFT_HOLD
        if self.conformal is not None:
            loss_least, win_least = self.conformal
            if (1.0 - p >= loss_least) == (p >= win_least):
                return RejectCode.MODEL_UNCERTAIN
        return None

    def held(self, on_hold: bool) -> DeskModel:
        """Return the same model, on hold or not."""
        return replace(self, on_hold=on_hold)

    def _facts(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "feature_names": list(self.feature_names),
            "base": self.forest.base,
            "calibration": self.calibration.method,
            "threshold": self.threshold,
            "as_of": self.as_of,
            "conformal": None if self.conformal is None else list(self.conformal),
        }

    def _arrays(self) -> dict[str, Any]:
        points = {"calibration_x": self.calibration.x, "calibration_y": self.calibration.y}
        return self.forest.arrays() | points | {"reference": self.reference}

    def save(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        """Write the arrays, then the manifest that seals them; a half-written folder has none."""
        with atomic_path(folder / ARRAYS_FILE) as path, path.open("wb") as file:
            np.savez(file, **self._arrays())
        sealed = {
            "arrays_hash": _hash_of(folder / ARRAYS_FILE),
            "version": self.version,
            "model": self._facts(),
        }
        write_json(folder / MANIFEST_FILE, {**manifest, **sealed})


def load_model(folder: Path) -> DeskModel:
    """Read a model back; anything that is not as it was written is a StoreError."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        facts = manifest["model"]
        if facts["schema"] != SCHEMA:
            raise StoreError(
                "this model is of another schema",
                where=str(folder),
                found=facts["schema"],
                expected=SCHEMA,
            )
        found = _hash_of(folder / ARRAYS_FILE)
        if found != manifest["arrays_hash"]:
            raise StoreError(
                "a stored model was changed", where=str(folder / ARRAYS_FILE), remedy=_REMEDY
            )
        check_archive(folder / ARRAYS_FILE)
        with np.load(folder / ARRAYS_FILE, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        model = _built(facts, arrays)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise StoreError(
            "a stored model cannot be read", where=str(folder), found=error, remedy=_REMEDY
        ) from error
    if model.version != manifest.get("version"):
        raise StoreError("a stored model was changed", where=str(folder), remedy=_REMEDY)
    return model


def _built(facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> DeskModel:
    names = tuple(facts["feature_names"])
    conformal = facts["conformal"]
    return DeskModel(
        feature_names=names,
        forest=Forest.read(arrays, float(facts["base"]), len(names)),
        calibration=Calibration(
            facts["calibration"], arrays["calibration_x"], arrays["calibration_y"]
        ),
        threshold=float(facts["threshold"]),
        as_of=float(facts["as_of"]),
        reference=arrays["reference"],
        conformal=None if conformal is None else (float(conformal[0]), float(conformal[1])),
    )


def _hash_of(path: Path) -> str:
    if path.stat().st_size > LARGEST_BYTES:
        raise StoreError("a stored model is too large", where=str(path), expected=LARGEST_BYTES)
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()
