"""A small model; every call runs in a new process."""

import json
import os

import numpy as np
import pytest
from programs import outcome_of, run_python
from small_models import node, normal, save_model

CHANNELS = 16
SIDE = 24


def write_model(path, *, seed=0, prefix="", pads=1, doc="", swapped=False):
    """Two convolutions with a residual sum and a difference; `seed` selects the weights."""
    rng = np.random.default_rng(seed)
    weights = {f"{prefix}w{i}": 0.1 * normal(rng, CHANNELS, CHANNELS, 3, 3) for i in range(2)}
    operands = [f"{prefix}c1", f"{prefix}r0"]
    nodes = [node("Conv", f"x {prefix}w0", f"{prefix}c0", f"{prefix}conv0", pads=[pads] * 4),
             node("Relu", f"{prefix}c0", f"{prefix}r0", f"{prefix}relu"),
             node("Conv", f"{prefix}r0 {prefix}w1", f"{prefix}c1", f"{prefix}conv1", pads=[1] * 4),
             node("Sub", operands[::-1] if swapped else operands, "y", f"{prefix}sub")]
    return save_model(path, nodes, {"x": [1, CHANNELS, "H", "W"]}, "y", weights, doc_string=doc)


@pytest.fixture
def make_model(tmp_path):
    return lambda name="model.onnx", **options: write_model(tmp_path / name, **options)


@pytest.fixture
def model(make_model):
    return make_model()


@pytest.fixture
def environment(tmp_path):
    """Environment variables of processes whose user folder is empty."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_")}
    return {**clean, "XDG_CACHE_HOME": str(tmp_path / "user")}


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def call(tessera_binary, environment, work):
    """Runs `tessera` in the working folder, checks the exit code, and returns exit code, stdout and
    stderr."""
    return lambda *arguments, folder=work, code=0, **variables: outcome_of(
        tessera_binary, *arguments, code=code, cwd=folder, env=environment, variables=variables)


@pytest.fixture
def user(tmp_path):
    """The folder of the user, which holds what serves all models."""
    return tmp_path / "user" / "tessera"


@pytest.fixture
def start(call, tmp_path):
    """Starts `tessera run`; returns the stages of load and bind, the output's bytes, and stderr."""

    def run(model, *arguments, shape=("--shape", "x=1x16x24x24", "--threads", "1"), **options):
        trace = tmp_path / "trace.json"
        _, _, errors = call("run", model, "--optimize", *shape, "--random", "1", "--output",
                            tmp_path / "out", "--trace", trace, *arguments, **options)
        events = json.loads(trace.read_text())["traceEvents"]
        return ({event["name"] for event in events if "name" in event},
                (tmp_path / "out" / "output_0.npy").read_bytes(), errors)

    return run


@pytest.fixture
def bench(call, model):
    """Runs a short `bench --json` of the model with --optimize; returns its report."""

    def run(*arguments, of=None, shape=SIDE, **options):
        _, output, errors = call("bench", of or model, "--optimize", "--json", "--seconds", "0.001",
                                 "--threads", "1", "--shape", f"x=1x{CHANNELS}x{shape}x{shape}",
                                 *arguments, **options)
        return json.loads(output)

    return run


@pytest.fixture
def python(tessera, environment, work):
    """Runs a text as a Python program that can import the module; returns its JSON output."""

    def run(text, *arguments, **variables):
        program = "import json, sys\nimport numpy as np\nimport tessera\n" + text
        return json.loads(run_python(tessera, program, *arguments, cwd=work, env=environment,
                                     variables=variables).stdout)

    return run
