"""Each invariant holds on a good look, and catches the violation that is planted for it."""

import json
from copy import deepcopy
from hashlib import sha256

import pytest

from tests.soak.invariants import GRACE_S, INVARIANTS, MOST_FILES, MOST_MB, Memory, violations
from tests.soak.look import Acknowledged, Calls, Look, Rows, Service


def entry(position, previous, event="installed"):
    said = {"position": position, "at_ns": position, "event": event, "data": "{}"}
    lines = (str(position), previous, str(position), event, "{}")
    digest = sha256(json.dumps(lines).encode()).hexdigest()
    return said | {"previous_hash": previous, "hash": digest}


def trajectory(name, first, n, **more):
    fields = {
        "trajectory_id": name,
        "n_steps": n,
        "status": "completed",
        "terminated": True,
        "truncated": False,
        "total_reward": 0.01,
        "final_balance": 10_100.0,
        "final_pnl": 100.0,
        "step_file": "f",
        "first_row": first,
    }
    return fields | more


def good():
    """Return a look at which nothing is wrong."""
    first = entry(1, "")
    second = entry(2, first["hash"], "registered")
    rows = Rows(
        agents={"ann": {"tick": 3, "points": 7, "status": "active"}},
        calls={"ann": Calls(3, 3, 0, 2)},
        ticks={("ann", 2)},
        trajectories=[trajectory("a", 0, 5), trajectory("b", 5, 4)],
        step_files={"f": {"n_rows": 9, "state": "whole"}},
        pointers=[{"champion": "m", "history_length": 2, "history_hash": second["hash"]}],
        models={"m": "deployed", "old": "archived"},
        serving=["m"],
        history=[first, second],
    )
    heard = Acknowledged(
        trajectories={"a": 5, "w": 2},
        ticks={("ann", 2)},
        granted={"ann": 0},
        asked={"ann": 5},
        answers={"200": 1},
    )
    service = Service(life=1, counters={"ticks": 4.0}, answers={"ok": True, "words": "fine"})
    return Look(acknowledged=heard, rows=rows, service=service, waiting={"w": 2})


def memory():
    return Memory(points={"ann": 10})


def lose_a_trajectory(look):
    look.waiting.clear()


def lose_a_step(look):
    look.rows.trajectories[0]["n_steps"] = 4


def store_one_twice(look):
    look.rows.trajectories.append(trajectory("a", 0, 5))


def share_rows(look):
    look.rows.trajectories[1]["first_row"] = 4


def name_no_file(look):
    look.rows.trajectories[1]["step_file"] = "gone"


def leave_the_end_out(look):
    look.rows.trajectories[1]["terminated"] = False


def lose_a_tick(look):
    look.rows.calls["ann"] = Calls(2, 2, 0, 2)


def play_a_tick_twice(look):
    look.rows.calls["ann"] = Calls(4, 3, 0, 2)


def lose_an_answered_tick(look):
    look.rows.ticks.clear()


def make_points(look):
    look.rows.agents["ann"]["points"] = 13


def take_points(look):
    look.rows.agents["ann"]["points"] = 6


def make_money(look):
    look.rows.trajectories[0]["final_balance"] = 10_100.5


def win_more_than_the_steps(look):
    look.rows.trajectories[0]["total_reward"] = 0.02


def crown_two(look):
    look.rows.models["old"] = "deployed"


def crown_nobody(look):
    look.rows.pointers[0]["champion"] = None


def serve_two(look):
    look.rows.serving.append("old")


def point_twice(look):
    look.rows.pointers.append(dict(look.rows.pointers[0]))


def change_history(look):
    look.rows.history[0]["data"] = '{"model": "other"}'


def cut_history(look):
    look.rows.history.pop()


def change_a_model(look):
    look.unsigned.append("m: weights were changed")


def half_a_file(look):
    look.broken.append("reports/latest.json: no end")


def answer_with_another_model(look):
    look.service.answers = {"ok": False, "words": "another model answered"}


def grow(look):
    look.service.rss_mb = MOST_MB + 1.0


def keep_files_open(look):
    look.service.files = MOST_FILES + 1


def say_too_much(look):
    look.acknowledged.wrong.append("500 Traceback")


def leave_a_process(look):
    look.orphans["7 python"] = GRACE_S + 1.0


def stay_under_way(look):
    look.final, look.jobs = True, {"job": "PENDING"}
    look.rows.trajectories.append(trajectory("w", None, 2, step_file=None))
    look.waiting.clear()


PLANTED = {
    "steps once": (lose_a_trajectory, lose_a_step, store_one_twice),
    "steps in place": (share_rows, name_no_file, leave_the_end_out),
    "ticks once": (lose_a_tick, play_a_tick_twice, lose_an_answered_tick),
    "points conserved": (make_points, take_points),
    "money conserved": (make_money, win_more_than_the_steps),
    "one champion": (crown_two, crown_nobody, serve_two, point_twice),
    "history chained": (change_history, cut_history),
    "models signed": (change_a_model,),
    "files whole": (half_a_file,),
    "right model answered": (answer_with_another_model,),
    "memory bounded": (grow, keep_files_open),
    "answers told": (say_too_much,),
    "nobody left": (leave_a_process,),
    "jobs end": (stay_under_way,),
}


def test_a_good_look_has_no_violation_again_and_again():
    seen = memory()
    assert violations(good(), seen) == []
    assert violations(good(), seen) == []


@pytest.mark.parametrize(
    ("name", "plant"), [(name, plant) for name, all_ in PLANTED.items() for plant in all_]
)
def test_a_planted_violation_is_caught_by_its_invariant(name, plant):
    look = good()
    plant(look)
    assert name in {one["invariant"] for one in violations(look, memory())}


def test_a_counter_that_falls_is_caught_but_not_in_another_life():
    seen, look = memory(), good()
    assert violations(look, seen) == []
    fallen = deepcopy(look)
    fallen.service.counters = {"ticks": 3.0}
    assert [one["invariant"] for one in violations(fallen, seen)] == ["counters grow"]
    fallen.service.life = 2
    assert violations(fallen, seen) == []


def test_history_that_was_written_anew_is_caught():
    """A chain that fits in itself is not the one that was seen before."""
    seen, look = memory(), good()
    assert violations(look, seen) == []
    first = entry(1, "", "forged")
    second = entry(2, first["hash"], "registered")
    look.rows.history = [first, second]
    look.rows.pointers[0]["history_hash"] = second["hash"]
    assert {one["invariant"] for one in violations(look, seen)} == {"history chained"}


def test_after_recovery_what_waits_is_lost():
    look = good()
    look.final = True
    found = {one["invariant"] for one in violations(look, memory())}
    assert found == {"steps once", "jobs end"}


def test_every_invariant_has_a_planted_violation():
    assert set(PLANTED) | {"counters grow"} == set(INVARIANTS)
