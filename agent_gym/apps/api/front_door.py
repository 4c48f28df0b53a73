"""The front door for people: a page that asks for a token, and the session that follows it.

It belongs to the guard and shows nothing of the service: the page is made of what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import TypeAlias
from urllib.parse import parse_qs, quote, urlsplit

from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import Headers

from agent_gym.apps.api.problems import HEADERS
from agent_gym.apps.api.sessions import COOKIE, Sessions, cookie_header
from agent_gym.apps.api.tokens import Token

DASHBOARD = "/dashboard"
LOGIN, LOGOUT = f"{DASHBOARD}/login", f"{DASHBOARD}/logout"
LONGEST_WAY = 2_000
LANGUAGE_COOKIE = "agent_gym_language"
Texts: TypeAlias = Mapping[str, str]
_OWN = "'self'"
PAGE_HEADERS = HEADERS | {
    "content-security-policy": (
        f"default-src 'none'; script-src {_OWN} 'unsafe-inline' 'unsafe-eval'; "
        f"style-src {_OWN} 'unsafe-inline'; img-src {_OWN} data:; font-src {_OWN}; "
        f"connect-src {_OWN}; media-src {_OWN} data:; frame-src {_OWN}; form-action {_OWN}; "
        f"base-uri 'none'; frame-ancestors {_OWN}"
    ),
    "referrer-policy": "same-origin",  # a form without one would not say where it comes from
    "x-frame-options": "SAMEORIGIN",
}
LOGIN_HEADERS = HEADERS | {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "same-origin",
}
_STYLE = """
:root { color-scheme: light dark; --back: #f6f7f9; --card: #fff; --ink: #16202c; --faint: #5b6876;
  --line: #d9dee5; --accent: #0b63b0; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --back: #10151b; --card: #181f27; --ink: #e7ecf2;
  --faint: #9aa7b5; --line: #2d3743; --accent: #6cb2f5; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 16px;
  background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 420px; padding: 28px; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; }
h1 { margin: 0 0 4px; font-size: 22px; } p { margin: 0 0 16px; color: var(--faint); }
label { display: block; font-weight: 600; margin-bottom: 6px; }
input { width: 100%; padding: 10px 12px; font: 15px ui-monospace, monospace; color: inherit;
  background: var(--back); border: 1px solid var(--line); border-radius: 8px; }
button { width: 100%; margin-top: 16px; padding: 10px 12px; font: inherit; font-weight: 600;
  color: #fff; background: #0b63b0; border: 0; border-radius: 8px; cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.wrong { color: var(--bad); font-weight: 600; } code { font-family: ui-monospace, monospace; }
"""
LOGIN_TEXTS: dict[str, Texts] = {
    "en": {
        "title": "Log in - Agent Gym",
        "about": "This dashboard needs a token. `agent-gym serve` shows the first one, once; "
        "`agent-gym tokens add NAME` makes others.",
        "token": "Token",
        "enter": "Log in",
        "wrong": "This token is not known here, or it has expired.",
    },
    "ru": {
        "title": "Вход - Agent Gym",
        "about": "Для входа нужен токен. `agent-gym serve` показывает первый один раз; "
        "`agent-gym tokens add NAME` создаёт новые.",
        "token": "Токен",
        "enter": "Войти",
        "wrong": "Такого токена здесь нет, или он истёк.",
    },
}


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """Who of the people may come in.

    Attributes:
        sessions: Knows the cookies.
    """

    sessions: Sessions

    def owns(self, path: str) -> bool:
        """Return whether a path lies behind this door."""
        return path == DASHBOARD or path.startswith(f"{DASHBOARD}/")

    def token(self, headers: Headers) -> Token | None:
        """Return whose session a request belongs to."""
        cookie = session_cookie(headers)
        return None if cookie is None else self.sessions.check(cookie)

    def greets(self, headers: Headers) -> Response:
        """Return the page of the login to somebody who simply visits it."""
        return HTMLResponse(_page(language_of(headers), LOGIN, wrong=False), 200, LOGIN_HEADERS)

    def asks(self, scope_path: str, query: bytes, headers: Headers, *, wrong: bool) -> Response:
        """Return the page that asks for a token, as the answer to a request without one."""
        language = language_of(headers)
        way = scope_path + (f"?{query.decode('latin-1')}" if query else "")
        return HTMLResponse(_page(language, way, wrong=wrong), 401, LOGIN_HEADERS)

    def login(self, body: bytes, headers: Headers) -> tuple[Token | None, Response]:
        """Return who came in and the way on, or nobody and the page again."""
        try:
            form = parse_qs(body.decode("ascii"), max_num_fields=10)
        except ValueError:
            form = {}
        way = (form.get("next") or [""])[0]
        begun = self.sessions.begin((form.get("token") or [""])[0].strip())
        if begun is None:
            return None, self.asks(way if self.owns(way) else DASHBOARD, b"", headers, wrong=True)
        token, cookie = begun
        answer = RedirectResponse(safe_way(way), 303, HEADERS)
        secure = headers.get("x-forwarded-proto") == "https"
        answer.headers.append("set-cookie", cookie_header(cookie, path=DASHBOARD, secure=secure))
        return token, answer

    def logout(self, headers: Headers) -> Response:
        """Return the way out; the session has ended."""
        self.sessions.end(session_cookie(headers) or "")
        answer = RedirectResponse(LOGIN, 303, HEADERS)
        answer.headers.append("set-cookie", cookie_header(None, path=DASHBOARD))
        return answer


def session_cookie(headers: Headers) -> str | None:
    """Return the cookie of the session, if there is one."""
    return cookie_of(headers, COOKIE)


def cookie_of(headers: Headers, name: str) -> str | None:
    """Return a cookie of a request by its name."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def same_origin(headers: Headers) -> bool:
    """Return whether a request comes from a page of ours; programs do not say where they are.

    Example:
        >>> same_origin(Headers({"host": "a:1", "origin": "http://a:1"}))
        True
        >>> same_origin(Headers({"host": "a:1", "origin": "http://evil"}))
        False
    """
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def wants_page(headers: Headers) -> bool:
    """Return whether a person is asking, with a browser."""
    return "text/html" in headers.get("accept", "")


def language_of(headers: Headers) -> str:
    """Return the language that was chosen, or else the first that the browser names and we have.

    Example:
        >>> language_of(Headers({"accept-language": "de, ru;q=0.8"}))
        'ru'
    """
    chosen = cookie_of(headers, LANGUAGE_COOKIE)
    said = headers.get("accept-language", "")[:500].lower().split(",")
    names = [chosen or "", *(each.strip().partition(";")[0].partition("-")[0] for each in said)]
    return next((name for name in names if name in LOGIN_TEXTS), "en")


def safe_way(way: str) -> str:
    """Return where to go after the login: somewhere behind the door, whatever was asked for.

    Example:
        >>> safe_way("/dashboard/runs?page=2"), safe_way("//evil.example"), safe_way("/dashboardx")
        ('/dashboard/runs?page=2', '/dashboard', '/dashboard')
    """
    path, mark, query = way.partition("?")
    inside = path == DASHBOARD or path.startswith(f"{DASHBOARD}/")
    if not inside or path in (LOGIN, LOGOUT) or len(way) > LONGEST_WAY or not way.isprintable():
        return DASHBOARD
    return quote(path) + mark + quote(query, safe="=&%+-._~:,/")


def _page(language: str, way: str, *, wrong: bool) -> str:
    words = LOGIN_TEXTS[language]
    said = f'<p class="wrong" role="alert">{escape(words["wrong"])}</p>' if wrong else ""
    about = "".join(
        f"<code>{escape(part)}</code>" if at % 2 else escape(part)
        for at, part in enumerate(words["about"].split("`"))
    )
    return f"""<!doctype html>
<html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(words["title"])}</title><style>{_STYLE}</style></head>
<body><main><h1>Agent Gym</h1><p>{about}</p>{said}
<form method="post" action="{LOGIN}">
<label for="token">{escape(words["token"])}</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<input type="hidden" name="next" value="{escape(safe_way(way))}">
<button type="submit">{escape(words["enter"])}</button>
</form></main></body></html>
"""
