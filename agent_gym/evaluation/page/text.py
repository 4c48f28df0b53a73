"""Text from outside, made harmless before any output shows it."""

from __future__ import annotations

import re

CUT = " ... (cut)"
# Control signs (terminal escapes among them), what turns the direction of writing around, lone
# surrogates and what XML cannot hold. Line ends and tabs are dealt with by each output.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_NONCHARACTER = 0xFFFE


def visible(text: str, limit: int = 4_000) -> str:
    r"""Return text in which every sign can be seen, cut to a length.

    Example:
        >>> visible("\x1b[31mred\x1b[0m")
        '\\x1b[31mred\\x1b[0m'
    """
    shown = _UNSEEN.sub(_escape, text)
    shown = "".join(c if ord(c) & _NONCHARACTER != _NONCHARACTER else _code(c) for c in shown)
    return shown if len(shown) <= limit else shown[: limit - len(CUT)] + CUT


def one_line(text: str, limit: int = 300) -> str:
    r"""Return visible text without line ends.

    Example:
        >>> one_line("a\n  b")
        'a b'
    """
    return visible(" ".join(text.split()), limit)


def _escape(found: re.Match[str]) -> str:
    return _code(found.group())


def _code(sign: str) -> str:
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
