"""One signal through the memory and the learning layer, by the names of old.

Run it from this folder: ``python example.py``. One signal is not enough to learn from, and the
answer says so: no model is made up.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from core.learning_layer import ResearchEngine, RetrainingLoop, TrainingModule
from core.memory.recent_context import RecentContext
from rich import print as show


def main() -> None:
    """Store, analyse, prepare, train, retrain."""
    context = RecentContext()
    context.store_signal(
        {
            "signal_id": "signal1",
            "strategy": "momentum",
            "params": {"amount": 0.1, "base": "BTC", "quote": "USDT"},
            "timestamp": 1234567890.0,
        }
    )
    context.store_rejection({"signal_id": "signal1", "reason": "Exposure limit exceeded"})

    report = ResearchEngine(context).analyze_behavior()
    show("signals:", report.n_signals)
    show("rejections:", {code: found["n"] for code, found in report.rejections.items()})

    training = TrainingModule(context)
    dataset = training.prepare_dataset()
    show("dataset:", dataset.status, dataset.counts, dict(dataset.excluded))

    result = training.train_model(dataset)
    show("training:", result.status)
    show("because:", result.reason)

    with tempfile.TemporaryDirectory() as folder:
        loop = RetrainingLoop(training, context, store=Path(folder))
        show("retraining:", loop.run_retraining(now=1234567890.0 + 86400.0).status)


if __name__ == "__main__":
    main()
