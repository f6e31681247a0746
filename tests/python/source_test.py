"""Sources that tessera.load() accepts, and copying and pickling of the loaded model."""

import copy
import io
import mmap
import multiprocessing
import os
import pathlib
import pickle

import numpy as np
import pytest
import small_models
from small_models import node

X = np.ones((2, 3), np.float32)


class Path:
    def __init__(self, name):
        self.name = name

    def __fspath__(self):
        return self.name


def runs(model):
    return (model.bind({"x": (2, 3)}).run(X)[0] == 2).all()


def test_bytes_of_any_kind(tessera, doubling_model):
    content = doubling_model.read_bytes()
    with open(doubling_model, "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for given in (content, bytearray(content), memoryview(content),
                      memoryview(b"." + content)[1:], np.frombuffer(content, np.uint8),
                      np.repeat(np.frombuffer(content, np.uint8), 2)[::2], mapped):
            assert runs(tessera.load(given))


def test_the_callers_bytes_may_change_afterwards(tessera, doubling_model):
    content = bytearray(doubling_model.read_bytes())
    model = tessera.load(content)
    content[:] = bytes(len(content))
    assert runs(model)


def test_open_files(tessera, doubling_model):
    with open(doubling_model, "rb") as file:
        model = tessera.load(file)
    assert runs(model)
    assert model.describe().file == str(doubling_model)
    assert runs(tessera.load(io.BytesIO(doubling_model.read_bytes())))
    with open(doubling_model) as text, pytest.raises(TypeError):
        tessera.load(text)
    message = "a file whose read.. returns bytes, found str from StringIO; open it with 'rb'"
    with pytest.raises(TypeError, match=message):
        tessera.load(io.StringIO("model"))


def test_external_data_of_an_open_file_is_beside_it(tessera, tmp_path, monkeypatch):
    weight = np.full((2, 3), 3, np.float32)
    folder = tmp_path / "models"
    folder.mkdir()
    small_models.save_model(folder / "m.onnx", [node("Add", "x w", "y")], {"x": [2, 3]},
                            {"y": [2, 3]}, {"w": weight}, opset=20, is_external=True)
    monkeypatch.chdir(tmp_path)
    with open("models/m.onnx", "rb") as file:
        (y,) = tessera.load(file).bind().run(X)
    assert (y == 4).all()


def test_paths_that_are_not_utf8(tessera, doubling_model, tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff\xfe.onnx"
    try:
        pathlib.Path(os.fsdecode(name)).write_bytes(doubling_model.read_bytes())
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    for given in (os.fsdecode(name), Path(name), Path(os.fsdecode(name)),
                  pathlib.Path(os.fsdecode(name))):
        assert runs(tessera.load(given))
    assert runs(pickle.loads(pickle.dumps(tessera.load(Path(name)))))


def test_what_is_no_model(tessera, doubling_model, tmp_path):
    content = doubling_model.read_bytes()
    for given in (b"", b"no model", content[:len(content) // 2], bytes(1000)):
        with pytest.raises(tessera.InvalidModel, match="^the given bytes: "):
            tessera.load(given)
    with pytest.raises(tessera.InvalidModel, match=r"os.fsdecode\(\) makes a path"):
        tessera.load(os.fsencode(doubling_model))
    with pytest.raises(tessera.InvalidArgument, match="nothing_here"):
        tessera.load(tmp_path / "nothing_here")
    with pytest.raises(ValueError, match="a null character in 'a.x00b'"):
        tessera.load("a\0b")
    for given in (None, 5, 1.5, ["a"]):
        with pytest.raises(TypeError, match=r"^load\(\): model: expected str \| os.PathLike \| "
                                            f".*, found {type(given).__name__}$"):
            tessera.load(given)


def test_a_model_from_a_file_is_pickled(tessera, doubling_model, tmp_path, monkeypatch):
    monkeypatch.chdir(doubling_model.parent)
    model = tessera.load(doubling_model.name, threads=1, keep_all_values=True)
    content = pickle.dumps(model)
    assert len(content) < 1000
    monkeypatch.chdir("/")
    again = pickle.loads(content)
    assert again is not model and runs(again)
    assert again.describe().file == str(doubling_model)


def test_options_of_load_are_pickled(tessera, save_model):
    weight = np.ones((2, 3), np.float32)
    path = save_model([node("Add", "x w", "y")], {"x": [2, 3], "w": [2, 3]}, {"y": [2, 3]},
                      {"w": weight})
    model = tessera.load(path, free_inputs=["w"])
    again = pickle.loads(pickle.dumps(model))
    assert [value.name for value in again.inputs] == ["x", "w"]


def test_what_cannot_be_pickled_says_why(tessera, doubling_model):
    model = tessera.load(doubling_model)
    for given, reason in ((tessera.load(doubling_model.read_bytes()), "was loaded from memory"),
                          (model.bind({"x": (2, 3)}), r"call Model.bind\(\)"),
                          (tessera.Backends(), r"the same add_path\(\)")):
        with pytest.raises(TypeError, match=reason):
            pickle.dumps(given)
    with pytest.raises(TypeError, match=r"call Model.bind\(\)"):
        copy.copy(model.bind({"x": (2, 3)}))


def test_copies(tessera, doubling_model):
    model = tessera.load(doubling_model)
    assert copy.copy(model) is model
    assert copy.deepcopy({"model": model})["model"] is model
    pin = tessera.Pin("a", "native", "dense")
    for again in (copy.copy(pin), copy.deepcopy(pin), pickle.loads(pickle.dumps(pin))):
        assert again is not pin and repr(again) == repr(pin)
    exclusion = pickle.loads(pickle.dumps(tessera.Exclusion("native", "Add")))
    assert repr(exclusion) == "tessera.Exclusion('native', 'Add')"
    for sparse in (tessera.csr_array([0, 1, 2], [2, 0], np.ones(2, np.float32), (2, 3)),
                   tessera.row_sparse_array([1], np.ones((1, 3), np.float32), (2, 3))):
        again = pickle.loads(pickle.dumps(sparse))
        assert again.format == sparse.format
        np.testing.assert_array_equal(again.to_dense(), sparse.to_dense())
    for function in (tessera.csr_array, tessera.Executor.run, tessera.load):
        assert pickle.loads(pickle.dumps(function)) is function
    error = pickle.loads(pickle.dumps(tessera.InvalidArgument("input 'x'", "wrong")))
    assert str(error) == "input 'x': wrong"
    described = model.bind({"x": (2, 3)}).plan()
    assert pickle.loads(pickle.dumps(described)) == described


def run_in_a_process(model, x):
    return model.bind({"x": x.shape}).run(x)[0]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes_get_the_model(tessera, doubling_model, method):
    model = tessera.load(doubling_model)
    runs(model)
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = pool.starmap(run_in_a_process, [(model, X * factor) for factor in range(4)])
    for factor, result in enumerate(results):
        np.testing.assert_array_equal(result, X * factor * 2)
