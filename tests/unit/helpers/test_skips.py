"""A skip counts as a failure in continuous integration, unless its reason is accepted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
SKIPPING = """
import pytest

def test_passes():
    pass

@pytest.mark.xfail(strict=True)
def test_expected_failure():
    assert False

def test_accepted():
    pytest.skip("needs CUDA")

def test_without_browser():
    pytest.skip("there is no Chromium here")
"""
WHOLE_FILE = 'import pytest\npytest.importorskip("a_package_that_does_not_exist")\n'


@pytest.mark.parametrize(
    ("ci", "ends"),
    [
        ("", "1 passed, 3 skipped, 1 xfailed in"),
        ("false", "1 passed, 3 skipped, 1 xfailed in"),
        ("true", "1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error in"),
    ],
)
def test_skips_fail_in_ci_only(tmp_path: Path, ci: str, ends: str) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(SKIPPING)
    (tmp_path / "test_two.py").write_text(WHOLE_FILE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path)),
            *("-c", os.devnull, "--rootdir", str(tmp_path), "--continue-on-collection-errors"),
            *("-o", f"pythonpath={TESTS / 'helpers'}"),
        ],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == (ci == "true"), done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(ends)
    for refused in ("there is no Chromium here", "could not import 'a_package_that_"):
        said = f": skipped in continuous integration: Skipped: {refused}"
        assert (said in done.stdout) == (ci == "true")
