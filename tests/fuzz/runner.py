"""Runs cases in processes that last until a case crashes or hangs, and reports the result of each
case."""

import json
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from fuzz_case import load_array

# Modules of tests/ are not in the path of the programs that use this file outside of pytest.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from catalog import DEFAULTS

FOLDER = pathlib.Path(__file__).resolve().parent
JUDGES = ("onnxruntime", "reference")
# The maximum memory of a process, so that a model cannot use up the machine's memory.
MOST_BYTES = 3 << 30
# Equal to the time limit of run_cases; the machine may be busy.
SECONDS_A_RUN = 5
MEMORY_LIMIT_TEXT = "hard rss limit exhausted"
SANITIZER_OPTIONS = {
    # A crash must print its stack. Memory is limited here, because sanitizers map terabytes.
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1:"
                    "max_allocation_size_mb=2000:hard_rss_limit_mb=2500",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # Uninitialised memory must not look like zeros.
    "MALLOC_PERTURB_": "165",
    "TESSERA_OPTIMIZE": "0",
}


class Worker:
    """A process that answers each line with a line. It is started when it is first needed, and
    again after it ended."""

    def __init__(self, command, seconds, is_ready_line=False, limits_memory=True):
        self.command = [str(part) for part in command]
        self.seconds = seconds
        self.is_ready_line = is_ready_line
        self.limits_memory = limits_memory
        self.limit = seconds  # for the current request
        self.process = None
        self.errors = tempfile.TemporaryFile()

    def start(self):
        def limit():
            if self.limits_memory:
                resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        self.errors.seek(0)
        self.errors.truncate()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            env={**os.environ, **SANITIZER_OPTIONS}, preexec_fn=limit)
        if self.is_ready_line:
            self.process.stdout.readline()

    def send(self, request):
        self.limit = self.seconds + SECONDS_A_RUN * len(request.get("runs", ()))
        if self.process is None or self.process.poll() is not None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # receive() detects that the process ended

    def receive(self):
        """The answer, or {"crash": TEXT} or {"hang": TEXT}."""
        end = time.monotonic() + self.limit
        text = b""
        while not text.endswith(b"\n"):
            left = max(0, end - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                return {"hang": f"no answer for {self.limit} s"}
            part = os.read(self.process.stdout.fileno(), 1 << 20)
            if not part:
                return {"crash": self.explain_end()}
            text += part
        return json.loads(text)

    def explain_end(self):
        status = self.process.wait()
        self.process = None
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()
        wanted = [line for line in lines if "ERROR" in line or "runtime error" in line or
                  MEMORY_LIMIT_TEXT in line or
                  line.lstrip().startswith("#") and "/src/" in line or "terminate" in line]
        how = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        return "\n".join([how, *wanted[:8]])

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


class Runner:
    """Tessera on each of `backends` (a list of names, joined by commas; "" for all) and the judges,
    in a folder of its own. Use it in a `with` statement."""

    def __init__(self, bin_dir, backends, seconds=60):
        bin_dir = pathlib.Path(bin_dir)
        shared = pathlib.Path("/dev/shm")
        self.folder = pathlib.Path(
            tempfile.mkdtemp(prefix="tessera_fuzz_", dir=shared if shared.is_dir() else None))
        sanitized = is_sanitized(bin_dir)
        self.workers = {name: Worker([bin_dir / "run_cases"], seconds, limits_memory=not sanitized)
                        for name in backends}
        self.judges = {judge: Worker([sys.executable, FOLDER / "judges.py", judge], 15,
                                     is_ready_line=True) for judge in JUDGES}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in (*self.workers.values(), *self.judges.values()):
            worker.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, case, judges=JUDGES):
        """Returns {backend: [RUN...]} and {judge: [RUN...]}. A RUN of Tessera is {"kind": ""...}
        with "arrays"; kinds are those of errors, "exception", "crash" and "hang". A RUN of a judge
        is {"error": ...} or has "arrays"."""
        request = self.write(case)
        for name in self.workers:
            self.send(name, request)
        for judge in judges:
            self.judges[judge].send({**request, "outputs": str(self.folder)})
        # Waits for all of them before anything is run again, because that replaces the files.
        judged = {judge: self.judged(case, self.judges[judge]) for judge in judges}
        received = {name: worker.receive() for name, worker in self.workers.items()}
        return {name: self.runs_of(name, answer, case) for name, answer in received.items()}, judged

    def send(self, name, request):
        outputs = self.folder / f"out_{name}"
        outputs.mkdir(exist_ok=True)
        self.workers[name].send({**request, "backends": name.split(",") if name else [],
                                 "outputs": str(outputs)})

    def write(self, case):
        (self.folder / "model.onnx").write_bytes(case.model.SerializeToString())
        runs = []
        for run, inputs in enumerate(case.runs):
            files = {}
            for index, (name, array) in enumerate(inputs.items()):
                files[name] = str(self.folder / f"in_{run}_{index}.npy")
                np.save(files[name], array)
            runs.append(files)
        return {"model": str(self.folder / "model.onnx"), "runs": runs,
                "keeps_denormals": case.keeps_denormals}

    def runs_of(self, name, answer, case):
        for kind in ("crash", "hang"):
            if kind in answer:
                if MEMORY_LIMIT_TEXT in answer[kind]:
                    # This limit is ours, not the system's, which would have allowed more.
                    return [{"kind": "OutOfMemory", "where": "", "message": answer[kind]}
                            ] * len(case.runs)
                failure = {"kind": kind, "message": answer[kind]}
                return [failure] if len(case.runs) == 1 else self.one_by_one(name, case, failure)
        for run in answer["runs"]:
            if run["kind"] == "":
                run["arrays"] = [load_array(output["file"]) if "file" in output else None
                                 for output in run["outputs"]]
        return answer["runs"]

    def one_by_one(self, name, case, failure):
        """Finds the run that failed; the last one if no run fails alone."""
        results = []
        for index in range(len(case.runs)):
            single = case.single(index)
            self.send(name, self.write(single))
            results += self.runs_of(name, self.workers[name].receive(), single)
        if not any(run["kind"] in ("crash", "hang") for run in results):
            results[-1] = {**failure, "message": "only after the runs before: " + failure["message"]}
        return results

    def judged(self, case, judge):
        answer = judge.receive()
        if "runs" not in answer:
            return [{"error": "it crashed or hung"}] * len(case.runs)
        for run in answer["runs"]:
            if "outputs" in run:
                try:
                    run["arrays"] = [load_array(file) for file in run["outputs"]]
                except ValueError as error:  # arrays of objects, such as text
                    run["error"] = str(error)
        return answer["runs"]


def usable_backends(bin_dir):
    """The reference alone, all backends (""), and each plug-in next to the programs that is used by
    default, followed by the reference. Others have to be named: --backends."""
    folder = pathlib.Path(bin_dir).parent / "lib" / "tessera"
    return ["reference", "",
            *(name for name in sorted(DEFAULTS) if (folder / f"backend_{name}.so").exists())]


def is_sanitized(bin_dir):
    """Whether the programs run under a sanitizer, which maps terabytes, so that the system's limits
    cannot be used."""
    cache = pathlib.Path(bin_dir).parent / "CMakeCache.txt"
    return cache.exists() and "address" in next(
        (line for line in cache.read_text().splitlines() if line.startswith("TESSERA_SANITIZE:")), "")
