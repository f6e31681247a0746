"""Editors, type checkers and people who mistype something get help from the module."""

import inspect
import pathlib
import sys
import types

import numpy as np
import pytest
from programs import run_program, run_python

CLASSES = ("Backends", "DeviceArray", "Exclusion", "Executor", "Model", "Pin", "SparseArray")


def public_callables(tessera):
    """Functions, classes and methods that have a public name: (name, callable)."""
    for name in tessera.__all__:
        value = getattr(tessera, name)
        if not callable(value):
            continue
        yield name, value
        if not isinstance(value, type) or issubclass(value, Exception):
            continue
        for method, function in vars(value).items():
            if callable(function) and not hasattr(object, method):
                yield f"{name}.{method}", function


def test_every_public_callable_has_a_signature(tessera):
    named = dict(public_callables(tessera))
    assert {"Model.bind", "Executor.run", "DeviceArray.__dlpack__", "load"} <= set(named)
    for name, function in named.items():
        assert isinstance(inspect.signature(function), inspect.Signature), name


def test_signatures_say_what_is_accepted(tessera):
    assert str(inspect.signature(tessera.Model.save_cache)) == (
        "(self, filename: 'str | os.PathLike', type: 'str' = 'all', *, "
        "include_packs: 'bool' = False) -> 'None'")
    assert list(inspect.signature(tessera.Pin).parameters) == ["nodes", "backend", "algorithm"]
    assert inspect.signature(tessera.Pin).parameters["algorithm"].default == ""
    assert "threads" in inspect.signature(tessera.Model.bind).parameters
    assert "include_packs" in inspect.signature(tessera.Model.save_cache).parameters


def test_methods_still_are_methods(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (2, 3)})
    assert list(inspect.signature(executor.set_time_limit).parameters) == ["seconds"]
    assert inspect.isroutine(tessera.Executor.run)
    assert tessera.Executor.run.__name__ == "run"
    assert tessera.Executor.run.__qualname__ == "Executor.run"
    assert tessera.Executor.run.__doc__.startswith("Runs on ")
    assert executor.run.__self__ is executor

    class Noted(tessera.Pin):
        pass

    assert Noted("a", "native").nodes == "a"


def test_a_mistyped_keyword_is_answered_by_one_line(tessera, doubling_model):
    model = tessera.load(doubling_model)
    executor = model.bind({"x": (2, 3)})
    x = np.ones((2, 3), np.float32)
    for call, expected in (
            (lambda: tessera.load(doubling_model, strcit=True),
             "load() got an unexpected keyword argument 'strcit'; did you mean 'strict'?"),
            (lambda: model.bind(thraeds=1),
             "bind() got an unexpected keyword argument 'thraeds'; did you mean 'threads'?"),
            (lambda: model.save_cache("f", typ="plan"),
             "Model.save_cache() got an unexpected keyword argument 'typ'; did you mean 'type'?"),
            (lambda: executor.bind_input("x", aray=x),
             "Executor.bind_input() got an unexpected keyword argument 'aray'; did you mean "
             "'array'?"),
            (lambda: tessera.Pin("a", "native", algoritm="b"),
             "Pin() got an unexpected keyword argument 'algoritm'; did you mean 'algorithm'?"),
            (lambda: tessera.to_device(x, devise="opencl"),
             "to_device() got an unexpected keyword argument 'devise'; did you mean 'device'?"),
            (lambda: tessera.Backends().add_path(zzz=1),
             "Backends.add_path() got an unexpected keyword argument 'zzz'")):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == expected


def test_an_argument_of_a_wrong_type_is_named(tessera, doubling_model):
    model = tessera.load(doubling_model)
    executor = model.bind({"x": (2, 3)})
    pin = tessera.Pin("a", "native")
    mapping = "collections.abc.Mapping[str, collections.abc.Sequence[int]] | None"
    for call, expected in (
            (lambda: executor.set_time_limit("soon"),
             "Executor.set_time_limit(): seconds: expected float, found str 'soon'"),
            (lambda: executor.bind_input(5, np.ones(1)),
             "Executor.bind_input(): name: expected str, found int 5"),
            (lambda: executor.kernel_text("a"),
             "Executor.kernel_text(): step: expected int, found str 'a'"),
            (lambda: model.describe({"x": (2, "a")}),
             f"Model.describe(): shapes: expected {mapping}, found dict {{'x': (2, 'a')}}"),
            (lambda: tessera.Pin(1, "native"), "Pin(): nodes: expected str, found int 1"),
            (lambda: tessera.Pin("a"), "Pin(): missing a required argument: 'backend'"),
            (lambda: tessera.Backends(5), "Backends(): too many positional arguments"),
            (lambda: setattr(pin, "nodes", 5), "Pin.nodes: expected str, found int 5"),
            (lambda: tessera.csr_array([0], [0], [0]),
             "csr_array(): missing a required argument: 'shape'"),
            (lambda: tessera.load(doubling_model, threads="all"),
             "load(): threads: expected int, found str 'all'"),
            (lambda: tessera.load(doubling_model, threads=2**40),
             f"load(): threads: expected a smaller int, found int {2**40}"),
            (lambda: model.save_cache("f", "\udc80"),
             "Model.save_cache(): type: expected text that is Unicode, found str '\\udc80'")):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == expected


def test_a_class_that_cannot_be_called_says_what_makes_its_objects(tessera, doubling_model):
    for name, maker in (("Model", "tessera.load()"), ("Executor", "Model.bind()"),
                        ("DeviceArray", "to_device()"), ("SparseArray", "csr_array()")):
        with pytest.raises(TypeError) as caught:
            getattr(tessera, name)(doubling_model)
        assert str(caught.value).startswith(f"{name}() cannot be called; {maker}")


def test_the_package_can_be_reloaded(tessera, doubling_model):
    """In a process of its own, because other tests hold the old classes of errors."""
    program = ("import importlib, tessera; importlib.reload(tessera); tessera.Pin('a', 'b'); "
               f"print(len(tessera.load({str(doubling_model)!r}).inputs))")
    assert run_python(tessera, program).stdout == "1\n"


def test_odd_calls(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (2, 3)})
    for call, expected in (
            (lambda: tessera.Model.bind(5), "Model.bind(): self: expected Model, found int 5"),
            (lambda: tessera.Model.bind(), "Model.bind(): missing a required argument: 'self'"),
            (lambda: executor.kernel_text(-1),
             "Executor.kernel_text(): step: expected an int of at least 0, found -1"),
            (lambda: executor.run(**{"\udcff": 1}),
             "Executor.run() got an unexpected keyword argument '\\udcff'")):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == expected


def test_a_type_error_of_the_callers_own_code_stays(tessera, doubling_model):
    def progress(found):
        raise TypeError("bind(): incompatible function arguments. Mine")

    with pytest.raises(TypeError, match="Mine"):
        tessera.load(doubling_model).bind({"x": (2, 3)}, optimize=True, on_progress=progress)

    class Odd:
        def __fspath__(self):
            raise TypeError("no path today")

    with pytest.raises(TypeError, match="no path today"):
        tessera.load(Odd())


def test_the_stub_has_the_public_names(tessera):
    """The stub of the compiled part and the module have the same names."""
    import ast

    folder = pathlib.Path(tessera.__file__).parent
    stub = ast.parse((folder / "_core.pyi").read_text())
    stubbed = {node.name: node for node in stub.body
               if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    core = sys.modules["tessera._core"]
    public = {name for name, value in vars(core).items()
              if not name.startswith("_") and not isinstance(value, types.ModuleType)}
    assert public == set(stubbed)
    for name in CLASSES:
        methods = {node.name for node in stubbed[name].body if isinstance(node, ast.FunctionDef)}
        defined = {method for method in vars(getattr(core, name)) if not method.startswith("_")}
        assert defined <= methods, name


USER = '''
import numpy as np

import tessera

backends = tessera.Backends()
model: tessera.Model = tessera.load("model.onnx", backends=backends, threads=2)
executor: tessera.Executor = model.bind({"x": (2, 3)}, pins=[tessera.Pin("a", "native")])
for output in executor.run({"x": np.zeros((2, 3), np.float32)}):
    print(output.shape)
seconds: float = executor.plan().tuning.seconds
names: list[str] = [value.name for value in model.inputs]
'''

MISTAKES = '''
import tessera

model = tessera.load("model.onnx", strcit=True)  # line 4
model.bind(threads="two")  # line 5
tessera.Pin(1, "native")  # line 6
model.save_cash("f")  # line 7
'''


def test_a_type_checker_reads_the_package(tessera, tmp_path):
    """mypy accepts a program that is right, and finds each mistake in one that is wrong."""
    pytest.importorskip("mypy", reason="tools/setup check installs mypy")
    folder = pathlib.Path(tessera.__file__).parent.parent
    programs = []
    for name, text in (("user", USER), ("mistakes", MISTAKES)):
        programs.append(tmp_path / f"{name}.py")
        programs[-1].write_text(text)
    # Errors inside of the package are shown only if a program imports it from its own folder.
    found = run_program(sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent",
                        "--cache-dir", tmp_path / "cache", *programs, code=None,
                        env={"MYPYPATH": str(folder), "PATH": "/usr/bin"}).stdout
    lines = {line.split(": ")[0].rpartition("/")[2] for line in found.splitlines()
             if ": error: " in line}
    assert lines == {f"mistakes.py:{number}" for number in (4, 5, 6, 7)}, found
