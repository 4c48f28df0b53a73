import pytest

from agent_gym.agents.desk.redaction import Redactor


@pytest.mark.parametrize(
    "text",
    ["Bearer abcdef123456", "basic dXNlcjpwYXNz", "sk-abcdefghijklmnopqrst", "ghp_" + "a" * 20],
)
def test_what_looks_like_a_secret_is_taken_out(text):
    assert Redactor().text(f"x {text} y") == "x *** y"


def test_numbers_and_plain_words_stay():
    value = {"token_price": 3.5, "basic": "a plain note here", "n": [1, 2.0, None, True]}
    assert Redactor().value(value) == value


def test_a_secret_of_three_letters_is_refused():
    with pytest.raises(ValueError, match="at least 4"):
        Redactor(["abc"])
