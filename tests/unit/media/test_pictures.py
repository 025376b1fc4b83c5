"""Pictures, videos and the terminal's keyboard."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone.env.actions import BUTTONS
from warpzone.media.pictures import enlarge, half_blocks, mosaic, replacing, save_png, shrink
from warpzone.media.video import VideoError, write_video
from warpzone.play.keyboard import HOLD_FRAMES, KeyState


def screens(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (240, 256, 3), dtype=np.uint8) for _ in range(count)]


def test_enlarge_and_shrink_are_inverse() -> None:
    (screen,) = screens(1)
    assert enlarge(screen, 3).shape == (720, 768, 3)
    assert np.array_equal(shrink(enlarge(screen, 3), 3), screen)
    with pytest.raises(ValueError, match="scale"):
        enlarge(screen, 0)


def test_mosaic_places_every_screen() -> None:
    parts = screens(5)
    picture = mosaic(parts, columns=3, gap=2)
    assert picture.shape == (482, 772, 3)
    for index, part in enumerate(parts):
        top, left = index // 3 * 242, index % 3 * 258
        assert np.array_equal(picture[top : top + 240, left : left + 256], part)
    assert mosaic(parts[:1]) is parts[0]
    with pytest.raises(ValueError, match="at least one"):
        mosaic([])


def test_half_blocks_fit_the_terminal() -> None:
    (screen,) = screens(1)
    lines = half_blocks(screen, columns=64, lines=20).split("\r\n")
    assert len(lines) <= 20
    assert all(line.count("\N{UPPER HALF BLOCK}") <= 64 for line in lines)
    r, g, b = screen[0, 0]
    assert lines[0].startswith(f"\x1b[38;2;{r};{g};{b}m")


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video_is_written_whole(tmp_path: Path, suffix: str) -> None:
    imageio = pytest.importorskip("imageio.v3")
    path = tmp_path / f"run{suffix}"
    count = write_video(path, (np.full((31, 33, 3), i, np.uint8) for i in range(12)), scale=2)
    assert count == (12 if suffix == ".mp4" else 6)
    frames = list(imageio.imiter(path))
    assert len(frames) == count
    assert frames[0].shape[0] in (62, 64)
    assert list(tmp_path.iterdir()) == [path]


def test_failed_video_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[NDArray[np.uint8]]:
        yield np.zeros((16, 16, 3), np.uint8)
        raise KeyError("the game broke")

    with pytest.raises(KeyError):
        write_video(tmp_path / "run.mp4", broken())
    with pytest.raises(VideoError, match="no frame"):
        write_video(tmp_path / "run.gif", [])
    with pytest.raises(VideoError, match=r"\.mp4 or \.gif"):
        write_video(tmp_path / "run.avi", [])
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package may be installed without the program."""
    ffmpeg = pytest.importorskip("imageio_ffmpeg")

    def missing() -> str:
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(VideoError, match="needs ffmpeg"):
        write_video(tmp_path / "run.mp4", [np.zeros((16, 16, 3), np.uint8)])
    assert list(tmp_path.iterdir()) == []


def test_replacing_keeps_the_old_file_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path) as temporary:
        temporary.write_text("new")
        raise KeyError
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    with pytest.raises(FileNotFoundError, match="folder"), replacing(tmp_path / "no" / "a.txt"):
        pass


def test_png(tmp_path: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    (screen,) = screens(1)
    save_png(screen, tmp_path / "a.png")
    assert np.array_equal(imageio.imread(tmp_path / "a.png"), screen)
    save_png(screen, tmp_path / "b.png", colors=16)
    assert (tmp_path / "b.png").stat().st_size < (tmp_path / "a.png").stat().st_size


def test_terminal_keys() -> None:
    keys = KeyState()
    assert keys.frame() == 0
    keys.press("\x1b[Cz")
    assert keys.frame() == BUTTONS["RIGHT"] | BUTTONS["B"]
    keys.press("x")
    held = [keys.frame() for _ in range(HOLD_FRAMES + 1)]
    assert held == [BUTTONS["RIGHT"] | BUTTONS["B"] | BUTTONS["A"]] * HOLD_FRAMES + [
        BUTTONS["RIGHT"] | BUTTONS["B"]
    ]
    keys.press("az ")
    assert keys.frame() == 0
    keys.press("\r")
    assert keys.frame() == BUTTONS["START"]
    assert not keys.quit
    keys.press("q")
    assert keys.quit
