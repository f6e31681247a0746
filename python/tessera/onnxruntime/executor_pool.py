"""The executors of a session, and which of them a run uses."""

import itertools
import os
import threading

from .forks import renew_after_fork

__all__ = ["ExecutorPool"]


class PooledExecutor:
    """An executor, the lock of its current run, and the IOBinding whose memory it is bound to."""

    __slots__ = ("binding", "binding_version", "executor", "is_complete", "lock", "run")

    def __init__(self, executor):
        self.executor = executor
        self.run = executor.run
        self.lock = threading.Lock()
        self.binding = None
        self.binding_version = 0
        self.is_complete = False

    def run_bound(self, binding):
        """Runs on the memory of `binding`, which is bound first unless it was already. Returns all
        outputs; None if all of them are in memory of the binding."""
        if self.binding is not binding or self.binding_version != binding.version:
            self._bind(binding)
        if self.is_complete:
            return self.executor.run_bound()
        return self.run() if binding.inputs else self.run({})

    def _bind(self, binding):
        self.unbind()
        try:
            self._bind_all(binding)
        except BaseException:
            self.executor.clear_bindings()
            raise
        # Set only now, so that a binding that failed is bound again.
        self.binding = binding
        self.binding_version = binding.version

    def _bind_all(self, binding):
        for name, array in binding.inputs.items():
            self.executor.bind_input(name, array)
        arrays = {name: array for name, array in binding.outputs.items() if array is not None}
        for name, array in arrays.items():
            self.executor.bind_output(name, array)
        self.is_complete = all(output.name in arrays for output in self.executor.outputs)

    def unbind(self):
        """Later runs read and write no memory of a binding."""
        if self.binding is not None:
            self.executor.clear_bindings()
            self.binding = None


class ExecutorPool:
    """Executors of one model, which share its weights, are bound when they are needed.

    There are as many as can run at once: if each uses all cores, one. Several threads may use a
    pool; if all executors are busy, a thread waits for one.
    """

    def __init__(self, bind, threads):
        """bind: a function of the inputs of a run that returns an executor for them.
        threads: the number of threads of each executor; 0 means all cores."""
        self._bind = bind
        cores = len(os.sched_getaffinity(0))
        self._limit = max(1, cores // threads) if threads > 0 else 1
        self._executors = []
        self._in_use_at_fork = []
        self._binds = threading.Lock()
        self._turns = itertools.count()
        renew_after_fork(self)

    def renew_locks(self):
        """In a forked process: leaves out the executors that threads of the parent were using."""
        self._binds = threading.Lock()
        idle, used = [], []
        for one in self._executors:
            # locked() is False for a lock whose owner still waits for the interpreter.
            is_idle = one.lock.acquire(blocking=False)
            if is_idle:
                one.lock.release()
            (idle if is_idle else used).append(one)
        self._in_use_at_fork += used
        self._executors = idle

    def choose(self, inputs):
        """An idle executor, or one to wait for. The caller must hold its lock during the run.

        Locks are taken by `with` only: between taking one by a call and entering `try`, Ctrl-C
        would leave it locked for ever.
        """
        for pooled in self._executors:
            if not pooled.lock.locked():
                return pooled
        if len(self._executors) < self._limit:
            return self._add(inputs)
        return self._executors[next(self._turns) % self._limit]

    def _add(self, inputs):
        with self._binds:
            # Another thread may have bound one meanwhile.
            for pooled in self._executors:
                if not pooled.lock.locked():
                    return pooled
            if len(self._executors) == self._limit:
                return self._executors[next(self._turns) % self._limit]
            pooled = PooledExecutor(self._bind(inputs))
            self._executors.append(pooled)
            return pooled
