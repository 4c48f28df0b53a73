import json
from xml.etree import ElementTree

from agent_gym.reporting.umc_gates import ABLATION, GATES, places, write_ablation, write_gates


def figure(value, passed, rule="at least", unit="share", words=""):
    return {
        "value": value,
        "low": None if value is None else value - 0.1,
        "high": None if value is None else value + 0.1,
        "bound": None if passed is None else 0.85,
        "passed": passed,
        "rule": "shown only" if passed is None else rule,
        "unit": unit,
        "what": "share of the attainable",
        "seeds": 100,
        "interval": "95 % over seeds",
        "words": words,
    }


def gates_document():
    return {
        "passed": False,
        "failed": ["C.m2.share"],
        "gates": {
            "A.n1.timing": figure(0.0, True, "interval holds", "bp/bar"),
            "B.n1.net": figure(-0.1, True, unit="bp/bar"),
            "C.m1.share": figure(0.97, True),
            "C.m2.share": figure(0.5, False, words="0.5 of 1.0 | bp a bar"),
            "C.m5.share": figure(None, None, words="too little to take"),
            "D.costs": figure(2.0, True, "at most", "days"),
        },
        "by_letter": {
            letter: {"title": f"Gate {letter}", "passed": letter != "C"} for letter in "ABCD"
        },
        "seeds": [0, 1],
        "plan": {"agent": {"use": "umc", "params": {}}},
        "manifest": {"command": "agent-gym umc gates"},
    }


def compared(arm, low, high, sign=None, later=False, verdict="as expected"):
    wished = {
        "sign": sign,
        "by_construction": sign == "exactly 0",
        "added_after_the_first_run": later,
    }
    return {
        "part": arm,
        "market": "m1",
        "arm": arm,
        "against": "full",
        "metric": "net_bp",
        "estimate": 0.5 * (low + high),
        "low": low,
        "high": high,
        "p_holm": 0.04,
        "seeds": 20,
        "expected": wished if sign else None,
        "verdict": verdict if sign else "nothing was expected",
    }


def ablation_document():
    return {
        "metrics": {"net_bp": "net, bp a bar"},
        "arms": {
            "with_macro": {
                "part": "macrostates",
                "about": "macrostates as inputs",
                "added_after_the_first_run": True,
            }
        },
        "comparisons": [
            compared("with_macro", -0.1, 0.2, "about 0", later=True),
            compared("with_risk", -0.1, 0.2, "positive", verdict="not shown"),
            compared("lambda_0", 0.0, 0.0, "exactly 0"),
            compared("lambda_fixed", 0.0, 0.0, "exactly 0"),
            compared("one_head", -2, -1),
        ],
        "optional": ["macrostates"],
        "too_few_seeds_for_optional": ["actor"],
        "fewest_seeds_for_optional": 10,
        "manifest": {"command": "agent-gym umc ablation"},
    }


def test_the_page_of_the_gates_names_what_was_missed_and_shows_every_figure(tmp_path):
    write_gates(tmp_path, gates_document())
    data, page, picture = places(tmp_path, GATES)
    text = page.read_text()
    assert "4 of 5 bounds hold" in text
    assert "Set after a first run (decision 20)" in text
    assert "nothing was chosen" not in text
    assert "Missed: `C.m2.share`." in text
    assert "## C: missed" in text
    assert "## D: passed" in text
    assert "**missed**" in text
    assert "too little to take" in text
    assert "0.5 of 1.0 \\| bp a bar" in text
    assert f"]({picture.name})" in text
    assert json.loads(data.read_text()) == gates_document()
    drawn = ElementTree.fromstring(picture.read_text())
    shown = " ".join(node.text or "" for node in drawn.iter() if node.tag.endswith("text"))
    assert "C.m1.share" in shown
    assert "C.m5.share" not in shown


def test_the_page_of_the_ablation_says_what_is_optional(tmp_path):
    write_ablation(tmp_path, ablation_document())
    _, page, picture = places(tmp_path, ABLATION)
    text = page.read_text()
    assert "1 of 2 differences came as expected (1 of them added after the first run)." in text
    assert "2 rows more must be 0 by construction, and all are." in text
    assert "optional therefore: macrostates. Too few seeds to say so (below 10): actor." in text
    assert "| about 0 (added after the first run) | as expected |" in text
    assert "| macrostates as inputs | added after the first run |" in text
    assert text.count("`one_head` - `full`") == 1
    assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")


def test_a_row_that_must_be_0_and_is_not_is_told(tmp_path):
    document = ablation_document()
    broken = compared("lambda_paid", 0.1, 0.2, "exactly 0", verdict="not as expected")
    write_ablation(tmp_path, document | {"comparisons": [*document["comparisons"], broken]})
    text = places(tmp_path, ABLATION)[1].read_text()
    assert "3 rows more must be 0 by construction, and only 2 of them are." in text


def test_equal_documents_give_equal_files(tmp_path):
    for name in ("a", "b"):
        write_gates(tmp_path / name, gates_document())
        write_ablation(tmp_path / name, ablation_document())
    for study in (GATES, ABLATION):
        pairs = zip(places(tmp_path / "a", study), places(tmp_path / "b", study), strict=True)
        assert all(a.read_bytes() == b.read_bytes() for a, b in pairs)
