"""Case 7: a config file of any kind that means more than it says is refused, quickly and whole."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agent_gym.apps.cli.audit import read_options
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.plain_file import read_plain
from agent_gym.evaluation.scenarios.recorded.log import read_log
from agent_gym.evaluation.scenarios.recorded.source import RecordedSource
from agent_gym.training.rl.config import read_mapping

pytestmark = pytest.mark.case(7)
ROOT = Path(__file__).parents[2]
NESTED = 10_000
LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}, *a{k - 1}, *a{k - 1}]\n" for k in range(1, 40)
)
BOMBS = {
    "aliases that double": LAUGHS,
    "a value that holds itself": "a: &a [*a]\n",
    "depth": "a: " + "[" * NESTED + "]" * NESTED,
    "size": "a: '" + "x" * 2_000_000 + "'",
    "a key twice": "a: 1\na: 2\n",
    "a tag": "a: !!python/object/apply:os.getcwd []\n",
    "no text": b"\xff\xfe\x00",
}
READERS = {
    "suite": read_plain,
    "training": read_mapping,
    "options": lambda path: read_options(path, "rules/flat"),
    "mapping": lambda path: read_log(RecordedSource(path=str(path.parent), mapping=str(path))),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_explodes_is_refused(tmp_path, reader, bomb):
    path, content = tmp_path / "bomb.yaml", BOMBS[bomb]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as refused:
        READERS[reader](path)
    assert str(path) in str(refused.value.where)


@pytest.mark.parametrize(
    "text", ["a: &a {x: 1}\nb: {<<: *a, y: 2}\n", "a: &a [1, 2]\nb: [*a, *a]\n"]
)
def test_a_training_may_still_say_a_thing_once(tmp_path, text):
    path = tmp_path / "fine.yaml"
    path.write_text(text)
    assert set(read_mapping(path)) == {"a", "b"}


def test_refusing_costs_neither_time_nor_memory(tmp_path):
    """All of them in a process that may have a gigabyte of addresses and ten seconds of work."""
    for number, content in enumerate(BOMBS.values()):
        (tmp_path / f"{number}.yaml").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from agent_gym.core.errors import ConfigError
        from agent_gym.evaluation.plain_file import read_plain, read_yaml
        refused = 0
        for path in sorted(Path(sys.argv[1]).iterdir()):
            for read in (read_plain, lambda path: read_yaml(path, "no")):
                try:
                    read(path)
                except ConfigError:
                    refused += 1
        print(refused)
        """
    )

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))

    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
        timeout=120,
    )
    assert done.stdout.strip() == str(2 * len(BOMBS)), done.stderr[-2000:]
