"""One process of bench/streams.py: one runtime runs one model in several streams."""

import threading
import time

import numpy as np
from harness import runtimes

WARM_UP_RUNS = 3


class CallingThreads:
    """Streams that are threads of Python, each of which calls a function of its own again and again.
    All runtimes release the interpreter's lock during a run."""

    def __init__(self, calls):
        self.calls = calls

    def outputs(self):
        """Those of each stream, all at the same time."""
        found = [None] * len(self.calls)

        def call(stream):
            for _ in range(WARM_UP_RUNS):
                found[stream] = self.calls[stream]()

        self._in_threads(call)
        return found

    def measure(self, seconds):
        """The times of all runs, and the time in which they ran, in seconds."""
        times = [[] for _ in self.calls]
        start_together = threading.Barrier(len(self.calls))
        begin_and_end = [None] * len(self.calls)

        def call(stream):
            start_together.wait()
            start = now = time.perf_counter()
            while not times[stream] or now - start < seconds:
                before = now
                self.calls[stream]()
                now = time.perf_counter()
                times[stream].append(now - before)
            begin_and_end[stream] = start, now

        self._in_threads(call)
        begin = min(begin for begin, _ in begin_and_end)
        return sum(times, []), max(end for _, end in begin_and_end) - begin

    def _in_threads(self, call):
        failures = []

        def guarded(stream):
            try:
                call(stream)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(stream,))
                   for stream in range(len(self.calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]


class InferQueue:
    """OpenVINO's AsyncInferQueue, which this thread feeds."""

    def __init__(self, loaded, streams):
        import openvino

        self.inputs, self.ports = loaded.inputs, loaded.outputs
        self.queue = openvino.AsyncInferQueue(loaded.compiled, streams)
        self.times, self.ends = [], []
        self.queue.set_callback(self._note_end)

    def _note_end(self, request, begin):
        now = time.perf_counter()
        self.times.append(now - begin)
        self.ends.append(now)

    def outputs(self):
        for _ in range(WARM_UP_RUNS * len(self.queue)):
            self.queue.start_async(self.inputs, time.perf_counter(), share_inputs=True)
        self.queue.wait_all()
        return [[request.results[port] for port in self.ports] for request in self.queue]

    def measure(self, seconds):
        self.times, self.ends = [], []
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            # The wait for a free request does not belong to the next one.
            self.queue.get_idle_request_id()
            self.queue.start_async(self.inputs, time.perf_counter(), share_inputs=True)
        self.queue.wait_all()
        return self.times, max(self.ends) - start


def executors(task, inputs):
    model = runtimes.load_tessera(task["model"])
    bound = [model.bind(runtimes.shapes_of(inputs), threads=1, optimize=task["optimize"])
             for _ in range(task["streams"])]
    return CallingThreads([lambda executor=executor: executor.run(inputs) for executor in bound])


def pool(task, inputs):
    import tessera

    made = tessera.Pool(runtimes.load_tessera(task["model"]), executors=task["streams"],
                        shapes=runtimes.shapes_of(inputs), optimize=task["optimize"])
    return CallingThreads([lambda: made.submit(inputs).result()] * task["streams"])


def sessions(task, inputs):
    return CallingThreads([runtimes.OnnxRuntime(task["model"], inputs, threads=1).run
                           for _ in range(task["streams"])])


def infer_queue(task, inputs):
    streams = task["streams"]
    return InferQueue(runtimes.OpenVino(
        task["model"], inputs, streams, PERFORMANCE_HINT="THROUGHPUT", NUM_STREAMS=streams,
        PERFORMANCE_HINT_NUM_REQUESTS=streams), streams)


RUNTIMES = {"tessera": executors, "tessera.Pool": pool, "onnxruntime": sessions,
            "openvino": infer_queue}


def measure_streams(task):
    """For run_process(): the runtime `task["runtime"]`. Writes its outputs to a file."""
    inputs = runtimes.random_inputs(task["model"], task["shapes"])
    streams = RUNTIMES[task["runtime"]](task, inputs)
    found = streams.outputs()
    for other in found[1:]:
        if difference := runtimes.explain_difference(found[0], other):
            raise SystemExit(difference)
    np.savez(task["outputs"], *found[0])
    times, elapsed = streams.measure(task["seconds"])
    median, p90, p99 = (float(value) for value in np.percentile(times, [50, 90, 99]))
    return {"requests_per_second": len(times) / elapsed, "runs": len(times), "median_s": median,
            "p90_s": p90, "p99_s": p99, "max_s": max(times)}
