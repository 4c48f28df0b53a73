from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Coroutine
from typing import Any


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a test's coroutine and insist that it leaves no task behind."""

    async def guarded() -> Any:
        result = await asyncio.wait_for(coroutine, 20.0)
        for _ in range(20):
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if not left:
                break
            await asyncio.sleep(0.01)
        assert not left, left
        return result

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = asyncio.run(guarded())
        gc.collect()
    return result


async def take(stream: Any, count: int) -> list[Any]:
    async with stream:
        return [await anext(stream) for _ in range(count)]
