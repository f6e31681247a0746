"""Memory that libraries keep for their kernels counts as a plan's memory, though not reported."""

import json

import numpy as np
import pytest
from programs import run_python
from small_models import node, normal, save_model

PRODUCTS = 700
MEBI = 1 << 20

PROGRAM = """
import json, sys
import numpy as np
import tessera
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024
model = tessera.load(sys.argv[1])
options = json.loads(sys.argv[2])
before = resident()
executor = model.bind(optimize=False, threads=1, **options)
grown = resident() - before
executor.run({"x": np.ones((1, 8), np.float32)})
plan = executor.plan()
memory = plan.memory
again = model.bind(optimize=False, threads=1, **options).plan().memory
print(json.dumps({"grown": grown, "library": memory.library_bytes, "total": memory.total_bytes,
                  "parts": memory.arena_bytes + memory.weight_bytes + memory.output_bytes +
                           memory.library_bytes,
                  "held": executor.memory().library_bytes, "again": again.library_bytes,
                  "steps": len(plan.steps),
                  "backends": sorted({step.backend for step in plan.steps})}))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Many small products, no two of one shape."""
    draw = np.random.default_rng(0)
    nodes, weights, last, width = [], {}, "x", 8
    for index in range(PRODUCTS):
        following = 8 + index % 61 if index % 2 else 9 + index // 61 + index % 7
        weights[f"w{index}"] = normal(draw, width, following) / width**0.5
        nodes.append(node("MatMul", [last, f"w{index}"], f"y{index}", f"p{index}"))
        last, width = f"y{index}", following
    return save_model(tmp_path_factory.mktemp("products") / "model.onnx", nodes, {"x": [1, 8]},
                      {last: None}, weights)


@pytest.fixture
def bind(bin_dir, tessera, model, need_backend):
    def call(**options):
        for name in options["backends"]:
            need_backend(name)
        return json.loads(run_python(tessera, PROGRAM, model, json.dumps(options)).stdout)

    return call


def test_compiled_code_counts(bind):
    found = bind(backends=["onednn", "native"])
    if "onednn" not in found["backends"] or found["grown"] < 128 * MEBI:
        pytest.skip("oneDNN keeps little on this processor")
    # Freed memory, and what the plan itself needs, are resident, too.
    assert 0.15 * found["grown"] <= found["library"] <= found["grown"]
    assert found["total"] == found["parts"]
    assert found["held"] == found["library"]


def test_kernels_that_keep_little_count_little(bind):
    found = bind(backends=["native"])
    assert found["library"] <= found["grown"] and found["library"] < 32 * MEBI
    assert found["total"] == found["parts"]


def test_a_budget_limits_it(bind):
    free = bind(backends=["onednn", "native"])
    if free["library"] < 32 * MEBI:
        pytest.skip("oneDNN keeps little on this processor")
    budget = free["total"] // 2
    found = bind(backends=["onednn", "native"], memory_budget_bytes=budget)
    assert found["total"] <= budget
    assert found["steps"] == free["steps"]
