"""`warpzone train --notify URL`: the webhook of a run, and what it is told at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpzone.cli import flags
from warpzone.config import ConfigError
from warpzone.health.webhook import VARIABLE, Webhook, check_address
from warpzone.run.journal import say

if TYPE_CHECKING:
    from warpzone.train.loop import Run

FLAG = "--notify"


def take_address(words: list[str]) -> str:
    """The address given by the flag or the variable; empty without one. It may hold a secret."""
    return flags.take_hidden(words, FLAG, VARIABLE)


def check(address: str) -> None:
    """ConfigError if there is an address and it cannot be one."""
    try:
        if address:
            check_address(address)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def open_webhook(address: str) -> Webhook | None:
    """The webhook at an address that was checked; None without one."""
    return Webhook(address, say) if address else None


class Ending:
    """How training ended, for the webhook."""

    def __init__(self, webhook: Webhook | None) -> None:
        self._webhook = webhook
        self._event = "failure"
        self._text = "it ended with an error that is in its log"
        #: The run, once there is one.
        self.run: Run | None = None

    def failed(self, sentence: str) -> str:
        """It failed; returns the sentence."""
        self._event, self._text = "failure", sentence
        return sentence

    def interrupted(self) -> None:
        """A signal ended it."""
        self._event, self._text = "interrupt", "interrupted by a signal"

    def finished(self, text: str) -> None:
        """It came to its end."""
        self._event, self._text = "end", text

    def tell(self) -> None:
        """Tells the webhook, if there is one, and waits a while until it has heard."""
        if self._webhook is None:
            return
        about: dict[str, Any] = {"run": ""}
        if self.run is not None:
            about = {"run": self.run.folder.path.name, "update": self.run.global_update}
            about["global_step"] = self.run.global_step
        name = about["run"] or "a run that did not begin"
        self._webhook.send(self._event, f"{name}: {self._text}", **about)
        self._webhook.close()
