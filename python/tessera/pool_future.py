"""The futures of tessera.Pool. A thread of the pool sets their results (python/pool.cc)."""

import concurrent.futures
import os

from .errors import Unsupported


class PoolFuture(concurrent.futures.Future):
    """A concurrent.futures.Future whose cancel() takes the request out of the pool's queue."""

    def __init__(self):
        super().__init__()
        self.request = None  # the PoolRequest; set by Pool.submit() before anybody has the future
        self._process = os.getpid()

    def cancel(self):
        """Cancels the request if its run has not begun. Returns whether it is cancelled."""
        return self.request.cancel() or self.cancelled()

    def running(self):
        """Whether the run of the request has begun and not ended."""
        return self.request.is_running()

    def result(self, timeout=None):
        """The outputs, as of Executor.run(); raises what the run raised, as
        concurrent.futures.Future does."""
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout=None):
        """The exception of the run, or None."""
        self._check_process()
        return super().exception(timeout)

    def note_cancelled(self):
        """Called when the request was taken out of the queue."""
        super().cancel()
        # Tells those who wait for several futures.
        self.set_running_or_notify_cancel()

    def _check_process(self):
        if os.getpid() != self._process and not self.done():
            raise Unsupported(
                "request of a pool",
                "it belongs to the process that this one was forked from, and ends only there: "
                "make a Pool after the fork",
            )
