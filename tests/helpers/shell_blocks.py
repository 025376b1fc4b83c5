"""Command lines in pages, as lists of words: what a reader would type, one command each."""

from __future__ import annotations

import re
import shlex

#: Words before a command that say how it is started.
PREFIX = re.compile(r"[A-Z_]+=\S*|nice|sudo|exec|time")
ENDS = {"&&", "||", ";", "|", "&", "(", ")"}
#: `[--json]` may be left out, and `…` stands for what the reader knows.
OPTIONAL = re.compile(r"\[([^\]']*)\]")


def commands(text: str) -> list[list[str]]:
    """The commands of a shell block, without variables before them and without redirections."""
    found: list[list[str]] = []
    rest = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        rest += line + "\n"
        try:
            found += _commands_of(rest)
        except ValueError:  # a quotation that the next line closes
            continue
        rest = ""
    if rest:
        raise ValueError(f"a quotation is not closed: {rest}")
    return found


def _commands_of(line: str) -> list[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    found: list[list[str]] = [[]]
    skipped = False
    for word in lexer:
        if word in ENDS:
            found.append([])
        elif skipped:
            skipped = False
        elif re.fullmatch(r"\d?>{1,2}|<", word):
            skipped = True
        elif not (re.match(r"\d?>", word) or (not found[-1] and PREFIX.fullmatch(word))):
            found[-1].append(word)
    return [words for words in found if words]


def own_words(words: list[str]) -> list[str] | None:
    """What is handed to `warpzone`, however it is started; None for other programs."""
    for number, word in enumerate(words):
        if word == "warpzone.cli.main" and words[number - 1] == "-m":
            return words[number + 1 :]
        if re.fullmatch(r"(.*/)?warpzone|warpzone:(cpu|cuda)", word) and _starts(words[:number]):
            return words[number + 1 :]
    return None


def _starts(before: list[str]) -> bool:
    """Whether these words only start another program."""
    return not before or before[0] in ("srun", "torchrun") or before[:2] == ["docker", "run"]


def without_options(text: str) -> str:
    """`a [b]` as `a b`: what may be left out is given."""
    return OPTIONAL.sub(r"\1", text)
