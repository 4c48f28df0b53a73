"""The page of a training: verdict first, nothing greener than it is, small, and text stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from agent_gym.core.errors import DataError
from agent_gym.reporting.rl.clips import Clip
from agent_gym.reporting.rl.page import best_arm, html_page
from agent_gym.reporting.rl.runs import read_arms
from agent_gym.reporting.rl.sections import MOST_EMBEDDED, Shown, videos
from agent_gym.reporting.rl.verdict import verdict_of
from agent_gym.training.rl.config import TrainerConfig
from tests.reporting.run_samples import write_arm, write_run

EVIL = "<img src=x onerror=alert(1)>"
SAC = TrainerConfig(algo="sac", env="LunarLanderContinuous-v3", steps=300_000)
A2C = TrainerConfig(algo="a2c", env="LunarLander-v3", steps=500_000)


def clip(size: int = 1000) -> Clip:
    return Clip(b"\0" * size, "Best (seed 1)", 5, 251.0, 300)


def only_arm(folder):
    return read_arms(folder)[0]


@pytest.mark.parametrize(
    ("level", "seeds", "config", "light", "word"),
    [
        (262.0, 5, None, "good", "Above the published figure"),
        (246.0, 5, None, "same", "Not told apart from the published figure"),
        (180.0, 5, None, "bad", "Below the published figure"),
        (262.0, 3, None, "unsure", "Above the published figure"),
        (262.0, 1, None, "unsure", "Not yet sure"),
        (230.0, 5, A2C, "unsure", "Above the published figure, with more steps"),
        (230.0, 5, SAC, "bad", "Below the published figure"),
    ],
)
def test_the_verdict_is_by_the_interval(tmp_path, level, seeds, config, light, word):
    found = verdict_of(only_arm(write_arm(tmp_path, seeds, level, config=config)))
    assert (found.light, found.word) == (light, word)


def test_a_missing_seed_is_said_and_never_good(tmp_path):
    write_arm(tmp_path, 5, 262.0)
    assert verdict_of(only_arm(tmp_path)).light == "good"
    write_run(tmp_path, 6, status="error", error={"what": "a loss is not a number"})
    write_run(tmp_path, 7, status=None)
    arm = only_arm(tmp_path)
    found = verdict_of(arm)
    assert found.light == "unsure"
    assert "2 of 7 seeds not counted: 6 (error), 7 (unfinished)." in found.why
    page = html_page([arm])
    assert "2 of 7 seeds not counted" in page
    assert "a loss is not a number" in page


def test_nothing_finished_is_bad(tmp_path):
    write_run(tmp_path, 1, status="error")
    arm = only_arm(tmp_path)
    assert verdict_of(arm).headline == "None of 1 seed has finished"
    assert 'data-light="bad"' in html_page([arm])


def test_other_games_are_measured_without_a_rival(tmp_path):
    config = TrainerConfig(algo="ppo", env="CartPole-v1", steps=50_000)
    write_arm(tmp_path, 5, 400.0, config=config)
    arm = only_arm(tmp_path)
    assert (verdict_of(arm).light, verdict_of(arm).word) == ("same", "Measured")
    page = html_page([arm])
    assert "ublished" not in page
    assert "Reach 200" not in page


def test_the_page_has_its_parts_in_order(tmp_path):
    shown = [Shown(clip(), "videos/best.mp4")]
    page = html_page(read_arms(write_arm(tmp_path)), shown)
    assert page == html_page(read_arms(tmp_path), shown)
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads == [
        "How it learned",
        "What it looks like",
        "Seeds",
        "Final episodes",
        "Inside the learner",
        "Settings",
        "Where this comes from",
    ]
    assert page.index('id="verdict"') < page.index("<h2>")
    assert "242.1" in page
    assert f"seed_1/config.json --name {tmp_path.name} --seeds 5 --seed 1</code>" in page


def test_several_arms_stand_beside_each_other(tmp_path):
    for name, level in (("a", 190.0), ("b", 260.0)):
        config = TrainerConfig(agent={"gamma": 0.9 if name == "a" else 0.999})
        write_arm(tmp_path / name, 3, level, config=config)
    arms = read_arms(tmp_path)
    assert best_arm(arms).name == "b"
    page = html_page(arms)
    for part in ("scores", "finals", "profiles", "reached", "curve", "losses"):
        assert f'<figure id="{part}">' in page
    assert "agent.gamma" in page
    assert "Best of 2 arms: b. It was picked by these very figures" in page


def test_names_from_outside_stay_text(tmp_path):
    error = {"what": EVIL, "remedy": "</pre><script>"}
    write_run(tmp_path / EVIL.replace("/", ""), 1)
    write_run(tmp_path / EVIL.replace("/", ""), 2, status="error", error=error)
    write_run(tmp_path / "b", 1)
    page = html_page(read_arms(tmp_path), [Shown(clip()._replace(title=EVIL), f'"{EVIL}')])

    found = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.add(tag)
            assert not any(name.startswith("on") for name, _ in attrs)

    Tags().feed(page)
    assert "svg" in found
    assert "img" not in found
    assert page.count("<script>") == 1


def test_large_videos_are_links():
    large = [Shown(clip(MOST_EMBEDDED // 2), f"videos/{at}.mp4") for at in range(3)]
    part = videos(large)
    assert part.count("<video") == 2
    assert '<a href="videos/2.mp4">' in part
    assert videos([]) == ""


def test_ten_seeds_of_a_million_steps_stay_small(tmp_path):
    config = TrainerConfig(steps=1_000_000)
    write_arm(tmp_path, 10, config=config, iterations=1000)
    page = html_page([only_arm(tmp_path)], [Shown(clip(MOST_EMBEDDED), "videos/best.mp4")])
    assert len(page) < 5_000_000
    assert len(page) - 4 * MOST_EMBEDDED / 3 < 700_000


def test_nothing_to_report_is_an_error():
    with pytest.raises(DataError, match="nothing to report"):
        html_page([])
