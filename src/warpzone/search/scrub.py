"""Messages without the address of a database: drivers name host, port, user and database in
theirs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, quote, quote_plus, unquote, unquote_plus

HIDDEN = "***"
#: As SQLAlchemy reads a URL: a password may have any character but one.
_URL = re.compile(
    r"[^:/]+://"
    r"(?:(?P<user>[^:/]*)(?::(?P<password>[^/]*|[^@]*))?@)?"
    r"(?P<host>\[[^\]]*\]|[^/:?]*)(?::(?P<port>[^/?]*))?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_PASSWORD = re.compile(r"(?<=://)(?P<user>[^:/]*):(?P<secret>[^/]+|[^@]+)@", re.DOTALL)
_OPTION = re.compile(r"(?P<name>[?&](?:ssl)?password=)(?P<secret>[^&]+)")
#: Parameters of libpq that say where a database is, or who asks.
_OPTIONS = ("host", "hostaddr", "port", "user", "password", "dbname", "service", "passfile")
_KEYS = frozenset((*_OPTIONS, "sslpassword", "sslkey", "sslcert"))
#: The variables of the same meaning.
_VARIABLES = tuple(f"PG{name}" for name in ("DATABASE", *(option.upper() for option in _OPTIONS)))
#: Characters from which on a password is hidden within other words too, and a number is a port.
_LONG, _DIGITS = 6, 3
_QUOTES = (('"', '"'), ("«", "»"), ("»", "«"), ("„", "“”"), ("“", "”"), ("「", "」"))
#: What drivers and servers say, in whichever language.
_PATTERNS = (
    (r'(?:connection (?:failed|is bad): )?connection to server (?:at|on socket) "[^"]*"'
     r"(?: \([^)]*\))?(?:, port \S+)? failed: ", ""),
    (r"(?<!\w)'[^']*'(?!\w)", f"'{HIDDEN}'"),
    *((f"{a}[^{a}{b}]*[{b}]", f"{a}{HIDDEN}{b[0]}") for a, b in _QUOTES),
    (r"\b(host|hostaddr|port|user|password|database|dbname|service)=[^\s),]+", rf"\1={HIDDEN}"),
    (r"\b(port\W{1,3})\d+", rf"\g<1>{HIDDEN}"),
    (r"\S*/\.s\.PGSQL\.\d+", HIDDEN),
    (r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\w)(?::\d+)?", HIDDEN),
    (r"(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:%\w+)?(?![\w:])", HIDDEN),
)  # fmt: skip
_COMPILED = tuple((re.compile(old, re.IGNORECASE), new) for old, new in _PATTERNS)


def hide_passwords(url: str) -> str:
    """A URL with `***` in place of its passwords."""
    url = _PASSWORD.sub(rf"\g<user>:{HIDDEN}@", url)
    return _OPTION.sub(rf"\g<name>{HIDDEN}", url)


def hide_parts(text: str, url: str) -> str:
    """A text without a URL and the parts of it, however they are encoded. Parts are hidden where
    they are whole words, passwords also within one."""
    password = {form for secret in _passwords(url) for form in _forms(secret)}
    words = {form for part in _parts(url) for form in _forms(part)}
    text = text.replace(url, HIDDEN)
    for secret in sorted(password | words, key=len, reverse=True):
        inside = secret in password and len(secret) >= _LONG
        before = r"(?<!\w)" if secret[0].isalnum() and not inside else ""
        after = r"(?!\w)" if secret[-1].isalnum() and not inside else ""
        text = re.sub(before + re.escape(secret) + after, HIDDEN, text, flags=re.IGNORECASE)
    return text


def hide_names(text: str) -> str:
    """What a driver says, without anything that may name a server: what is quoted, addresses and
    ports. Names may come from elsewhere than the URL, and hosts are resolved."""
    for pattern, new in _COMPILED:
        text = pattern.sub(new, text)
    return text


def _passwords(url: str) -> Iterator[str]:
    for pattern in (_PASSWORD, _OPTION):
        yield from (found["secret"] for found in pattern.finditer(url))
    if "PGPASSWORD" in os.environ and not url.startswith("sqlite"):
        yield os.environ["PGPASSWORD"]


def _parts(url: str) -> Iterator[str]:
    """What a URL, and for a server the variables beside it, say of the place."""
    found = _URL.match(url)
    if found is None:
        return
    whole = [found["user"], found["database"]]
    lists = [found["host"].strip("[]"), found["port"]]
    for key, value in parse_qsl(found["query"] or ""):
        if key in _KEYS:
            (lists if key in ("host", "hostaddr", "port") else whole).append(value)
    if not url.startswith("sqlite"):
        whole += [os.environ.get(name) for name in _VARIABLES]
    yield from (part for part in whole if part)
    for several in lists:
        if several:
            yield several
            # Several hosts: a:1,b:2
            pieces = re.split(r"[,:]" if "::" not in several else ",", several)
            yield from (piece for piece in pieces if not piece.isdigit() or len(piece) >= _DIGITS)


def _forms(part: str) -> set[str]:
    """A part as it is, decoded, and encoded by whoever may write it down."""
    forms = {part, unquote(part), unquote_plus(part)}
    for plain in tuple(forms):
        forms |= {quote(plain, safe=""), quote(plain, safe=" +"), quote(plain), quote_plus(plain)}
        forms.add(repr(plain)[1:-1])
    return {form for form in forms if form and form != HIDDEN}
