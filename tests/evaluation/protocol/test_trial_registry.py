"""The trial registry and the lockbox: nothing is lost, changed or looked at twice unnoticed."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from agent_gym.core.clock import ManualClock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.evaluation.protocol import journal
from agent_gym.evaluation.protocol.journal import Journal
from agent_gym.evaluation.protocol.lockbox import Lockbox
from agent_gym.evaluation.protocol.trials import Outcome, Stretch, TrialPlan, TrialRegistry

MARKET = Stretch(
    name="BTC/USDT", kind="spot", period_ns=3600, fingerprint="f", first_ns=100, last_ns=200
)


def outcome(use="rules/flat", returns=(0.1, -0.1, 0.2), market=MARKET, **changes):
    plan = TrialPlan(
        agent={"use": use, "params": {}},
        label=changes.pop("label", use),
        market=market,
        protocol={"name": "walk-forward"},
        costs={"taker_bps": 10.0},
        **changes,
    )
    return Outcome(plan, np.array(returns), 365.0)


@pytest.fixture
def registry(tmp_path):
    return TrialRegistry(tmp_path / "deep" / "trials.jsonl", ManualClock(5))


def test_what_was_registered_comes_back(registry):
    (entered,) = registry.register([outcome()])
    assert registry.trials() == [entered]
    assert registry.trial(entered.id) == entered
    assert registry.returns(entered).tolist() == [0.1, -0.1, 0.2]
    assert (entered.at_ns, entered.n, entered.per_year) == (5, 3, 365.0)
    assert registry.verify()["trials"] == 1


def test_the_same_trial_again_is_the_same_entry(registry):
    first = registry.register([outcome(), outcome("rules/other")])
    before = registry.path.read_bytes()
    again = registry.register([outcome("rules/other", label="another name"), outcome()])
    assert [trial.id for trial in again] == [first[1].id, first[0].id]
    assert registry.path.read_bytes() == before
    assert len(registry.trials()) == 2


@pytest.mark.parametrize(
    "other",
    [
        outcome(returns=(0.1, -0.1, 0.3)),
        outcome("rules/other"),
        outcome(seeds=(1,)),
        outcome(market=MARKET.model_copy(update={"fingerprint": "g"})),
    ],
)
def test_anything_that_differs_is_another_trial(registry, other):
    registry.register([outcome()])
    registry.register([other])
    assert len(registry.trials()) == 2


def test_a_trial_that_is_not_registered_has_no_figure(registry):
    registry.register([outcome()])
    with pytest.raises(StoreError, match="not registered"):
        registry.trial("0" * 32)


def lines_of(registry):
    return registry.path.read_text().splitlines(keepends=True)


def change(lines):
    record = json.loads(lines[1])
    record["body"]["plan"]["label"] = "better"
    lines[1] = json.dumps(record) + "\n"


def reseal(lines):
    record = json.loads(lines[1])
    record["body"]["plan"]["label"] = "better"
    record["hash"] = journal.seal(
        record["previous"], record["index"], record["kind"], record["at_ns"], record["body"]
    )
    lines[1] = json.dumps(record) + "\n"


@pytest.mark.parametrize(
    "tamper",
    [
        change,
        reseal,
        lambda lines: lines.pop(1),
        lambda lines: lines.pop(),
        lambda lines: lines.reverse(),
        lambda lines: lines.insert(1, lines[0]),
        lambda lines: lines.insert(1, "not a record\n"),
        lambda lines: lines.insert(1, "[]\n"),
        lambda lines: lines.clear(),
    ],
)
def test_every_change_of_the_file_is_noticed(registry, tamper):
    registry.register([outcome(f"rules/{name}") for name in "abc"])
    lines = lines_of(registry)
    tamper(lines)
    registry.path.write_text("".join(lines))
    with pytest.raises(StoreError, match="chain"):
        registry.trials()
    with pytest.raises(StoreError, match="chain"):
        registry.register([outcome("rules/d")])


def test_a_missing_file_with_a_count_beside_it_is_noticed(registry):
    registry.register([outcome()])
    registry.path.unlink()
    with pytest.raises(StoreError, match="chain"):
        registry.trials()


def test_changed_returns_are_noticed(registry):
    one, two = registry.register([outcome(), outcome("rules/b", (0.5,))])
    folder = registry.path.with_name("trials.jsonl.series")
    (folder / f"{two.series}.parquet").replace(folder / f"{one.series}.parquet")
    for check in (lambda: registry.returns(one), lambda: registry.returns(two), registry.verify):
        with pytest.raises(StoreError, match="not what they were"):
            check()


def test_a_line_cut_off_by_a_crash_is_passed_over_and_replaced(registry):
    registry.register([outcome("rules/a")])
    whole = registry.path.read_bytes()
    for cut in (1, 40):
        registry.path.write_bytes(whole + whole[:cut])
        assert len(registry.trials()) == 1
    registry.register([outcome("rules/b")])
    assert registry.path.read_bytes().startswith(whole)
    assert len(registry.trials()) == 2


def test_a_crash_between_the_line_and_the_count_loses_nothing(registry):
    registry.register([outcome("rules/a")])
    head = registry.path.with_name("trials.jsonl.head")
    old = head.read_bytes()
    registry.register([outcome("rules/b")])
    head.write_bytes(old)
    assert len(registry.trials()) == 2
    registry.register([outcome("rules/c")])
    assert len(registry.trials()) == 3


def test_returns_that_are_not_finite_are_refused(registry):
    with pytest.raises(StoreError, match="finite"):
        registry.register([outcome(returns=(0.1, float("nan")))])
    assert registry.trials() == []


def test_a_newer_file_is_refused(registry):
    registry.register([outcome()])
    text = registry.path.read_text().replace('"schema_version":1', '"schema_version":2')
    registry.path.write_text(text)
    with pytest.raises(StoreError, match="newer"):
        registry.trials()


def write_ten(path, name):
    registry = TrialRegistry(path)
    for number in range(10):
        registry.register([outcome(f"rules/{name}{number}"), outcome("rules/shared")])


def test_two_writers_write_to_one_chain(tmp_path):
    # The lock belongs to an open file, so two threads shut each other out as two processes do.
    path = tmp_path / "trials.jsonl"
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write_ten, path, name) for name in "ab"]:
            done.result(60)
    assert TrialRegistry(path).verify()["trials"] == 21


def test_whoever_waits_too_long_is_told(tmp_path):
    path = tmp_path / "trials.jsonl"
    with Journal(path).writing(), pytest.raises(StoreError, match="another process"):
        TrialRegistry(path, ManualClock()).register([outcome()])


def test_a_lockbox_is_opened_once_for_a_release(registry):
    box = Lockbox(registry, MARKET)
    first = box.open("1.0", "ada", ("rules/a",))
    assert (first.before, first.who, first.at_ns) == (0, "ada", 5)
    with pytest.raises(ConfigError, match=r"opened for this release before.*ada.*1970-01-01") as no:
        box.open("1.0", "bob", ("rules/b",))
    assert first.seal in str(no.value)
    later = box.open("1.1", "bob", ("rules/b",))
    assert later.before == 1
    assert box.openings() == [first, later]
    assert registry.verify() == {
        "records": 2,
        "trials": 0,
        "head": later.seal,
        "warnings": [],
    }


def test_cutting_the_data_differently_does_not_give_a_new_lockbox(registry):
    Lockbox(registry, MARKET).open("1.0", "ada", ())
    other = MARKET.model_copy(update={"fingerprint": "g", "first_ns": 190, "last_ns": 250})
    with pytest.raises(ConfigError, match="before"):
        Lockbox(registry, other).open("1.0", "ada", ())
    # Other bars have another fingerprint: it covers the instrument, the period and every byte.
    apart = [
        {"first_ns": 201, "last_ns": 250},
        {"name": "ETH/USDT", "fingerprint": "e"},
        {"period_ns": 60, "fingerprint": "m"},
    ]
    for number, changes in enumerate(apart):
        opened = Lockbox(registry, MARKET.model_copy(update=changes)).open("1.0", "ada", ())
        assert opened.before == 0, number


def test_trials_that_tested_rows_of_the_lockbox_are_counted(registry):
    box = Lockbox(registry, MARKET)
    assert box.peeks() == 0
    registry.register([outcome()])
    apart = MARKET.model_copy(update={"first_ns": 300, "last_ns": 400})
    registry.register([outcome(market=apart)])
    assert box.peeks() == 1


def test_a_release_needs_a_name(registry):
    with pytest.raises(ConfigError, match="release"):
        Lockbox(registry, MARKET).open(" ", "ada", ())
