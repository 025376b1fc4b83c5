"""`warpzone doctor` and the command line around it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import warpzone
from warpzone.cli import doctor
from warpzone.cli.extras import EXTRAS
from warpzone.cli.main import COMMANDS, main
from warpzone.rom import download


@pytest.fixture(autouse=True)
def _index(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks a real package index."""
    monkeypatch.setattr(download, "look", lambda folder: None)


def checks(
    capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, dict[str, dict[str, str]]]:
    code = main(["doctor", "--json", *flags])
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    assert all(check["advice"] for check in found if check["status"] == "note")
    return code, {check["name"]: check for check in found}


def test_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checks(capsys)
    assert code == 0
    assert found["engine"]["detail"].startswith(warpzone.__version__)
    assert "portable" in found["engine"]["detail"]
    assert found["cpu"]["detail"].endswith("portable") or found["cpu"]["status"] == "note"
    assert "network" not in found, "nothing is to be fetched"
    assert checks(capsys, "--network")[1]["network"]["status"] == "ok"
    assert (
        found["python"]["status"] == found["rom"]["status"] == found["compiler"]["status"] == "ok"
    )


def test_missing_rom_is_a_problem_with_its_command(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = checks(capsys)
    assert code == 1
    assert found["rom"]["status"] == "problem"
    assert found["rom"]["advice"] == "warpzone rom install"
    assert found["network"]["status"] == "ok"


def test_damaged_rom_is_a_problem(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folders / "data" / "roms").mkdir(parents=True)
    (folders / "data" / "roms" / "world.nes").write_bytes(b"NES")
    code, found = checks(capsys)
    assert code == 1
    assert "damaged" in found["rom"]["detail"]


@pytest.mark.parametrize("refusal", [None, "this system refuses memory for code"])
def test_missing_compiler_is_a_note(
    folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    refusal: str | None,
) -> None:
    monkeypatch.setenv("PATH", str(folders))
    monkeypatch.setattr("warpzone.rom.native.emitter_refusal", lambda: refusal)
    found = checks(capsys)[1]
    assert found["compiler"]["status"] == "note"
    expected = "5 times slower" if refusal else "the emitter is used"
    assert expected in found["compiler"]["detail"]
    assert found["gpu"]["status"] == "note"


@pytest.mark.parametrize(
    ("native", "refusal", "status", "detail"),
    [
        ("1", None, "ok", "emitted in memory when it is loaded, because there is no compiler"),
        ("emitted", None, "ok", "emitted in memory when it is loaded, because WARPZONE_NATIVE="),
        ("fast", None, "problem", "WARPZONE_NATIVE is 0, 1 or emitted, not 'fast'."),
        ("1", "this system refuses memory for code", "note", "for code; the interpreter is about"),
        ("0", None, "note", "switched off"),
    ],
)
def test_translated_code_without_a_compiler(
    rom: bytes,
    folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    native: str,
    refusal: str | None,
    status: str,
    detail: str,
) -> None:
    (folders / "game.nes").write_bytes(rom)
    monkeypatch.setenv("WARPZONE_ROM", str(folders / "game.nes"))
    monkeypatch.setenv("WARPZONE_NATIVE", native)
    monkeypatch.setenv("PATH", str(folders))
    monkeypatch.setattr("warpzone.rom.native.emitter_refusal", lambda: refusal)
    found = checks(capsys)[1]["translated"]
    assert found["status"] == status
    assert detail in found["detail"]


def test_missing_extras_name_what_installs_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    found = checks(capsys)[1]
    for module, (_, extra) in EXTRAS.items():
        assert found[module]["advice"] == f"pip install 'warpzone[{extra}]'"


def test_no_display(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DISPLAY", ":7")
    assert checks(capsys)[1]["display"]["detail"] == "DISPLAY=:7"
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("warpzone.cli.doctor.sys.platform", "linux")
    assert "--out" in checks(capsys)[1]["display"]["advice"]


def test_text_shows_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    shown = capsys.readouterr().out
    assert all(f" {name} " in shown for name in ("python", "engine", "compiler", "torch"))


def test_import_and_help_stay_light() -> None:
    """torch takes seconds to import and the engine is not needed to print help."""
    heavy = ["torch", "gymnasium", "warpzone._engine", "imageio", "tyro"]
    program = (
        "import sys, warpzone\n"
        "from warpzone.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("order", ["gymnasium, warpzone", "warpzone, gymnasium"])
def test_environments_are_registered_in_either_order(order: str) -> None:
    program = f"import {order}\nprint(sum(id.startswith('warpzone/') for id in gymnasium.registry))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == "34\n"


def test_asking_for_a_package_does_not_use_up_the_watch() -> None:
    program = (
        "import warpzone, importlib.util\n"
        "importlib.util.find_spec('gymnasium')\n"
        "import gymnasium\n"
        "print('warpzone/SuperMarioBros-v0' in gymnasium.registry)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == "True\n"


def test_doctor_does_not_import_torch_unasked() -> None:
    program = (
        "import sys\nfrom warpzone.cli.main import main\nmain(['doctor'])\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"warpzone {warpzone.__version__}\n"


@pytest.mark.parametrize("name", warpzone.__all__)
def test_public_names_exist(name: str) -> None:
    assert getattr(warpzone, name)
    assert name in dir(warpzone)


def test_unknown_public_name() -> None:
    with pytest.raises(AttributeError, match="luigi"):
        warpzone.luigi  # noqa: B018
