"""A bind under a limit of memory: measurements that do not fit are skipped, and the log says so."""

import os
import pathlib
import sys

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

MEBI = 1 << 20
WIDTH = 3072  # 36 MiB a weight
LAYERS = 2

PROGRAM = """
import resource, sys
import numpy as np
import tessera
warnings = []
kind, limit, optimize = sys.argv[2:5]
model = tessera.load(sys.argv[1], log=warnings.append)
options = {"backends": ["native"], "threads": 1}
tessera.load(sys.argv[5]).bind(**options).run({"x": np.ones((1, 8), np.float32)})
if kind != "group":
    statm = [int(pages) * 4096 for pages in open("/proc/self/statm").read().split()]
    used = statm[0] if kind == "RLIMIT_AS" else statm[5]
    resource.setrlimit(getattr(resource, kind), (used + int(limit),) * 2)
x = np.ones((1, %d), np.float32)
executor = model.bind(optimize=optimize == "now", **options)
output, = executor.run({"x": x})
print(float(np.abs(output).sum()))
print("\\n".join(warnings))
""" % WIDTH


def save(path, width, layers):
    draw = np.random.default_rng(0)
    nodes, weights, last = [], {}, "x"
    for index in range(layers):
        weights[f"w{index}"] = draw.standard_normal((width, width)).astype(np.float32) / width**0.5
        nodes.append(node("MatMul", [last, f"w{index}"], f"y{index}", f"product{index}"))
        last = f"y{index}"
    return save_model(path, nodes, {"x": [1, width]}, {last: None}, weights)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return save(folder / "large.onnx", WIDTH, LAYERS), save(folder / "small.onnx", 8, 1)


@pytest.fixture
def run(bin_dir, tessera, needs_native, models, environment, tmp_path):
    def start(kind, limit, optimize, group=None):
        large, small = models
        variables = {**environment, "PYTHONPATH": str(bin_dir.parent / "python")}
        join = (lambda: (group / "cgroup.procs").write_text(str(os.getpid()))) if group else None
        done = run_program(sys.executable, "-c", PROGRAM, large, kind, limit, optimize, small,
                           env=variables, cwd=tmp_path, preexec_fn=join)
        first, _, warnings = done.stdout.partition("\n")
        return float(first), warnings.strip()

    return start


def test_measuring_gives_way(run):
    wanted, _ = run("RLIMIT_DATA", 4096 * MEBI, "off")
    # Enough for the packed weights, not for copies of a weight in two processes.
    found, warnings = run("RLIMIT_DATA", 100 * MEBI, "now")
    assert abs(found - wanted) < 1e-3 * abs(wanted)
    assert "MatMul is not measured, because memory does not suffice" in warnings


def test_a_limit_of_addresses_is_no_failure(run):
    wanted, _ = run("RLIMIT_AS", 4096 * MEBI, "off")
    found, _ = run("RLIMIT_AS", 200 * MEBI, "now")
    assert abs(found - wanted) < 1e-3 * abs(wanted)


def test_with_enough_memory_nothing_is_said(run):
    _, warnings = run("RLIMIT_DATA", 4096 * MEBI, "now")
    assert "memory" not in warnings


@pytest.fixture
def group():
    """A control group of 300 MiB inside another one, in a hierarchy in which we may make them."""
    first = pathlib.Path("/sys/fs/cgroup/memory")
    second = pathlib.Path("/sys/fs/cgroup")
    is_first = (first / "memory.limit_in_bytes").exists()
    outer = (first if is_first else second) / f"tessera_test_{os.getpid()}"
    inner = outer / "inner"
    try:
        inner.mkdir(parents=True)
        limit = "memory.limit_in_bytes" if is_first else "memory.max"
        (outer / limit).write_text(str(300 * MEBI))
    except OSError as error:
        for folder in (inner, outer):
            if folder.exists():
                folder.rmdir()
        pytest.skip(f"no control groups can be made: {error}")
    yield inner
    for folder in (inner, outer):
        folder.rmdir()


def test_a_group_around_it_limits_a_bind(run, group):
    wanted, _ = run("group", 0, "off")
    found, _ = run("group", 0, "now", group)
    assert abs(found - wanted) < 1e-3 * abs(wanted)
