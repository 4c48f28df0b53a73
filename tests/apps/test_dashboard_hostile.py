"""What others have written is text on every page, whatever it says; and a page stays up to date."""

import json
from urllib.parse import quote, urlencode, urlsplit

import pytest

from agent_gym.apps.api.tokens import FILE, TokenFile
from agent_gym.pipeline.nightly.ledger import Ledger
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.rollouts.database import JudgmentRecord, TrajectoryStore
from scripts.seed_dashboard import seed_trajectory
from tests.apps.dashboard_samples import ADDRESSES, MARK, PAYLOADS, Reader, Site
from tests.reporting.browsing import needs_browser

pytestmark = needs_browser
ALL = " ".join(PAYLOADS)


def pairs(path, payload):
    return urlencode(dict.fromkeys(ADDRESSES[path], payload))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder in which every name, reason and log line is an attack."""
    made = Site(tmp_path_factory.mktemp("hostile"), runs=3, steps=60)
    workspace = Workspace(made.folder)
    with Ledger(workspace.ledger) as ledger:
        for number, payload in enumerate(PAYLOADS):
            body = _night(ledger, payload, number)
            ledger.record(payload, payload, body["created_at"], body)
    with TrajectoryStore.open(folder=made.folder / "trajectories") as store:
        attack = seed_trajectory(store, ALL, 50, number=99, said=ALL)
        judged = JudgmentRecord(
            trajectory_id=attack,
            group_id=ALL,
            judge_model=ALL,
            judge_version="1",
            overall_score=0.5,
            component_scores={ALL: 0.5},
            reasoning=ALL,
            strengths=(ALL,),
        )
        store.judgments.add([judged])
    _spoil_files(made.folder)
    made.tokens["admin"] = TokenFile(made.folder / FILE).add(ALL[:80], "admin")[1]
    made.attack = attack
    yield made
    made.close()


def _night(ledger, payload, number):
    (last,) = ledger.nights("desk", 1)
    created = f"2026-12-{number + 1:02d}T00:00:00Z"
    night = last["night"] | {"run_id": payload, "values": {f"{payload}/x": 1.0, "a/b": 2.0}}
    return last | {
        "run_id": payload,
        "created_at": created,
        "finished_at": created,
        "commit": payload,
        "baseline_id": payload,
        "verdict": payload,
        "status": "complete",
        "night": night | {"created_at": created},
    }


def _spoil_files(folder):
    """Put attacks into documents that pages read."""
    diff = folder / "reports" / "nightly_diff.json"
    said = json.loads(diff.read_text())
    said["headline"] = said["why"] = ALL
    said["candidate"]["run_id"] = PAYLOADS[-1]
    for finding in said["regressions"]:
        finding["why"] = finding["id"] = ALL
    diff.write_text(json.dumps(said))
    place = folder / "backtests" / "rules-momentum"
    results = json.loads((place / "results.json").read_text())
    results |= {"label": ALL, "baselines": {p: {"metrics": results["metrics"]} for p in PAYLOADS}}
    (place / "results.json").write_text(json.dumps(results))
    charts = json.loads((place / "charts.json").read_text())
    linked = charts["linked"]
    for series, payload in zip(linked["series"], PAYLOADS, strict=False):
        series["name"] = payload
    linked["legend"] |= {"data": list(PAYLOADS), "selected": dict.fromkeys(PAYLOADS, True)}
    linked[f":{MARK}"] = MARK
    (place / "charts.json").write_text(json.dumps(charts))
    arm = folder / "experiments" / "lander" / "ppo"
    arm.rename(arm.with_name(f"<img src=x onerror={MARK}>"))
    for path in (folder / "replays").iterdir():
        lines = path.read_text().splitlines()
        header = json.loads(lines[0]) | {"player": ALL[:200]}
        path.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n")


@pytest.fixture(scope="module")
def victim(hostile, tmp_path_factory):
    made = Reader(hostile, tmp_path_factory.mktemp("victim"))
    made.login()
    yield made
    made.close()


def unharmed(victim):
    assert victim.script("return window.harmed") is None
    # An attack that is the name of nothing is refused; whatever else a page asks for is there.
    own = f"{victim.site.url}{urlsplit(victim.driver.current_url).path}?"
    refused = "the server responded with a status of 404"
    others = [
        each for each in victim.complaints() if not (each.startswith(own) and refused in each)
    ]
    assert others == []
    assert victim.hosts() <= {urlsplit(victim.site.url).netloc}
    assert (
        victim.script("return document.querySelectorAll('#main img, #main svg[onload]').length")
        == 0
    )


def test_home_and_runs_show_attacks_as_text(victim):
    victim.open("/dashboard/")
    assert ALL in victim.text(".banner")
    assert PAYLOADS[0] in victim.text("#attention")
    assert ALL[:80] in victim.text(".who")
    unharmed(victim)
    victim.open("/dashboard/runs")
    first = {row[0] for row in victim.cells("#runs")}
    assert set(PAYLOADS) <= first
    unharmed(victim)
    for payload in PAYLOADS[::4]:
        victim.open(f"/dashboard/run?id={quote(payload)}")
        assert payload in victim.text("#main")
        unharmed(victim)
    said = "&".join(f"run={quote(payload)}" for payload in PAYLOADS[:3])
    victim.open(f"/dashboard/compare?{said}")
    assert PAYLOADS[1] in victim.text("thead")
    unharmed(victim)


def test_what_an_address_says_is_text(victim):
    """One attack a page; all of them on all pages are tried without a browser."""
    for path, payload in zip(ADDRESSES, PAYLOADS, strict=True):
        victim.open(f"/dashboard{path}?{pairs(path, payload)}")
        unharmed(victim)


def test_scenarios_replays_and_charts_run_nothing_of_others(victim, hostile):
    victim.open(f"/dashboard/scenarios?suite={quote(PAYLOADS[1])}&metric=a/b")
    unharmed(victim)
    victim.open(f"/dashboard/replay?id={hostile.attack}&step=1")
    for place in ("#rationale", "#seen"):
        assert victim.text(place) == ALL
    assert ALL in victim.text("#main")
    victim.chart("reward")
    unharmed(victim)
    victim.open("/dashboard/agents?name=rules-momentum")
    option = victim.chart("linked")
    assert {each["name"] for each in option["series"]} >= set(PAYLOADS[:5])
    canvas = victim.one("[data-chart=linked] canvas")
    for x, y in ((-200, -100), (0, 0), (150, 80)):
        victim.hover(canvas, x, y)  # a tooltip names the series
    unharmed(victim)
    for path in ("training", "battles", "trajectories", "models", "settings"):
        victim.open(f"/dashboard/{path}")
        unharmed(victim)


def test_a_page_stays_up_to_date_and_does_not_disturb(victim, hostile):
    victim.open("/dashboard/runs?order=up&sort=created_at")
    box = victim.one("#runs tbody input")
    chosen = box.get_attribute("id")
    box.click()
    victim.script("window.scrollTo(0, 150); window.stays = true")
    with Ledger(Workspace(hostile.folder).ledger) as ledger:
        body = _night(ledger, "a-new-night", 20)
        ledger.record("a-new-night", "desk", body["created_at"], body)
    victim.until_text("#runs", "a-new-night")
    assert victim.script("return window.stays") is True  # it was not loaded anew
    assert victim.script("return window.scrollY") == 150
    assert victim.script("return document.getElementById(arguments[0]).checked", chosen) is True
    assert "order=up" in victim.driver.current_url


def test_a_revoked_token_sees_nothing_new(victim, hostile):
    file = TokenFile(hostile.folder / FILE)
    token, text = file.add("gone soon", "read")
    hostile.tokens["read"] = text
    with victim.somebody_else("read"):
        victim.open("/dashboard/runs")
        file.revoke(token.id)
        victim.until("#token")  # the page itself notices
