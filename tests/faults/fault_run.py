"""Makes one system call fail, in one process at a time, and checks the consequences.

A scenario is a process that is started with its folders in a defined state: `cold_start` with empty
folders; `worker_start` too, with a model that is large enough to be measured in a worker;
`warm_start`, `save_cache` and `load_cache` with the files that an earlier process left there. A
first run counts the process's calls. Then there is one run for each fault, which is the nth call of
one kind and its error. The process must end by itself, with the right output or with a message that
names something; and the next process, without a fault, must give the right output and leave no
litter."""

import bisect
import concurrent.futures
import dataclasses
import errno
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
# Kind of call -> the errors with which it may fail; "half": it reads or writes half of what was
# requested. The kinds are in the order of kNames in inject_faults.cc.
ERRORS = {
    "open": ("ENOSPC", "EIO", "EMFILE", "ENOMEM", "EACCES", "EINTR"),
    "read": ("EIO", "EINTR", "half"),
    "write": ("ENOSPC", "EIO", "EINTR", "half"),
    "fsync": ("ENOSPC", "EIO", "EINTR"),
    "rename": ("ENOSPC", "EIO", "EACCES"),
    "mmap": ("ENOMEM", "EMFILE", "EACCES"),
    "flock": ("EINTR", "EIO", "ENOMEM"),
    "posix_spawn": ("ENOMEM", "EMFILE", "EACCES"),
    "ftruncate": ("ENOSPC", "EIO", "EINTR"),
    "link": ("ENOSPC", "EIO", "EACCES"),
    "mkdir": ("ENOSPC", "EIO", "EACCES"),
    "malloc": ("ENOMEM",),
}
REPORT = struct.Struct(f"<{len(ERRORS)}QQ1024s")
SCENARIOS = ("cold_start", "warm_start", "save_cache", "load_cache", "worker_start")
PROGRAM_SCENARIOS = ("cold_start", "warm_start", "worker_start")  # the others run Python
SETTLED_SECONDS = 2.3  # an index is kept only of a model that has not changed for this long
MOST_SECONDS = 60
RELATIVE_TOLERANCE = 1e-4  # relative to the largest element
LITTER = re.compile(r"^\.|\.(new|lock|tmp|temporary|staged)$|^key\.|\.[A-Za-z0-9]{6}$")
# Third-party code that allocates for us and ends the process if that fails. We cannot change it:
# nanobind prints the message below; JSON's destructor, CLI11 and libstdc++'s filesystem code
# allocate in functions that must not throw.
ENDED_BY_NANOBIND = "Critical nanobind error"
THEIRS = ("nlohmann::", "CLI::", "nanobind::", "tsl::", "std::filesystem::")
# A message must name something: a text in quotes, a path, a node, or the resource that ran out.
NAMED = re.compile(r"'[^']+'|\S*/\S+|OutOfMemory|MemoryError")


@dataclasses.dataclass(frozen=True)
class Fault:
    scenario: str
    kind: str
    nth: int
    error: str
    lasts: bool = False  # all later calls of the kind fail too

    def text(self):
        return ":".join([self.scenario, self.kind, str(self.nth), self.error,
                         *(["on"] if self.lasts else [])])


def parse_fault(text):
    """Parses the output of Fault.text(); raises ValueError if it is not a fault."""
    scenario, kind, nth, error, *lasts = text.split(":")
    if scenario not in SCENARIOS or error not in ERRORS.get(kind, ()) or lasts not in ([], ["on"]):
        raise ValueError(f"'{text}' is no fault: expected SCENARIO:CALL:NTH:ERROR[:on]")
    return Fault(scenario, kind, int(nth), error, bool(lasts))


@dataclasses.dataclass
class Outcome:
    fault: Fault
    was_met: bool = True  # whether the process reached the call
    place: str = ""  # the call's path, or its callers
    is_told: bool = False  # the process reported an error
    problems: tuple = ()


@dataclasses.dataclass
class Ended:
    code: int | None  # None: it was ended because it took too long
    errors: str
    counts: dict
    failed: int
    place: str


def write_model(path, channels, side):
    """A convolution, a Relu and a matmul."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.1, name)
               for name, shape in (("w", (2 * channels, channels, 3, 3)),
                                   ("m", (side, 16)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1] * 4),
             helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("MatMul", ["r", "m"], ["y"], "matmul")]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def litter_of(folders):
    """Files that should exist only while a process is working."""
    return [str(path) for folder in folders if folder.exists() for path in folder.rglob("*")
            if path.is_file() and LITTER.search(path.name)]


def is_close(got, wanted):
    return got.shape == wanted.shape and bool(
        np.abs(got - wanted).max() <= RELATIVE_TOLERANCE * np.abs(wanted).max())


class Symbols:
    """Names of functions in our modules and in the C++ library."""

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.tables = {}  # name of a module -> [(address, name)]

    def table(self, module):
        if module not in self.tables:
            known = {"": self.bin_dir / "tessera"}
            for path in (*(self.bin_dir.parent / "lib" / "tessera").glob("*.so"),
                         *(self.bin_dir.parent / "python" / "tessera").glob("*.so")):
                known[path.name] = path
            listed = subprocess.run(["ldd", known[""]], check=False, capture_output=True, text=True)
            for name, path in re.findall(r"(libstdc\S+) => (\S+)", listed.stdout):
                known[name] = known[pathlib.Path(path).resolve().name] = path
            text = ""
            if module in known:
                kind = ["-D"] if module.startswith("libstdc++") else []
                text = subprocess.run(["nm", "-C", "--defined-only", *kind, known[module]],
                                      check=False, capture_output=True, text=True).stdout
            lines = [line.split(" ", 2) for line in text.splitlines()]
            self.tables[module] = sorted(
                (int(address, 16), name) for address, kind, name in lines if kind in "tTwWuV")
        return self.tables[module]

    def names(self, trail):
        """The functions in a trail that inject_faults wrote, innermost first, without containers
        and operator new."""
        names = []
        for frame in trail.split():
            module, _, offset = frame.rpartition("+")
            if not re.fullmatch("(0x)?[0-9a-f]+", offset):
                continue  # the report has no room for more
            table = self.table(module)
            index = bisect.bisect_right(table, (int(offset, 16), "\x7f")) - 1
            # Without parameters and template arguments, which are long.
            name = table[index][1] if index >= 0 else frame
            name = name.replace("(anonymous namespace)::", "")
            while name != (shorter := re.sub(r"<[^<>]*>", "", name)):
                name = shorter
            name = re.sub(r"\[abi:\w+\]", "", name.split("(")[0] or name).strip()
            name = name.split(" ")[-1]
            if not name.startswith(("std::", "new", "__")) or name.startswith("std::filesystem"):
                names.append(name)
        return names


class Slot:
    """Folders in which one process at a time is tested: a model, the working folder and the user's
    folder. The latter two are reset to the state in which a scenario begins."""

    def __init__(self, bin_dir, folder, backends="onednn,native", with_worker=False):
        self.bin_dir = pathlib.Path(bin_dir)
        self.library = self.bin_dir.parent / "tests" / "faults" / "inject_faults.so"
        self.folder = pathlib.Path(folder)
        self.backends = backends
        self.with_worker = with_worker
        self.folder.mkdir(parents=True)
        self.model, self.large_model = self.folder / "model.onnx", self.folder / "large.onnx"
        self.work, self.user = self.folder / "work", self.folder / "user"
        self.output = self.folder / "python_output.npy"
        self.report = self.folder / "report"
        self.symbols = Symbols(self.bin_dir)
        self.wanted = {}  # scenario -> output
        self.counts = {}  # scenario -> kind -> calls

    def prepare(self):
        """Creates the states and counts the calls of each scenario. The model must be old enough
        for an index."""
        self.restore(None)
        self.check_start("cold_start")
        self.check_start("warm_start")
        self.keep("warm")
        self.check_start("save_cache")
        for path in self.work.glob("*.cache"):
            if path.name != "kept.cache":
                path.unlink()
        shutil.rmtree(self.user)
        self.keep("saved")
        for scenario in SCENARIOS:
            self.restore(scenario)
            ended = self.start(scenario, is_counted=True)
            if ended.code != 0:
                raise RuntimeError(f"{scenario} without a fault: {ended}")
            self.wanted[scenario] = self.result(scenario)
            self.counts[scenario] = ended.counts

    def check_start(self, scenario):
        ended = self.start(scenario)
        if ended.code != 0:
            raise RuntimeError(f"{scenario} without a fault: {ended}")

    def keep(self, state):
        for name in ("work", "user"):
            source = self.folder / name
            if source.exists():
                shutil.copytree(source, self.folder / state / name)

    def restore(self, scenario):
        state = {"warm_start": "warm", "save_cache": "warm", "load_cache": "saved"}.get(scenario)
        for name in ("work", "user"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            if state and (self.folder / state / name).exists():
                shutil.copytree(self.folder / state / name, self.folder / name)
        self.work.mkdir(exist_ok=True)
        self.forget_output()

    def forget_output(self):
        shutil.rmtree(self.work / "out", ignore_errors=True)
        self.output.unlink(missing_ok=True)

    def command(self, scenario):
        if scenario in PROGRAM_SCENARIOS:
            model = self.large_model if scenario == "worker_start" else self.model
            return [self.bin_dir / "tessera", "run", model, "--optimize", "--tune-budget", "0.5",
                    "--threads", "1", "--random", "1", "--swap", "off", "--backends", self.backends,
                    "--output", "out"]
        action = scenario.split("_")[0]
        return [sys.executable, HERE / "fault_process.py", action, self.model, "kept.cache",
                self.output, self.backends]

    def result(self, scenario):
        """The output that the last process wrote; None if there is none."""
        is_program = scenario in PROGRAM_SCENARIOS
        path = self.work / "out" / "output_0.npy" if is_program else self.output
        return np.load(path) if path.exists() else None

    def start(self, scenario, fault=None, is_counted=False):
        """Runs the scenario's process in the current state of the folders."""
        self.report.write_bytes(bytes(REPORT.size))
        programs = ["tessera", pathlib.Path(sys.executable).name]
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("TESSERA_", "FAULTS_"))}
        environment |= {
            "XDG_CACHE_HOME": str(self.user), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self.bin_dir.parent / "python"),
            "FAULTS_REPORT": str(self.report), "FAULTS_MODULES": "tessera:_core.:backend_",
            "FAULTS_PROGRAMS": ":".join(programs + ["tessera-worker"] * self.with_worker),
            "FAULTS_FOLDERS": f"{self.work}:{self.user}:{self.model}:{self.large_model}"}
        if fault or is_counted:
            environment["LD_PRELOAD"] = str(self.library)
        if fault:
            number = 0 if fault.error == "half" else getattr(errno, fault.error)
            environment |= {"FAULTS_CALL": fault.kind, "FAULTS_NTH": str(fault.nth),
                            "FAULTS_ERRNO": str(number)}
            if fault.lasts:
                environment["FAULTS_LASTS"] = "1"
        try:
            done = subprocess.run(
                self.command(scenario), cwd=self.work, env=environment, timeout=MOST_SECONDS,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                check=False)
            code, errors = done.returncode, done.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired as expired:
            code, errors = None, (expired.stderr or b"").decode(errors="replace")
        *counts, failed, place = REPORT.unpack(self.report.read_bytes())
        return Ended(code, errors, dict(zip(ERRORS, counts)), failed,
                     place.rstrip(b"\0").decode(errors="replace"))

    def try_fault(self, fault):
        self.restore(fault.scenario)
        ended = self.start(fault.scenario, fault)
        outcome = Outcome(fault, ended.failed > 0, ended.place.removeprefix(f"{self.folder}/"))
        outcome.is_told = ended.code != 0
        problems = list(self.problems_of(fault, ended))
        problems_after = list(self.problems_after(fault.scenario))
        if fault.kind == "malloc" and (problems or problems_after):
            callers = self.symbols.names(ended.place)
            outcome.place = " < ".join(callers[:6])
            if ended.code == -signal.SIGABRT and callers and callers[0].startswith(THEIRS):
                return outcome  # its litter is not ours either
        problems += problems_after
        outcome.problems = tuple(text.replace(f"{self.folder}/", "") for text in problems)
        return outcome

    def problems_of(self, fault, ended):
        last = ended.errors.strip().splitlines()[-1:] or [""]
        if ended.code is None:
            yield f"took longer than {MOST_SECONDS} s"
        elif ENDED_BY_NANOBIND in ended.errors:
            return
        elif not 0 <= ended.code <= 3:
            yield f"exit code {ended.code}: {last[0]}"
        elif ended.code == 0:
            output = self.result(fault.scenario)
            if output is None:
                yield "exit code 0 without an output"
            elif not is_close(output, self.wanted[fault.scenario]):
                yield "a wrong output"
        elif not NAMED.search(ended.errors):
            yield f"exit code {ended.code}, and the message names nothing: '{last[0]}'"
        elif "Internal" in ended.errors:
            yield f"exit code {ended.code}, told as a bug of ours: '{last[0]}'"

    def problems_after(self, scenario):
        """Problems of the following processes, which run without a fault."""
        nexts = ["worker_start" if scenario == "worker_start" else "cold_start"]
        if scenario in ("save_cache", "load_cache") and (self.work / "kept.cache").exists():
            nexts.append("load_cache")
        for name in nexts:
            self.forget_output()
            ended = self.start(name)
            output = self.result(name)
            if ended.code != 0:
                yield f"the next {name} ended with exit code {ended.code}: {ended.errors.strip()}"
            elif output is None or not is_close(output, self.wanted[name]):
                yield f"the next {name} gave a wrong output"
        litter = litter_of((self.work, self.user))
        if litter:
            yield f"litter: {', '.join(litter)}"


def faults_of(counts, draw, most_allocations):
    """All faults for the counted calls, but at most `most_allocations` failing allocations for each
    scenario."""
    faults = []
    for scenario, kinds in counts.items():
        for kind, count in kinds.items():
            numbers = range(1, count + 1)
            if kind == "malloc":
                numbers = sorted(draw.sample(numbers, min(most_allocations, count)))
            for nth in numbers:
                faults += [Fault(scenario, kind, nth, error) for error in ERRORS[kind]]
                if "ENOSPC" in ERRORS[kind]:
                    faults.append(Fault(scenario, kind, nth, "ENOSPC", lasts=True))
    return faults


def in_turns(faults, draw):
    """The faults in an order in which each kind of each scenario comes early: if time runs out, all
    have had a share. The order within a kind of a scenario is random."""
    groups = {}
    for fault in faults:
        groups.setdefault((fault.scenario, fault.kind), []).append(fault)
    for group in groups.values():
        draw.shuffle(group)
    # Sorts by the share of the group that precedes the fault, so that all groups end together and
    # the first fault of every group comes first.
    placed = [(index / len(group), key, fault) for key, group in groups.items()
              for index, fault in enumerate(group)]
    return [fault for *_, fault in sorted(placed, key=lambda one: one[:2])]


def run_faults(slots, faults, end, tell=lambda outcome: None):
    """Tries the faults, each slot one at a time, until time.monotonic() reaches `end`. Ctrl-C ends
    it early; the results so far are returned."""
    outcomes = []
    waiting = iter(faults)

    def work(slot):
        for fault in waiting:
            if time.monotonic() > end or is_stopped:
                return
            outcome = slot.try_fault(fault)
            outcomes.append(outcome)
            tell(outcome)

    is_stopped = []
    with concurrent.futures.ThreadPoolExecutor(len(slots)) as executor:
        tasks = [executor.submit(work, slot) for slot in slots]
        try:
            for task in tasks:
                task.result()
        except KeyboardInterrupt:
            is_stopped.append(True)
    return outcomes


def make_slots(bin_dir, folder, count, **options):
    """Slots whose states were created without a fault."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    slots = [Slot(bin_dir, pathlib.Path(folder) / f"slot{number}", **options)
             for number in range(count)]
    for slot in slots:
        write_model(slot.model, 8, 12)
        write_model(slot.large_model, 32, 96)
    time.sleep(SETTLED_SECONDS)
    for slot in slots:
        slot.prepare()
    return slots


def table(counts, outcomes):
    """A row for each kind of call of each scenario."""
    lines = [f"{'scenario':<14}{'call':<12}{'calls':>7}{'tried':>7}{'right':>7}{'told':>7}{'bad':>7}"]
    for scenario, kinds in counts.items():
        for kind, count in kinds.items():
            found = [one for one in outcomes if one.was_met
                     and (one.fault.scenario, one.fault.kind) == (scenario, kind)]
            bad = sum(bool(one.problems) for one in found)
            told = sum(one.is_told and not one.problems for one in found)
            if found:
                lines.append(f"{scenario:<14}{kind:<12}{count:>7}{len(found):>7}"
                             f"{len(found) - bad - told:>7}{told:>7}{bad:>7}")
    return "\n".join(lines)


def draw_from(seed):
    return random.Random(seed)
