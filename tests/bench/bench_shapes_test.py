"""bench/shapes.py: what it draws, its arguments, and one short comparison from start to end."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

# It measures times.
pytestmark = pytest.mark.alone

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import shapes  # noqa: E402
from networks.open_networks import NETWORKS, RANGES  # noqa: E402

# With an onnxruntime or openvino that is missing, the others are compared.
INSTALLED = [name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name)]


def run_program(tessera, *arguments):
    return subprocess.run(
        [sys.executable, ROOT / "bench" / "shapes.py", "--module-dir",
         Path(tessera.__file__).parents[1], *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240)


def test_sizes_are_drawn_without_repetition():
    ranges = {"height": (2, 4), "width": (1, 5)}
    drawn = shapes.draw_sizes(ranges, 14, seed=3)
    pairs = {(sizes["height"], sizes["width"]) for sizes in drawn}
    every = {(height, width) for height in (2, 3, 4) for width in range(1, 6)}
    assert pairs == every - {(4, 5)}, "all but the largest"
    assert drawn == shapes.draw_sizes(ranges, 14, seed=3)
    assert drawn != shapes.draw_sizes(ranges, 14, seed=4)


def test_requests_are_parts_of_the_largest_arrays():
    whole = {"x": np.arange(12).reshape(3, 4), "y": np.arange(3)}
    parts = shapes.parts_of(whole, {"x": [2, 2], "y": [1]})
    assert parts["x"].tolist() == [[0, 1], [2, 3]] and parts["y"].tolist() == [0]
    assert all(np.shares_memory(parts[name], whole[name]) for name in whole)
    assert all(part.flags.c_contiguous for part in parts.values())


@pytest.mark.parametrize("name", NETWORKS)
def test_each_network_is_valid_and_open(name, tmp_path):
    path = tmp_path / "model.onnx"
    shapes.write_network(NETWORKS[name], path)
    onnx.checker.check_model(path, full_check=True)
    declared = shapes.declared_shapes(path)
    open_dims = {dim for dims in declared.values() for dim in dims if isinstance(dim, str)}
    assert open_dims == set(RANGES[name])
    largest = shapes.shapes_at(declared, shapes.largest_sizes(RANGES[name]))
    assert all(isinstance(dim, int) and dim > 0 for dims in largest.values() for dim in dims)
    assert shapes.count_sizes(RANGES[name]) > 100


def test_a_short_comparison(tessera, tmp_path):
    names = ["text_decoder", "ranking"]
    done = run_program(tessera, "--networks", ",".join(names), "--threads", "1", "--requests", "4",
                       "--processes", "2", "--plans", "--peers", ",".join(INSTALLED),
                       "--json", tmp_path / "shapes.json")
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "shapes.json").read_text())["results"]
    assert [row["model"] for row in rows] == names
    for row in rows:
        assert row["requests"] == 8
        assert list(row["runtimes"]) == ["tessera", "tessera:plans", *INSTALLED]
        for found in row["runtimes"].values():
            for key in ("latency", "processor"):
                assert len(found[f"{key}_ms"]) == 8
                assert 0 < found[key]["median"] <= found[key]["p99"] <= found[key]["worst"]
            assert found["first_to_later"] == pytest.approx(
                np.median(np.divide(found["latency_ms"], found["later_ms"])))
            assert len(found["resident_bytes"]) == 5
            assert found["grown_bytes"] == found["resident_bytes"][-1] - found["resident_bytes"][0]
        assert row["runtimes"]["tessera"]["ratio"] == 1
    assert "text_decoder, 1 thread, 8 requests: length 8 to 256" in done.stdout
    assert "1 thread, tessera:plans: " in done.stdout
    assert max(map(len, done.stdout.splitlines()[3:])) <= 100


def test_wrong_arguments(tessera):
    for arguments, error in ((["--networks", "frobnicator"], "expected some of text_encoder"),
                             (["--requests", "0"], "at least 1"),
                             (["--requests", "1000"], "text_encoder has 248 different sizes"),
                             (["--peers", "abacus"], "expected some of onnxruntime, openvino")):
        done = run_program(tessera, *arguments)
        assert done.returncode == 2 and error in done.stderr, done.stderr


def test_other_outputs_end_the_comparison():
    ones, twos = [np.ones(3, np.float32)], [np.full(3, 2, np.float32)]
    shapes.check_agreement({"tessera": ones, "onnxruntime": ones})
    with pytest.raises(SystemExit, match="tessera: output 0 is off by up to 1"):
        shapes.check_agreement({"tessera": ones, "onnxruntime": twos})
