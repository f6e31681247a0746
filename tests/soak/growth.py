"""Whether the memory of a process grows with its work: growth_process.py does one thing again and
again, and the slope of its memory is compared with zero."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Samples before this share of the iterations are left out: libraries are loaded, and caches fill up
# to their bounds.
WARM_UP = 0.4
CONFIDENCE = 1.96  # 95 %


@dataclasses.dataclass(frozen=True)
class Slope:
    """Per iteration; the interval has the true slope 19 times in 20."""
    value: float
    low: float
    high: float

    def text(self):
        return f"{self.value:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"


def slope(x, y):
    """Theil's slope, which steps and outliers disturb little, with Sen's interval."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    first, second = np.triu_indices(len(x), 1)
    is_apart = x[first] != x[second]
    first, second = first[is_apart], second[is_apart]
    if len(first) == 0:
        return Slope(0.0, 0.0, 0.0)
    slopes = np.sort((y[second] - y[first]) / (x[second] - x[first]))
    count = len(x)
    spread = CONFIDENCE * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = int(max(0, (len(slopes) - spread) / 2))
    high = int(min(len(slopes) - 1, (len(slopes) + spread) / 2))
    return Slope(float(np.median(slopes)), float(slopes[low]), float(slopes[high]))


@dataclasses.dataclass(frozen=True)
class Growth:
    case: str
    iterations: int
    seconds: float
    resident: Slope
    allocated: Slope
    resident_bytes: tuple  # after warming up, and at the end
    descriptors: tuple
    mappings: tuple

    def text(self):
        first, last = (count >> 10 for count in self.resident_bytes)
        return (f"{self.case:24}{self.iterations:8}  resident {self.resident.text():32} allocated "
                f"{self.allocated.text():32} B each; {first} to {last} KiB, descriptors "
                f"{self.descriptors[0]} to {self.descriptors[1]}, mappings {self.mappings[0]} to "
                f"{self.mappings[1]}")

    def explain(self, most_bytes):
        """Says what has grown by more than `most_bytes` an iteration for certain, or ""."""
        for name, found in (("resident", self.resident), ("allocated", self.allocated)):
            if found.low > most_bytes:
                return f"{self.case}: {name} memory grows by {found.text()} bytes an iteration"
        if self.descriptors[1] > self.descriptors[0] + 4:
            return f"{self.case}: descriptors grow from {self.descriptors[0]} to {self.descriptors[1]}"
        return ""


def measure(bin_dir, case, seconds, iterations, backends=""):
    """Runs one case in a process and a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("TESSERA_")}
        environment |= {"XDG_CACHE_HOME": f"{folder}/user", "PYTHONDONTWRITEBYTECODE": "1",
                        "PYTHONPATH": str(pathlib.Path(bin_dir).parent / "python"),
                        # One arena: what other threads have freed is then used again.
                        "MALLOC_ARENA_MAX": "1",
                        # oneDNN's own cache would fill up for the first thousand kernels.
                        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}
        done = subprocess.run(
            [sys.executable, HERE / "growth_process.py", case, str(seconds), str(iterations), backends],
            env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{case} ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    total = samples[-1]["iterations"]
    late = [one for one in samples if one["iterations"] >= WARM_UP * total]
    x = [one["iterations"] for one in late]
    ends = {name: (late[0][name], late[-1][name]) for name in ("resident", "descriptors", "mappings")}
    return Growth(case, total, seconds, slope(x, [one["resident"] for one in late]),
                  slope(x, [one["allocated"] for one in late]), ends["resident"],
                  ends["descriptors"], ends["mappings"])
