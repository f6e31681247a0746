"""examples/07_chess: the programs in C++ and Python search the same tree, with any batch, number of
threads, and runtime; with the network of the zoo, too, if it is here."""

import json
import pathlib
import sys

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "07_chess"
ZOO = ROOT / "build" / "zoo" / "chess" / "model.onnx"


def call(*command, code=0, **environment):
    return run_program(*command, code=code, variables=environment)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    model = tmp_path_factory.mktemp("chess") / "model.onnx"
    call(sys.executable, EXAMPLE / "make_network.py", model)
    return model


@pytest.fixture
def search(bin_dir):
    """The JSON that chess_evaluator prints."""
    program = bin_dir / "chess_evaluator"
    assert program.exists(), f"{program} is not built: tools/build release chess_evaluator"

    def search(model, *arguments):
        return json.loads(call(program, model, *arguments, "--json").stdout)

    return search


@pytest.fixture
def search_in_python(tessera):
    def search(model, *arguments):
        return json.loads(call(sys.executable, EXAMPLE / "chess_evaluator.py", model, *arguments,
                               "--json", PYTHONPATH=str(pathlib.Path(tessera.__file__).parents[1]),
                               ).stdout)

    return search


def answers(found):
    return [(row["search_threads"], row["executors"], row["threads_of_executor"], row["answers"],
             row["best_move"], row["best_visits"]) for row in found["rows"]]


def test_the_programs_find_the_same_moves(small, search, search_in_python):
    arguments = ("--answers", "300", "--batch", "4")
    expected = answers(search(small, *arguments))
    assert [row[0] for row in expected] == [1, 2, 4]
    assert all(row[3] >= 300 * row[0] and row[4] >= 0 and row[5] > 1 for row in expected)
    assert answers(search_in_python(small, *arguments)) == expected
    pytest.importorskip("onnxruntime", reason="onnxruntime, the other runtime, is missing")
    assert answers(search_in_python(small, *arguments, "--runtime", "onnxruntime")) == expected


def test_the_number_of_executors_does_not_change_the_search(small, search):
    arguments = ("--answers", "200", "--search-threads", "3")
    found = {executors: search(small, *arguments, "--executors", executors)["rows"]
             for executors in (1, 2, 3)}
    assert [row["executors"] for row, in found.values()] == [1, 2, 3]
    assert len({(row["best_move"], row["best_visits"], row["answers"])
                for row, in found.values()}) == 1


def test_a_batch_of_one_searches_too(small, search):
    row, = search(small, "--answers", "50", "--batch", "1", "--search-threads", "1")["rows"]
    assert row["answers"] == 50


def test_an_open_batch_computes_the_same(tessera, tmp_path):
    """make_network.py opens the batch of a network with Reshapes to [1, N]."""
    weight = np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32)
    fixed = save_model(tmp_path / "fixed.onnx",
                       [node("Reshape", "x flat_shape", "flat", allowzero=1),
                        node("MatMul", "flat weight", "y")], {"x": [1, 3, 2, 2]}, {"y": [1, 3]},
                       {"weight": weight, "flat_shape": np.array([1, 12])},
                       value_info={"flat": [1, 12]}, is_external=True)
    opened = tmp_path / "opened" / "model.onnx"
    call(sys.executable, EXAMPLE / "make_network.py", "--from", fixed, opened)
    x = np.random.default_rng(1).standard_normal((5, 3, 2, 2)).astype(np.float32)
    run = tessera.load(str(opened)).bind({"x": x.shape}, optimize="off").run
    one = tessera.load(str(fixed)).bind(optimize="off").run
    np.testing.assert_allclose(run({"x": x})[0],
                               np.concatenate([one({"x": row[None]})[0] for row in x]), rtol=1e-5)


def test_a_second_start_knows_the_plan(small, search, needs_a_library, monkeypatch):
    monkeypatch.setenv("TESSERA_OPTIMIZE", "1")
    arguments = ("--answers", "16", "--search-threads", "1")
    assert not search(small, *arguments)["is_plan_known"]
    again = search(small, "--first-only", "--search-threads", "1")
    assert again["is_plan_known"] and again["rows"] == []


def test_the_network_of_the_zoo(search, search_in_python, tmp_path):
    if not ZOO.exists():
        pytest.skip("the zoo is not here")
    model = tmp_path / "model.onnx"
    call(sys.executable, EXAMPLE / "make_network.py", "--from", ZOO, model)
    arguments = ("--answers", "24", "--search-threads", "2")
    expected = answers(search(model, *arguments))
    assert expected[0][3] >= 48
    assert answers(search_in_python(model, *arguments)) == expected


WRONG = [
    ((), "MODEL: expected an ONNX file, found none"),
    (("MODEL", "MODEL"), "MODEL: expected one, found two"),
    (("MODEL", "--batch", "0"), "--batch: expected a number above 0"),
    (("MODEL", "--batch"), "--batch: expected a number above 0"),
    (("MODEL", "--search-threads", "1,,2"), "--search-threads: expected a number above 0"),
    (("MODEL", "--bacth", "1"), "--bacth: expected --batch, "),
    (("absent.onnx",), "absent.onnx"),
    (("other.onnx",), "the network: expected one input"),
]


@pytest.mark.parametrize("arguments, message", WRONG)
def test_a_wrong_request_says_what_is_expected(bin_dir, small, tmp_path, arguments, message):
    from onnx import TensorProto, helper

    other = save_model(tmp_path / "other.onnx", [node("Relu", "x", "y")], {"x": [1, 5]},
                       {"y": [1, 5]})
    names = {"MODEL": small, "other.onnx": other}
    done = call(bin_dir / "chess_evaluator", *(names.get(word, word) for word in arguments), code=1)
    assert message in done.stderr and not done.stdout
