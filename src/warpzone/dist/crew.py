"""The actors of a run as the learner has them: a thread for each asks it for rollouts, one after
the other, and puts another in its place when it is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

import warpzone
from warpzone.config import TrainConfig
from warpzone.dist.cluster import NAMESPACE, Cluster
from warpzone.dist.moments import Told
from warpzone.dist.parcels import Parcel
from warpzone.dist.queue import Arrived, RolloutQueue, Ticket
from warpzone.dist.remote import RemoteActor
from warpzone.learn.learner import LearningError
from warpzone.run.journal import say

#: A reference to weights in the object store, the updates they have learned from, the steps of the
#: run by then, and a reference to what the learner knows from all episodes.
Weights = tuple[Any, int, int, Any]
#: Seconds in which actors start on a busy machine, or wait for room on a cluster.
START = 300.0
#: Seconds after which an idle actor is asked whether it is there.
PING = 60.0
#: Actors of one number that may be lost one after the other without a rollout.
MOST_DEATHS = 5


class FleetError(LearningError):
    """The actors cannot go on; one sentence."""


class Crew:
    """Actors and their queue. One thread of the caller's publishes, takes and saves."""

    def __init__(
        self, config: TrainConfig, cluster: Cluster, name: str, threads: int, first: int
    ) -> None:
        """name: that of the actors on a cluster, where a resumed learner finds them again; threads:
        of each actor; first: updates that are done."""
        self.config = config
        self._cluster = cluster
        self._name = name
        self._threads_each = threads
        count = config.actors
        self.queue: RolloutQueue[Parcel] = RolloutQueue(
            count,
            batch=count,
            most_lag=config.max_lag,
            outstanding=config.actor_rollouts,
            first=first,
        )
        self._changed = threading.Condition()
        self._handles: list[Any] = [None] * count
        self._lives = [0] * count
        self._weights: Weights | None = None
        self._resting = self._closing = False
        self._failure = ""
        self._servers: list[threading.Thread] = []
        #: Actors that were lost, and those that a resumed learner has found again.
        self.losses = 0
        self.found = 0

    # --- the start and the end ------------------------------------------------------------------
    def start(self) -> None:
        """Makes all actors, or finds them again."""
        count = self.config.actors
        found = [self._find(number) for number in range(count)]
        self.found = sum(handle is not None for handle in found)
        begun: dict[int, Any] = {}
        for number, handle in enumerate(found):
            if handle is None:
                handle, begun[number] = self._make(number)
            self._handles[number] = handle
        for number, reference in begun.items():
            try:
                self._check_version(number, ray.get(reference, timeout=START))
            except (RayError, FleetError) as error:
                self.close()
                raise FleetError(f"actor {number} did not start: {_why(error, START)}") from error
        for number in range(count):
            self.queue.join(number)

    def serve(self) -> None:
        """Begins to play."""
        for number in range(self.config.actors):
            server = threading.Thread(
                target=self._serve, args=(number,), name=f"actor {number}", daemon=True
            )
            self._servers.append(server)
            server.start()

    def _full_name(self, number: int) -> str:
        return f"{self._name}-{number}"

    def _find(self, number: int) -> Any:
        """The actor that an earlier learner of this run has left; None if there is none that can go
        on."""
        if not self._cluster.remote:
            return None
        try:
            handle = ray.get_actor(self._full_name(number), namespace=NAMESPACE)
        except ValueError:
            return None
        part = (number, self.config.actors)
        try:
            if ray.get(handle.plays.remote(self.config, part), timeout=self.config.rank_timeout):
                return handle
        except RayError:
            pass
        _kill(handle)
        return None

    def options(self, number: int) -> dict[str, Any]:
        """What an actor asks Ray for."""
        options: dict[str, Any] = {"num_cpus": 1, "max_restarts": 0}
        if self.config.actor_gpus:
            options["num_gpus"] = self.config.actor_gpus
        if self._cluster.remote:
            options |= {"name": self._full_name(number), "lifetime": "detached"}
        return options

    def _make(self, number: int) -> tuple[Any, Any]:
        """A new actor, and what its start will give."""
        ends = time.monotonic() + START
        remote: Any = ray.remote(RemoteActor)
        while True:
            try:
                handle = remote.options(**self.options(number)).remote()
                break
            except ValueError:
                # The last one of its name may take a moment to go.
                if time.monotonic() > ends:
                    raise
                time.sleep(0.2)
        part = (number, self.config.actors)
        return handle, handle.begin.remote(
            self.config, part, self._lives[number], self._threads_each
        )

    def _check_version(self, number: int, version: str) -> None:
        if version != warpzone.__version__:
            raise FleetError(
                f"it has warpzone {version}, and the learner {warpzone.__version__}; install the "
                "same on all machines"
            )

    def close(self) -> None:
        """Ends all actors. Closing twice is allowed."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for handle in self._handles:
            if handle is not None:
                _kill(handle)
        for server in self._servers:
            server.join(START)

    # --- what the learner does ------------------------------------------------------------------
    def publish(
        self,
        weights: Mapping[str, Any],
        version: int,
        global_step: int,
        told: Told,
    ) -> None:
        """Puts new weights into the object store, once for all actors."""
        references = ray.put(dict(weights)), ray.put(told)
        with self._changed:
            self._weights = (references[0], version, global_step, references[1])
            self.queue.publish(version)
            self._changed.notify_all()

    def take(self, progress: Callable[[], None]) -> list[Arrived[Parcel]]:
        """The rollouts of the next update; waits for them. progress: called when one arrives."""
        with self._changed:
            last, came = time.monotonic(), self.queue.came
            while not self.queue.ready():
                self._require_servers()
                if self.queue.present:
                    last = time.monotonic()
                elif time.monotonic() - last > START:
                    raise FleetError(f"no actor has been there for {START:g} s")
                self._changed.wait(1.0)
                if self.queue.came != came:
                    came = self.queue.came
                    progress()
            taken = self.queue.take()
            self._changed.notify_all()
            return taken

    def _require_servers(self) -> None:
        if self._failure:
            raise FleetError(self._failure)
        for number, server in enumerate(self._servers):
            if not server.is_alive():
                raise FleetError(f"the thread of actor {number} has ended; see above")

    def states(self, told: Told, *, lanes: bool) -> tuple[list[dict[str, Any] | None], int]:
        """What a checkpoint holds of each actor, None of those that are being replaced, and how
        many rollouts have arrived and are not part of it. Waits for the rollouts under way."""
        with self._rest():
            reference = ray.put(told)
            there = [self.queue.has(number) for number in range(self.config.actors)]
            calls = {
                number: self._handles[number].state.remote(reference, lanes=lanes)
                for number, present in enumerate(there)
                if present
            }
            try:
                found = ray.get(list(calls.values()), timeout=self.config.rank_timeout)
            except RayError as error:
                raise FleetError("an actor did not tell its state") from error
            by_number = dict(zip(calls, found, strict=True))
            return [by_number.get(number) for number in range(len(there))], self.queue.waiting

    @contextlib.contextmanager
    def _rest(self) -> Iterator[None]:
        """No actor plays."""
        patience = 2 * self.config.rank_timeout
        try:
            with self._changed:
                self._resting = True
                if not self._changed.wait_for(lambda: not self.queue.playing, patience):
                    raise FleetError("the actors do not rest")
            yield
        finally:
            with self._changed:
                self._resting = False
                self._changed.notify_all()

    def load(self, whole: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> list[str]:
        """Gives every actor its part of a checkpoint; why games start again, by actor."""
        reference = ray.put(dict(whole))
        calls = [
            handle.load.remote(reference, dict(part))
            for handle, part in zip(self._handles, own, strict=True)
        ]
        try:
            reasons: list[str] = ray.get(calls, timeout=START)
        except RayError as error:
            raise FleetError(f"an actor did not take its lanes: {_why(error, START)}") from error
        return reasons

    # --- the thread of an actor -----------------------------------------------------------------
    def _serve(self, number: int) -> None:
        deaths = 0
        while True:
            begun = self._next(number)
            if self._closing:
                return
            handle = self._handles[number]
            try:
                if begun is None:
                    ray.get(handle.alive.remote(), timeout=self.config.rank_timeout)
                    continue
                ticket, weights = begun
                parcel = ray.get(handle.play.remote(*weights), timeout=self.config.rank_timeout)
            except RayTaskError as error:
                self._fail(f"actor {number} failed: {_why(error, 0)}")
                return
            except RayError as error:
                deaths += 1
                if self._closing or not self._replace(number, error, deaths):
                    return
                continue
            deaths = 0
            with self._changed:
                self.queue.arrive(ticket, parcel)
                self._changed.notify_all()

    def _next(self, number: int) -> tuple[Ticket, Weights] | None:
        """Waits until the actor may play, and what with; None if it is to be asked whether it is
        there."""
        with self._changed:
            while not self._closing:
                if self._weights and not self._resting and self.queue.may_begin(number):
                    ticket = self.queue.begin(number)
                    # Others may be next.
                    self._changed.notify_all()
                    return ticket, self._weights
                if not self._changed.wait(PING):
                    return None
        return None

    def _replace(self, number: int, error: RayError, deaths: int) -> bool:
        """Another actor in the place of a lost one; whether there is one."""
        why = _why(error, self.config.rank_timeout)
        with self._changed:
            cost = "its rollout is left out" if self.queue.lose(number) else "it was idle"
            self.losses += 1
            self._changed.notify_all()
        say(f"[train][warn] actor {number} is lost ({why}): {cost}, and another takes its place")
        waited = False
        while not self._closing:
            _kill(self._handles[number])
            if deaths > MOST_DEATHS:
                self._fail(f"actor {number} was lost {deaths} times in a row: {why}")
                return False
            self._lives[number] += 1
            self._handles[number], begun = self._make(number)
            try:
                self._check_version(number, ray.get(begun, timeout=START))
            except GetTimeoutError:
                if not waited:
                    say(f"[train][warn] there is no room for actor {number}: the others go on")
                waited = True
                continue
            except (RayTaskError, FleetError) as failure:
                self._fail(f"actor {number} failed: {_why(failure, START)}")
                return False
            except RayError as failure:
                deaths, why = deaths + 1, _why(failure, START)
                continue
            with self._changed:
                self.queue.join(number)
                self._changed.notify_all()
            return True
        _kill(self._handles[number])
        return False

    def _fail(self, sentence: str) -> None:
        with self._changed:
            self._failure = self._failure or sentence
            self._changed.notify_all()


def _kill(handle: Any) -> None:
    with contextlib.suppress(RayError, ValueError, RuntimeError):
        ray.kill(handle)


def _why(error: BaseException, seconds: float) -> str:
    """One clause about a failure, without addresses."""
    if isinstance(error, RayTaskError):
        cause = getattr(error, "cause", None) or error
        return str(cause).strip().splitlines()[-1].rstrip(".")
    if isinstance(error, GetTimeoutError):
        return f"it did not answer for {seconds:g} s"
    if isinstance(error, RayActorError):
        return "its process ended"
    if isinstance(error, RayError):
        return "its machine is gone"
    return str(error)
