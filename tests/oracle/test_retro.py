"""The same inputs give the same RAM and the same picture as FCEUmm, frame by frame."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lockstep import DivergenceError, Lockstep, is_leftover
from movies import load_game
from play_scripts import PLAYERS, random_player, start_stage

from warpzone import _engine, rom
from warpzone.rom import native

pytest.importorskip("stable_retro", reason="stable-retro is not installed (pip: warpzone[retro])")

VARIANTS = ("eu", "world")
STYLES = tuple(PLAYERS)
STAGE_FRAMES = 400
POWER_ON_FRAMES = 3000
MOVIE_FRAMES = 16000
#: One in how many pictures may show FCEUmm's leftovers.
LEFTOVERS_RARE = 1000
_RETRO_ENV = Path(__file__).with_name("retro_env_run.py")


def _check(pair: Lockstep) -> None:
    assert pair.counts["leftovers"] <= 1 + pair.counts["pictures"] // LEFTOVERS_RARE


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stage", range(32), ids=lambda stage: f"{stage // 4 + 1}-{stage % 4 + 1}")
def test_stage(variant: str, stage: int) -> None:
    style = STYLES[(stage + (variant == "eu")) % len(STYLES)]
    player = PLAYERS[style](stage)
    with Lockstep(rom.find(variant), picture_every=2) as pair:
        start_stage(pair, stage)
        for _ in range(STAGE_FRAMES):
            pair.frame(player(pair.ram()))
        _check(pair)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("stage", range(1, 32, 7))
def test_stage_by_translated_code(variant: str, stage: int) -> None:
    """Elsewhere translated code is compared with the interpreter; here with FCEUmm itself."""
    image = rom.find(variant)
    natives = [native.prepare(image)]
    if native.emitter_refusal() is None:
        natives.append(native.emit(image))
    player = PLAYERS[STYLES[stage % len(STYLES)]](stage + 50)
    with Lockstep(image, picture_every=2, natives=natives) as pair:
        start_stage(pair, stage)
        for _ in range(STAGE_FRAMES):
            pair.frame(player(pair.ram()))
        _check(pair)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("style", STYLES)
def test_play_from_power_on(variant: str, style: str) -> None:
    """Title, demo, START, play, deaths, lag frames while areas load."""
    player = PLAYERS[style](1)
    with Lockstep(rom.find(variant), picture_every=2) as pair:
        for _ in range(400):
            pair.frame(0)
        for _ in range(POWER_ON_FRAMES):
            pair.frame(player(pair.ram()))
        assert pair.counts["lag_frames"] > 4
        _check(pair)


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_players_all_buttons_and_resets(variant: str) -> None:
    """Any mask on both controllers, opposite directions too, and the reset button at any time."""
    first, second = random_player(1), random_player(2)
    with Lockstep(rom.find(variant), picture_every=2) as pair:
        for number in range(2500):
            if number < 6 or number % 331 == 330:
                pair.reset()
            start = 8 if number % 50 == 7 else 0
            pair.frame(first(pair.ram()) | start, second(pair.ram()))
        _check(pair)


@pytest.mark.parametrize("variant", VARIANTS)
def test_whole_game_movie_starts_in_step(variant: str) -> None:
    """Demo, a game over, a restart and the first stages of the movie that wins the game; all of
    it runs in `make oracle-long`."""
    with Lockstep(rom.find(variant), picture_every=4) as pair:
        for mask in load_game(variant).masks[:MOVIE_FRAMES]:
            pair.frame(mask)
        assert pair.ram()[0x075F] * 4 + pair.ram()[0x075C] > 0
        _check(pair)


@pytest.mark.parametrize("variant", VARIANTS)
def test_stable_retro_itself_agrees(variant: str, tmp_path: Path) -> None:
    """`stable_retro.RetroEnv` with an integration of our own: RAM after every frame, and the
    cropped picture in its own palette."""
    frames = 420
    masks = [8 if number in (60, 61) else 129 if number > 200 else 0 for number in range(frames)]
    script = {"masks": masks, "pictures": [40, 150, 250, 419]}
    rom_file = tmp_path / "rom.nes"
    rom_file.write_bytes(rom.find(variant))
    done = subprocess.run(
        [sys.executable, str(_RETRO_ENV), str(rom_file), str(tmp_path / "out.npz")],
        input=json.dumps(script),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = np.load(tmp_path / "out.npz")
    console = _engine.Console(rom.find(variant))
    colors: dict[int, tuple[int, ...]] = {}
    for number, mask in enumerate(masks):
        console.frame(mask)
        if number >= seen["first"]:
            assert np.array_equal(console.ram(), seen["ram"][number - seen["first"]]), number
        if number in script["pictures"]:
            ours = console.screen_indices()[8:-8, 8:-8]
            theirs = seen[f"picture{number}"]
            assert theirs.shape == (*ours.shape, 3)
            for index in np.unique(ours):
                shades = np.unique(theirs[ours == index], axis=0)
                assert len(shades) == 1, f"colour {index} has {len(shades)} shades"
                assert colors.setdefault(int(index), tuple(shades[0])) == tuple(shades[0])
    assert len(colors) > 8


@pytest.mark.parametrize("which", [0, 1])
def test_lockstep_notices_a_changed_byte(which: int) -> None:
    with Lockstep(rom.find("eu"), natives=[None, None]) as pair:
        for _ in range(40):
            pair.frame(0)
        pair._ours[which].poke(0x0123, 1 + int(pair.ram()[0x0123]))
        with pytest.raises(DivergenceError, match=r"frame 41: 1 bytes of RAM differ .*\$0123"):
            pair.frame(0)


def test_leftovers_are_at_most_two_tiles_of_one_line() -> None:
    picture = np.zeros((240, 256), np.uint8)
    stale = picture.copy()
    stale[1, 72:88] = 23
    assert is_leftover(picture, stale)
    stale[1, 88] = 23
    assert not is_leftover(picture, stale)
    stale[1, 88] = 0
    stale[2, 72] = 23
    assert not is_leftover(picture, stale)
