"""Every way of tampering with the history is noticed, with what somebody must have kept for it."""

import json

import pytest
from sqlalchemy import text

from agent_gym.core.errors import DataError
from agent_gym.pipeline.registry.audit import NO_ANCHOR, read_anchor
from agent_gym.pipeline.registry.ledger import _hash, _New
from tests.pipeline.registry_samples import Site


@pytest.fixture(autouse=True)
def _no_power_cuts(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _handle: None)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    for name in ("one", "two", "three"):
        made.add(name)
    with made.store.database.writing() as db:
        for change in ("update", "delete"):
            db.execute(text(f"drop trigger registry_history_no_{change}"))
    yield made
    made.close()


def run(site, *statements):
    with site.store.database.writing() as db:
        for statement in statements:
            db.execute(text(statement))


def rewrite(site, length):
    """Write the first entries anew, with right hashes and pointer, as an expert would."""
    run(site, f"delete from registry_history where position > {length}")
    last = ""
    for entry in site.registry.history():
        with site.store.database.writing() as db:
            row = db.execute(
                text(f"select * from registry_history where position = {entry.position}")
            ).one()
            digest = _hash(entry.position, last, _New(row.at_ns, row.event, row.data))
            db.execute(
                text(
                    f"update registry_history set previous_hash = '{last}', hash = '{digest}' "
                    f"where position = {entry.position}"
                )
            )
        last = digest
    run(site, f"update registry_pointer set history_length = {length}, history_hash = '{last}'")


def test_a_whole_history_passes(site):
    assert site.registry.audit() == ()
    assert site.registry.audit(site.registry.anchor()) == ()


def test_an_edited_entry_is_noticed(site):
    run(site, "update registry_history set data = '{}' where position = 2")
    assert site.registry.audit()[0] == "entry 2 (registered) was changed"


def test_a_dropped_entry_is_noticed(site):
    run(site, "delete from registry_history where position = 2")
    assert site.registry.audit()[0] == "entry 2 is missing"
    run(site, "update registry_history set position = 2 where position = 3")
    assert site.registry.audit()[0] == "entry 2 (registered) was changed"


def test_reordered_entries_are_noticed(site):
    run(
        site,
        "update registry_history set position = 9 where position = 2",
        "update registry_history set position = 2 where position = 3",
        "update registry_history set position = 3 where position = 9",
    )
    assert site.registry.audit()[0] == "entry 2 (registered) was changed"


def test_an_end_that_was_cut_off_is_noticed_by_the_pointer_and_by_the_anchor(site):
    run(site, "delete from registry_history where position = 3")
    assert site.registry.audit() == (
        "3 entries were written, 2 are left",
        "it was cut off: 3 entries were anchored, 2 are left",
    )


def test_who_mends_the_pointer_too_is_noticed_by_the_anchor(site):
    rewrite(site, 2)
    assert site.registry.ledger.check_history() == ()
    words = "it was cut off: 3 entries were anchored, 2 are left"
    assert site.registry.audit() == (words,)
    assert site.registry.verify() == (f"history: {words}",)


def test_a_history_that_was_written_anew_is_noticed_by_the_anchor(site):
    run(site, 'update registry_history set data = \'{"model": "mine"}\' where position = 1')
    rewrite(site, 3)
    assert site.registry.ledger.check_history() == ()
    assert site.registry.audit() == (
        "entry 3 is not the one that was anchored: it was written anew",
    )


def test_an_anchor_that_was_kept_elsewhere_shows_what_the_workspace_no_longer_can(site):
    kept = site.registry.anchor()
    rewrite(site, 2)
    site.registry.head.unlink()
    assert site.registry.audit() == (NO_ANCHOR,)
    assert site.registry.audit(kept) == ("it was cut off: 3 entries were anchored, 2 are left",)


def test_an_anchor_cannot_be_forged_without_the_key(site):
    said = json.loads(site.registry.head.read_text())
    rewrite(site, 2)
    last = site.registry.history()[-1].hash
    site.registry.head.write_text(json.dumps(said | {"length": 2, "hash": last}))
    assert site.registry.audit() == ("the anchor is not what was signed",)
    site.registry.head.write_text(json.dumps(said | {"key": "0" * 32}))
    assert site.registry.audit() == (f"the anchor is of the foreign key {'0' * 32}",)
    for words in ("{", "[]", "{}", '{"format": "agent_gym.anchor/1"}', "x" * 5_000):
        site.registry.head.write_text(words)
        with pytest.raises(DataError, match="no anchor"):
            read_anchor(site.registry.head)


def test_after_a_restore_the_history_is_anchored_anew_and_says_so(site):
    rewrite(site, 2)
    assert site.registry.audit() != ()
    site.registry.anchor_anew("restored from the copy of Monday")
    assert site.registry.audit() == ()
    assert site.registry.history()[-1].event == "anchored anew"


def test_a_model_that_was_changed_in_shadow_does_not_come_further(tmp_path):
    site = Site(tmp_path)
    _, new = site.ready("old", "new")
    site.service.deploy(new)
    weights = site.registry.artifacts.root / new / "artifact" / "policy.safetensors"
    weights.write_bytes(b"poison")
    with pytest.raises(DataError, match="not what was signed"):
        site.service.advance("canary")
    assert site.service.state().rollout.stage == "shadow"
    assert site.registry.history()[-1].event == "artifact refused"
