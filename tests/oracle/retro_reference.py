"""The FCEUmm core of the stable-retro wheel as a frame-by-frame reference.

The core is driven through libretro's C interface, the same one stable-retro uses, because that
shows more than `RetroEmulator` does: the whole 256 x 240 picture instead of the cropped one, as
NES colours (the core's "raw" palette encodes them), RAM that can be written, and the reset button.
`test_retro.py` checks that `stable_retro.RetroEnv` itself sees the same RAM and the same picture.

The core keeps its state in globals, so a process holds one `RetroConsole` at a time.
"""

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT, _RAM_SIZE = 256, 240, 2048
_MEMORY_SYSTEM_RAM = 2
_SET_PIXEL_FORMAT, _GET_VARIABLE = 10, 15
_PIXEL_FORMAT_RGB565 = 2
_OPTIONS = {
    b"fceumm_palette": b"raw",
    b"fceumm_overscan": b"disabled",
    b"fceumm_region": b"NTSC",
    b"fceumm_nospritelimit": b"disabled",
    b"fceumm_overclocking": b"disabled",
    b"fceumm_turbo_enable": b"None",
}
#: libretro's joypad ids in the order of our mask bits: A B SELECT START UP DOWN LEFT RIGHT.
_JOYPAD_IDS = (8, 0, 2, 3, 4, 5, 6, 7)

_Environment = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint, ctypes.c_void_p)
_Video = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_size_t)
_AudioSample = ctypes.CFUNCTYPE(None, ctypes.c_int16, ctypes.c_int16)
_AudioBatch = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_Poll = ctypes.CFUNCTYPE(None)
_Input = ctypes.CFUNCTYPE(
    ctypes.c_int16, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint
)


class _Variable(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class _GameInfo(ctypes.Structure):
    _fields_ = [
        ("path", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("meta", ctypes.c_char_p),
    ]


class _SystemInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("extensions", ctypes.c_char_p),
        ("need_fullpath", ctypes.c_bool),
        ("block_extract", ctypes.c_bool),
    ]


def core_path() -> Path:
    """The core's shared library inside the installed stable-retro."""
    spec = importlib.util.find_spec("stable_retro")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("stable-retro is not installed; run `make setup`")
    return Path(spec.origin).parent / "cores" / "fceumm_libretro.so"


def _raw_palette() -> NDArray[np.uint8]:
    """RGB565 value -> NES colour 0..63 (255 = not a colour of the raw palette).

    The raw palette puts the hue into red and the luma into green.
    """
    table = np.full(65536, 255, np.uint8)
    for color in range(64):
        hue = (color & 15) * 255 // 15
        luma = (color >> 4) * 255 // 3
        table[hue >> 3 << 11 | luma >> 2 << 5] = color
    return table


class RetroConsole:
    """FCEUmm with the interface of `warpzone._engine.Console`."""

    _alive = False

    def __init__(self, rom: bytes) -> None:
        if RetroConsole._alive:
            raise RuntimeError("the FCEUmm core holds one console per process; close the other")
        RetroConsole._alive = True
        self._masks = [0, 0]
        self._pixels: NDArray[np.uint16] = np.zeros((_HEIGHT, _WIDTH), np.uint16)
        self._palette = _raw_palette()
        self._option_values = dict(_OPTIONS)
        self._core = ctypes.CDLL(str(core_path()))
        self._callbacks = self._connect()
        self._core.retro_get_memory_data.restype = ctypes.c_void_p
        self._core.retro_serialize_size.restype = ctypes.c_size_t
        self._core.retro_load_game.restype = ctypes.c_bool
        self._core.retro_serialize.restype = ctypes.c_bool
        self._core.retro_unserialize.restype = ctypes.c_bool
        self._core.retro_init()
        self._rom = ctypes.create_string_buffer(rom, len(rom))
        game = _GameInfo(b"rom.nes", ctypes.cast(self._rom, ctypes.c_void_p), len(rom), None)
        if not self._core.retro_load_game(ctypes.byref(game)):
            raise ValueError("FCEUmm refuses this ROM")
        address = self._core.retro_get_memory_data(_MEMORY_SYSTEM_RAM)
        block = (ctypes.c_uint8 * _RAM_SIZE).from_address(address)
        self._ram: NDArray[np.uint8] = np.ctypeslib.as_array(block)

    def _connect(self) -> list[Any]:
        """Hands our callbacks to the core; they must live as long as it does."""
        core = self._core
        callbacks: list[Any] = []

        def give(
            setter: Callable[[Any], Any], prototype: Any, function: Callable[..., Any]
        ) -> None:
            callbacks.append(prototype(function))
            setter(callbacks[-1])

        give(core.retro_set_environment, _Environment, self._environment)
        give(core.retro_set_video_refresh, _Video, self._video)
        give(core.retro_set_audio_sample, _AudioSample, lambda left, right: None)
        give(core.retro_set_audio_sample_batch, _AudioBatch, lambda data, count: count)
        give(core.retro_set_input_poll, _Poll, lambda: None)
        give(core.retro_set_input_state, _Input, self._input)
        return callbacks

    def _environment(self, command: int, data: int) -> bool:
        if command == _GET_VARIABLE:
            variable = _Variable.from_address(data)
            variable.value = self._option_values.get(variable.key)
            return variable.key in self._option_values
        if command == _SET_PIXEL_FORMAT:
            return ctypes.c_int.from_address(data).value == _PIXEL_FORMAT_RGB565
        return False

    def _video(self, data: int | None, width: int, height: int, pitch: int) -> None:
        if data is not None:
            lines = np.frombuffer(ctypes.string_at(data, pitch * height), np.uint16)
            self._pixels = lines.reshape(height, pitch // 2)[:, :width]

    def _input(self, port: int, device: int, index: int, button: int) -> int:
        if port > 1 or button not in _JOYPAD_IDS:
            return 0
        return self._masks[port] >> _JOYPAD_IDS.index(button) & 1

    def version(self) -> str:
        info = _SystemInfo()
        self._core.retro_get_system_info(ctypes.byref(info))
        return f"{info.name.decode()} {info.version.decode()}"

    def frame(self, buttons: int, buttons2: int = 0) -> None:
        self._masks[:] = [buttons, buttons2]
        self._core.retro_run()

    def frames(self, buttons: bytes) -> None:
        for mask in buttons:
            self.frame(mask)

    def reset(self) -> None:
        self._core.retro_reset()

    def ram(self) -> NDArray[np.uint8]:
        return self._ram.copy()

    def poke(self, address: int, value: int) -> None:
        self._ram[address] = value

    def screen_indices(self) -> NDArray[np.uint8]:
        """240 x 256 NES colours 0..63 of the last frame."""
        return self._palette[self._pixels]

    def save(self) -> bytes:
        buffer = ctypes.create_string_buffer(self._core.retro_serialize_size())
        if not self._core.retro_serialize(buffer, ctypes.c_size_t(len(buffer))):
            raise RuntimeError("FCEUmm could not save its state")
        return buffer.raw

    def load(self, state: bytes) -> None:
        if not self._core.retro_unserialize(state, ctypes.c_size_t(len(state))):
            raise RuntimeError("FCEUmm could not load this state")

    def close(self) -> None:
        self._core.retro_unload_game()
        self._core.retro_deinit()
        RetroConsole._alive = False
