"""The wheel for 64-bit ARM: its name says what its engine asks for. `tests/e2e/test_arm_wheel.py`
builds one."""

import base64
import hashlib
import zipfile
from pathlib import Path

import arm_wheel
import pytest
from arm_wheel import Packages

LISTED = """
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
Version needs section '.gnu.version_r' contains 2 entries:
  0x0010:   Name: GLIBC_2.17  Flags: none  Version: 5
  0x0020:   Name: GLIBC_2.9  Flags: none  Version: 4
  0x0030:   Name: GLIBC_2.34  Flags: none  Version: 3
"""


def test_the_tag_is_the_newest_glibc_that_is_asked_for() -> None:
    assert arm_wheel.platform_tag(LISTED) == "manylinux_2_34_aarch64"
    assert arm_wheel.platform_tag(LISTED.replace("2.34", "2.9")) == "manylinux_2_17_aarch64"


def test_a_library_that_not_every_machine_has_is_refused() -> None:
    other = LISTED.replace("libm.so.6", "libstdc++.so.6")
    with pytest.raises(ValueError, match=r"needs libstdc\+\+\.so\.6"):
        arm_wheel.platform_tag(other)
    with pytest.raises(ValueError, match="no version of glibc"):
        arm_wheel.platform_tag("")


def test_a_new_tag_keeps_the_wheel_whole(tmp_path: Path) -> None:
    info = "warpzone-1.dist-info"
    wheel = tmp_path / "warpzone-1-cp311-cp311-linux_aarch64.whl"
    record = f"warpzone/x.py,sha256=abc,1\n{info}/WHEEL,sha256=old,9\n{info}/RECORD,,\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("warpzone/x.py", "1")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: cp311-cp311-linux_aarch64\n")
        archive.writestr(f"{info}/RECORD", record)
    out = tmp_path / "out"
    out.mkdir()
    made = arm_wheel.tagged(wheel, "manylinux_2_34_aarch64", out)
    assert made.name == "warpzone-1-cp311-cp311-manylinux_2_34_aarch64.whl"
    with zipfile.ZipFile(made) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    text = content[f"{info}/WHEEL"]
    assert text == b"Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_34_aarch64\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    lines = content[f"{info}/RECORD"].decode().splitlines()
    assert lines == [
        "warpzone/x.py,sha256=abc,1",
        f"{info}/WHEEL,sha256={digest},{len(text)}",
        f"{info}/RECORD,,",
    ]
    assert content["warpzone/x.py"] == b"1"


@pytest.mark.parametrize("tool", ["", "exit 100"])
def test_a_machine_without_the_packages_hears_one_sentence(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No apt, and an apt that finds nothing."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("apt-get", "dpkg-deb") if tool else ():
        (tools / name).write_text(f"#!/bin/sh\necho E: no release file >&2\n{tool}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    expected = "64-bit ARM here: E: no release file" if tool else "there is no apt here"
    with pytest.raises(arm_wheel.MissingError, match=expected):
        Packages(tmp_path / "work").fetch()
    assert not (tmp_path / "work" / "complete").exists()


def test_packages_come_from_where_this_machines_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\n[ "$1" = indextargets ] && cat "$0.knows"\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    knows = tmp_path / "apt-get.knows"
    knows.write_text("http://mirror.example/debian/\nhttp://mirror.example/other/\n")
    assert arm_wheel.debian() == "http://mirror.example/debian/"
    knows.write_text("")
    with pytest.raises(arm_wheel.MissingError, match="apt knows no archive of Debian here"):
        arm_wheel.debian()
