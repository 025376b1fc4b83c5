"""The flags of training: derived from the configuration by tyro, refused with one sentence."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from warpzone.cli import older
from warpzone.cli.parsing import Flags, parse
from warpzone.config import ConfigError, TrainConfig, load_preset, preset_names
from warpzone.config.bounds import flag
from warpzone.config.choice import choose_preset, fitted, made_for_others
from warpzone.config.outside import KINDS, agree, plugins_of
from warpzone.config.play import PlayConfig, folded_stages
from warpzone.config.run import RunConfig, name_problem
from warpzone.rom.waiting import load_torch

Say = Callable[[str], None]
Refuse = Callable[[TrainConfig], None]
#: Flags that say the same thing in two ways, or the opposite of each other.
EXCLUSIVE = (("--stop-at", "--stop-at-clears"), ("--compile", "--cuda-graphs"))

HIDDEN = "(hidden)"


def resolve(
    words: Sequence[str],
    *,
    prog: str,
    about: str,
    say: Say | None = None,
    refuse: Refuse = lambda config: None,
) -> TrainConfig:
    """The configuration that a preset, variables and flags describe; what was chosen, or understood
    in another way, is said. `refuse` may raise ConfigError. `--help` prints the flags and ends the
    program."""
    rest = [_hyphens(word) for word in words]
    if {"--help", "-h"} & set(rest):
        _show_help(rest, prog, about)
    _refuse_both(rest)
    about_stages = _name_stages(rest)
    if "torch" not in sys.modules:
        _refuse_anywhere(rest, prog, about, refuse)
    base, preset, notes = _base(rest)
    notes += about_stages
    begun = _begun_with(rest, base)
    base = begun or base
    flags, config, about_variables = _changed(rest, base, prog, about)
    if begun is not None:
        from warpzone.run.matching import require_network

        require_network(config, begun)
    config = _agreed(config, rest)
    check(config)
    refuse(config)
    notes += about_variables + older.notes_about(flags, config)
    if preset in preset_names() and (sentence := made_for_others(base, config)):
        notes.append(f"[warn] preset {preset} {sentence}")
    _say_all(notes, say or _printer(prog))
    return config


def _show_help(words: Sequence[str], prog: str, about: str) -> NoReturn:
    """Prints the flags with the defaults of a machine without a GPU, unless the words ask for one:
    only PyTorch knows, and takes seconds to load."""
    rest = list(words)
    _name_stages(rest)
    base, preset, _ = _base(rest, take(list(rest), "--device") == "cuda")
    whose = f"preset {preset}" if preset else "the run that goes on"
    _parsed(["--help"], base, prog, f"{about} The defaults shown below are those of {whose}.")
    raise SystemExit(0)


def _refuse_anywhere(words: Sequence[str], prog: str, about: str, refuse: Refuse) -> None:
    """ConfigError for what is wrong with a GPU and without one. Only PyTorch knows whether there is
    one, and nobody should wait for it to hear of a mistyped flag."""
    refused: list[ConfigError] = []
    for cuda in (False, True):
        rest = list(words)
        base, _, _ = _base(rest, cuda)
        try:
            if take(list(rest), "--init"):
                # What the flags change is in a file that PyTorch reads.
                flags, _ = _parsed(rest, base, prog, about)
                _check_init(rest, base)
                refuse(flags)
                return
            _, config, _ = _changed(rest, base, prog, about)
            check(_agreed(config, rest))
            refuse(config)
            return
        except ConfigError as error:
            refused.append(error)
    raise refused[0]


def _changed(
    rest: list[str], base: TrainConfig, prog: str, about: str
) -> tuple[Flags, TrainConfig, list[str]]:
    """What variables and flags make of a configuration: as given, as a configuration, and what is
    to be said about the variables."""
    flags, notes = _parsed(rest, base, prog, about)
    if flags.stages != base.stages and (flags.world or flags.stage or flags.whole_game):
        raise ConfigError("--stages excludes --world, --stage and --whole-game; give one of them")
    return flags, TrainConfig(**dataclasses.asdict(flags)), notes


def _agreed(config: TrainConfig, rest: Sequence[str]) -> TrainConfig:
    """The code that flags name may run; that of a preset or a saved run only as it was."""
    if not any(plugins_of(config)):
        return config
    given = _given(rest)
    kinds = [kind for kind in KINDS if flag(kind) in given]
    return agree(config, kinds, pinned="--plugins-sha256" in given)


def _parsed(rest: list[str], base: TrainConfig, prog: str, about: str) -> tuple[Flags, list[str]]:
    variables, notes = older.from_environment(os.environ)
    variables["run_name"] = os.environ.get("RUN_NAME", "") or base.run_name
    variables["auto_mem"] = os.environ.get("AUTO_MEM") == "1" or base.auto_mem
    if "--stop-at-clears" in _given(rest):
        # 0 of them is never, whatever the preset says.
        variables["stop_at"] = 0.0
    flags = parse(rest, Flags(**{**dataclasses.asdict(base), **variables}), prog, about)
    return flags, notes


def _base(rest: list[str], cuda: bool | None = None) -> tuple[TrainConfig, str, list[str]]:
    """What flags change: the configuration of the run that goes on, a preset by its name, or the
    one that fits; the preset's name, and what is to be said. Takes `--preset` away."""
    preset = take(rest, "--preset")
    if preset is not None:
        return preset_config(preset), preset, []
    resumed = _resumed_config(rest, os.environ.get("RUN_NAME", ""))
    if resumed is not None:
        notes = []
        if resumed.stop_at:
            wanted, most = resumed.clears_to_stop, resumed.most_clears
            notes = [f"the run stops once {wanted} of {most} start delays are cleared (--stop-at)"]
        return resumed, "", notes
    stages = _asked_stages(rest)
    choice = choose_preset(
        stages, cuda=_on_gpu(rest) if cuda is None else cuda, known=preset_names()
    )
    others = ", ".join(name for name in preset_names() if name != choice.name)
    note = f"preset {choice.name}: {choice.why} (--preset takes another: {others}, or a file)"
    return fitted(preset_config(choice.name), stages), choice.name, [note]


def _asked_stages(words: Sequence[str]) -> str:
    """The stages that the words ask for, before all of them are parsed; what is wrong with them is
    said when they are."""

    def number(name: str) -> int:
        return int(take(list(words), flag(name)) or 0)

    try:
        play = PlayConfig(
            stages=take(list(words), "--stages") or PlayConfig.stages,
            world=number("world"),
            stage=number("stage"),
            stage_span=number("stage_span"),
            random_stage="--random-stage" in words,
            whole_game="--whole-game" in words,
        )
        return str(folded_stages(play)["stages"])
    except ValueError:
        return PlayConfig.stages


def _name_stages(words: list[str]) -> list[str]:
    """Reads `--stage 1-2` as `--stages 1-2`; `--stage` alone is a number beside `--world`. Returns
    what is to be said."""
    value = take(list(words), "--stage")
    if value is None or value.isdecimal() or "--stages" in _given(words):
        return []
    take(words, "--stage")
    words += ["--stages", value]
    return [f"--stage {value} is read as --stages {value}"]


def _on_gpu(words: Sequence[str]) -> bool:
    """Whether the network will run on a GPU."""
    device = take(list(words), "--device") or RunConfig.device
    if device != "auto":
        return device == "cuda"
    load_torch()
    import torch

    return torch.cuda.is_available()


def _refuse_both(words: Sequence[str]) -> None:
    for first, second in EXCLUSIVE:
        if {first, second} <= _given(words):
            raise ConfigError(f"{first} and {second} exclude each other; give one of them")


def _given(words: Sequence[str]) -> set[str]:
    """The flags among words."""
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def _hyphens(word: str) -> str:
    """A flag as it is documented; `_` is allowed for `-`."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _say_all(notes: Sequence[str], say: Say) -> None:
    for note in notes:
        say(note)


def _printer(prog: str) -> Say:
    """Prints notes as the command prints everything else."""
    name = prog.split()[1]

    def say(note: str) -> None:
        kind, text = ("[warn]", note[7:]) if note.startswith("[warn] ") else ("", note)
        print(f"[{name}]{kind} {text}", file=sys.stderr, flush=True)

    return say


def _resumed_config(words: Sequence[str], run_name: str) -> TrainConfig | None:
    """A resumed run uses its saved configuration, so that its flags need not be repeated."""
    from warpzone.run.resume import saved_config

    given = {name: take(list(words), f"--{name}") for name in ("resume", "run-name", "runs-dir")}
    if given["resume"] in (None, "never"):
        return None
    defaults = {"resume": given["resume"], "run_name": given["run-name"] or run_name}
    if given["runs-dir"]:
        defaults["runs_dir"] = given["runs-dir"]
    return saved_config(TrainConfig().replace(**defaults))


def _begun_with(words: Sequence[str], base: TrainConfig) -> TrainConfig | None:
    """With `--init`, the preset for the network of that agent and for what it sees."""
    init = take(list(words), "--init")
    if not init:
        return None
    if take(list(words), "--resume") not in (None, "never"):
        raise ConfigError("--init begins a run and --resume goes on with one; give one of them")
    from warpzone.eval.weights import find_agent
    from warpzone.run.shipped import SEEING

    try:
        agent = find_agent(init, _runs(words, base)).config
    except ConfigError as error:
        raise ConfigError(f"--init: {error}") from error
    taken = {name: getattr(agent, name) for name in SEEING}
    try:
        return base.replace(**taken)
    except ConfigError as error:
        raise ConfigError(f"--init {init} does not fit to the preset: {error}") from error


def _check_init(words: Sequence[str], base: TrainConfig) -> None:
    from warpzone.run.shipped import named_agent

    try:
        named_agent(take(list(words), "--init") or "", _runs(words, base))
    except ConfigError as error:
        raise ConfigError(f"--init: {error}") from error


def _runs(words: Sequence[str], base: TrainConfig) -> Path:
    return Path(take(list(words), "--runs-dir") or base.runs_dir)


def preset_config(name: str) -> TrainConfig:
    """A preset whose values have the right types."""
    try:
        config = load_preset(name)
        check(config)
    except (TypeError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"preset {name} cannot be used: {error}") from error
    return config


def check(config: TrainConfig) -> None:
    """Refuses what the dataclass cannot check: options that the engine or the network does not
    accept."""
    if problem := name_problem(config.run_name):
        raise ConfigError(problem)
    from warpzone.collect.lanes import lane_options
    from warpzone.env.actions import action_table
    from warpzone.env.stages import lane_stages
    from warpzone.model.spec import model_spec

    try:
        # One lane is enough: what lanes play does not depend on how many there are.
        options = lane_options(config)
        lane_stages(options.stages, 1)
        options.lane_config()
        model_spec(config, len(action_table(config.actions).masks))
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error


def take(words: list[str], flag: str) -> str | None:
    """Removes `flag VALUE` or `flag=VALUE`."""
    for index, word in enumerate(words):
        if word == flag:
            if index + 1 >= len(words):
                raise ConfigError(f"{flag} needs a value")
            value = words[index + 1]
            del words[index : index + 2]
            return value
        if word.startswith(flag + "="):
            del words[index]
            return word.partition("=")[2]
    return None


def take_hidden(words: list[str], flag: str, variable: str) -> str:
    """The value of a flag that may hold a secret, or of the variable; empty without one. A run's
    folder records `sys.argv`, W&B does as well, so it is removed from there."""
    given = take(words, flag)
    for index, word in enumerate(sys.argv):
        if word == flag and index + 1 < len(sys.argv):
            sys.argv[index + 1] = HIDDEN
        elif word.startswith(flag + "="):
            sys.argv[index] = f"{flag}={HIDDEN}"
    return os.environ.get(variable, "") if given is None else given


def take_switch(words: list[str], flag: str) -> bool:
    """Removes a flag without a value; whether it was there."""
    found = flag in words
    if found:
        words.remove(flag)
    return found


def as_file(config: TrainConfig, path: Path) -> str:
    """JSON as in a run's folder, or TOML that `--preset` reads again."""
    if path.suffix != ".toml":
        return config.to_json() + "\n"
    values = dataclasses.asdict(config)
    # A string of JSON is one of TOML, and so are its numbers and booleans.
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items() if value is not None]
    return "\n".join(lines) + "\n"
