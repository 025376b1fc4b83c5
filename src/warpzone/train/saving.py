"""Turns a run into a checkpoint, and a checkpoint into a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warpzone.health.ticker import why
from warpzone.learn.learner import LearningError
from warpzone.learn.replaying import joined_replay
from warpzone.run.checkpoints import Checkpoint, Checkpoints, Snapshot, update_of
from warpzone.run.journal import say
from warpzone.run.names import WEIGHTS
from warpzone.run.reserve import Reserve
from warpzone.run.resume import Start
from warpzone.run.sidecar import CheckpointError, Reason
from warpzone.run.versions import add_session
from warpzone.train.joining import joined, load_random_state, own_lanes, random_state

if TYPE_CHECKING:
    from warpzone.train.loop import Run

GIB = 2**30
#: Counters of a run: their name in a checkpoint, and in the part that counts.
BUDGET_COUNTERS = ("global_step", "global_update", "gpu_seconds")
EVALUATOR_COUNTERS = ("best_clears", "best_update")


class Saver:
    """Decides when a checkpoint is due, writes it, and restores one. Of several ranks the first one
    reads and writes, for all of them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.checkpoints = Checkpoints(run.folder.checkpoints)
        self.reserve = Reserve(run.folder.checkpoints)
        #: Of the newest checkpoint here; -1 while there is none.
        self.update = -1
        #: Seconds to write the last one.
        self.seconds = 0.0
        self._since = time.monotonic()

    def begin(self, start: Start) -> list[str]:
        """Starts from the beginning or from a checkpoint; returns what could not be restored."""
        run, found, at_home = self._run, start.checkpoint, start.folder is not None
        notes = []
        if found is not None:
            notes = self.restore(found, at_home=at_home)
            run.budget.resumed_at = run.global_step
        run.ranks.told(lambda: self._open(found, at_home=at_home))
        if found is not None and not at_home:
            # The new folder is complete from now on.
            self.save()
        if not at_home:
            run.folder.write_config(run.config)
        return notes

    def _open(self, found: Checkpoint | None, *, at_home: bool) -> None:
        run = self._run
        if at_home:
            run.folder.rewind(run.config, run.global_step)
        source = {
            "update": run.global_update,
            "resumed_from": str(found.path) if found else None,
            "begun_with": run.begun_with or None,
        }
        add_session(run.folder.path, run.device, run.rom, source)

    def due(self, update: int) -> bool:
        """Whether a checkpoint is to be written when so many updates are done."""
        config = self._run.config
        if update == self.update:
            return False
        if config.checkpoint_interval and update % config.checkpoint_interval == 0:
            return True
        if not config.checkpoint_minutes:
            return False
        minutes = (time.monotonic() - self._since) / 60
        # The ranks' clocks differ.
        return bool(self._run.ranks.most(minutes >= config.checkpoint_minutes))

    def save(
        self, reason: Reason = "normal", *, lanes: bool = True, last: bool = False
    ) -> Checkpoint:
        """Writes everything, the lanes only if they are between two rollouts. If the update has
        a checkpoint already, only the reason is rewritten: the existing one was written between
        two updates, and this call may be in the middle of one. The last checkpoint may use the
        space kept back."""
        run = self._run
        run.pulse.enter("checkpoint")
        began = time.perf_counter()
        if kept := run.ranks.told(lambda: self._again(reason)):
            return kept
        state = state_of(run, lanes=lanes)
        written = run.ranks.told(lambda: self._new(state, reason, last))
        self.update = run.global_update
        self._since = time.monotonic()
        self.seconds = time.perf_counter() - began
        return written

    def _new(self, state: dict[str, Any], reason: Reason, last: bool) -> Checkpoint:
        run = self._run
        snapshot = Snapshot(
            config=run.config,
            global_step=run.global_step,
            global_update=run.global_update,
            reason=reason,
            weights=run.agent.state_dict(),
            state=state,
            best=_best(run),
        )
        written = self._write(snapshot, last)
        self.checkpoints.prune(
            last=run.config.keep_last,
            every=run.config.keep_every,
            best=run.evaluator.best_update,
            newest=run.global_update,
        )
        if not last:
            self.reserve.keep(snapshot.bytes)
        return written

    def _write(self, snapshot: Snapshot, last: bool) -> Checkpoint:
        try:
            return self.checkpoints.write(snapshot)
        except OSError:
            if not (last and self.reserve.free()):
                raise
        say("[train][warn] the disk is full: the space kept back for the last checkpoint is used")
        return self.checkpoints.write(snapshot, spare=0)

    def save_last(self, reason: Reason) -> None:
        """The last checkpoint. If it cannot be written, the previous one stays, and the error
        that ended the run is reported. So it is after a failure of one rank of several: what the
        others have is not the run."""
        run = self._run
        if reason == "exception":
            say(f"[train][warn] interrupted by a failure at step {run.global_step:,}")
        try:
            if reason == "normal":
                self.save(last=True)
            elif (reason == "interrupt" or run.ranks.size == 1) and _finite(run):
                self.save(reason, lanes=run.between, last=True)
                if reason == "interrupt":
                    meta = {"global_step": run.global_step, "seconds": run.budget.seconds}
                    run.folder.save_weights(WEIGHTS, run.evaluated_agent(), meta)
        except (OSError, RuntimeError, MemoryError) as error:
            if reason == "normal":
                raise
            say(f"[train][warn] no last checkpoint: {why(error)}")
        finally:
            if run.ranks.leads:
                self.reserve.free()
        if reason == "exception" and self.update == run.global_update:
            self._complete_rows()

    def _complete_rows(self) -> None:
        """The update of the last checkpoint is not made again, so its row must be there."""
        try:
            self._run.recorder.catch_up()
        except (OSError, MemoryError) as error:
            say(f"[train][warn] the row of update {self.update} is missing: {why(error)}")

    def _again(self, reason: Reason) -> Checkpoint | None:
        run = self._run
        run.folder.require()
        run.folder.flush()
        if self.update != run.global_update:
            return None
        ours = [stem for stem in self.checkpoints.stems() if update_of(stem) == self.update]
        try:
            there = self.checkpoints.open(ours[0] if ours else "").sidecar
        except CheckpointError:
            return None
        return self.checkpoints.commit(there.with_reason(reason))

    def restore(self, checkpoint: Checkpoint, *, at_home: bool) -> list[str]:
        """Restores a checkpoint; returns what could not be restored. `at_home`: it is one of
        this run's own."""
        run = self._run
        weights, state = run.ranks.told(
            lambda: (checkpoint.read_weights(run.agent.state_dict()), checkpoint.read_state())
        )
        run.agent.load_state_dict(weights)
        try:
            notes = load_state(run, state)
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            if isinstance(error, CheckpointError | LearningError):
                raise
            text = f"{checkpoint.sidecar.state.name} does not hold what a run needs: {error}"
            raise CheckpointError(text) from error
        if at_home:
            self.update = run.global_update
            # The previous process may have died between writing the checkpoint and the latest
            # side-car.
            if run.ranks.leads and not self.checkpoints.is_latest(checkpoint.sidecar):
                self.checkpoints.commit(checkpoint.sidecar)
        return notes


def state_of(run: Run, *, lanes: bool) -> dict[str, Any]:
    """Everything but the weights, as tensors, numbers and text in lists and dictionaries; on rank 0
    with the lanes of all ranks."""
    replaying = run.learner.replaying
    replay = None
    if replaying is not None:
        stored = replaying.replay.storage
        if stored.size * stored.spec.bytes <= run.config.checkpoint_replay_gb * GIB:
            replay = replaying.replay.state_dict()
    budget, evaluator, policies = run.budget, run.evaluator, run.policies
    counters = {name: getattr(budget, name) for name in BUDGET_COUNTERS}
    counters |= {name: getattr(evaluator, name) for name in EVALUATOR_COUNTERS}
    collector, drawn = _collector(run, lanes), random_state(run.ranks)
    ranks: dict[str, Any] = {}
    if run.ranks.size > 1:
        segments = replay["storage"] if replay is not None else {}
        parts = run.ranks.collect((own_lanes(collector), drawn, segments))
        if parts:
            collector = joined(collector, [own for own, _, _ in parts])
            ranks = {"ranks": len(parts), "random_ranks": [drawn for _, drawn, _ in parts]}
            if replay is not None:
                replay["storage"] = joined_replay([segments for _, _, segments in parts])
    return {
        "counters": counters,
        "seconds": budget.seconds,
        "next_eval": evaluator.next_eval,
        "evaluated_at": evaluator.evaluated_at,
        "learner": run.learner.state_dict(),
        "collector": collector,
        "noise": policies.noise.get_state(),
        "noise_buffers": {name: part.cpu() for name, part in policies.acting.named_buffers()},
        "replay": replay,
        "random": drawn,
        "observers": {one.key(): one.state_dict() for one in run.observers},
        **ranks,
    }


def _finite(run: Run) -> bool:
    return all(bool(part.isfinite().all()) for part in run.agent.parameters())


def _best(run: Run) -> dict[str, int]:
    evaluator = run.evaluator
    if evaluator.best_update < 0:
        return {}
    return {"clears": evaluator.best_clears, "update": evaluator.best_update}


def _collector(run: Run, lanes: bool) -> dict[str, Any]:
    """Leaves out lanes that cannot be saved: they start again."""
    try:
        return run.collector.state_dict(lanes=lanes)
    except (RuntimeError, ValueError):
        return run.collector.state_dict(lanes=False)


def load_state(run: Run, state: Mapping[str, Any]) -> list[str]:
    """Restores the result of `state_of`; the weights are loaded already."""
    notes: list[str] = []
    budget, evaluator, policies = run.budget, run.evaluator, run.policies
    for part, names in ((budget, BUDGET_COUNTERS), (evaluator, EVALUATOR_COUNTERS)):
        for name in names:
            setattr(part, name, type(getattr(part, name))(state["counters"][name]))
    budget.started = time.perf_counter() - float(state["seconds"])
    evaluator.next_eval = int(state["next_eval"])
    evaluator.evaluated_at = int(state["evaluated_at"])
    evaluator.plan()
    run.learner.load_state_dict(state["learner"])
    policies.noise.set_state(state["noise"])
    if policies.acting is not policies.agent:
        policies.acting.load_state_dict(policies.agent.state_dict())
    for name, buffer in policies.acting.named_buffers():
        buffer.copy_(state["noise_buffers"][name])
    reason = run.collector.load_state_dict(state["collector"])
    notes += run.collector.notes
    if reason:
        notes.append(f"all games start again: {reason}")
    else:
        notes += _dealt(run, int(state.get("ranks", 1)))
    notes += _load_replay(run, state["replay"])
    for observer in run.observers:
        observer.load_state_dict(state["observers"].get(observer.key(), {}))
    load_random_state(_random_of(run, state), run.ranks)
    return notes


def _dealt(run: Run, before: int) -> list[str]:
    """Says that the lanes are on other ranks than they were on."""
    count, lanes = run.ranks.size, run.config.num_envs
    if count == before:
        return []
    here, there = ("one rank" if number == 1 else f"{number} ranks" for number in (count, before))
    return [f"the {lanes} lanes of {there} are dealt anew to {here}"]


def _random_of(run: Run, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """This rank's own, if there are as many ranks as there were."""
    drawn: list[Mapping[str, Any]] = state.get("random_ranks", [])
    return drawn[run.ranks.rank] if len(drawn) == run.ranks.size else state["random"]


def _load_replay(run: Run, saved: dict[str, Any] | None) -> list[str]:
    replaying = run.learner.replaying
    if replaying is None:
        return []
    if saved is None:
        # There was none, or --checkpoint-replay-gb was too little for it.
        return ["the checkpoint has no replay (see --checkpoint-replay-gb); it fills up anew"]
    try:
        replaying.replay.load_state_dict(saved)
    except ValueError as error:
        return [f"the replay fills up anew: {error}"]
    return []
