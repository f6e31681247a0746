"""The profile of a session: a file in Chrome's trace format."""

import json
import os
import threading
import time

from .forks import renew_after_fork

__all__ = ["Profile"]

# Later events are dropped: a session that is never ended must not fill the memory.
_MOST_EVENTS = 1_000_000


class Profile:
    """Collects the events of a session, and writes them once, to a file named after the time of its
    start. Thread-safe."""

    def __init__(self, prefix):
        now = time.time_ns()
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now // 10**9))
        self.file = f"{prefix}_{stamp}_{now // 10**6 % 1000:03}.json"
        self.start_ns = time.perf_counter_ns()
        self.start_time_ns = now
        self._events = []
        self._is_open = True
        self._lock = threading.Lock()
        renew_after_fork(self)

    def renew_locks(self):
        """In a forked process: begins a file of its own."""
        self._lock = threading.Lock()
        self._events = []
        self.file = f"{self.file.removesuffix('.json')}_{os.getpid()}.json"

    def add(self, category, name, start_ns, duration_ns, arguments=None):
        """Adds an event; `start_ns` is a time of time.perf_counter_ns()."""
        event = {"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(),
                 "dur": duration_ns // 1000, "ts": (start_ns - self.start_ns) // 1000, "ph": "X",
                 "name": name, "args": arguments or {}}
        with self._lock:
            if self._is_open and len(self._events) < _MOST_EVENTS:
                self._events.append(event)

    def add_run(self, start_ns, steps):
        """Adds a run that ends now, with the records of its steps."""
        end_ns = time.perf_counter_ns()
        for step in steps:
            self.add("Node", f"{step.node}_kernel_time", start_ns + step.start_ns, step.duration_ns,
                     {"op_name": step.op, "provider": step.backend, "algorithm": step.algorithm,
                      "flops": str(step.flops), "bytes": str(step.bytes)})
        self.add("Session", "model_run", start_ns, end_ns - start_ns)

    def write(self):
        """Writes the file and returns its name; "" if that was done before."""
        with self._lock:
            if not self._is_open:
                return ""
            self._is_open = False
            events, self._events = self._events, []
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump(events, file, indent=0)
        return self.file
