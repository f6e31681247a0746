"""The second process of each network measures and compiles nothing, and computes the same. Tests a
few networks, or all of them with --long. Skipped if the networks of ../shared/zoo have no weights
yet."""

import shutil
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODELS = sorted((ROOT / "build" / "zoo").glob("*/weights.bin"))
FEW = ("bert_mini", "mobilenet_v2", "squeezenet")
WORK = {"read", "load", "tune", "place", "restore"}  # stages that a warm start skips
START = """
swap, budget, output = sys.argv[2] == "swap", float(sys.argv[3]), sys.argv[4]
model = tessera.load(sys.argv[1])
rng = np.random.default_rng(7)
inputs = {value.name: rng.standard_normal(value.shape).astype(np.float32)
          if value.type == "float32" else rng.integers(0, 50, value.shape).astype(value.type)
          for value in model.inputs}
executor = model.bind(tune_budget_seconds=budget, swap=swap)
results = executor.run(inputs)
executor.wait_for_swap()
later = executor.run(inputs)
np.savez(output, *results, *later)
plan = executor.plan()
print(json.dumps({
    "stages": [stage.name for stage in model.stages + executor.stages],
    "steps": [[step.name, step.backend, step.algorithm] for step in plan.steps],
    "loaded": executor.shapes().plans[0].loaded_kernels,
    "hit": executor.cache_report().is_hit}))
"""

if not MODELS:
    pytest.skip("no networks in build/zoo", allow_module_level=True)


@pytest.mark.parametrize("name", [path.parent.name for path in MODELS])
def test_a_second_process_finds_everything(python, tmp_path, name, is_long, needs_a_library, capsys):
    if not is_long and name not in FEW:
        pytest.skip("with --long")
    model = ROOT / "build" / "zoo" / name / "model.onnx"

    def start(label, swap):
        output = tmp_path / f"{label}.npz"
        report = python(START, model, swap, 40 if is_long else 4, output)
        arrays = list(np.load(output).values())
        return report, arrays[:len(arrays) // 2], arrays[len(arrays) // 2:]

    first, results, _ = start("first", "wait")
    assert not first["hit"] and "tune" in first["stages"]
    waiting, same, _ = start("waiting", "wait")
    assert waiting["hit"] and not WORK & set(waiting["stages"]) and "swap" not in waiting["stages"]
    assert waiting["steps"] == first["steps"]
    assert all(np.array_equal(one, other) for one, other in zip(results, same, strict=True))
    swapped, soon, later = start("swapped", "swap")
    assert swapped["hit"] and not WORK & set(swapped["stages"])
    assert swapped["steps"] == first["steps"], "those of the plan that stays"
    for one, other in zip(results, soon, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-3 * np.abs(one).max())
    assert all(np.array_equal(one, other) for one, other in zip(results, later, strict=True))
    if "swap" not in swapped["stages"]:
        assert all(np.array_equal(one, other) for one, other in zip(results, soon, strict=True))
    with capsys.disabled():
        print(f"\n{name}: {len(first['steps'])} steps, {waiting['loaded']} loaded kernels, "
              f"{'swapped' if 'swap' in swapped['stages'] else 'no swap'}")
    shutil.rmtree(tmp_path / "user", ignore_errors=True)
