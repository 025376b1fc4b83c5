"""`warpzone train`: from a preset and flags to a trained agent."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpzone.cli.notify import Ending
    from warpzone.collect.ranks import Ranks
    from warpzone.config import TrainConfig
    from warpzone.health.webhook import Webhook
    from warpzone.train.loop import Collecting, Result, Run

PROG = "warpzone train"
ABOUT = (
    "Train an agent. --config-out FILE writes the resolved configuration (JSON, or TOML for "
    "--preset); --dry-run prints it with an estimate of memory and time, and stops. --notify URL "
    "(or the variable WARPZONE_NOTIFY) posts end, failure, stalls and alerts to a webhook. --ray "
    "ADDRESS (or WARPZONE_RAY) puts --actors on a Ray cluster that this machine is a node of."
)
INTERRUPTED = 130
#: The address of a Ray cluster, as a flag and as a variable.
RAY, RAY_VARIABLE = "--ray", "WARPZONE_RAY"
NO_RAY = "actors need Ray; install it with: pip install 'warpzone[fleet]'"


def add_parser(subparsers: Any) -> None:
    """The flags are derived from the configuration by tyro, so this only collects them."""
    parser = subparsers.add_parser(
        "train", help="train an agent", add_help=False, prefix_chars="\0"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER)


def run(args: argparse.Namespace) -> int:
    """Trains, evaluates, and prints where the results are."""
    if importlib.util.find_spec("torch") is None:
        return _fail("training needs PyTorch; install it with: pip install 'warpzone[train]'", 1)
    from warpzone.cli import flags, notify
    from warpzone.config import ConfigError
    from warpzone.dist.place import follows
    from warpzone.rom.waiting import load_torch

    words: list[str] = list(args.words)
    try:
        address = notify.take_address(words)
        notify.check(address)
        cluster = flags.take_hidden(words, RAY, RAY_VARIABLE)
        config_out = flags.take(words, "--config-out")
        dry_run = flags.take_switch(words, "--dry-run")
        config = flags.resolve(
            words,
            prog=PROG,
            about=ABOUT,
            say=_unheard if follows() else None,
            refuse=functools.partial(_refuse, cluster, needs_rom=not dry_run),
        )
        if config_out and not follows():
            _write_config(config, Path(config_out))
        # Its optimisers load the second, which takes as long again.
        load_torch("torch._dynamo")
        if dry_run:
            return 0 if follows() else _estimate(config)
        webhook = None if follows() else notify.open_webhook(address)
        ending = notify.Ending(webhook)
        try:
            return _start(config, webhook, ending, cluster)
        finally:
            ending.tell()
    except ConfigError as error:
        return 2 if follows() else _fail(str(error), 2)


def _unheard(text: str) -> None:
    """For ranks other than the first, which says it."""


def _write_config(config: TrainConfig, path: Path) -> None:
    from warpzone.cli.flags import as_file
    from warpzone.run.files import write_text

    try:
        write_text(path, as_file(config, path))
    except OSError as error:
        raise OSError(f"{path} cannot be written: {error.strerror or error}.") from error


def _estimate(config: TrainConfig) -> int:
    from warpzone.train.estimate import describe

    text = describe(config)
    print(config.to_json())
    print(text)
    return 0


def _refuse(address: str, config: TrainConfig, *, needs_rom: bool) -> None:
    """What this machine lacks for it, before PyTorch is loaded."""
    from warpzone import rom

    _check_cluster(address, config)
    if needs_rom and config.backend == "native":
        rom.find(config.rom)


def _check_cluster(address: str, config: TrainConfig) -> None:
    from warpzone.config import ConfigError
    from warpzone.dist.cluster import check_address

    check_address(address)
    if address and not config.actors:
        raise ConfigError("--ray is where --actors are: say how many")


def _start(config: TrainConfig, webhook: Webhook | None, ending: Ending, cluster: str) -> int:
    """In this process, with actors beside it, or in the processes of several ranks."""
    from warpzone.collect.ranks import ALONE
    from warpzone.dist.place import find_place

    if config.actors:
        if importlib.util.find_spec("ray") is None:
            return _fail(ending.failed(NO_RAY), 1)
        from warpzone.dist.start import run_fleet

        return run_fleet(
            config,
            cluster,
            lambda collecting: _train(webhook, ending, config, ALONE, collecting),
        )
    place = find_place(config)
    if place is None:
        return _train(webhook, ending, config, ALONE)
    from warpzone.dist.launch import run_ranks

    def bereaved(sentence: str) -> None:
        ending.failed(sentence)
        ending.tell()

    return run_ranks(place, config, functools.partial(_train, webhook, ending), bereaved)


def _train(
    webhook: Webhook | None,
    ending: Ending,
    config: TrainConfig,
    ranks: Ranks,
    collecting: Collecting | None = None,
) -> int:
    from safetensors import SafetensorError

    from warpzone.config import ConfigError
    from warpzone.env.backends.interface import BackendError
    from warpzone.learn.learner import LearningError
    from warpzone.observers.make import make_followers, make_observers
    from warpzone.run.sidecar import CheckpointError
    from warpzone.train.device import choose_device
    from warpzone.train.estimate import refuse_impossible
    from warpzone.train.ladder import MEMORY_ERRORS, out_of_memory, shortage
    from warpzone.train.loop import collect_here
    from warpzone.train.session import train
    from warpzone.train.stopping import Interrupted, signals

    device = choose_device(config)
    _say_device(config, device.type)
    if not config.auto_mem and ranks.size == 1:
        refuse_impossible(config, device)
    observers = make_followers
    if ranks.leads:
        observers = functools.partial(make_observers, webhook=webhook)
    try:
        with signals() as stop:
            learn = functools.partial(_learn, ending)
            result = train(config, observers, stop, learn, ranks, collecting or collect_here)
    except Interrupted as interrupted:
        return _interrupted(ending, interrupted.exit_code)
    except KeyboardInterrupt:
        return _interrupted(ending, INTERRUPTED)
    except (LearningError, CheckpointError, BackendError) as error:
        return _fail(ending.failed(str(error)), 1)
    except ConfigError as error:
        ending.failed(str(error))
        raise
    except (*MEMORY_ERRORS, SafetensorError) as error:
        if out_of_memory(error):
            text = f"memory ran out ({shortage(error)}); lower --minibatch or add --auto-mem"
            return _fail(ending.failed(text), 1)
        if not isinstance(error, OSError | SafetensorError):
            raise
        return _fail(ending.failed(_unwritable(error, config, ending.run)), 1)
    ending.finished(_summary(result))
    if ranks.leads:
        _finish(result, device.type)
    return 0


def _say_device(config: TrainConfig, device: str) -> None:
    if device != "cpu":
        return
    why = "--device cpu" if config.device == "cpu" else "PyTorch sees no CUDA device here"
    _say(f"{why}: the network runs on the CPU")
    if config.max_cost_gpu_hours:
        _say("--max-cost-gpu-hours counts nothing on the CPU", "warn")


def _learn(ending: Ending, run: Run) -> Result:
    """Trains with a display. The run is kept for messages about its end."""
    from warpzone.observers.progress import Unseen
    from warpzone.train.stopping import Quiet

    ending.run = run
    config = run.config
    if not run.ranks.leads:
        return run.train(Unseen(config, ""))
    together = f", {config.ranks} ranks" if config.ranks > 1 else ""
    together += f", {config.actors} actors" if config.actors else ""
    _say(f"{run.folder.path} on {run.device}{together}")
    with Quiet(config, f"warpzone · {config.stages} · {run.folder.path}") as progress:
        return run.train(progress)


def _summary(result: Result) -> str:
    """The end of a run in one line."""
    total = len(result.outcomes) // 2
    return (
        f"{result.steps:,} steps in {result.seconds:.0f} s; the best weights clear "
        f"{result.best_clears} of {total} start delays with argmax"
    )


def _finish(result: Result, device: str) -> None:
    from warpzone.eval.best_video import write_best
    from warpzone.eval.evaluate import clears
    from warpzone.media.video import VideoError
    from warpzone.rom.waiting import loading

    total = len(result.outcomes) // 2
    print(
        f"[train] {result.steps:,} steps in {result.seconds:.0f} s\n"
        f"[train] the best weights clear {result.best_clears} of {total} start delays with argmax; "
        f"the last ones, sampled, {clears(result.outcomes, 'sampled')}"
    )
    try:
        with loading("playing the best weights, and writing best.mp4"):
            path, episode = write_best(result.folder, device=device)
    except VideoError as error:
        _say(f"no video: {error}", "warn")
    else:
        end = "reaches the flag" if episode.cleared else f"reaches x={episode.furthest_x}"
        print(
            f"[train] video of the best run: {path} ({episode.stage}, start delay "
            f"{episode.start_delay}, {end})"
        )
    print(f"[train] weights, metrics, episodes and evaluations: {result.folder}")


def _interrupted(ending: Ending, code: int) -> int:
    """Reports an interruption; only the current update is lost."""
    ending.interrupted()
    training = ending.run
    if training is None:
        _say("interrupted before the first step", "warn")
        return code
    folder = training.folder.path
    where = f"step {training.global_step:,} (update {training.global_update:,})"
    if training.saver.update == training.global_update:
        _say(f"interrupted at {where}; resume with: {PROG} --resume {folder}", "warn")
    else:
        _say(f"interrupted at {where}, which is not saved", "warn")
    return code


def _unwritable(error: Exception, config: TrainConfig, training: Run | None) -> str:
    """An error about the ROM is complete; any other one concerns the run's folder."""
    from warpzone.rom import RomError

    if isinstance(error, RomError):
        return str(error).rstrip(".")
    missed = getattr(error, "filename", None) or config.runs_dir
    folder = training.folder.path if training is not None else missed
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the run's folder {folder} cannot be written: {reason}"


def _say(text: str, kind: str = "") -> None:
    from warpzone.run.journal import say

    say(f"[train]{f'[{kind}]' if kind else ''} {text}")


def _fail(sentence: str, code: int) -> int:
    print(f"{PROG}: {sentence}.", file=sys.stderr)
    return code
