"""The words of the pages, the small parts they are made of, and what people without a mouse get."""

import json
import re
from pathlib import Path
from string import Formatter
from urllib.parse import urlsplit

import pytest

from agent_gym.apps.dashboard.charts import COLOURS, dressed, harmless, local, theme
from agent_gym.apps.dashboard.markup import Safe, breakable, el, link, text
from agent_gym.apps.dashboard.pages import PAGES
from agent_gym.apps.dashboard.parts import ago, pager
from agent_gym.apps.dashboard.parts import table as parts_table
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.words import LANGUAGES, Words, table
from agent_gym.pipeline.nightly.history import RunHistory
from agent_gym.pipeline.nightly.workspace import Workspace
from tests.reporting.browsing import needs_browser

ROOM = Path(__file__).resolve().parents[2] / "agent_gym" / "apps" / "dashboard"
ASKED = re.compile(r"""words\(\s*"([a-z_.]+)\"""")
MADE = re.compile(r"""words(?:\.known)?\(\s*f"([a-z_]+)\.""")


def holes(said):
    return sorted(name for _, name, _, _ in Formatter().parse(said) if name)


def test_each_language_says_the_same_things():
    english = table("en")
    for language in LANGUAGES:
        other = table(language)
        assert list(other) == list(english)
        assert {key: holes(said) for key, said in other.items()} == {
            key: holes(said) for key, said in english.items()
        }
        assert all(said.strip() for said in other.values())
    russian = table("ru")
    same = [key for key in english if english[key] == russian[key]]
    assert set(same) <= {
        "models.shadow",
        "models.canary",
        "models.full",
        "settings.wandb",
        "concern.metric",
        "concern.scenario",
        "metric.p",
    }


def test_every_word_that_pages_ask_for_is_there_and_none_is_idle():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in ROOM.rglob("*.py"))
    known, asked = set(table("en")), set(ASKED.findall(sources))
    assert asked <= known
    starts = set(MADE.findall(sources)) | {
        "concern",
        "verdict",
        "light",
        "light_long",
        "word",
        "detail",
    }
    quoted = {key for key in known if f'"{key}"' in sources}
    idle = {key for key in known - quoted if key.partition(".")[0] not in starts}
    assert not idle


def test_markup_escapes_whatever_it_is_given():
    assert el("p", "<b>&", title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;&amp;</p>'
    assert text(Safe("<br>"), "<br>", None, 3) == "<br>&lt;br&gt;3"
    assert el("input", checked=True, disabled=False, value=None) == "<input checked>"
    for bad in ("javascript:alert(1)", "//evil", "http://evil", "data:text/html,x"):
        with pytest.raises(ValueError, match="not a place"):
            link(bad, "x")


def test_options_run_nothing_and_tooltips_are_text():
    made = harmless({":a": 1, "b": [{":c": {}}], "tooltip": {"trigger": "axis"}})
    keys = json.dumps(made)
    assert '":' not in keys.replace('": ', "")
    assert made["tooltip"]["renderMode"] == "richText"


def contrast(one, other):
    """How far two colours are apart, as WCAG counts it."""

    def lightness(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        line = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2]

    low, high = sorted((lightness(one), lightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("night", "card"), [(False, "#ffffff"), (True, "#171e26")])
def test_charts_can_be_read_by_day_and_by_night(night, card):
    assert f"--card: {card}" in (ROOM / "assets" / "dashboard.css").read_text(encoding="utf-8")
    worn = theme(night=night)
    assert contrast(worn["textStyle"]["color"], card) >= 4.5
    assert contrast(worn["timeAxis"]["axisLabel"]["color"], card) >= 4.5
    assert worn["timeAxis"]["axisLabel"]["hideOverlap"]
    assert len(set(worn["color"])) == len(COLOURS)
    assert all(contrast(each, card) >= 3.5 for each in worn["color"])
    shade = {"markArea": {"color": "#009E73"}, "color": "#009E73"}
    assert dressed(shade, night=night)["markArea"] == shade["markArea"]


def test_a_state_survives_its_address():
    here = Query.of("/dashboard/runs", [("run", "a b"), ("run", "c&d"), ("x", ""), ("page", "2")])
    assert here.all("run") == ("a b", "c&d")
    assert here.href() == "/dashboard/runs?run=a+b&run=c%26d&page=2"
    assert here.whole("page", 1, 1) == 2
    assert here.whole("nothing", 5) == 5
    for strange in ("-1", "1e9", "٣", "9" * 40, "x"):
        assert Query.of("/", [("page", strange)]).whole("page", 1, 1) == 1
    assert Query.of("/", [("n", "999999")]).whole("n", 0, 0, 10) == 10
    assert here.choice("run", ("z",), "z") == "z"


def test_a_pager_knows_its_ends():
    words = Words("en")
    first = pager(words, Query.of("/dashboard/runs", []), 120, 50)
    assert "1 to 50 of 120" in first
    assert first.count("aria-disabled") == 2
    last = pager(words, Query.of("/dashboard/runs", [("page", "99")]), 120, 50)
    assert "101 to 120 of 120" in last
    assert "page 3 of 3" in last
    assert "0 to 0 of 0" in pager(words, Query.of("/dashboard/runs", []), 0, 50)


def test_thousands_are_told_in_each_language():
    russian = Words("ru")
    assert (Words("en").count(1_234_567), russian.count(1_234_567)) == (
        "1,234,567",
        "1\xa0234\xa0567",
    )
    assert russian.grouped("10,638.293; 1,2 and 1,2345") == "10\xa0638.293; 1,2 and 1,2345"
    assert russian.said("`run --seeds 1,200`") == "`run --seeds 1,200`"
    axis = local({"xAxis": [{"type": "time"}], "yAxis": {"type": "category"}}, "ru")
    assert ":formatter" in axis["xAxis"][0]["axisLabel"]
    assert axis["yAxis"] == {"type": "category"}


def test_times_are_told_in_each_language():
    assert ago(Words("en"), 7_300) == "2 hours ago"
    assert ago(Words("ru"), 7_300) == "2 ч назад"
    assert ago(Words("en"), None) == "-"


@needs_browser
class TestForEverybody:
    """In a real browser."""

    paths = tuple(page.path for page in PAGES if page.listed)

    def test_pages_speak_russian_and_keep_it(self, reader):
        reader.open("/dashboard/runs?light=bad")
        reader.one("[data-language=ru]").click()
        reader.until_text("h1", "Прогоны")
        assert reader.script("return document.documentElement.lang") == "ru"
        assert "light=bad" in reader.driver.current_url
        reader.open("/dashboard/")
        assert "регрессий: 2" in reader.text(".banner")
        assert "нужно ещё" in reader.text("#main")
        reader.one("[data-language=en]").click()
        reader.until_text("nav", "Home")

    def test_dark_is_dark_and_light_is_light(self, reader):
        reader.open("/dashboard/")
        colours = {}
        for each in ("dark", "light"):
            reader.one(f"[data-theme={each}]").click()
            reader.until(f"[data-theme={each}][aria-pressed=true]")
            code = "return getComputedStyle(document.body).backgroundColor"
            colours[each] = [int(n) for n in re.findall(r"\d+", reader.script(code))[:3]]
        assert max(colours["dark"]) < 60
        assert min(colours["light"]) > 200
        reader.one("[data-theme=auto]").click()
        reader.until("[data-theme=auto][aria-pressed=true]")

    def test_charts_and_the_player_of_battles_wear_the_theme_of_the_page(self, reader):
        shown = """const frame = document.querySelector("iframe.viewer");
            const inside = frame?.contentDocument, root = inside?.documentElement;
            return inside?.readyState === "complete" && root.dataset.theme === arguments[0]
              && frame.clientHeight >= root.scrollHeight;"""
        for each in ("dark", "light"):
            reader.open("/dashboard/training")
            reader.one(f"[data-theme={each}]").click()
            reader.until(f"[data-theme={each}][aria-pressed=true]")
            option = reader.chart("curves")
            ink = theme(night=each == "dark")["textStyle"]["color"]
            assert option["textStyle"]["color"] == ink
            looks = [
                (s["lineStyle"]["type"], s["symbol"], s["lineStyle"]["color"])
                for s in option["series"]
            ]
            assert len(set(map(str, looks))) == len(looks)
            reader.open("/dashboard/battles")
            reader.one("tbody th a").click()
            reader.until("iframe.viewer")
            reader.wait.until(lambda _, each=each: reader.script(shown, each))
        reader.one("[data-theme=auto]").click()
        reader.until("[data-theme=auto][aria-pressed=true]")

    @pytest.mark.parametrize("path", paths)
    def test_pages_can_be_used_without_a_mouse_or_eyes_and_on_a_telephone(self, reader, path):
        reader.open(f"/dashboard{path}")
        assert len(reader.all("h1")) == 1
        assert reader.text("nav [aria-current=page]")
        nameless = reader.script(
            """const named = (each) => each.labels?.length || each.getAttribute("aria-label")
              || each.getAttribute("aria-labelledby") || each.innerText?.trim() || each.title;
            return [...document.querySelectorAll("input:not([type=hidden]), select, button, a")]
              .filter((each) => each.getClientRects().length && !named(each))
              .map((each) => each.outerHTML.slice(0, 200));"""
        )
        assert nameless == []
        tables = reader.all("table")
        assert all(each.find_elements("css selector", "caption") for each in tables)
        for figure in reader.all("figure.chart"):
            assert figure.get_attribute("aria-label")
        reader.one("body").send_keys("\ue004")
        assert reader.script("return document.activeElement.className") == "skip"
        size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        reader.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        try:
            reader.wait.until(lambda _: reader.script("return innerWidth") == 390)
            assert reader.script("return document.documentElement.scrollWidth") <= 390
        finally:
            reader.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert reader.complaints() == []
        assert reader.hosts() <= {urlsplit(reader.site.url).netloc}


@needs_browser
class TestOnATelephone:
    """In a real browser of 390 points: what decides can be read without scrolling sideways."""

    def seen(self, reader, path, selector):
        """The first thing that fits: its edges, and its text."""
        reader.open(path)
        reader.until(selector)
        code = """const found = document.querySelector(arguments[0]);
            const box = found.getBoundingClientRect();
            return [box.left, box.right, found.innerText];"""
        return reader.script(code, selector)

    @pytest.fixture
    def telephone(self, reader):
        size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        reader.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        yield reader
        reader.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_the_decisive_columns_lie_within_the_screen(self, telephone, site):
        ids = [row.run_id for row in RunHistory(Workspace(site.folder)).page(limit=2)]
        run = "&".join(f"run={each}" for each in ids)
        asked = {
            f"/dashboard/compare?{run}": "#compared tbody tr td:nth-child(3) span",
            f"/dashboard/run?id={site.names['run']}": "table.folds tbody td:nth-child(5)",
            "/dashboard/settings?doctor=1": "table.folds tbody td:nth-child(3)",
            "/dashboard/training": "table.folds .progress",
            "/dashboard/runs": "#runs tbody time",
        }
        for path, selector in asked.items():
            left, right, said = self.seen(telephone, path, selector)
            assert 0 <= left < right <= 390, path
            assert said.strip(), path

    def test_the_name_of_a_row_stays_when_a_table_is_scrolled(self, telephone):
        path = "/dashboard/agents?name=rules-momentum"
        selector = ".wide table:not(.folds) tbody th"
        left, _, _ = self.seen(telephone, path, selector)
        moved = telephone.script(
            """const name = document.querySelector(arguments[0]), box = name.closest(".wide");
            box.scrollLeft = 200;
            return [box.scrollLeft, name.getBoundingClientRect().left];""",
            selector,
        )
        assert moved[0] > 0
        assert moved[1] == pytest.approx(left, abs=2)

    def test_a_caption_is_read_whole_and_stays_when_its_table_is_scrolled(self, telephone):
        self.seen(telephone, "/dashboard/agents?name=rules-momentum", ".wide caption")
        edges = """return [...document.querySelectorAll(".wide")].map((box) => {
                const words = document.createRange();
                words.selectNodeContents(box.querySelector("caption"));
                box.scrollLeft = arguments[0];
                const [out, said] = [box, words].map((each) => each.getBoundingClientRect());
                return [box.scrollLeft, out.left, said.left, said.right, out.right];
            });"""
        for moved in (0, 200):
            found = telephone.script(edges, moved)
            assert max(scrolled for scrolled, *_ in found) == moved
            for _, *inside in found:
                assert inside == sorted(inside)

    def test_an_edge_that_fades_says_that_the_navigation_goes_on(self, telephone):
        faded = "return getComputedStyle(document.querySelector('.side nav')).maskImage"
        telephone.open("/dashboard/")
        assert telephone.script(faded).count("rgba(0, 0, 0, 0)") == 1  # to the right alone
        telephone.open("/dashboard/settings")
        telephone.wait.until(lambda _: telephone.script(faded).count("rgba(0, 0, 0, 0)") == 2)


def test_names_break_where_words_end():
    assert breakable("a/b_c") == "a/<wbr>b_<wbr>c"
    assert breakable("a__b/") == "a__<wbr>b/"
    assert breakable("<i>/&") == "&lt;i&gt;/<wbr>&amp;"
    made = parts_table("t", ["n", "x"], [["a_b", "c_d"]], story=["", "X"])
    assert '<th scope="row">a_<wbr>b</th><td data-label="X">c_d</td>' in made
