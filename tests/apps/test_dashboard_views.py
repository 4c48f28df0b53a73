"""Every page without a browser: in Russian, under attack, with nothing to show, and how it asks."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from agent_gym.apps.api import ServiceSettings
from agent_gym.apps.api.service import opened
from agent_gym.apps.dashboard.charts import spoken
from agent_gym.apps.dashboard.figures.home import history_of
from agent_gym.apps.dashboard.figures.models import deploy, moves_of, rollback
from agent_gym.apps.dashboard.pages import PAGES
from agent_gym.apps.dashboard.pages.model_tools import why_not
from agent_gym.apps.dashboard.phrases import book, translated
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Chart, Markup, Visit, view_of
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.errors import ConfigError
from agent_gym.pipeline.nightly.history import RunHistory
from agent_gym.pipeline.registry.refusals import RefusedDeployment
from scripts.seed_dashboard import seed
from tests.apps.dashboard_samples import ADDRESSES, PAYLOADS

# Code, links to things by their name, formulas, tags, commands, and whatever has a digit, a / or
# a _ in it.
NO_WORDS = (
    r"<(code|pre|a|option)\b.*?</\1>",
    r"<p [^>]*lang=\"en\">.*?</p>",
    r"<[^>]*>",
    r"`[^`]*`|&\w+;|\S*[/_\d]\S*",
)
# What agents and judges said is shown as they said it.
OWN_WORDS = (r"<(dd|dt|td|h3)\b.*?</\1>", r"<th scope=\"row\">.*?</th>")
LISTED = [page.path for page in PAGES if page.listed]
BUYS, HOLDS, SELLS = "trend is up, so buy", "no edge, hold", "momentum faded, so sell"
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


def test_an_empty_page_says_what_fills_the_folder_that_is_served(tmp_path, monkeypatch):
    """It stands first: one process serves one folder at a time."""
    served = tmp_path / "our results"
    with opened(ServiceSettings(folder=served)) as service:
        for home, said in ((served, ""), (tmp_path / "x", f"AGENT_GYM_HOME=&#x27;{served}&#x27; ")):
            monkeypatch.setenv("AGENT_GYM_HOME", str(home))
            for path in (each for each in LISTED if each != "/settings"):
                for language in ("en", "ru"):
                    view = shown(service, path, language)
                    assert view.found
                    commands = re.findall(r"<code>([^<]*agent-gym [^<]*)</code>", html(view))
                    assert commands, path
                    assert all(each.startswith(f"{said}agent-gym ") for each in commands), path
            (row,) = re.findall(r"<tr>(?:(?!<tr>).)*home.*?</tr>", doctor_of(service))
            assert str(served) in row
            assert str(home) in row
            assert ("is served" in row) == bool(said)


def doctor_of(service):
    """What the doctor says on the page of settings."""
    view = shown(service, "/settings?doctor=1")
    return next(block.html for block in view.blocks if block.key == "findings")


def test_seeded_things_are_plausible(full):
    service, names = full
    said = html(shown(service, "/agents?name=rules-momentum"))
    assert "--agent rules/momentum --market synthetic/btc-1h --bars 4000 --seed 3" in said
    assert ">synthetic/btc-1h, 4,000 x 1h<" in said
    nights = history_of(service).page(limit=40)
    rates = [rate for night in nights for key, rate in night.values.items() if "fill" in key]
    assert 0.0 < max(rates) <= 1.0
    steps = service.stages.store.steps(names["trajectory"])
    told = zip(steps.action[:, 0].tolist(), steps.rationale, strict=True)
    assert set(told) == {(1.0, BUYS), (0.0, HOLDS), (-1.0, SELLS)}


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


def test_a_run_says_on_which_seeds_its_figures_stand(full, monkeypatch):
    service, names = full
    said = html(shown(service, f"/run?id={names['run']}"))
    assert "What the gate found: means over the fixed seeds" in said
    assert "16 fixed" in said
    kept = RunHistory.run_diff(history_of(service), names["run"])
    first, second = kept["regressions"]
    fresh = {"stage": "confirm", "n": 256, "delta_rel": None, "delta_abs": 0.02815, "p_holm": None}
    first |= fresh | {"p": 0.03, "ci95": [0.027, 0.0293]}
    monkeypatch.setattr(RunHistory, "run_diff", lambda *_: kept)
    said = html(shown(service, f"/run?id={names['run']}"))
    for cell in ("256 fresh seeds where", "+0.02815", "256 fresh", "[0.027, 0.0293]", "0.03"):
        assert cell in said
    second |= fresh | {"n": 128}
    said = html(shown(service, f"/run?id={names['run']}", "ru"))
    assert "средние по новым сидам (128-256)" in said


def test_the_first_baseline_is_marked(full):
    service, _ = full
    for language, said in (("en", "first baseline"), ("ru", "первый эталон")):
        view = shown(service, "/scenarios", language)
        assert html(view).count(said) == 1
        (chart,) = (block for block in view.blocks if isinstance(block, Chart))
        marks = [each["name"] for each in chart.option["series"][0]["markLine"]["data"]]
        assert marks.count(said) == 1


def test_a_stopped_night_is_named_with_the_command_that_goes_on(full, monkeypatch):
    service, names = full
    assert "was stopped" not in html(shown(service, "/"))
    honest = RunHistory.page
    monkeypatch.setattr(
        RunHistory,
        "page",
        lambda *given, **more: tuple(
            replace(each, status="partial") for each in honest(*given, **more)
        ),
    )
    command = "agent-gym nightly --scenarios suite.yaml"
    report = history_of(service).report() | {"run_id": names["run"], "command": command}
    monkeypatch.setattr(RunHistory, "report", lambda _: report)
    for language, said in (("en", "goes on where it stopped"), ("ru", "того же места")):
        (found,) = re.findall(r"<li>(?:(?!<li>).)*?nightly.*?</li>", attention(service, language))
        assert said in found
        assert re.search(rf"<code>AGENT_GYM_HOME=\S+ {command}</code>", found)
        assert f"id={names['run']}" in found
    report["run_id"] = "another"  # the report of another run says nothing of this one
    assert " agent-gym nightly</code>" in attention(service)


def test_a_list_that_is_cut_says_how_much_is_left(full, monkeypatch):
    service, names = full
    assert " more</a>" not in attention(service)
    diff = history_of(service).diff()
    worst = diff["regressions"][0]
    diff["regressions"] = [worst | {"id": f"flash_crash/m{n}"} for n in range(11)]
    monkeypatch.setattr(RunHistory, "diff", lambda _: diff)
    said = attention(service)
    assert said.count("flash_crash") == 8  # the links; their words may break at the joint
    assert re.search(rf'<a href="[^"]*id={names["run"]}"[^>]*>and 3 more</a>', said)


def attention(service, language="en"):
    """What home says needs attention."""
    return next(
        block.html for block in shown(service, "/", language).blocks if block.key == "attention"
    )


def test_only_what_can_succeed_is_offered_and_the_rest_explained(full):
    service, names = full
    good, bad = moves_of(service, names["challenger"]), moves_of(service, "v1.0.2")
    assert (good.stage, good.deploys, good.refused) == ("shadow", True, ())
    assert (bad.stage, bad.deploys) == ("shadow", False)
    what, found, _, remedy = bad.refused
    assert (what, remedy) == ("the gate has not let this model through", "Train another one")
    assert found.startswith("promoted: no")
    champion = moves_of(service, names["champion"])
    assert (champion.stage, champion.deploys, champion.refused) == (None, False, ())
    assert not moves_of(service, "").deploys
    visit = Visit(service, Query.of("/dashboard/models", []), Words("en"), "admin", "id", "name")
    with pytest.raises(RefusedDeployment, match="has not let this model through"):
        deploy(visit, bad)  # whoever has no button, and asks all the same
    assert service.stages.deployments.state().rollout is None


def test_why_not_is_said_in_both_languages():
    seen = ("too little was seen of it in shadow", "0 paired episodes", "at least 20", "")
    assert why_not(Words("en"), seen) == (
        "too little was seen of it in shadow. 0 paired episodes, expected at least 20"
    )
    said = why_not(Words("ru"), seen)
    assert said == "на этапе shadow её видели слишком мало. парных эпизодов 0, нужно: не меньше 20"
    gate = ("the gate has not let this model through", "", "", "Train another one")
    assert why_not(Words("ru"), gate) == "проверка не пропустила эту модель. Обучите другую"


def test_what_is_confirmed_is_what_was_shown(full):
    """It stands last: it changes who serves."""
    service, names = full
    visit = Visit(service, Query.of("/dashboard/models", []), Words("en"), "admin", "id", "name")
    assert not moves_of(service, "").back
    assert not moves_of(service, names["champion"]).back
    assert not moves_of(service, "v1.0.2").back
    first, second = (moves_of(service, names["challenger"]) for _ in range(2))
    assert (first.version, first.stage, first.back) == ("v1.0.1", "shadow", False)
    deploy(visit, first)
    with pytest.raises(RefusedDeployment, match="changed since this was shown"):
        deploy(visit, second)  # another tab: neither done twice nor taken for the next stage
    assert service.stages.deployments.state().rollout.stage == "shadow"
    assert moves_of(service, names["challenger"]).stage == "canary"
    assert moves_of(service, names["challenger"]).refused[0].startswith("too little was seen")
    assert moves_of(service, "v1.0.2").refused[0] == "another rollout is under way"
    shown_now = moves_of(service, "")
    told = (shown_now.version, shown_now.under_way, shown_now.champion, shown_now.back)
    assert told == ("v1.0.1", "shadow", "v1.0.0", True)
    with pytest.raises(ConfigError, match="has a reason"):
        rollback(visit, shown_now, " ")
    rollback(visit, shown_now, "drill")
    with pytest.raises(RefusedDeployment, match="changed since this was shown"):
        rollback(visit, shown_now, "drill")
    assert not moves_of(service, "").back
    assert not moves_of(service, names["challenger"]).back  # it never served
    assert not moves_of(service, names["challenger"]).deploys
