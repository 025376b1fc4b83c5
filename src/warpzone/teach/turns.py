"""Whose turn it is: which start is played next, and how long it is tried."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from warpzone.eval.evaluate import STEP_LIMIT
from warpzone.teach.places import Known
from warpzone.teach.tasks import Order, Task
from warpzone.teach.trials import Trials

#: Tasks that are worked at together; more would only fill the memory with places.
ACTIVE = 64
#: Steps for which a cheaper lesson is looked for than the first one.
STEPS_MORE = 1_500
#: Starts of a stage that are tried from where nothing is known of it, or too little. A long stage
#: takes more steps than one start gets, and once a way is known it is soon found from the others.
PIONEERS = 4


class Turns:
    """Tasks that wait, and those that are worked at."""

    def __init__(self, known: Mapping[int, Known], trials: Trials) -> None:
        """known: by stage; what is added to it decides who goes on."""
        self._known, self.trials = known, trials
        self.waiting: deque[Task] = deque()
        #: Those that the agent has begun to play alone, and those in which trials are made.
        self._known_alone, self._active = deque[Task](), deque[Task]()
        self._pioneers: Counter[int] = Counter()

    def send_pioneers(self, tasks: Sequence[Task]) -> None:
        """Of each stage of which half of the starts or more have no lesson a few get many more
        steps: what is known helps from the other starts, and not from them."""
        for stage in dict.fromkeys(task.start.stage for task in tasks):
            those = [task for task in tasks if task.start.stage == stage]
            left = [task for task in those if task.lesson is None]
            if 2 * len(left) < len(those) or not self._known[stage].ways(0):
                continue
            for task in left[:PIONEERS]:
                task.begin_again()
                task.become_pioneer()
                self.waiting.append(task)

    def begin_again(self, tasks: Sequence[Task]) -> None:
        """Tasks without a lesson for which there is a way to try get their steps again."""
        left = [
            task for task in tasks if task.lesson is None and self._known[task.start.stage].ways(0)
        ]
        for task in left:
            task.begin_again()
        self.waiting.extend(left)

    def next(self, trial_steps: int) -> Order | None:
        """What a lane is to do; nothing if all that is left is being done, or has taken too
        long."""
        while self.waiting:
            # First all of them alone, and then the trials: a batch of the network is for one kind.
            task = self.waiting.popleft()
            self._known_alone.append(task)
            if not task.begun:
                task.begun = True
                drawn = STEP_LIMIT if task.start.drawn else 0
                return Order(task, task.door, drawn=drawn, alone=True)
        looked = 0
        while True:
            while self._known_alone and len(self._active) < ACTIVE:
                self._active.append(self._known_alone.popleft())
            if looked >= len(self._active):
                return None
            task = self._active.popleft()
            unknown = task.pioneer and not task.again and not task.found
            if unknown and self._known[task.start.stage].ways(0):
                # Somebody else was faster; it is one like others now.
                task.pioneer = task.paths.patient = False
            if task.over or task.steps >= task.most_steps(trial_steps, STEPS_MORE):
                task.close()
                looked = 0
                continue
            self._active.append(task)
            looked += 1
            if task.paths.kept and not self._waits(task):
                return self.trials.draw(task)

    def _waits(self, task: Task) -> bool:
        """Whether a start is to wait for what pioneers of its stage find, of which it may become
        one."""
        stage = task.start.stage
        if task.pioneer or self._known[stage].ways(0):
            return False
        if self._pioneers[stage] == PIONEERS:
            return True
        self._pioneers[stage] += 1
        task.become_pioneer()
        return False

    def end(self) -> None:
        """Closes those that have waited for nothing."""
        for task in self._active:
            task.close()
        self._active.clear()
