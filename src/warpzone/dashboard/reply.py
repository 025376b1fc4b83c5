"""What every answer of the server says about itself, and whole answers in a few words."""

from __future__ import annotations

from http import HTTPStatus

#: They keep a page from doing more than it should.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def reply(status: int, sentence: str, *headers: tuple[str, str]) -> bytes:
    """A whole HTTP answer, after which the connection ends."""
    body = f"{sentence}\n".encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(body)}",
        "connection: close",
        *(f"{name}: {value}" for name, value in (*HEADERS.items(), *headers)),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
