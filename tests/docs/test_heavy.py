"""The list of heavy tests names tests that are there, and the weigher lists what it should."""

from pathlib import Path

from scripts.weigh_tests import LEFT_S, heavy, weights

ROOT = Path(__file__).parents[2]


def source_of(name):
    """Return the file that a name of the list leads to; a class may stand behind it."""
    parts = name.partition("::")[0].split(".")
    for end in (len(parts), len(parts) - 1):
        path = ROOT.joinpath(*parts[:end]).with_suffix(".py")
        if path.is_file():
            return path
    return None


def is_there(name):
    """Return whether there is such a test; a machine of Hypothesis is known by its class."""
    place, _, function = name.partition("::")
    path = source_of(name)
    word = f"{place.rpartition('.')[2]} =" if function == "runTest" else f"def {function}("
    if path is None:
        return False
    shared = path.parent.glob("*_samples.py")  # tests that several classes inherit
    return any(word in each.read_text() for each in (path, *shared))


def test_every_heavy_test_is_there():
    listed = (ROOT / "tests/heavy.txt").read_text().split()
    assert listed == sorted(set(listed))
    lost = [name for name in listed if not is_there(name)]
    assert not lost, "write the list again: make weigh"
    assert not is_there("tests.docs.test_heavy::test_that_nobody_wrote")


def test_the_longest_go_until_the_rest_fits(tmp_path):
    cases = [("a", "one[1]", LEFT_S), ("a", "one[2]", 9.0), ("b", "two", 5.0), ("c", "three", 0.5)]
    rows = "".join(f'<testcase classname="{c}" name="{n}" time="{t}"/>' for c, n, t in cases)
    (tmp_path / "junit.xml").write_text(f"<testsuite>{rows}</testsuite>")
    found = weights(tmp_path / "junit.xml")
    assert found == {"a::one": LEFT_S + 9.0, "b::two": 5.0, "c::three": 0.5}
    assert heavy(found) == ["a::one"]
    assert heavy({"a": LEFT_S, "b": 0.9}) == ["a"]
    assert heavy({"a": LEFT_S / 2}) == []
