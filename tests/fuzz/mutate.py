"""Inputs made from good ones: bytes that are flipped, cut, repeated and mixed, and JSON documents
with values exchanged that stay JSON."""

from __future__ import annotations

import json
import marshal
import random
from collections.abc import Sequence
from typing import Any

#: What parsers trip over, as text.
TOKENS = (
    *(b"NaN", b"-Infinity", b"1e999", b"-1e400", b"1e-400", b"-0", b"9" * 25, b"9" * 5000, b"-1"),
    *(b"null", b"true", b"[]", b"{}", b'""', b'"\\ud800"', b'"\\u0000"', b'"\x1b[2J"', b"\xff\xfe"),
    *(b"\0", b"\r\n", b"\n", b"[" * 500, b'{"a":' * 500, b"|", b"0x", b"#", b"=", b"'''", b"[[x]]"),
    *(b"../../x", b"/dev/zero", b"A" * 70_000, b"PK\x01\x02", b"PK\x05\x06", b"\x1f\x8b"),
)
#: The same as values of a document.
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**53,
        2**63,
        2**80,
        -(2**80),
        10**30,
        0.5,
        1e308,
        -1e308,
    ),
    *(1e-320, "", "x", "1-1", "9-9", "../../x", "\x1b[2J", "\ud800", "\u202e", "a" * 3000, "0"),
    *([], {}, [[]], [1, "x", None], {"a": {"b": []}}, [[[[[[]]]]]], float("nan"), float("inf")),
)


class Mutator:
    """Draws inputs; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def content(self, seeds: Sequence[bytes], most: int = 1 << 20) -> bytes:
        """One of the seeds, changed in one to six places."""
        draw = self.random
        data = bytearray(draw.choice(seeds))
        for _ in range(draw.choice((0, 1, 1, 1, 2, 3, 6))):
            data = self._changed(data, seeds)
        return bytes(data[:most])

    def _changed(self, data: bytearray, seeds: Sequence[bytes]) -> bytearray:
        draw = self.random
        place = draw.randrange(len(data) + 1)
        size = min(len(data) - place, draw.choice((1, 2, 4, 8, 30, 200, 5000)))
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1 and data:
            data[place % len(data)] = draw.randrange(256)
        elif kind == 2:
            del data[place : place + size]
        elif kind == 3:
            data[place:place] = data[place : place + size] * draw.choice((1, 2, 50))
        elif kind == 4:
            data[place : place + draw.choice((0, size))] = draw.choice(TOKENS)
        elif kind == 5:
            other = draw.choice(seeds)
            start = draw.randrange(len(other) + 1)
            data[place : place + size] = other[start : start + size]
        elif kind == 6:
            del data[place:]
        else:
            data[place : place + size] = draw.randbytes(size)
        return data

    def document(self, seed: Any) -> Any:
        """A document with values exchanged, dropped or added in one to four places."""
        draw = self.random
        root = {"": _copy(seed)}
        for _ in range(draw.choice((1, 1, 2, 4))):
            inside: Any = root
            key: Any = ""
            while True:
                child = inside[key]
                if not isinstance(child, dict | list) or not child or draw.random() < 0.15:
                    break
                inside = child
                key = (
                    draw.choice(list(child))
                    if isinstance(child, dict)
                    else draw.randrange(len(child))
                )
            action = draw.randrange(6)
            if action == 0 and inside is not root:
                del inside[key]
            elif action == 1 and isinstance(inside, dict) and inside is not root:
                name = draw.choice(("x", "\x1b", "a" * 200, "\ud800", ""))
                inside[name] = _copy(draw.choice(VALUES))
            else:
                inside[key] = _copy(draw.choice(VALUES))
        return root[""]

    def text(self, seed: Any) -> bytes:
        """A changed document as text, one time in four with changed bytes as well."""
        text = json.dumps(self.document(seed)).encode()
        return self.content([text]) if self.random.random() < 0.25 else text

    def lines(self, rows: Sequence[Any], count: int = 6) -> bytes:
        """A JSONL file of changed rows among good ones."""
        draw = self.random
        parts = []
        for _ in range(draw.randrange(1, count)):
            row = draw.choice(rows)
            good = draw.random() < 0.4
            parts.append(json.dumps(row).encode() if good else self.text(row))
        return b"\n".join(parts) + draw.choice((b"\n", b"", b"\n\n"))


def _copy(value: Any) -> Any:
    """Much quicker than copy.deepcopy, and as good for JSON."""
    return marshal.loads(marshal.dumps(value))
