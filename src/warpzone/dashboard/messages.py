"""The messages that a browser may send."""

from __future__ import annotations

import struct
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from warpzone.run.jsonl import encode

#: Bytes of a message from a browser.
MAX_SIZE = 16 * 1024

RunId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Stage = Annotated[str, Field(pattern=r"^[1-8]-[1-4]$")]


class Message(BaseModel):
    """Strict: no other fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Hello(Message):
    """The first message. Control needs the token, and on a bind that is not local all does."""

    type: Literal["hello"]
    token: str = Field("", max_length=200)


class Watch(Message):
    """Which runs are on the screen, and whether the wall of the first one is."""

    type: Literal["watch"]
    runs: list[RunId] = Field(max_length=6)
    wall: bool = False
    #: Whether the wall is to show the game's own screens.
    screens: bool = False


class Ack(Message):
    """The last push has arrived; the next one may come."""

    type: Literal["ack"]


class Curves(Message):
    """Curves with about `points` points in a range."""

    type: Literal["curves"]
    request: int = Field(ge=0, le=2**53)
    runs: list[RunId] = Field(min_length=1, max_length=6)
    names: list[Name] = Field(min_length=1, max_length=40)
    axis: Literal["global_step", "seconds", "update", "timestamp"] = "global_step"
    low: Number | None = None
    high: Number | None = None
    points: int = Field(600, ge=20, le=4000)


class Part(Message):
    """One part of a run."""

    type: Literal["part"]
    request: int = Field(ge=0, le=2**53)
    run: RunId
    what: Literal[
        "names",
        "config",
        "stages",
        "ends",
        "map",
        "episodes",
        "log",
        "checkpoints",
        "answers",
        "events",
    ]
    stage: Stage | None = None
    after: int = Field(0, ge=0, le=2**53)


class Do(Message):
    """A command to a run."""

    type: Literal["do"]
    request: int = Field(ge=0, le=2**53)
    run: RunId
    what: Name
    value: Number | None = None
    name: str = Field("", max_length=40)


Anything = Hello | Watch | Ack | Curves | Part | Do
_ADAPTER: TypeAdapter[Anything] = TypeAdapter(Annotated[Anything, Field(discriminator="type")])


def parse(text: str) -> Anything:
    """A message, or ValueError."""
    return _ADAPTER.validate_json(text)


def packed(header: dict[str, Any], payload: bytes) -> bytes:
    """A binary message: the header's length, the header as JSON, the payload."""
    # The payload begins at a multiple of 8, so that a browser can use it as an array of numbers.
    text = encode(header).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return struct.pack("<I", len(text)) + text + payload
