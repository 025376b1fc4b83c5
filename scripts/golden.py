"""Compares the goldens in tests/golden with what the engine does now; `--write` rewrites them.

The inputs of recorded games are never rewritten, only what they lead to.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    import golden_runs
    import movies

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the files that differ")
    parser.add_argument("--dry-run", action="store_true", help="name the files, play nothing")
    args = parser.parse_args()
    if args.dry_run:
        doing = "compare and rewrite" if args.write else "compare"
        files = [golden_runs.PLAY_FILE, *map(movies.game_path, golden_runs.VARIANTS)]
        print(f"would {doing}: {', '.join(str(path.relative_to(ROOT)) for path in files)}")
        return 0
    write = args.write
    different = []

    play = {"runs": golden_runs.current_play()}
    stored = json.loads(golden_runs.PLAY_FILE.read_text()) if golden_runs.PLAY_FILE.exists() else {}
    if stored != play:
        different.append(golden_runs.PLAY_FILE)
        if write:
            lines = ",\n".join(json.dumps(run) for run in play["runs"])
            golden_runs.PLAY_FILE.write_text(f'{{"runs": [\n{lines}\n]}}\n')
    for variant in golden_runs.VARIANTS:
        game = movies.load_game(variant)
        result = golden_runs.game_result(variant, game.masks)
        if result != game.expected:
            different.append(movies.game_path(variant))
            if write:
                movies.save_game(variant, movies.Game(game.masks, result))

    for path in different:
        print(f"{'rewritten' if write else 'different'}: {path.relative_to(ROOT)}")
    if not different:
        print("all goldens are as recorded")
    return 1 if different and not write else 0


if __name__ == "__main__":
    sys.exit(main())
