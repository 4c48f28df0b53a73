"""Names of folders made from names of the market: only plain letters, one folder a name.

Whatever is typed as a symbol, the result cannot climb out of a directory, cannot be mistaken for
another symbol, and reads the same on every file system.
"""

from __future__ import annotations

import re
import unicodedata

from agent_gym.core.errors import ConfigError

MAX_LENGTH = 64
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)


def exchange_folder(exchange: str) -> str:
    """Return the folder of an exchange, which is its ccxt id.

    Example:
        >>> exchange_folder("binance")
        'binance'
    """
    if not re.fullmatch(r"[a-z0-9_]{2,40}", exchange) or _RESERVED.fullmatch(exchange):
        raise ConfigError(
            "not the name of an exchange",
            found=ascii(exchange)[:80],
            expected="2 to 40 of a-z, 0-9 and _",
        )
    return exchange


def symbol_folder(symbol: str) -> str:
    """Return a folder for a symbol; different symbols never share one.

    Letters of scripts without case (some coins have Chinese names) are escaped. Cased letters of
    other scripts look like Latin ones and are refused, as is every other sign.

    Example:
        >>> symbol_folder("BTC/USDT")
        'BTC-USDT'
        >>> symbol_folder("BTC/USDT:USDT")
        'BTC-USDT%3AUSDT'
    """
    plain = re.compile(r"[A-Za-z0-9/:._-]")
    stranger = next(
        (x for x in symbol if not plain.match(x) and unicodedata.category(x) != "Lo"), None
    )
    folder = "".join(_escaped(letter) for letter in symbol)
    if (
        stranger is not None
        or not 0 < len(symbol) <= MAX_LENGTH
        or not symbol[0].isalnum()
        or unicodedata.normalize("NFKC", symbol) != symbol
        or _RESERVED.fullmatch(symbol)
    ):
        raise ConfigError(
            "not a symbol that can name a folder",
            found=ascii(symbol)[:80],
            expected=f"letters, digits and / : . _ -, at most {MAX_LENGTH}",
            remedy="Write it like BTC/USDT or BTC/USDT:USDT",
        )
    return folder


def _escaped(letter: str) -> str:
    if letter == "/":
        return "-"
    if letter.isascii() and letter.isalnum():
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode())
