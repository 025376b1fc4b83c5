"""The C compiler of this machine, used to turn translated ROM programs into libraries."""

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

_NATIVE = "-mcpu=native" if platform.machine() in ("arm64", "aarch64") else "-march=native"
FLAGS = ("-O2", "-fPIC", "-shared", _NATIVE, "-fno-strict-aliasing")
_SECONDS = 300
_ADVICE = "install gcc or clang (for example `apt install gcc`) or set CC"


class CompilerError(Exception):
    """No compiler, or it failed; one sentence."""


class NoCompilerError(CompilerError):
    """There is none, and none was asked for."""


def find() -> list[str]:
    """The command that compiles C: $CC if set, else the first of cc, gcc and clang."""
    if chosen := os.environ.get("CC"):
        command = shlex.split(chosen)
        if command and shutil.which(command[0]):
            return command
        raise CompilerError(f"the C compiler in CC ({chosen}) is not there; {_ADVICE}.")
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    raise NoCompilerError(f"there is no C compiler; {_ADVICE}.")


def describe(command: list[str]) -> str:
    """The first line of the compiler's own introduction."""
    try:
        done = _run([*command, "--version"])
    except (OSError, subprocess.SubprocessError) as error:
        raise CompilerError(f"{shlex.join(command)} does not run ({error}).") from error
    return (done.stdout.splitlines() or [shlex.join(command)])[0]


def compile_shared(source: Path, product: Path) -> str:
    """Compiles a C file to a shared library and says with what."""
    command = find()
    try:
        done = _run([*command, "-std=c11", *FLAGS, "-o", str(product), str(source)])
    except subprocess.TimeoutExpired as error:
        raise CompilerError(f"{command[0]} did not finish within {_SECONDS} seconds.") from error
    except OSError as error:
        raise CompilerError(f"{command[0]} does not run ({error.strerror}); {_ADVICE}.") from error
    if done.returncode != 0 or not product.exists():
        reason = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        raise CompilerError(f"{command[0]} failed ({reason.strip()}); {_ADVICE}.")
    return describe(command)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    # The command is the user's own compiler, run without a shell.
    return subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
