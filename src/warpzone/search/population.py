"""Population based training on Ray Tune: members train side by side; at every exchange the worst
take over weights and settings of the best, and change the settings a little."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from warpzone.config import ConfigError
from warpzone.dist import cluster
from warpzone.dist.cluster import start_here
from warpzone.dist.ray_folder import ray_folder
from warpzone.run.lock import LOCK
from warpzone.run.matching import NETWORK
from warpzone.search.parameter import Parameter
from warpzone.search.space import Space
from warpzone.search.standing import Standing, hold, read_standing, require_same

#: What Ray Tune reads when it is imported: no files of its own beside ours.
ENVIRONMENT = {
    **cluster.ENVIRONMENT,
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
}
#: Bytes of Ray's shared memory: only settings and numbers pass through it.
STORE = 100 << 20
#: How often a member that dies is started again.
RETRIES = 5
#: Checkpoints of each member that Ray keeps; exchanges need those of the last two.
KEPT = 4
#: A setting is multiplied by one of these, or drawn anew with a chance.
FACTORS, RESAMPLE = (0.8, 1.25), 0.25
#: They end a population as Ctrl-C does.
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
#: Where Ray keeps its own files, in the population's folder.
RAY = "ray"


@dataclass(frozen=True)
class PopulationOrder:
    """A population as its command asks for it."""

    file: Path
    space: Space
    folder: Path
    members: int
    workers: int
    #: Steps between two exchanges; 0 never exchanges.
    exchange: int
    #: Share of members that take over others' weights.
    quantile: float


def check(order: PopulationOrder) -> None:
    """ConfigError if the population cannot be."""
    for parameter in order.space.parameters:
        if parameter.when:
            raise ConfigError(
                f"space.{parameter.name}: members keep all settings, so `when` is for sweeps only"
            )
        if parameter.name in NETWORK:
            raise ConfigError(
                f"space.{parameter.name} is a setting of the network: members could not exchange "
                "weights; fix it"
            )
    if order.members < 2:
        raise ConfigError(f"--members must be at least 2, and is {order.members}")
    if not 0 < order.quantile <= 0.5:
        raise ConfigError(f"--quantile must be above 0 and at most 0.5, and is {order.quantile}")
    if order.exchange > order.space.base.max_steps:
        raise ConfigError(
            f"--exchange {order.exchange} is more than max_steps {order.space.base.max_steps}"
        )
    require_same(order.folder, order.space, order.members, order.exchange)


def train_population(order: PopulationOrder, say: Callable[[str], None]) -> dict[str, Any]:
    """Trains to the end; returns what `population.json` says. One that was stopped goes on."""
    check(order)
    os.environ.update(ENVIRONMENT)
    from warpzone.search.lineage import MEMBERS, write_population
    from warpzone.search.takeover import finish_exchange, remove_incoming

    (order.folder / MEMBERS).mkdir(parents=True, exist_ok=True)
    lock = hold(order.folder)
    facts = {
        "members": order.members,
        "exchange": order.exchange,
        "quantile": order.quantile,
        "space": order.space.identity(),
    }

    def written() -> dict[str, Any]:
        return write_population(order.space, order.folder, facts)

    try:
        # Of one that was killed while it wrote.
        finish_exchange(order.folder)
        remove_incoming(order.folder, "*.part")
        standing = read_standing(order.folder, order.members)
        if standing.begun:
            say(f"{order.folder} is there already and goes on")
        record = written()
        if not standing.finished:
            # What members need of it is beside their runs.
            shutil.rmtree(order.folder / RAY, ignore_errors=True)
            with _ray(order):
                errors = _fit(order, standing, written, say)
            record = written()
            if errors:
                raise OSError(
                    f"{errors} of {order.members} members failed; {order.folder / RAY} says why"
                )
            shutil.rmtree(order.folder / RAY, ignore_errors=True)
        remove_incoming(order.folder)
        (order.folder / LOCK).unlink(missing_ok=True)
    finally:
        lock.close()
    return record


@contextmanager
def _ray(order: PopulationOrder) -> Iterator[None]:
    """Ray on this machine alone, with a folder of its own that goes away, also after a signal;
    the exit code is then that of the signal."""
    import ray

    signum = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal signum
        signum = number
        raise KeyboardInterrupt

    with ray_folder() as place:
        caught = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, stop) for number in caught}
        try:
            start_here(place, cpus=order.workers, gpus=_gpus(order), store=STORE)
            for number in caught:
                # Ray has set its own, which writes stacks and ends with the signal's bare number.
                signal.signal(number, stop)
            yield
        except KeyboardInterrupt as error:
            if not signum:
                raise
            raise SystemExit(128 + signum) from error
        finally:
            ray.shutdown()
            for number, handler in before.items():
                signal.signal(number, handler)


def _gpus(order: PopulationOrder) -> int:
    import torch

    return 0 if order.space.base.device == "cpu" else torch.cuda.device_count()


def _fit(
    order: PopulationOrder,
    standing: Standing,
    written: Callable[[], dict[str, Any]],
    say: Callable[[str], None],
) -> int:
    """Runs Tune; the number of members that failed."""
    from ray import tune
    from ray.tune import Callback, CheckpointConfig, FailureConfig, RunConfig
    from ray.tune.search.basic_variant import BasicVariantGenerator

    from warpzone.search.member import EVERY, FILE, FOLDER, REPORT, THREADS, Member
    from warpzone.search.takeover import number_of

    class Lineage(Callback):
        """Keeps what reports read up to date."""

        def on_trial_result(
            self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any
        ) -> None:
            written()
            number, value = number_of(trial.trial_id), result["value"]
            say(f"member {number}: {value:g} at step {result['global_step']:,}")

    base = order.space.base
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # One that goes on draws other numbers than at its start.
    random.seed(f"{base.seed} {standing.report}" if standing.begun else base.seed)
    points = [own or valid_draw(order.space) for own in standing.settings]
    resources = {"cpu": 1, "gpu": _gpus(order) / order.workers}
    tuner = tune.Tuner(
        tune.with_resources(Member, resources),
        param_space={
            # Tune takes points for names that have no draw.
            **dict.fromkeys(points[0]),
            FILE: str(order.file.resolve()),
            FOLDER: str(order.folder.resolve()),
            EVERY: order.exchange or base.max_steps,
            REPORT: standing.report,
            THREADS: max(1, (cores or 1) // order.workers),
        },
        tune_config=tune.TuneConfig(
            search_alg=BasicVariantGenerator(points_to_evaluate=points),
            num_samples=order.members,
            scheduler=_scheduler(order),
            reuse_actors=True,
        ),
        run_config=RunConfig(
            name=RAY,
            storage_path=str(order.folder.resolve()),
            failure_config=FailureConfig(max_failures=RETRIES),
            checkpoint_config=CheckpointConfig(num_to_keep=KEPT, checkpoint_frequency=1),
            callbacks=[Lineage()],
            verbose=0,
        ),
    )
    found = tuner.fit()
    results = [found[index] for index in range(len(found))]
    ended = sum(bool((result.metrics or {}).get("done")) for result in results)
    if ended + found.num_errors < order.members:
        # Tune ends in order after Ctrl-C.
        raise KeyboardInterrupt
    return int(found.num_errors)


def _scheduler(order: PopulationOrder) -> Any:
    from warpzone.search.takeover import Exchanges

    if not order.exchange:
        return None
    direction = order.space.objective.direction
    return Exchanges(
        order.folder,
        time_attr="training_iteration",
        metric="value",
        mode="min" if direction == "minimize" else "max",
        perturbation_interval=1,
        quantile_fraction=order.quantile,
        resample_probability=RESAMPLE,
        perturbation_factors=FACTORS,
        hyperparam_mutations={p.name: _mutation(p) for p in order.space.parameters},
        custom_explore_fn=_fitting(order.space),
        # All members are at the same step when they are compared.
        synch=True,
    )


def draw(parameter: Parameter, rng: Any = random) -> Any:
    """A value from the whole range of a parameter, or one of its choices."""
    if parameter.choices:
        return rng.choice(parameter.choices)
    if parameter.log:
        return parameter.fit(parameter.low * (parameter.high / parameter.low) ** rng.random())
    return parameter.fit(rng.uniform(parameter.low, parameter.high))


def _mutation(parameter: Parameter) -> Any:
    """What Tune draws anew from: a list, along which it also steps, or a function."""
    return list(parameter.choices) if parameter.choices else lambda: draw(parameter)


def _fitting(space: Space) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Brings explored settings back into their ranges."""

    def fit(config: dict[str, Any]) -> dict[str, Any]:
        fitted = {p.name: p.fit(config[p.name]) for p in space.parameters}
        try:
            space.config(fitted)
        except ConfigError:
            # Together they contradict each other: drawn anew until they do not.
            fitted = valid_draw(space)
        return {**config, **fitted}

    return fit


def valid_draw(space: Space, tries: int = 100) -> dict[str, Any]:
    """Settings that do not contradict each other; ConfigError if none are found."""
    for _ in range(tries):
        drawn = {parameter.name: draw(parameter) for parameter in space.parameters}
        try:
            space.config(drawn)
        except ConfigError as error:
            reason = str(error)
            continue
        return drawn
    raise ConfigError(f"the space has hardly any settings that go together: {reason}")
