"""The cache and the cassette: on disk, by hash, whole or not at all."""

import json
import logging

import pytest
from judge_samples import (
    Scripted,
    always,
    answer_of,
    chat,
    constant,
    group_of,
    oracle,
    records_in,
)

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.evaluation.judge import (
    AnswerCache,
    BackendFailed,
    CassetteBackend,
    JudgeConfig,
    JudgeRequest,
    RecordingBackend,
    Refused,
    RelativeJudge,
    Rubric,
    TimedOut,
    TruthBackend,
)

CONFIG = JudgeConfig(passes=2)


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


# The cache.


def test_what_is_known_is_not_asked_again(tmp_path):
    group, _ = group_of([1, 5, 9])
    cache = AnswerCache(tmp_path)
    first, second = oracle(noise=0.1), oracle(noise=0.1)
    one = RelativeJudge(first, CONFIG, cache).judge(group)
    two = RelativeJudge(second, CONFIG, cache).judge(group)
    assert one.scores == two.scores
    assert (len(first.asked), len(second.asked)) == (2, 0)
    assert [each.cached for each in two.passes] == [1, 1]
    assert len(files_of(tmp_path)) == 2


def test_another_model_setting_rubric_or_record_is_another_question(tmp_path):
    cache = AnswerCache(tmp_path)
    group, _ = group_of([1, 5])
    RelativeJudge(constant(), CONFIG, cache).judge(group)
    changed = [
        (Scripted(constant().say, model="other"), CONFIG, group),
        (Scripted(constant().say, version="2"), CONFIG, group),
        (constant(), JudgeConfig(passes=2, rubric=Rubric(name="r", text="else")), group),
        (constant(), JudgeConfig(passes=2, seed=3), group),
        (constant(), CONFIG, group_of([1, 6])[0]),
    ]
    for backend, config, other in changed:
        RelativeJudge(backend, config, cache).judge(other)
        assert len(backend.asked) == 2
    assert len(files_of(tmp_path)) == 12


def test_only_good_answers_are_kept_and_a_mended_one_is(tmp_path):
    group, _ = group_of([1, 5])
    cache = AnswerCache(tmp_path)
    RelativeJudge(always("nonsense {"), CONFIG, cache).judge(group)
    assert files_of(tmp_path) == []

    def say(request):
        good = answer_of(dict.fromkeys(records_in(request), 0.5))
        return good if len(request.messages) > 2 else good + "!"

    RelativeJudge(Scripted(say), CONFIG, cache).judge(group)
    silent = always("nonsense {")
    assert RelativeJudge(silent, CONFIG, cache).judge(group).judged
    assert silent.asked == []


@pytest.mark.parametrize(
    "harm",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace("0.5", "0.9"),
        lambda text: "[]",
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_answer_is_asked_for_again(tmp_path, caplog, harm):
    group, _ = group_of([1, 5])
    cache = AnswerCache(tmp_path)
    RelativeJudge(constant(), CONFIG, cache).judge(group)
    path = files_of(tmp_path)[0]
    path.write_text(harm(path.read_text()))
    backend = constant()
    with caplog.at_level(logging.WARNING):
        found = RelativeJudge(backend, CONFIG, cache).judge(group)
    assert set(found.scores.values()) == {0.5}
    assert len(backend.asked) == 1
    assert "damaged" in caplog.text
    assert RelativeJudge(always("x"), CONFIG, cache).judge(group).judged  # mended on disk


def test_an_answer_under_another_key_is_not_taken(tmp_path):
    cache = AnswerCache(tmp_path)
    cache.put("aa11", "m", "yes")
    (tmp_path / "bb").mkdir()
    (tmp_path / "aa" / "aa11.json").rename(tmp_path / "bb" / "bb22.json")
    assert cache.get("bb22") is None
    assert cache.get("cc33") is None


# The cassette.


def test_a_recording_is_played_back_without_the_judge(tmp_path):
    path = tmp_path / "judge.json"
    group, _ = group_of([1, 5, 9])
    backend = oracle(noise=0.1)
    recorder = RecordingBackend(backend, path)
    first = RelativeJudge(recorder, CONFIG, workers=2).judge(group)
    assert len(backend.asked) == 2
    again = RelativeJudge(recorder, CONFIG).judge(group)
    assert len(backend.asked) == 2
    played = RelativeJudge(CassetteBackend.load(path), CONFIG)
    assert played.judge(group) == first == again
    assert (played.model, played.version) == (
        RelativeJudge(backend, CONFIG).model,
        RelativeJudge(backend, CONFIG).version,
    )


def test_a_question_that_was_not_recorded_is_an_error(tmp_path):
    path = tmp_path / "judge.json"
    group, _ = group_of([1, 5])
    RelativeJudge(RecordingBackend(constant(), path), CONFIG).judge(group)
    tape = CassetteBackend.load(path)
    for config, other in [
        (JudgeConfig(passes=4), group),
        (CONFIG, group_of([1, 6])[0]),
        (JudgeConfig(passes=2, seed=1), group),
    ]:
        with pytest.raises(DataError, match="not on the cassette"):
            RelativeJudge(tape, config).judge(other)


@pytest.mark.parametrize("failure", [Refused, TimedOut, BackendFailed])
def test_a_failure_is_recorded_and_fails_again(tmp_path, failure):
    path = tmp_path / "judge.json"
    group, _ = group_of([1, 5])

    def say(request):
        raise failure("not today")

    first = RelativeJudge(RecordingBackend(Scripted(say), path), CONFIG).judge(group)
    second = RelativeJudge(CassetteBackend.load(path), CONFIG).judge(group)
    kinds = [[bad.kind for each in one.passes for bad in each.failures] for one in (first, second)]
    assert kinds == [[failure.kind] * 2] * 2
    assert "not today" in second.reason


def test_a_repair_is_recorded_too(tmp_path):
    path = tmp_path / "judge.json"
    group, _ = group_of([1, 5])
    first = RelativeJudge(RecordingBackend(always("{"), path), CONFIG).judge(group)
    assert RelativeJudge(CassetteBackend.load(path), CONFIG).judge(group) == first
    assert len(json.loads(path.read_text())["calls"]) == 4


def test_a_recording_goes_on_where_it_was_and_only_with_the_same_judge(tmp_path):
    path = tmp_path / "judge.json"
    group, _ = group_of([1, 5])
    other, _ = group_of([2, 7])
    RelativeJudge(RecordingBackend(constant(), path), CONFIG).judge(group)
    backend = constant()
    recorder = RelativeJudge(RecordingBackend(backend, path), CONFIG)
    recorder.judge(group)
    recorder.judge(other)
    assert len(backend.asked) == 2
    with pytest.raises(ConfigError, match="another judge"):
        RecordingBackend(Scripted(constant().say, model="other"), path)
    with pytest.raises(ConfigError, match="cannot be recorded"):
        RecordingBackend(TruthBackend({}), path)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda said: "", "no cassette"),
        (lambda said: "[" * 100_000, "no cassette"),
        (lambda said: json.dumps([said]), "no cassette"),
        (lambda said: json.dumps(said | {"format": "x"}), "no cassette"),
        (lambda said: json.dumps(said | {"more": 1}), "no cassette"),
        (lambda said: json.dumps(said | {"model": "other"}), "was changed"),
        (lambda said: json.dumps(said).replace("quality 5", "quality 9"), "was changed"),
        (lambda said: json.dumps(said).replace('"failure": null', '"failure": "refused"'), "or a"),
    ],
)
def test_a_cassette_that_was_changed_is_refused(tmp_path, harm, words):
    path = tmp_path / "judge.json"
    group, _ = group_of([1, 5])
    RelativeJudge(RecordingBackend(constant(), path), CONFIG).judge(group)
    path.write_text(harm(json.loads(path.read_text())))
    with pytest.raises(DataError, match=words):
        CassetteBackend.load(path)


def test_a_cassette_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        CassetteBackend.load(tmp_path / "gone.json")


def test_the_key_is_that_of_every_letter():
    said = chat(("system", "a"), ("user", "b"))
    keys = {
        JudgeRequest("g", said, {}).key("m", "1"),
        JudgeRequest("g", said, {}).key("m", "2"),
        JudgeRequest("g", said, {}).key("n", "1"),
        JudgeRequest("g", chat(("user", "a"), ("user", "b")), {}).key("m", "1"),
        JudgeRequest("g", chat(("system", "ab"), ("user", "")), {}).key("m", "1"),
    }
    assert len(keys) == 5
    assert JudgeRequest("h", said, {"t": ("x",)}).key("m", "1") in keys
