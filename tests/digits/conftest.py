"""Runs models on each backend. Without --long, each backend gets every fourth of the values of each test, and the next backend
the ones beside them: there are more backends than four, so each value is still used."""

import pathlib

import numpy as np
import pytest
from catalog import BACKENDS
from digits_models import make_model
from onnx import TensorProto

FOLDER = pathlib.Path(__file__).parent
SHARE = 4


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    seen = {}  # by test: the values so far, and the backends

    def is_chosen(item):
        if item.path.parent != FOLDER:
            return True
        values, backends = seen.setdefault(item.originalname, ([], []))
        parameters = dict(item.callspec.params)
        backend = parameters.pop("run")
        key = repr(parameters)
        for known, one in ((values, key), (backends, backend)):
            if one not in known:
                known.append(one)
        return (values.index(key) + backends.index(backend)) % SHARE == 0 or not parameters

    chosen, left_out = [], []
    for item in items:
        (chosen if is_chosen(item) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen


@pytest.fixture(params=("", *BACKENDS))
def run(request, tessera, why_unusable):
    """Runs nodes on one backend, or on the reference if it refuses them; "" is the default."""
    backend = request.param
    if backend and why_unusable.get(backend, "unknown"):
        pytest.skip(f"{backend} is {why_unusable[backend]}")

    def run_nodes(nodes, inputs, constants=(), output=TensorProto.FLOAT, opset=24):
        model = tessera.load(make_model(nodes, inputs, constants, output, opset),
                             log=lambda message: None)
        options = {}
        if backend:
            options["backends"] = [backend] if backend == "reference" else [backend, "reference"]
        try:
            # Some backends are used only if they were measured or pinned.
            pins = [tessera.Pin("*", backend)] if backend not in ("", "reference") else []
            executor = model.bind(pins=pins, **options)
        except tessera.Error:  # the backend refuses a node
            executor = model.bind(**options)
        [result] = executor.run(inputs)
        return np.asarray(result)

    run_nodes.backend = backend
    return run_nodes
