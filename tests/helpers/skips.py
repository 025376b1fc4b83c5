"""Skips that continuous integration accepts; every other one is a failure there (CI=true)."""

from __future__ import annotations

import os
import re

import pytest

#: What a machine may lack although `make test` set it up: hardware, an operating system, rights,
#: the tools that only examples of the guides use, packages of another machine (the workflow
#: `wheels` builds on an ARM itself), and a linter that the workflow `push` runs too.
ACCEPTED = re.compile(
    r"needs CUDA|this CPU has the portable code only|the C library here is not glibc"
    r"|only here is the display an environment variable|needs a disk that is always full"
    r"|machine code is emitted for x86-64 CPUs only"
    r"|this kernel knows no PR_SET_MDWE"
    r"|mounting a small file system needs root|no tmpfs here"
    r"|apt has no .* of 64-bit ARM here"
    r"|there is no Python 3\.\d+ that can build here"
    r"|(jq|pandas|polars|openssl|curl|actionlint) is not installed"
)


def in_ci() -> bool:
    return os.environ.get("CI", "") not in ("", "false")


def reason(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """Why a test, or a file of tests, was skipped; None where it was not."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return None
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip that is not accepted into a failure."""
    why = reason(report)
    if why is not None and not ACCEPTED.search(why):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipped in continuous integration: {why}"
