"""`warpzone completion`: a script with which a shell completes commands, flags and values."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

#: What each shell does with its script.
USE = {
    "bash": 'eval "$(warpzone completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(warpzone completion zsh)"    # in ~/.zshrc, after compinit',
    "fish": "warpzone completion fish > ~/.config/fish/completions/warpzone.fish",
}
#: Commands whose positional words are runs or agents.
TAKES_RUNS = ("eval", "video", "play", "export", "hub", "report", "checkpoints", "dashboard")
#: Flags whose values are.
RUN_FLAGS = ("--resume", "--init", "--run")
#: Flags whose values are stages.
STAGE_FLAGS = ("--stages", "--stage")
#: Leaves out names with characters that mean something to a shell: bash expands what it completes,
#: and a run's folder may have its name from somebody else.
HARMLESS = "sed -n 'h;s/[._+=@%,:-]//g;/[[:punct:][:space:][:cntrl:]]/!{g;p;}'"


@dataclass
class Command:
    """What can follow a command: flags with the values they choose from, and words."""

    about: str
    flags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    uses = "; ".join(f"{shell}: {use.partition('   #')[0]}" for shell, use in USE.items())
    parser = subparsers.add_parser(
        "completion",
        help="a script that completes commands, flags and values in your shell",
        description=f"Prints a script for your shell. {uses}.",
    )
    parser.add_argument("shell", choices=tuple(USE))


def run(args: argparse.Namespace) -> int:
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell]
    print(script(commands()), end="")
    return 0


def commands() -> dict[str, Command]:
    """Every command, as its parser describes it."""
    from warpzone.cli.main import COMMANDS

    found = {}
    for name, about in COMMANDS.items():
        made: Any = argparse.ArgumentParser(prog="warpzone")
        subparsers = made.add_subparsers()
        importlib.import_module(f"warpzone.cli.{name}").add_parser(subparsers)
        found[name] = _described(about, subparsers.choices[name])
    found["train"].flags |= _training()
    found["map"].words += stage_words()
    found["agents"].words += _agents()
    for command in found.values():
        command.flags |= {flag: stage_words() for flag in STAGE_FLAGS if flag in command.flags}
    return found


def stage_words() -> tuple[str, ...]:
    """Every stage, and the words for many of them."""
    from warpzone.env.stages import NUM_STAGES, stage_name

    return (*map(stage_name, range(NUM_STAGES)), "all", "game")


def _described(about: str, parser: argparse.ArgumentParser) -> Command:
    command = Command(about)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            command.words += tuple(action.choices)
            for inner in action.choices.values():
                command.flags |= _described("", inner).flags
        elif action.option_strings and action.help != argparse.SUPPRESS:
            values = tuple(str(value) for value in action.choices or ())
            command.flags |= dict.fromkeys(action.option_strings, values)
        elif action.choices:
            command.words += tuple(str(value) for value in action.choices)
    return command


def _training() -> dict[str, tuple[str, ...]]:
    """The flags of training, from the configuration."""
    from warpzone.cli.parsing import OTHERS
    from warpzone.config import TrainConfig, preset_names
    from warpzone.config.bounds import annotated, flag

    found: dict[str, tuple[str, ...]] = {}
    for one in annotated(TrainConfig):
        values = get_args(one.kind) if get_origin(one.kind) is Literal else ()
        found[flag(one.name)] = tuple(map(str, values))
        if one.kind is bool:
            found["--no-" + flag(one.name)[2:]] = ()
    return {**found, **dict.fromkeys(sorted(OTHERS), ()), "--preset": tuple(preset_names())}


def _agents() -> tuple[str, ...]:
    from warpzone.run.shipped import agent_names

    return tuple(agent_names())


# --- scripts ------------------------------------------------------------------------------------
def bash(known: dict[str, Command]) -> str:
    """For bash; zsh takes it, too."""
    flags = "\n".join(f'    {name}) flags="{" ".join(c.flags)}" ;;' for name, c in known.items())
    words = "\n".join(
        f'    {name}) words="{" ".join(c.words)}" ;;' for name, c in known.items() if c.words
    )
    values = "\n".join(
        f'    {name}:{flag}) words="{" ".join(chosen)}" ;;'
        for name, command in known.items()
        for flag, chosen in command.flags.items()
        if chosen
    )
    runs = f'$(_warpzone_runs "$place") latest {" ".join(_agents())}"'
    return f"""# Completion of warpzone: {USE["bash"]}
_warpzone_runs() {{ command ls "$1" 2>/dev/null | LC_ALL=C command {HARMLESS}; }}
_warpzone() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" flags="" words="" word last="" place=runs
  for word in "${{COMP_WORDS[@]:1:$((COMP_CWORD-1))}}"; do
    case "$word" in -*) ;; *) command="${{command:-$word}}" ;; esac
    if [ "$last" = --runs-dir ]; then place="$word"; fi
    last="$word"
  done
  if [ -z "$command" ]; then
    COMPREPLY=($(compgen -W "{" ".join(known)} --help --version" -- "$current"))
    return
  fi
  case "$command" in
{flags}
  esac
  case "$command" in
{words}
  esac
  case "$command" in {"|".join(TAKES_RUNS)}) words="$words {runs} ;; esac
  case "$before" in {"|".join(RUN_FLAGS)}) words="{runs} ;; esac
  case "$command:$before" in
{values}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  esac
}}
complete -o bashdefault -o default -F _warpzone warpzone
"""


#: The names of runs, in the folder that --runs-dir names.
FISH_RUNS = f"""function __warpzone_runs
  set -l place runs
  set -l last
  for word in (commandline -opc)
    test "$last" = --runs-dir; and set place $word
    set last $word
  end
  command ls $place 2>/dev/null | LC_ALL=C command {HARMLESS}
end"""


def zsh(known: dict[str, Command]) -> str:
    """For zsh, which runs bash's through its own adapter."""
    first, adapter = f"# Completion of warpzone: {USE['zsh']}", "autoload -Uz bashcompinit"
    return "\n".join((first, f"{adapter} && bashcompinit", bash(known).partition("\n")[2]))


def fish(known: dict[str, Command]) -> str:
    """For fish."""
    lines = [f"# Completion of warpzone: {USE['fish']}", FISH_RUNS]
    runs = f"(__warpzone_runs) latest {' '.join(_agents())}"
    for name, command in known.items():
        lines.append(
            f"complete -c warpzone -n __fish_use_subcommand -a {name} -d '{command.about}'"
        )
        here = f"complete -c warpzone -n '__fish_seen_subcommand_from {name}'"
        if command.words:
            lines.append(f"{here} -f -a '{' '.join(command.words)}'")
        if name in TAKES_RUNS:
            lines.append(f"{here} -a '{runs}'")
        for flag, values in command.flags.items():
            if flag.startswith("--"):
                chosen = f" -x -a '{' '.join(values)}'" if values else ""
                if flag in RUN_FLAGS:
                    chosen = f" -x -a '{runs}'"
                lines.append(f"{here} -l {flag[2:]}{chosen}")
    return "\n".join(lines) + "\n"
