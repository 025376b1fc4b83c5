"""What a mistyped flag was probably meant to be."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Sequence
from typing import Any

#: Flags as other programs call them -> candidates, of which a command has one at most.
ALIASES = {
    "--batch-size": ("--minibatch",),
    "--checkpoint": ("--resume", "--init"),
    "--discount": ("--gamma",),
    "--ent-coef": ("--entropy",),
    "--entropy-coef": ("--entropy",),
    "--env": ("--stages", "--stage"),
    "--envs": ("--num-envs",),
    "--iterations": ("--max-steps",),
    "--learning-rate": ("--lr",),
    "--level": ("--stages", "--stage"),
    "--levels": ("--stages", "--stage"),
    "--lives": ("--whole-game",),
    "--model": ("--encoder",),
    "--n-envs": ("--num-envs",),
    "--n-steps": ("--rollout-steps",),
    "--name": ("--run-name",),
    "--num-steps": ("--rollout-steps", "--steps"),
    "--output": ("--out",),
    "--output-dir": ("--runs-dir", "--out"),
    "--save-dir": ("--runs-dir",),
    "--stage": ("--stages",),
    "--stages": ("--stage",),
    "--threads": ("--num-threads",),
    "--time-limit": ("--max-time",),
    "--timesteps": ("--max-steps",),
    "--total-timesteps": ("--max-steps",),
    "--workers": ("--num-envs", "--num-threads"),
    "--world-stage": ("--stages", "--stage"),
}
#: Likeness from which a flag is suggested.
ALIKE = 0.7


def suggestion(word: str, known: Collection[str]) -> str:
    """The flag among `known` that `word` probably means, or nothing. Names of other programs may be
    mistyped as well."""
    name = word.partition("=")[0].replace("_", "-").lower()
    meant = {
        alias: next(flag for flag in flags if flag in known)
        for alias, flags in ALIASES.items()
        if not set(known).isdisjoint(flags)
    } | {flag: flag for flag in known}
    if name in meant:
        return meant[name]
    close = difflib.get_close_matches(name, sorted(meant), n=1, cutoff=ALIKE)
    return meant[close[0]] if close else ""


def unknown(word: str, known: Collection[str]) -> str:
    """Names the word that a command does not know, and what it may mean."""
    if not word.startswith("-"):
        return f"unknown word {word}"
    meant = suggestion(word, known)
    return f"unknown flag {word.partition('=')[0]}" + (f", did you mean {meant}?" if meant else "")


class Parser(argparse.ArgumentParser):
    """Refuses unknown words where they were met: with the subcommand's usage, and a suggestion."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            flags = [word for word in rest if word.startswith("-")]
            self.error(unknown((flags or rest)[0], self._option_string_actions))
        return found, rest
