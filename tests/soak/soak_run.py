"""Many processes run for a long time in one working folder and one user's folder. Some are killed,
the caches are pruned and cleared meanwhile, libraries are added, removed and upgraded, and each
output is compared with that of a fresh process with the same plan. soak_process.py has the
processes, soak_models.py their models."""

import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
from soak_models import all_cases, write_models

HERE = pathlib.Path(__file__).resolve().parent
MOST_SECONDS = 120  # the limit for a process to complete one case
MOST_CHECKS = 24  # waiting checks; above this, no process starts another case
CHECKS_AT_ONCE = 3
LONG_LIVED = 1  # processes that are never killed: their memory and descriptors could grow
LONG_LIVED_PAUSE_SECONDS = 0.5
KILL_SHARE = 0.4
SETTLED_CASES = 4  # after this many cases a process has loaded all libraries that it needs
TOLERANCE = 1e-4  # relative to the largest element, for cases in which two fresh runs differ too

# The limits. Everything that is kept belongs to some case: a plan, prices, an index and packs.
EXTRA_DESCRIPTORS = 16
EXTRA_RESIDENT_BYTES = 96 << 20
MOST_FILES_OF_CASE = 8
MOST_BYTES_OF_CASE = 1 << 20  # the models have up to 80 KB of weights
MOST_OTHER_FILES = 32

UPKEEP = (
    ("cache", "prune", "--limit", "200K"), ("cache", "prune", "--limit", "0"), ("cache", "clear"),
    ("cache", "clear", "--cache-dir", "."), ("cache", "ls"), ("cache", "verify"))

# Plug-ins of tests/cache/plugins that are installed next to the backends, for some seconds each.
INSTALLED = ((), ("versioned_1",), ("versioned_2",), ("versioned_1", "newcomer"))


@dataclasses.dataclass
class Figures:
    processes: int = 0
    kills: int = 0
    cases: int = 0
    hits: int = 0
    misses: int = 0
    outdated: int = 0  # hits whose plan was found with other libraries
    upgrades: int = 0
    compared: int = 0
    equal: int = 0  # bit by bit
    upkeep: int = 0
    most_resident_bytes: int = 0
    most_descriptors: int = 0
    most_folder_bytes: int = 0
    most_folder_files: int = 0
    failures: list = dataclasses.field(default_factory=list)
    rows: list = dataclasses.field(default_factory=list)

    def text(self):
        return "\n".join([
            f"processes: {self.processes}, killed: {self.kills}, upkeep commands: {self.upkeep}",
            f"cases: {self.cases}, hits: {self.hits}, misses: {self.misses}",
            f"upgrades: {self.upgrades}, hits with plans of other libraries: {self.outdated}",
            f"compared: {self.compared}, equal to the bit: {self.equal}",
            f"most memory of a process: {self.most_resident_bytes >> 20} MiB, "
            f"most descriptors: {self.most_descriptors}",
            f"most in the folders: {self.most_folder_bytes >> 10} KiB in {self.most_folder_files} files",
            f"failures: {len(self.failures)}"])


@dataclasses.dataclass
class Running:
    process: subprocess.Popen
    log: pathlib.Path  # stdout; stderr is in the same folder
    deadline: float
    kill_at: float = float("inf")
    is_killed: bool = False
    is_long_lived: bool = False
    installed: tuple = ()  # one of INSTALLED
    done: int = 0  # lines of stdout read so far
    settled: dict | None = None  # the process's report after SETTLED_CASES cases
    check: tuple = ()  # of a check: the output to compare

    def errors(self):
        return self.log.with_suffix(".err").read_text(errors="replace").strip()[-500:]


def folder_size(folders):
    """Bytes and number of files; files and folders may disappear meanwhile."""
    total = files = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(parent, name)).st_size
                    files += 1
                except OSError:
                    continue
    return total, files


def memory_of(process):
    """Resident bytes and number of descriptors; zeros if the process has ended."""
    folder = pathlib.Path(f"/proc/{process.pid}")
    try:
        pages = int((folder / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(folder / "fd"))
    except (OSError, IndexError, ValueError):
        return 0, 0


class Soak:
    def __init__(self, bin_dir, folder, seed, process_count=8, backends="onednn,native",
                 tell=print, row_seconds=30.0):
        self.bin_dir = pathlib.Path(bin_dir)
        self.folder = pathlib.Path(folder)
        self.seed, self.process_count, self.backends = seed, process_count, backends
        self.tell, self.row_seconds = tell, row_seconds
        self.draw = random.Random(seed)
        self.figures = Figures()
        self.models, self.work = self.folder / "models", self.folder / "work"
        self.user, self.out = self.folder / "user", self.folder / "out"
        self.stop, self.full = self.out / "stop", self.out / "full"
        self.running, self.checks, self.waiting = [], [], []
        self.upkeep = None
        self.plugins = self.bin_dir.parent / "tests" / "cache"
        self.installed = ()
        self.next_upgrade = self.next_upkeep = self.next_row = self.next_sample = 0.0
        self.started = time.monotonic()

    # Processes.

    def start(self, arguments, log, program=None, user=None, cwd=None, installed=()):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("TESSERA_")}
        environment |= {"XDG_CACHE_HOME": str(user or self.user), "PYTHONDONTWRITEBYTECODE": "1",
                        "PYTHONPATH": f"{self.bin_dir.parent / 'python'}:{HERE.parent}",
                        "SOAK_BACKENDS": self.backends,
                        "TESSERA_BACKEND_PATH": ":".join(str(self.plugins / f"{name}.so")
                                                         for name in installed)}
        command = [program] if program else [sys.executable, HERE / "soak_process.py"]
        with log.open("w") as out, log.with_suffix(".err").open("w") as errors:
            # In a new process group: Ctrl-C must reach only us, and we then end the processes.
            return subprocess.Popen([*command, *map(str, arguments)], cwd=cwd or self.work,
                                    env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=errors, start_new_session=True)

    def start_work(self, now):
        number = self.figures.processes
        self.figures.processes += 1
        is_long_lived = sum(one.is_long_lived for one in self.running) < LONG_LIVED
        count = 100_000 if is_long_lived else self.draw.randrange(1, 6)
        log = self.folder / "logs" / f"{number}.out"
        pause = LONG_LIVED_PAUSE_SECONDS if is_long_lived else 0
        process = self.start(["work", self.models, self.out, self.seed * 1000 + number, count,
                              pause], log, installed=self.installed)
        one = Running(process, log, now + MOST_SECONDS, is_long_lived=is_long_lived,
                      installed=self.installed)
        if not is_long_lived and self.draw.random() < KILL_SHARE:
            one.kill_at = now + self.draw.uniform(0.05, 4)
        self.running.append(one)

    def start_check(self, item, now):
        line, is_second = item
        log = self.folder / "logs" / f"check_{line['name']}.out"
        own = self.folder / "checks" / str(line["name"])
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        output = self.out / f"{line['name']}.{'second' if is_second else 'fresh'}.npy"
        process = self.start(
            ["check", self.models, line["case"], self.out / f"{line['name']}.cache", output], log,
            user=own / "user", cwd=own, installed=line["installed"])
        self.checks.append(Running(process, log, now + MOST_SECONDS, check=(item, own)))

    def look_at_work(self, one, now):
        """Reads the process's reports; returns whether it continues."""
        code = one.process.poll()
        lines = one.log.read_text().split("\n")[:-1]
        for text in lines[one.done:]:
            self.take(one, {**json.loads(text), "installed": one.installed})
        if len(lines) > one.done or self.full.exists():
            one.deadline = now + MOST_SECONDS
        one.done = len(lines)
        if code is None and now > one.deadline:
            self.fail(f"process {one.log.stem} took longer than {MOST_SECONDS} s for a case")
            self.kill(one)
        elif code is None and now > one.kill_at:
            self.kill(one)
            self.figures.kills += 1
        elif code not in (None, 0) and not (one.is_killed and code == -signal.SIGKILL):
            self.fail(f"process {one.log.stem} ended with exit code {code}: {one.errors()}")
        elif code == 0 and not one.is_killed and not one.done and not self.stop.exists():
            self.fail(f"process {one.log.stem} told nothing")
        return code is None

    def take(self, one, line):
        figures = self.figures
        figures.cases += 1
        figures.hits += line["is_hit"]
        figures.misses += not line["is_hit"]
        figures.outdated += line["is_outdated"]
        self.waiting.append((line, False))
        if one.done == 0 and one.settled is None:
            one.settled = {"count": 0}
        one.settled["count"] += 1
        if one.settled["count"] == SETTLED_CASES:
            one.settled |= line
        elif one.settled["count"] > SETTLED_CASES:
            self.check_growth(one, line)

    def check_growth(self, one, line):
        for name, extra in (("descriptors", EXTRA_DESCRIPTORS),
                            ("resident_bytes", EXTRA_RESIDENT_BYTES)):
            if line[name] > one.settled[name] + extra:
                self.fail(f"process {one.log.stem}: {name} grew from {one.settled[name]} to "
                          f"{line[name]} in {one.settled['count']} cases; the bound is {extra} more")

    def look_at_check(self, one, now):
        code = one.process.poll()
        if code is None and now <= one.deadline:
            return True
        (line, is_second), own = one.check
        if code is None:
            self.kill(one)
            self.fail(f"case {line['name']}: the fresh process took longer than {MOST_SECONDS} s")
        elif code != 0:
            self.fail(f"case {line['name']}: the fresh process ended with exit code {code}: "
                      f"{one.errors()}")
        else:
            self.compare(line, is_second, now)
        shutil.rmtree(own, ignore_errors=True)
        return False

    def compare(self, line, is_second, now):
        """The bytes must be equal if two fresh processes give equal bytes."""
        name = line["name"]
        tested, fresh = np.load(self.out / f"{name}.npy"), np.load(self.out / f"{name}.fresh.npy")
        if is_second:
            second = np.load(self.out / f"{name}.second.npy")
            distance = float(np.abs(tested - fresh).max())
            if fresh.tobytes() == second.tobytes():
                self.fail(f"case {name} ({all_cases()[line['case']]}): two fresh processes agree, and "
                          f"differ from the one under test by {distance:g}, hit: {line['is_hit']}")
                return
            if not distance <= TOLERANCE * float(np.abs(fresh).max()):
                self.fail(f"case {name} ({all_cases()[line['case']]}): differs by {distance:g}")
                return
        elif tested.tobytes() != fresh.tobytes():
            self.waiting.insert(0, (line, True))
            return
        self.figures.compared += 1
        self.figures.equal += not is_second
        for path in self.out.glob(f"{name}.*"):
            path.unlink()

    def kill(self, one):
        one.is_killed = True
        try:
            os.killpg(one.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def fail(self, text):
        self.figures.failures.append(text)
        self.tell(f"FAILED: {text}")

    # Work in addition to the processes.

    def look_at_upgrades(self, now):
        if now > self.next_upgrade:
            self.installed = self.draw.choice([one for one in INSTALLED if one != self.installed])
            self.figures.upgrades += 1
            self.next_upgrade = now + self.draw.uniform(5, 30)

    def look_at_upkeep(self, now):
        if self.upkeep:
            code = self.upkeep.process.poll()
            if code is None and now <= self.upkeep.deadline:
                return
            if code != 0:
                self.fail(f"tessera {' '.join(self.upkeep.check)} ended with exit code {code}: "
                          f"{self.upkeep.errors()}{self.upkeep.log.read_text()[-500:]}")
                self.kill(self.upkeep)
            self.upkeep = None
        elif now > self.next_upkeep and not self.stop.exists():
            arguments = self.draw.choice(UPKEEP)
            log = self.folder / "logs" / "upkeep.out"
            process = self.start(arguments, log, program=self.bin_dir / "tessera")
            self.upkeep = Running(process, log, now + MOST_SECONDS, check=arguments)
            self.figures.upkeep += 1
            self.next_upkeep = now + self.draw.uniform(1, 6)

    def sample(self, now):
        if now < self.next_sample:
            return
        self.next_sample = now + 1
        figures = self.figures
        for one in self.running:
            resident, descriptors = memory_of(one.process)
            figures.most_resident_bytes = max(figures.most_resident_bytes, resident)
            figures.most_descriptors = max(figures.most_descriptors, descriptors)
        total, files = folder_size((self.work, self.user))
        most_files = MOST_OTHER_FILES + MOST_FILES_OF_CASE * len(all_cases())
        if total > MOST_BYTES_OF_CASE * len(all_cases()) or files > most_files:
            self.fail(f"the folders have {total} bytes in {files} files; the bound is "
                      f"{MOST_BYTES_OF_CASE * len(all_cases())} bytes in {most_files} files")
            self.next_sample = now + 60
        figures.most_folder_bytes = max(figures.most_folder_bytes, total)
        figures.most_folder_files = max(figures.most_folder_files, files)
        if now > self.next_row:
            self.next_row = now + self.row_seconds
            row = (int(now - self.started), figures.processes, figures.kills, figures.hits,
                   figures.misses, figures.compared, figures.most_resident_bytes >> 20,
                   figures.most_descriptors, total >> 10, files)
            figures.rows.append(row)
            self.tell("".join(f"{value:>10}" for value in row))

    def step(self, now, begins_more):
        self.running = [one for one in self.running if self.look_at_work(one, now)]
        self.checks = [one for one in self.checks if self.look_at_check(one, now)]
        while self.waiting and len(self.checks) < CHECKS_AT_ONCE:
            self.start_check(self.waiting.pop(0), now)
        self.look_at_upkeep(now)
        self.look_at_upgrades(now)
        self.sample(now)
        # Starts them one by one, so that they do not all start at the same time.
        if begins_more and len(self.running) < self.process_count:
            self.start_work(now)
        if len(self.waiting) < MOST_CHECKS:
            self.full.unlink(missing_ok=True)
        elif not self.full.exists():
            self.full.touch()

    def run(self, seconds):
        """Returns the figures. Ctrl-C ends it early, with the figures so far."""
        for folder in (self.models, self.work, self.out, self.folder / "logs"):
            folder.mkdir(parents=True)
        write_models(self.models)
        self.tell("".join(f"{name:>10}" for name in (
            "seconds", "processes", "killed", "hits", "misses", "compared", "MiB", "handles",
            "KiB kept", "files")))
        self.started = time.monotonic()
        end = self.started + seconds
        try:
            while (now := time.monotonic()) < end:
                self.step(now, begins_more=True)
                time.sleep(0.02)
            self.stop.touch()
            # Work that has begun is completed and checked, but no new work is started.
            end = time.monotonic() + 2 * MOST_SECONDS
            while (self.running or self.checks or self.waiting or self.upkeep) and (
                    now := time.monotonic()) < end:
                self.step(now, begins_more=False)
                time.sleep(0.02)
            if self.running or self.checks or self.waiting:
                self.fail("processes were left when all should have ended")
        except KeyboardInterrupt:
            self.tell("stopped early")
        finally:
            self.end_all()
        return self.figures

    def end_all(self):
        """Ends all processes that we started, and their children."""
        left = [*self.running, *self.checks, *([self.upkeep] if self.upkeep else [])]
        for one in left:
            self.kill(one)
        for one in left:
            one.process.wait()
        end = time.monotonic() + 10
        while (orphans := self.orphans()) and time.monotonic() < end:
            time.sleep(0.1)
        if orphans:
            self.fail(f"processes outlived those that started them: {orphans}")

    def orphans(self):
        """Ids of processes that have our user's folder in their environment."""
        wanted = f"XDG_CACHE_HOME={self.folder}/".encode()
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
        return found
