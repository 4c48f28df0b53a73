"""Every page without a browser: in Russian, under attack, with nothing to show, and how it asks."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from agent_gym.apps.api import ServiceSettings
from agent_gym.apps.api.service import opened
from agent_gym.apps.dashboard.charts import spoken
from agent_gym.apps.dashboard.pages import PAGES
from agent_gym.apps.dashboard.phrases import book, translated
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Chart, Markup, Visit, view_of
from agent_gym.apps.dashboard.words import Words
from scripts.seed_dashboard import seed
from tests.apps.dashboard_samples import ADDRESSES, PAYLOADS

# Code, links to things by their name, tags, commands, and whatever has a digit, a / or a _ in it.
NO_WORDS = (r"<(code|pre|a|option)\b.*?</\1>", r"<[^>]*>", r"`[^`]*`|&\w+;|\S*[/_\d]\S*")
# What agents and judges said is shown as they said it.
OWN_WORDS = (r"<(dd|dt|td|h3)\b.*?</\1>", r"<th scope=\"row\">.*?</th>")
LISTED = [page.path for page in PAGES if page.listed]
# What is a name, a unit or a sign in every language.
NAMES = set(
    "Agent Gym UTC KiB desk rules momentum breakout seeded reversion benchmark buy hold flat "
    "random cross lander synthetic USDT btc focus MiB quality read admin bull Weights Biases "
    "wandb true false null parquet numpy numba polars python torch stable baselines transformers "
    "fastapi chromium postgres starcraft lander-ppo slice sealed NUMBA AGENT GYM HOME Sharpe VaR "
    "ray ppo nothing mean pip install judge Page Down Home End".lower().split()
)


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    names = seed(folder, runs=40, steps=300, trajectories=3)
    with opened(ServiceSettings(folder=folder)) as service:
        yield service, names


def shown(service, address, language="en", role="admin"):
    """A page as somebody sees it."""
    parts = urlsplit(address)
    (page,) = (each for each in PAGES if each.path == parts.path)
    query = Query.of(f"/dashboard{parts.path}", parse_qsl(parts.query))
    return view_of(page, Visit(service, query, Words(language), role, "id", "name"))


def html(view):
    return "".join(block.html for block in view.blocks if isinstance(block, Markup))


def addresses(names):
    return [
        *LISTED,
        f"/run?id={names['run']}",
        f"/replay?id={names['trajectory']}&step=7",
        f"/models?model={names['challenger']}",
        "/agents?name=rules-momentum",
        "/run?id=nothing",
        "/agents?name=nothing",
        "/compare",
    ]


def test_an_empty_page_says_what_to_do(tmp_path):
    """It stands first: one process serves one folder at a time."""
    with opened(ServiceSettings(folder=tmp_path)) as service:
        for path in (each for each in LISTED if each != "/settings"):
            for language in ("en", "ru"):
                view = shown(service, path, language)
                assert view.found
                assert re.search(r"<code>agent-gym [a-z]+", html(view)), path


def test_russian_pages_are_russian(full):
    service, names = full
    left = {}
    for address in addresses(names):
        view = shown(service, address, "ru")
        said = html(view).replace("<wbr>", "") + " ".join(
            each.label for each in view.blocks if isinstance(each, Chart)
        )
        for part in (*(OWN_WORDS if address.startswith("/replay") else ()), *NO_WORDS):
            said = re.sub(part, " ", said, flags=re.DOTALL)
        words = re.findall(r"[A-Za-z]{3,}", said)
        left[address] = {each for each in words if each.lower() not in NAMES}
    assert {address: words for address, words in left.items() if words} == {}


def test_a_chart_of_the_rooms_below_speaks_russian(full):
    service, _ = full
    view = shown(service, "/agents?name=rules-momentum", "ru")
    option = next(block.option for block in view.blocks if block.key == "linked")
    names = {each["name"] for each in option["series"]}
    assert {"куплено", "продано", "просадка, %"} <= names
    assert set(option["legend"]["data"]) <= names
    assert spoken({"series": [{"name": "sold", "data": [1]}]}, str.upper) == {
        "series": [{"name": "SOLD", "data": [1]}]
    }


def test_phrases_are_found_whole_and_never_run_away():
    assert translated("ru", "2 regressions") == "регрессий: 2"
    assert translated("ru", "0 episodes; the most allowed is 0 episodes") == (
        "эпизодов: 0; допустимо не больше: эпизодов: 0"
    )
    assert translated("ru", "{n} regressions") == "регрессий: {n}"
    assert translated("ru", "nobody has said this") == "nobody has said this"
    assert translated("ru", "{0.__class__} regressions") == "регрессий: {0.__class__}"
    long = "a of " * 4_000
    assert translated("ru", long) == long
    assert book("en") == ()


@pytest.mark.parametrize("path", ADDRESSES)
def test_no_attack_in_an_address_becomes_markup(full, path):
    service, _ = full
    for payload in PAYLOADS:
        query = Query.of(f"/dashboard{path}", dict.fromkeys(ADDRESSES[path], payload).items())
        (page,) = (each for each in PAGES if each.path == path)
        for language in ("en", "ru"):
            said = html(view_of(page, Visit(service, query, Words(language), "read", "id", "me")))
            assert not re.search(r"<(script|img|svg/|textarea)", said)
            assert not re.search(r"<[^>]*\son\w+=", re.sub(r'"[^"]*"', '""', said))
            assert 'href="javascript' not in said


def test_a_page_asks_a_bounded_number_of_questions(full):
    service, names = full
    asked = []

    def count(*_):
        asked.append(1)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        for address in addresses(names):
            asked.clear()
            shown(service, address)
            assert len(asked) <= 40, address
    finally:
        event.remove(Engine, "before_cursor_execute", count)
