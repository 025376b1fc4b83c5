"""From a `--backend` word to lanes in this process."""

from __future__ import annotations

from contextlib import ExitStack

from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.events import Report, construction
from warpzone.env.backends.interface import BackendError, BackendSpec, Lanes, Machine

NATIVE = "native"
NES_PY = "nes-py"
RETRO = "retro"
#: Emulators that this package knows, besides the native engine.
EMULATORS = (NES_PY, RETRO)


def is_factory(backend: str) -> bool:
    """Whether it is written `module:factory`."""
    module, colon, factory = backend.partition(":")
    names = [*module.split("."), *factory.split(".")]
    return bool(colon) and all(name.isidentifier() for name in names)


def check_name(backend: str) -> str | None:
    """What is wrong with a back-end's name, in one sentence; None if nothing is."""
    if backend == NATIVE or backend in EMULATORS or is_factory(backend):
        return None
    return f"--backend must be native, nes-py, retro or module:factory, not {backend!r}"


def check_installed(backend: str, agreed: str = "") -> None:
    """Raises with one sentence when what a back-end needs is missing, or when it is code that may
    not run; agreed: the digest of the code that may."""
    if backend == NES_PY:
        from warpzone.env.backends import nes_py

        nes_py.check()
    elif backend == RETRO:
        from warpzone.env.backends import retro

        retro.check()
    elif is_factory(backend):
        from warpzone.env.backends import factory

        factory.find(backend, agreed)
    else:
        raise BackendError(
            f"there is no other back-end {backend!r}; use nes-py, retro or module:factory"
        )


def make_lanes(spec: BackendSpec, log: Diagnostics, report: Report | None = None) -> Lanes:
    """All lanes of the spec in this process, one after another."""
    check_installed(spec.backend, spec.digest)
    if is_factory(spec.backend):
        from warpzone.env.backends.factory_lanes import FactoryLanes

        return FactoryLanes(spec, log, report)
    from warpzone.env.backends.machine_lanes import MachineLanes

    total = len(spec.stages)
    if spec.backend == RETRO and total > 1:
        raise BackendError(
            "stable-retro holds one game in a process; use worker processes (no --force-sync)"
        )
    machines: list[Machine] = []
    with ExitStack() as undo:
        for index, stages in enumerate(spec.stages):
            with construction(spec.env(index), spec.of, report):
                machine = _machine(spec, stages[0] if stages else -1, log)
            undo.callback(machine.close)
            machines.append(machine)
        undo.pop_all()
    return MachineLanes(spec, machines)


def prewarm(spec: BackendSpec, every_stage: bool) -> None:
    """Makes and drops an environment in this process, or one for each stage: what cannot work
    fails here, with its reason, and files are in memory when the workers ask for them."""
    check_installed(spec.backend, spec.digest)
    stages = sorted({stage for lane in spec.stages for stage in (lane or (-1,))})
    for stage in stages if every_stage else stages[:1]:
        if is_factory(spec.backend):
            from warpzone.env.backends import factory

            factory.make(spec, stage, Diagnostics()).close()
        else:
            machine = _machine(spec, stage, Diagnostics())
            machine.start(stage)
            machine.close()


def _machine(spec: BackendSpec, stage: int, log: Diagnostics) -> Machine:
    if spec.backend == NES_PY:
        from warpzone.env.backends.nes_py import NesPyMachine

        return NesPyMachine(spec.rom, log, stage)
    from warpzone.env.backends.retro import RetroMachine

    return RetroMachine(spec.rom, log)
