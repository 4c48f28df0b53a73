"""A page that needs nobody: script and style inside, and a policy that lets nothing else in."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from typing import NamedTuple


class Dress(NamedTuple):
    """What a page wears: its script, its style, and the style it has where scripts are off."""

    script: str
    style: str
    no_script: str
    media: bool = False


def html_document(title: str, body: str, colour: str, dress: Dress) -> str:
    """Return a whole page around a body; only what is named by its hash may run."""
    script, style, no_script, media = dress
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; {'media-src data:; ' if media else ''}"
        f"style-src {_hash(style)} {_hash(no_script)}; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        (
            f'<!doctype html>\n<html lang="en" data-light="{colour}">',
            '<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>\n<noscript><style>{no_script}</style></noscript>\n</head>",
            f"<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n",
        )
    )


@cache
def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
