"""Micro-batching: requests that wait at the same time become one batch of a tessera.Pool."""

import collections
import concurrent.futures
import threading
import time

import numpy as np
import tessera


class _Item:
    """A request: the inputs of one row of a batch, and the future of its outputs."""

    __slots__ = ("arrival", "future", "inputs", "is_alone")

    def __init__(self, inputs):
        self.inputs = inputs
        self.future = concurrent.futures.Future()
        self.arrival = time.monotonic()
        self.is_alone = False  # whether it was in a batch that failed


class Batcher:
    """Puts requests of one row each into batches, and runs these in a pool.

    A batch begins when an executor is idle and its first request has waited for `max_delay`
    seconds, or earlier if it has `max_batch` rows. So a batch grows while all executors are busy.
    Thread-safe.
    """

    def __init__(self, pool, *, max_batch, max_delay, max_waiting):
        self._pool = pool
        self._names = [value.name for value in pool.inputs]
        self._max_batch = max_batch
        self._max_delay = max_delay
        self._max_waiting = max_waiting
        self._idle = threading.Semaphore(pool.executors)
        self._changed = threading.Condition()
        self._waiting = collections.deque()
        self._is_closed = False
        self.batches = 0  # that have begun
        self.rows = 0  # in these batches
        self._thread = threading.Thread(target=self._work, name="batcher", daemon=True)
        self._thread.start()

    def try_submit(self, inputs):
        """A concurrent.futures.Future of the outputs, one array without the axis of the batch each;
        None if too many requests wait. `inputs`: by name, arrays without the axis of the batch."""
        item = _Item(inputs)
        with self._changed:
            if self._is_closed or len(self._waiting) >= self._max_waiting:
                return None
            self._waiting.append(item)
            self._changed.notify()
        return item.future

    @property
    def waiting(self):
        """The number of requests that are in no batch yet."""
        return len(self._waiting)

    def close(self):
        """Takes no more requests, and returns when those that wait are in batches."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self):
        while True:
            self._idle.acquire()
            batch = self._next_batch()
            if not batch:
                return
            self._start(batch)

    def _next_batch(self):
        with self._changed:
            while not self._waiting:
                if self._is_closed:
                    return []
                self._changed.wait()
            first = self._waiting[0]
            while not (first.is_alone or self._is_closed
                       or len(self._waiting) >= self._max_batch):
                left = first.arrival + self._max_delay - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
                first = self._waiting[0]
            count = 1 if first.is_alone else min(self._max_batch, len(self._waiting))
            return [self._waiting.popleft() for _ in range(count)]

    def _start(self, batch):
        try:
            inputs = {name: np.stack([item.inputs[name] for item in batch])
                      for name in self._names}
            # An executor is idle, so this does not wait.
            running = self._pool.submit(inputs)
        except Exception as error:
            self._idle.release()
            for item in batch:
                item.future.set_exception(error)
            return
        self.batches += 1
        self.rows += len(batch)
        running.add_done_callback(lambda done: self._finish(batch, done))

    def _finish(self, batch, done):
        """Called on the thread of an executor."""
        error = (tessera.Cancelled("pool", "it was closed") if done.cancelled()
                 else done.exception())
        if error is None:
            for row, item in enumerate(batch):
                item.future.set_result([output[row] for output in done.result()])
        elif len(batch) == 1 or not self._run_alone(batch):
            for item in batch:
                item.future.set_exception(error)
        self._idle.release()

    def _run_alone(self, batch):
        """Runs the rows of a batch that failed one by one, because only one of them may be wrong:
        so an error stays with its request. False if it is too late for that."""
        for item in batch:
            item.is_alone = True
        with self._changed:
            if not self._is_closed:
                self._waiting.extendleft(reversed(batch))
                self._changed.notify()
            return not self._is_closed
