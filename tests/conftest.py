"""Fixtures shared by all tests: the ROMs and their translated programs."""

import os
import platform
from collections.abc import Generator
from pathlib import Path
from typing import Any

import limits
import pytest
import skips

from warpzone import rom as roms

# What is printed depends on the terminal; the tests' own, and that of the processes they start, is
# wide enough for every table and has no colours.
os.environ.update(COLUMNS="120", LINES="40")
# Measurements of tests are nobody's; those that look at them name a ledger of their own.
os.environ["WARPZONE_LEDGER"] = os.devnull
for _name in ("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    with limits.limited(limits.limit_of(item)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    with limits.limited(limits.limit_of(item)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    with limits.limited(limits.limit_of(item)):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if skips.in_ci():
        skips.refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if skips.in_ci():
        skips.refuse(report)
    return report


@pytest.fixture(scope="session", params=list(roms.VARIANTS))
def variant(request: pytest.FixtureRequest) -> str:
    """Every test that uses it runs on each ROM we know."""
    return str(request.param)


@pytest.fixture(scope="session")
def rom(variant: str) -> bytes:
    """A missing ROM fails the test with the command that installs it."""
    return roms.load_stored(variant).data


@pytest.fixture(scope="session")
def native(rom: bytes) -> Any:
    """The translated program of `rom`."""
    from warpzone.rom import native as translator

    return translator.prepare(rom)


def _emit(rom: bytes) -> Any:
    from warpzone import _engine

    if platform.machine() != "x86_64":
        pytest.skip("machine code is emitted for x86-64 CPUs only")
    return _engine.emit(rom)


@pytest.fixture(scope="session")
def emitted(rom: bytes) -> Any:
    """The same made by the engine's own emitter."""
    return _emit(rom)


@pytest.fixture(scope="session", params=["compiled", "emitted"])
def translated(request: pytest.FixtureRequest, rom: bytes, native: Any) -> Any:
    """Every test that uses it runs on compiled and on emitted code."""
    return native if request.param == "compiled" else _emit(rom)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data and cache folders of the test's own, and no overrides from the caller's shell."""
    for name in ("WARPZONE_ROM", "MARIO_ROM", "WARPZONE_NATIVE", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WARPZONE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("WARPZONE_CACHE", str(tmp_path / "cache"))
    return tmp_path
