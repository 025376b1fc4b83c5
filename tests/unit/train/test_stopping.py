"""Signals: answered at once, obeyed between two updates, and the handlers of before come back."""

import os
import signal

import pytest

from warpzone.train.stopping import Interrupted, signals

SAID = "[train][warn] interrupted: finishing and saving the current update; repeat to exit now\n"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_first_signal_is_answered(
    number: signal.Signals, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    # A shell that starts the tests with nohup has it ignored, which is another test.
    before = signal.signal(number, signal.default_int_handler)
    try:
        with signals() as stop:
            assert not stop
            stop.check()
            os.kill(os.getpid(), number)
            assert stop
            assert capfd.readouterr().err == SAID
            with pytest.raises(Interrupted, match=f"interrupted by {number.name}") as caught:
                stop.check()
        assert caught.value.exit_code == code
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_what_was_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
