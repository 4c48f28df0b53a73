"""Answers are read strictly: exactly the ids, numbers in range, nothing guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_samples import Scripted, always, answer_of, group_of, records_in

from agent_gym.evaluation.judge import JudgeConfig, Malformed, Refused, RelativeJudge, read_answer
from agent_gym.evaluation.judge.answer import LONGEST_ANSWER, NoAnswer

IDS = ("t-a", "t-b")
GOOD = answer_of({"t-a": 0.25, "t-b": 1})


def rows(*entries, **more):
    return json.dumps({"scores": list(entries), **more})


def entry(name="t-a", score=0.5, **more):
    return {"id": name, "score": score, "explanation": "so"} | more


MALFORMED = {
    "empty": "",
    "spaces": "  \n ",
    "a list": json.dumps([entry()]),
    "prose around": f"Here you are: {GOOD}",
    "prose behind": f"{GOOD} I hope this helps.",
    "two objects": GOOD + GOOD,
    "cut off": GOOD[:-3],
    "trailing comma": GOOD.replace("]}", ",]}"),
    "single quotes": GOOD.replace('"', "'"),
    "open fence": f"```json\n{GOOD}",
    "fence with prose": f"Sure!\n```json\n{GOOD}\n```",
    "missing id": rows(entry("t-a")),
    "no scores": rows(),
    "duplicate id": rows(entry("t-a"), entry("t-b"), entry("t-a")),
    "additional id": rows(entry("t-a"), entry("t-b"), entry("t-c")),
    "id in other letters": rows(entry("T-A"), entry("t-b")),
    "id as a number": rows(entry(1), entry(2)),
    "score of ten": rows(entry("t-a", 7), entry("t-b", 10)),
    "score above one": rows(entry("t-a", 1.7), entry("t-b")),
    "score below zero": rows(entry("t-a", -0.1), entry("t-b")),
    "quoted score": rows(entry("t-a", "0.8"), entry("t-b")),
    "score in words": rows(entry("t-a", "0.8x"), entry("t-b")),
    "true": rows(entry("t-a", True), entry("t-b")),
    "null": rows(entry("t-a", None), entry("t-b")),
    "NaN": GOOD.replace("0.25", "NaN"),
    "Infinity": GOOD.replace("0.25", "Infinity"),
    "overflow": GOOD.replace("0.25", "1e999"),
    "no explanation": rows({"id": "t-a", "score": 0.5}, entry("t-b")),
    "explanation is a list": rows(entry(explanation=["a"]), entry("t-b")),
    "another key": rows(entry("t-a", rank=1), entry("t-b")),
    "another key outside": rows(entry("t-a"), entry("t-b"), note="x"),
    "a key twice": '{"scores": [], ' + GOOD[1:],
    "a score twice": GOOD.replace('"score": 0.25', '"score": 0.25, "score": 1.0'),
    "deep": '{"scores":' * 100_000,
    "huge": GOOD + " " * LONGEST_ANSWER,
    "long explanation": rows(entry(explanation="x" * 5_000), entry("t-b")),
}


def test_a_good_answer_is_matched_by_id():
    found = read_answer(answer_of({"t-b": 1, "t-a": 0.25}), IDS)
    assert {name: one.score for name, one in found.items()} == {"t-a": 0.25, "t-b": 1.0}
    assert read_answer(f"\n```json\n{GOOD}\n```\n", IDS) == read_answer(GOOD, IDS)
    assert read_answer(f"```\n{GOOD}\n```", IDS) == read_answer(GOOD, IDS)


@pytest.mark.parametrize("name", MALFORMED)
def test_whatever_else_is_refused(name):
    with pytest.raises(Malformed) as caught:
        read_answer(MALFORMED[name], IDS)
    # The reason may be told to the judge: it must not carry what the answer said.
    assert "t-c" not in caught.value.what
    assert "0.8x" not in caught.value.what


@pytest.mark.parametrize("text", ["I cannot help with that.", "0.8 and 0.3", "[1, 0.5]"])
def test_words_without_an_object_are_a_refusal(text):
    with pytest.raises(NoAnswer) as caught:
        read_answer(text, IDS)
    assert caught.value.kind == "refused"


@given(st.text())
def test_no_text_ends_in_another_error(text):
    with pytest.raises(Malformed):
        read_answer(text, IDS)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_no_json_ends_in_another_error(value):
    with pytest.raises(Malformed):
        read_answer(json.dumps({"scores": value}), IDS)


@pytest.mark.parametrize("name", MALFORMED)
def test_what_cannot_be_read_twice_is_a_recorded_failure_and_no_score(name):
    backend = always(MALFORMED[name])
    group, _ = group_of([1, 9])
    judged = RelativeJudge(backend, JudgeConfig(passes=2)).judge(group)
    assert not judged.judged
    assert judged.scores == {}
    assert [len(one.failures) for one in judged.passes] == [1, 1]
    assert {one.failures[0].kind for one in judged.passes} <= {"malformed", "refused"}
    assert len(backend.asked) == 4  # each question, and one repair each


def test_one_repair_mends_an_answer_and_is_counted():
    def say(request):
        if len(request.messages) == 2:
            return "certainly: " + answer_of(dict.fromkeys(records_in(request), 0.5))
        assert "not one JSON object" in request.messages[3].content
        return answer_of(dict.fromkeys(records_in(request), 0.75))

    group, _ = group_of([1, 9])
    judged = RelativeJudge(Scripted(say), JudgeConfig(passes=2)).judge(group)
    assert set(judged.scores.values()) == {0.75}
    assert [(one.requests, one.repaired) for one in judged.passes] == [(2, 1), (2, 1)]


def test_seven_scores_for_eight_are_not_filled_up():
    def say(request):
        return answer_of(dict.fromkeys(list(records_in(request))[:7], 0.5))

    group, _ = group_of(range(8))
    judged = RelativeJudge(Scripted(say), JudgeConfig(passes=1)).judge(group)
    assert not judged.judged
    assert "is missing" in judged.reason


def test_scores_listed_in_another_order_belong_to_their_ids():
    def say(request):
        quality = {label: int(text[-1]) / 10 for label, text in records_in(request).items()}
        return answer_of(dict(reversed(list(quality.items()))))

    group, truth = group_of([3, 9, 1, 6])
    judged = RelativeJudge(Scripted(say), JudgeConfig(passes=3)).judge(group)
    assert judged.scores == pytest.approx({name: value / 10 for name, value in truth.items()})


def test_failed_passes_are_left_out_but_not_hidden():
    def say(request):
        backend.n = getattr(backend, "n", 0) + 1
        if backend.n == 2:
            raise Refused("no")
        return answer_of(dict.fromkeys(records_in(request), 0.5))

    backend = Scripted(say)
    group, _ = group_of([1, 9])
    judged = RelativeJudge(backend, JudgeConfig(passes=4)).judge(group)
    assert judged.judged
    assert [one.good for one in judged.passes] == [True, False, True, True]
    told = judged.as_dict()
    assert told["good_passes"] == 3
    assert told["failures"] == [{"pass": 1, "kind": "refused", "words": "no"}]


def test_a_group_with_too_few_good_passes_is_not_judged():
    def say(request):
        backend.n = getattr(backend, "n", 0) + 1
        if backend.n > 1:
            raise Refused("no")
        return answer_of(dict.fromkeys(records_in(request), 0.5))

    backend = Scripted(say)
    group, _ = group_of([1, 9])
    judged = RelativeJudge(backend, JudgeConfig(passes=4)).judge(group)
    assert not judged.judged
    assert judged.scores == {}
    assert "1 of 4 passes" in judged.reason
