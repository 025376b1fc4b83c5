"""Runs `stable_retro.RetroEnv` with an integration of our own; a process of its own because the
core allows one emulator per process.

Usage: retro_env_run.py ROM OUT.npz, with {"masks": [...], "pictures": [...]} on standard input.
"""

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

#: RetroEnv runs two frames when it is made and one at reset, all without buttons.
FRAMES_BEFORE_STEP = 3
_GAME = "Warpzone-Nes"


def _write_integration(folder: Path, rom: bytes) -> None:
    game = folder / _GAME
    game.mkdir()
    (game / "rom.nes").write_bytes(rom)
    (game / "rom.sha").write_text(hashlib.sha1(rom).hexdigest() + "\n")
    for name, content in (
        ("data", {"info": {"lives": {"address": 0x075A, "type": "|u1"}}}),
        ("scenario", {"done": {"variables": {}}, "reward": {"variables": {}}}),
        ("metadata", {}),
    ):
        (game / f"{name}.json").write_text(json.dumps(content))


def main() -> int:
    import stable_retro

    rom, out = Path(sys.argv[1]).read_bytes(), sys.argv[2]
    script = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        _write_integration(Path(folder), rom)
        stable_retro.data.Integrations.add_custom_path(folder)
        env = stable_retro.make(
            _GAME,
            state=stable_retro.State.NONE,
            inttype=stable_retro.data.Integrations.CUSTOM_ONLY,
            use_restricted_actions=stable_retro.Actions.ALL,
            render_mode="rgb_array",
        )
        env.reset()
        names = ["A", "B", "SELECT", "START", "UP", "DOWN", "LEFT", "RIGHT"]
        ram, pictures = [], {}
        for number, mask in enumerate(script["masks"]):
            if number < FRAMES_BEFORE_STEP:
                continue
            action = np.zeros(len(env.buttons), np.uint8)
            for bit, name in enumerate(names):
                action[env.buttons.index(name)] = mask >> bit & 1
            picture = env.step(action)[0]
            ram.append(env.get_ram()[:2048].copy())
            if number in script["pictures"]:
                pictures[f"picture{number}"] = picture.copy()
        np.savez(out, first=FRAMES_BEFORE_STEP, ram=np.array(ram), **pictures)
        env.close()
    return 0


if __name__ == "__main__":
    # The core complains on standard output when it is unloaded at exit.
    status = main()
    sys.stdout.flush()
    os._exit(status)
