"""examples/01_backend is a separate project: two compilers build it outside of this tree, and it
works."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from outside_build import COMPILERS, EXAMPLE, ROOT, build_example
from programs import plain_environment, run_program
from small_models import node, save_model


@pytest.fixture(scope="module", params=COMPILERS)
def library(request, tmp_path_factory):
    """The example, built from a copy of its folder without access to this tree."""
    return build_example(request.param, tmp_path_factory.mktemp("outside"))


RANDOM = np.random.default_rng(4)
PICTURE = RANDOM.standard_normal((1, 2, 6, 6)).astype(np.float32)
FILTER = RANDOM.standard_normal((3, 2, 3, 3)).astype(np.float32)
LEFT = RANDOM.standard_normal((5, 3)).astype(np.float32)
MIDDLE = RANDOM.standard_normal((4, 5)).astype(np.float32)
RIGHT = RANDOM.standard_normal((4, 3)).astype(np.float32)
CENTRES = RANDOM.standard_normal((2, 3)).astype(np.float32)


def expected_distances():
    windows = np.lib.stride_tricks.sliding_window_view(PICTURE[0], (3, 3), axis=(1, 2))
    features = np.einsum("cyxhw,ochw->oyx", windows.astype(np.float64), FILTER).reshape(3, 16)
    features = np.where(features < 0, 0.1 * features, features)
    product = MIDDLE @ (LEFT @ features)
    points = product.T @ RIGHT
    return np.linalg.norm(points[:, None, :] - CENTRES[None], axis=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """ONNX ops that the example does not support, some that it does, and one custom op."""
    nodes = [node("Conv", "picture filter", "convolved", "conv"),
             node("LeakyRelu", "convolved", "bent", "bend", alpha=0.1),
             node("Reshape", "bent matrix", "features", "flatten"),
             node("MatMul", "left features", "inner", "first_product"),
             node("MatMul", "middle inner", "product", "second_product"),
             node("Transpose", "product", "turned", "turn", perm=[1, 0]),
             node("MatMul", "turned right", "points", "third_product"),
             node("Distance", "points centres", "distances", "distance", domain="org.example")]
    weights = {"filter": FILTER, "left": LEFT, "middle": MIDDLE, "right": RIGHT,
               "centres": CENTRES, "matrix": np.array([3, 16], np.int64)}
    folder = tmp_path_factory.mktemp("example")
    save_model(folder / "model.onnx", nodes, {"picture": PICTURE.shape}, {"distances": [16, 2]},
               weights, domains={"org.example": 1})
    np.save(folder / "picture.npy", PICTURE)
    np.save(folder / "distances.npy", expected_distances().astype(np.float32))
    return folder / "model.onnx"


@pytest.fixture
def tessera(tessera_binary, model):
    return lambda *arguments, code=0, **variables: run_program(
        tessera_binary, *arguments, code=code, cwd=model.parent, env=plain_environment(**variables))


RUN = ("run", "model.onnx", "--input", "picture=picture.npy", "--expect",
       "distances=distances.npy", "--rtol", "1e-4", "--atol", "1e-4")


def test_is_listed_with_its_layout(tessera, library):
    result = tessera("backends", "--json", "--backend-path", library)
    [entry] = [entry for entry in json.loads(result.stdout)["backends"]
               if entry["backend"] == "example"]
    assert entry["is_usable"] and entry["version"] == "1.0"
    assert entry["layouts"] == ["example:columns"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_mixed_model_gives_what_numpy_gives(tessera, library, threads):
    tessera(*RUN, "--backend-path", library, "--threads", threads)


def test_is_found_through_the_environment(tessera, library):
    tessera(*RUN, TESSERA_BACKEND_PATH=str(library.parent))


def test_without_it_the_op_is_unknown(tessera):
    result = tessera(*RUN, code=2)
    assert "Distance" in result.stderr and "org.example" in result.stderr


def test_conversions_stand_in_the_plan_only_where_layouts_differ(tessera, library):
    result = tessera("explain", "model.onnx", "--json", "--backend-path", library, "--backends",
                     "example")
    steps = json.loads(result.stdout)["steps"]
    by_name = {step["name"]: step for step in steps if step["op"] != "convert"}
    for product in ("first_product", "second_product", "third_product"):
        assert by_name[product]["backend"] == "example"
        assert by_name[product]["algorithm"] == "by_columns"
    assert by_name["bend"]["backend"] == "example"
    assert by_name["distance"]["backend"] == "example"
    conversions = [(step["inputs"][0]["value"], step["inputs"][0]["layout"],
                    step["outputs"][0]["layout"]) for step in steps if step["op"] == "convert"]
    # Conversions are only before the first product and after the second, not between them. The
    # third product's constant right factor is a pack, and its result is read column by column.
    assert conversions == [("features", "row_major", "example:columns"),
                           ("product", "example:columns", "row_major"),
                           ("distances", "example:columns", "row_major")]
    packs = [port["pack"] for port in by_name["third_product"]["inputs"]]
    assert [pack for pack in packs if pack] == ["columns"]
    reasons = [refusal["reason"] for refusal in by_name["conv"]["refusals"]
               if refusal["backend"] == "example"]
    assert reasons == ["of ONNX's ops it has MatMul only"]


def test_a_model_that_its_type_rule_refuses_says_so(tessera, library, model, tmp_path):
    wrong = onnx.load(model)
    for tensor in wrong.graph.initializer:
        if tensor.name == "centres":
            tensor.CopyFrom(numpy_helper.from_array(CENTRES[:, :2].copy(), "centres"))
    onnx.save(wrong, tmp_path / "wrong.onnx")
    result = tessera("run", tmp_path / "wrong.onnx", "--backend-path", library, code=2)
    assert "'distance'" in result.stderr and "16x3 and 2x2" in result.stderr


def test_passes_verification(tessera, library):
    result = tessera("verify", "--backend", library, "--json", "--cases", 2, code=None)
    report = json.loads(result.stdout)
    assert result.returncode == 0 and report["failures"] == [], report["failures"]
    assert {op["op"] for op in report["ops"] if op["accepted_count"]} >= {"MatMul", "LeakyRelu"}


def test_the_document_quotes_the_example_as_it_is():
    text = (ROOT / "docs" / "backends.md").read_text()
    source = (EXAMPLE / "example_backend.cc").read_text()
    blocks = text.split("```cpp example\n")[1:]
    assert blocks
    for block in blocks:
        for part in block.split("```")[0].split("  ...\n"):
            assert part.strip("\n") in source, part
