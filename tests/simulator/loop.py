"""An event loop with a virtual clock and simulated processes.

Time stands still while anything can run and jumps to the next timer when nothing can. Of the processes that can run,
the seed chooses the next; within a process callbacks keep their order, as asyncio promises. A process that is killed
simply never runs again: no `finally` of it has any effect, as after SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from itertools import count
from random import Random
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

START = 1_800_000_000.0
"""Seconds since 1970 at which every simulation starts."""


_STEP_S = 1e-6
_MOST_WAITS = 20
"""Of one task in its end."""


class SimulationError(Exception):
    """The simulated world does not come to rest; the message says how."""


class Process:
    """One life of a simulated process. `steps` counts the callbacks that it has run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.steps = 0
        self.crash_at: int | None = None
        """The step at which it is killed."""
        self.ready: deque[_Handle] = deque()
        self.frozen_until = 0.0
        self.on_kill: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<{self.name}>"


_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def current() -> Process | None:
    """The simulated process that runs now; None outside of all."""
    return _process.get()


class _Numbered:
    """Hashes by the order in which hashes were first asked for, so that sets have the same order in every run."""

    numbers = count(1)
    _number = 0

    def __hash__(self) -> int:
        if not self._number:
            self._number = next(_Numbered.numbers)
        return self._number


class _Handle:
    """As asyncio's, without what only debugging needs: making and running these is a fifth of a simulation."""

    __slots__ = ("_when", "args", "callback", "context", "dropped", "process")

    def __init__(self, process: Process, context: contextvars.Context, callback: Any, args: Any, when: float) -> None:
        self.process, self.context, self.callback, self.args = process, context, callback, args
        self.dropped = False
        self._when = when

    def cancel(self) -> None:
        self.dropped = True
        self.callback = self.args = None

    def cancelled(self) -> bool:
        return self.dropped

    def when(self) -> float:
        return self._when


class SimTask(_Numbered, asyncio.Task):  # type: ignore[type-arg]
    """A task whose hash does not depend on its address."""


class SimFuture(_Numbered, asyncio.Future):  # type: ignore[type-arg]
    """A future whose hash does not depend on its address, and whose error nobody need hear: who asked may be dead."""

    def set_exception(self, exception: Any, /) -> None:
        super().set_exception(exception)
        self._log_traceback = False


class SimLoop(asyncio.BaseEventLoop):
    """See the module. `most_steps` and `most_time` (virtual seconds) bound a run."""

    def __init__(self, random: Random, most_steps: int = 2_000_000, most_time: float = 3600) -> None:
        super().__init__()
        _Numbered.numbers = count(1)
        self._now = 1000.0
        self._sequence = count()
        self._timers: list[tuple[float, int, _Handle]] = []
        self._chance = random
        self._nobody = Process("outside")
        self._processes: list[Process] = []
        """Those that have something to run."""
        self.ahead = 0.0
        """Seconds by which the clock on the wall of the simulated machine was set forward."""
        self.steps = 0
        self.most_steps, self.most_time = most_steps, most_time
        self.on_crash: Callable[[Process], None] = lambda process: None
        self.disk_delay: Callable[[], float] = lambda: 0.0
        """Seconds that a call in a thread takes."""
        self._free_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        """When the work that was given to a single thread so far begins at the latest."""
        self.tasks: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._new_task)  # type: ignore[arg-type]

    # -- time ------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    @property
    def wall(self) -> float:
        """Virtual seconds since 1970."""
        return START + self._now

    # -- scheduling ------------------------------------------------------------------------------------------------

    def _new_task(self, loop: Any, work: Coroutine[Any, Any, T], **named: Any) -> asyncio.Task[T]:
        task: asyncio.Task[T] = SimTask(work, loop=loop, **named)
        # Kept until the end: a task of a dead process must not be collected, which would run its `finally` blocks.
        self.tasks.append(task)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    # The types of these are those of asyncio's own, which strict checking takes for others.

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        if context is None:
            context = contextvars.copy_context()
        process = context.get(_process) or self._nobody
        handle = _Handle(process, context, callback, args, 0.0)
        # As `_enqueue`, which would be a call more for every callback.
        if process.alive:
            if not process.ready:
                self._processes.append(process)
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        if context is None:
            context = contextvars.copy_context()
        timer = _Handle(context.get(_process) or self._nobody, context, callback, args, when)
        heapq.heappush(self._timers, (when, next(self._sequence), timer))
        return timer

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _enqueue(self, handle: _Handle) -> None:
        process = handle.process
        if not process.alive:
            return
        if not process.ready:
            self._processes.append(process)
        process.ready.append(handle)

    def _run_once(self) -> None:
        """Runs until the loop is stopped: asyncio's own turns would cost as much again."""
        processes, chance = self._processes, self._chance.random
        while not self._stopping:  # type: ignore[attr-defined]
            if not processes:
                self._jump()
                continue
            at = int(chance() * len(processes)) if len(processes) > 1 else 0
            process = processes[at]
            if process.frozen_until > self._now:
                self._thaw_later(process, at)
                continue
            handle = process.ready.popleft()
            if not process.ready:
                processes[at] = processes[-1]
                processes.pop()
            if handle.dropped:
                continue
            self.steps += 1
            process.steps += 1
            if process.crash_at is not None and process.steps >= process.crash_at:
                self.kill(process)
                continue
            if self.steps > self.most_steps:
                raise SimulationError(f"no rest after {self.steps:,} steps ({process.name} is busy)")
            # Work takes time; without that, whoever waits for a moment to be over would wait for ever.
            self._now += _STEP_S
            try:
                handle.context.run(handle.callback, *handle.args)
            except Exception as error:
                self.call_exception_handler({"message": f"Exception in {handle.callback}", "exception": error})

    def _jump(self) -> None:
        """To the next timer, and what is due with it."""
        timers = self._timers
        while timers and timers[0][2].dropped:
            heapq.heappop(timers)
        if not timers:
            raise SimulationError("nothing runs and nothing is due: everything waits for ever")
        self._now = max(self._now, timers[0][0])
        if self._now > self.most_time:
            raise SimulationError(f"no end after {self._now:,.0f} virtual seconds")
        while timers and timers[0][0] <= self._now:
            timer = heapq.heappop(timers)[2]
            if not timer.dropped:
                self._enqueue(timer)

    def _thaw_later(self, process: Process, at: int) -> None:
        self._processes[at] = self._processes[-1]
        self._processes.pop()
        waiting = process.ready

        def thaw() -> None:
            if process.alive and process.ready is waiting and waiting and process not in self._processes:
                self._processes.append(process)

        self.call_at(process.frozen_until, thaw, context=contextvars.Context())

    # -- processes -------------------------------------------------------------------------------------------------

    def spawn(self, name: str, main: Callable[[], Coroutine[Any, Any, T]]) -> tuple[Process, asyncio.Task[T]]:
        """A new process that runs `main`."""
        process = Process(name)
        context = contextvars.Context()
        context.run(_process.set, process)
        # `main` is called inside, so that what it makes belongs to the process.
        task: asyncio.Task[T] = context.run(lambda: self.create_task(main()))
        return process, task

    def kill(self, process: Process) -> None:
        """Nothing of the process runs from now on."""
        if not process.alive:
            return
        process.alive = False
        process.ready.clear()
        if process in self._processes:
            self._processes.remove(process)
        for react in process.on_kill:
            contextvars.Context().run(react)
        self.on_crash(process)

    def freeze(self, process: Process, seconds: float) -> None:
        """As SIGSTOP and, later, SIGCONT."""
        process.frozen_until = self._now + seconds

    # -- threads ---------------------------------------------------------------------------------------------------

    def run_in_executor(self, executor: Any, function: Callable[..., T], *args: Any) -> Any:  # type: ignore[override]
        """Calls inline after a virtual delay. A process that is killed before it has asked for nothing; one that is
        killed after it does not learn the answer."""
        answer = self.create_future()
        before, after = self.disk_delay(), self.disk_delay()
        if getattr(executor, "_max_workers", 0) == 1:
            # One thread takes its work in order, also what nobody waits for any more.
            self._free_at[executor] = max(self._now + before, self._free_at.get(executor, 0.0))
            before = self._free_at[executor] - self._now

        def work() -> None:
            try:
                result = function(*args)
            except BaseException as error:
                self.call_later(after, _fail, answer, error)
            else:
                self.call_later(after, _settle, answer, result)

        self.call_later(before, work)
        return answer

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's signature
        """There are no threads."""

    async def shutdown_asyncgens(self) -> None:
        """Generators of dead processes end with `forget`."""

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        """Signals are simulated by whoever stops a process."""

    def _process_events(self, event_list: Any) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """There is no other thread."""

    def forget(self) -> None:
        """Drops every task. Call it when the run is over: `finally` blocks run now, without effect."""
        self._timers.clear()
        self._processes.clear()
        self._nobody.alive = False
        # What `finally` blocks begin would otherwise wait on asyncio's default loop for ever.
        asyncio._set_running_loop(self)
        try:
            while self.tasks:
                tasks, self.tasks = self.tasks, []
                for task in tasks:
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    if not task.done():
                        _close(task)
                    elif not task.cancelled():
                        task.exception()
        finally:
            asyncio._set_running_loop(None)


def _close(task: asyncio.Task[Any]) -> None:
    work = task.get_coro()
    if not isinstance(work, Generator | Coroutine):
        return
    # Each `finally` block may wait for something, and is left there the next time.
    for _ in range(_MOST_WAITS):
        # Whatever a dead process does in its end.
        with contextlib.suppress(BaseException):
            work.close()
            return


def _settle(answer: asyncio.Future[Any], result: Any) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)
