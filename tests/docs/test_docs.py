"""The words are true: scripts and examples run, links lead somewhere, names and commands exist."""

import ast
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml

from agent_gym.apps.cli.main import COMMANDS
from agent_gym.apps.cli.tree import load_whole
from tests.rollouts.postgres import binaries

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHOWN = [str(page.relative_to(ROOT)) for page in PAGES]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
DOTTED = re.compile(r"`(agent_gym(?:\.\w+)+)`")
LINE = re.compile(r"^(?:    |\$ )*(?:\.venv/bin/)?(agent-gym [a-z][^\n]*)$", re.MULTILINE)
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
TOLD = {  # what a tutorial is about must really have happened
    "03": ("1 regression", "exit code 1", "recorded and replayed are the same"),
    "04": ("It does not land", "report.html"),
    "05": ("the network is unchanged", "as trained: True"),
    "06": ("verdict: ", "<- least"),
    "07": ("verified", "a changed replay is refused"),
    "08": ("filled in the same bars: yes",),
    "09": ("all rows and steps the same: yes",),
}


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page):
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text_of(page)))


def python_of(page):
    return [body for kind, body in FENCE.findall(text_of(page)) if kind == "python"]


def anchors_of(path):
    """Return the anchors of a page as MkDocs and GitHub make them from plain headings."""
    plain = FENCE.sub("", path.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", plain, re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}


def broken_links(page):
    found, folder = [], (ROOT / page).parent
    for target in LINK.findall(prose_of(page)):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        place = (folder / path).resolve() if path else ROOT / page
        if not place.is_file() or (anchor and anchor not in anchors_of(place)):
            found.append(target)
    return found


def commands_of(page):
    """Yield the words of every ``agent-gym ...`` in code, continued lines joined."""
    text = text_of(page).replace("\\\n", " ")
    spans = re.findall(r"`(agent-gym [^`\n]+)`", text)
    lines = re.findall(
        r"^(?:    |\$ )*(?:\.venv/bin/)?(agent-gym [a-z][^\n]*)$", text, re.MULTILINE
    )
    for words in map(shlex.split, spans + lines):
        if words[1].islower() and not words[1].startswith("-"):
            yield words[1:]


def problem_of(words):
    """Return what is wrong with a command, None if it exists with all its options."""
    if words[0] not in COMMANDS:
        return "no such command"
    found = load_whole(words[0])
    rest = words[1:]
    while (known := getattr(found, "commands", {})) and rest and not rest[0].startswith("-"):
        if rest[0] not in known:
            return f"no such command: {rest[0]}"
        found, rest = known[rest[0]], rest[1:]
    options = {name for p in found.params for name in (*p.opts, *p.secondary_opts)} | {"--help"}
    wrong = [word for word in rest if word.startswith("--") and word not in options]
    return f"no such option: {wrong}" if wrong else None


def resolves(dotted):
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def run_script(path, folder):
    environment = os.environ | {"AGENT_GYM_HOME": str(folder / "home"), "AGENT_GYM_DATABASE": ""}
    return subprocess.run(
        [sys.executable, str(path)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run_and_write_into_a_folder_of_their_own(script, tmp_path):
    if "postgresql" in script.stem and binaries() is None:
        pytest.skip("PostgreSQL is not installed")
    done = run_script(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) >= 5
    for words in TOLD.get(script.stem[:2], ()):
        assert words in done.stdout
    own = {f"home/tutorials/{script.stem}"}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*")} <= own
    assert {path.name for path in tmp_path.iterdir()} <= {"home"}


def test_a_tutorial_prints_the_same_twice(tmp_path):
    first, second = (run_script(TUTORIALS[0], tmp_path) for _ in range(2))
    assert first.stdout == second.stdout != ""


def test_without_postgresql_its_tutorial_says_what_it_needs(tmp_path):
    script = next(path for path in TUTORIALS if "postgresql" in path.stem)
    lost = tmp_path / script.name
    lost.write_text(script.read_text().replace("initdb", "no_such_initdb"))
    done = run_script(lost, tmp_path)
    assert done.returncode == 1
    assert "apt-get install postgresql" in done.stderr
    assert "Traceback" not in done.stderr


def test_tutorials_are_short_numbered_and_on_their_page():
    numbers = [script.name[:2] for script in TUTORIALS]
    assert numbers == [f"{n:02}" for n in range(1, 11)]
    page = text_of("docs/tutorials/index.md")
    for script in TUTORIALS:
        source = script.read_text(encoding="utf-8")
        assert len(source.splitlines()) < 110
        assert f"python docs/tutorials/{script.name}" in ast.get_docstring(ast.parse(source))
        assert f'--8<-- "docs/tutorials/{script.name}"' in page


@pytest.mark.parametrize("page", [page for page in SHOWN if python_of(page)])
def test_python_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = {"__name__": "docs"}  # the examples of a page build on each other
    for number, block in enumerate(python_of(page), start=1):
        exec(compile(block, f"{page} example {number}", "exec"), shared)


@pytest.mark.parametrize("page", SHOWN)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


@pytest.mark.parametrize("page", SHOWN)
def test_commands_exist_with_their_options(page):
    problems = {" ".join(words): problem_of(words) for words in commands_of(page)}
    assert {command: what for command, what in problems.items() if what} == {}


def test_every_command_has_its_section():
    heads = set(re.findall(r"^## agent-gym (.+)$", text_of("docs/cli.md"), re.MULTILINE))
    real = set()
    for name in COMMANDS:
        found = load_whole(name)
        known = getattr(found, "commands", {})
        real |= {f"{name} {sub}" for sub in known}
        if not known or getattr(found, "invoke_without_command", False):
            real.add(name)
    assert heads == real


@pytest.mark.parametrize("page", SHOWN)
def test_names_of_the_package_exist(page):
    assert [dotted for dotted in DOTTED.findall(text_of(page)) if not resolves(dotted)] == []


def test_every_agent_and_market_is_described():
    for kind, page in (("agent", "docs/agents.md"), ("market", "docs/markets.md")):
        shipped = [point.name for point in entry_points(group=f"agent_gym.{kind}")]
        assert shipped
        assert [name for name in shipped if f"`{name}`" not in text_of(page)] == []


def test_the_site_shows_every_page():
    def pages(nav):
        for item in nav:
            inner = next(iter(item.values())) if isinstance(item, dict) else item
            yield from [inner] if isinstance(inner, str) else pages(inner)

    config = yaml.safe_load(text_of("mkdocs.yml"))
    listed = set(pages(config["nav"]))
    docs = ROOT / "docs"
    assert listed == {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    assert config["theme"]["font"] is False
    included = [name for page in SHOWN for name in SNIPPET.findall(text_of(page))]
    assert included
    assert all((ROOT / name).is_file() for name in included)


def test_the_site_builds_and_asks_nobody_else(tmp_path):
    pytest.importorskip("mkdocs", reason="the docs extra is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    loaded = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+href=\"?http")
    for path in pages:
        html = path.read_text(encoding="utf-8")
        assert loaded.findall(html) == []
        assert 'class="mermaid"' not in html


def test_planted_faults_are_found(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[gone](gone.md) [here](#a-page) [no](#nothing)\n\n"
        "`agent-gym data chek x` `agent-gym doctor --jsn` `agent-gym nothing` `agent_gym.core.gone`"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert broken_links("page.md") == ["gone.md", "#nothing"]
    assert [problem_of(words) for words in commands_of("page.md")] == [
        "no such command: chek",
        "no such option: ['--jsn']",
        "no such command",
    ]
    assert not resolves("agent_gym.core.gone")
    assert not resolves("agent_gym.gone")
    assert resolves("agent_gym.core.seeds.Seeds.child")
