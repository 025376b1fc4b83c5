"""Videos: real frames, enlarged without blur, and never half a file."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpzone.media.pictures import enlarge, replacing

Image = NDArray[np.uint8]

#: The NES draws 60.0988 frames a second; players prefer the round number.
FPS = 60
#: A GIF cannot show more than 50 pictures a second.
GIF_FPS = 30


class VideoError(OSError):
    """A video cannot be written; the message says why."""


def write_video(path: Path, frames: Iterable[Image], *, scale: int = 3, fps: int = FPS) -> int:
    """Writes `.mp4` or `.gif` and returns the number of frames that went into it."""
    writers = {".mp4": _write_mp4, ".gif": _write_gif}
    if path.suffix.lower() not in writers:
        raise VideoError(f"{path.name}: a video is .mp4 or .gif")
    with replacing(path) as temporary:
        count = writers[path.suffix.lower()](temporary, frames, scale, fps)
        if count == 0:
            raise VideoError(f"there is no frame to write to {path}")
    return count


def _write_mp4(path: Path, frames: Iterable[Image], scale: int, fps: int) -> int:
    try:
        ffmpeg = import_module("imageio_ffmpeg")
        ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        # imageio-ffmpeg installs without a binary on systems that it has none for.
        raise VideoError(
            "writing an .mp4 needs ffmpeg: pip install imageio-ffmpeg, or install ffmpeg itself"
            if isinstance(error, RuntimeError)
            else "writing an .mp4 needs imageio-ffmpeg: pip install imageio-ffmpeg"
        ) from error
    writer = None
    count = 0
    try:
        for frame in frames:
            picture = _even(enlarge(frame, scale))
            if writer is None:
                writer = ffmpeg.write_frames(
                    str(path),
                    (picture.shape[1], picture.shape[0]),
                    fps=fps,
                    codec="libx264",
                    quality=None,
                    macro_block_size=2,
                    output_params=["-crf", "20", "-preset", "veryfast", "-movflags", "+faststart"],
                )
                writer.send(None)
            writer.send(np.ascontiguousarray(picture))
            count += 1
    except OSError as error:
        said = " ".join(str(error).split())
        raise VideoError(f"ffmpeg could not write the video: {said}") from error
    finally:
        if writer is not None:
            writer.close()
    return count


def _write_gif(path: Path, frames: Iterable[Image], scale: int, fps: int) -> int:
    from PIL import Image as Pillow

    every = max(1, round(fps / GIF_FPS))
    pictures = [
        Pillow.fromarray(enlarge(frame, scale)).quantize(64, dither=Pillow.Dither.NONE)
        for index, frame in enumerate(frames)
        if index % every == 0
    ]
    if pictures:
        pictures[0].save(
            path,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=round(1000 * every / fps),
            loop=0,
        )
    return len(pictures)


def _even(image: Image) -> Image:
    """H.264 needs even sides; those of a mosaic may be odd."""
    height, width = image.shape[:2]
    if height % 2 == width % 2 == 0:
        return image
    return np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)))
