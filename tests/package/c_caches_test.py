"""Caches through the C interface, by a program in C: each call is a process of its own, so one
knows only what another one has saved."""

import functools
import shutil

import pytest

from installed import ROOT, environment, needed
from programs import run_program

INVALID_ARGUMENT, UNSUPPORTED, CORRUPT, CACHE_MISS = 2, 3, 6, 9


@pytest.fixture(scope="module")
def program(prefix, tmp_path_factory):
    file = tmp_path_factory.mktemp("caches") / "caches"
    library = prefix / "lib"
    run_program(needed("cc"), "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
                "-Wno-missing-field-initializers", f"-I{prefix / 'include'}",
                ROOT / "tests" / "package" / "caches.c", f"-L{library}", "-ltessera",
                f"-Wl,-rpath,{library}", "-o", file)
    return file


def call_in(folder, program, model, *words, code=0, user="user", cache_dir="work"):
    """Runs the program in a folder, with caches and a user's folder there; returns stdout and
    stderr."""
    for name in (user, cache_dir):
        (folder / name).mkdir(exist_ok=True)
    fixed = ("set", "threads", "1", "set", "cache_dir", cache_dir)
    done = run_program(program, model, *fixed, *words, code=code, cwd=folder,
                       env=environment(XDG_CACHE_HOME=folder / user))
    return done.stdout, done.stderr


@pytest.fixture
def call(program, measured_model, tmp_path):
    return functools.partial(call_in, tmp_path, program, measured_model)


def options(**given):
    words = []
    for name, text in given.items():
        words += ["set", name, text]
    return words


MEASURE = options(optimize="now", backends="native,reference")
FROZEN = [*MEASURE, *options(frozen="true")]


@pytest.fixture(scope="module")
def measured(program, measured_model, tmp_path_factory, needs_native):
    """A folder with the results of a process, by type, and the sum that it computed."""
    folder = tmp_path_factory.mktemp("measured")
    expected, _ = call_in(
        folder, program, measured_model, *MEASURE, "bind", "run", "save", "all.cache", "all",
        "save_model", "plan.cache", "plan", "save", "native.cache", "native",
        "save", "reference.cache", "reference", "save_packs", "packed.cache", "-")
    return folder, expected


@pytest.fixture
def saved(measured, tmp_path):
    """The sum; the files are in the folder of this test, in which there are no other caches."""
    folder, expected = measured
    for file in folder.glob("*.cache"):
        shutil.copy(file, tmp_path)
    return expected


def test_another_process_needs_no_more_than_the_file(call, saved):
    for name in ("all.cache", "packed.cache", "plan.cache"):
        assert call("load", name, "-", *FROZEN, "bind", "run") == (saved, ""), name
        assert call("load", name, "plan", *FROZEN, "bind", "run") == (saved, ""), name


def test_types_add_up(call, saved):
    assert call("load", "native.cache", "native", "load", "plan.cache", "plan", *FROZEN, "bind",
                "run")[0] == saved
    # Saves into one file, in which each part replaces the part of its type. New measurements may
    # choose other kernels, which round differently.
    found, _ = call(*MEASURE, "bind", "run", "save", "parts.cache", "native", "save",
                    "parts.cache", "plan", cache_dir="parts_work", user="parts")
    assert call("load", "parts.cache", "all", *FROZEN, "bind", "run")[0] == found


def test_prices_without_a_plan_are_not_enough_for_frozen(call, saved):
    for name, type_name in (("native.cache", "-"), ("all.cache", "native"), ("all.cache", "reference")):
        _, error = call("load", name, type_name, *FROZEN, "bind", code=CACHE_MISS)
        assert error.startswith("CacheMiss: "), name


def test_frozen_without_a_cache_writes_nothing(call, tmp_path, needs_native):
    _, error = call(*FROZEN, "bind", code=CACHE_MISS)
    assert error.startswith("CacheMiss: ")
    assert list((tmp_path / "work").iterdir()) == []
    assert not list((tmp_path / "user").rglob("*.cache"))


def test_other_options_have_no_plan_in_the_file(call, saved):
    _, error = call("load", "all.cache", "-", *FROZEN, "set", "nan", "fast", "bind", code=CACHE_MISS)
    assert "nan" in error


def test_an_executor_plans_again_with_a_file(call, saved):
    unmeasured = options(optimize="now", backends="native,reference", tune_budget_seconds="0.01")
    assert call(*unmeasured, "bind", "reload", "all.cache", "all", "run", cache_dir="other",
                user="other")[0] == saved


# Actions after measuring and binding, the status code, and a part of the message.
WRONG = {
    "save a mistyped type": (["save", "a.cache", "natve"], INVALID_ARGUMENT, "did you mean 'native'"),
    "save an unknown type": (["save", "a.cache", "everything"], INVALID_ARGUMENT, "'everything'"),
    "save a backend that was not used": (["save", "a.cache", "cuda"], UNSUPPORTED, "cuda"),
    "load a mistyped type": (["load", "all.cache", "plam"], INVALID_ARGUMENT, "did you mean 'plan'"),
    "reload a mistyped type": (["reload", "all.cache", "plam"], INVALID_ARGUMENT, "'plam'"),
    "load a missing file": (["load", "absent.cache", "-"], INVALID_ARGUMENT, "absent.cache"),
    "load another file": (["load", "other.txt", "-"], CORRUPT, "other.txt"),
    "load a part of a file": (["load", "part.cache", "-"], CORRUPT, "part.cache"),
    "load a damaged file": (["load", "damaged.cache", "-"], CORRUPT, "damaged.cache"),
    "reload a damaged file": (["reload", "damaged.cache", "-"], CORRUPT, "damaged.cache"),
    "overwrite another file": (["save", "other.txt", "all"], INVALID_ARGUMENT, "other.txt"),
    "save to nowhere": (["save", "absent/a.cache", "all"], INVALID_ARGUMENT, "create it first"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_has_a_code_and_says_why(call, saved, tmp_path, name):
    actions, code, message = WRONG[name]
    content = (tmp_path / "all.cache").read_bytes()
    (tmp_path / "part.cache").write_bytes(content[:-1])
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 1
    (tmp_path / "damaged.cache").write_bytes(damaged)
    (tmp_path / "other.txt").write_text("something of the user's")
    before = {file: file.read_bytes() for file in tmp_path.glob("*.*")}
    words = ("load", "all.cache", "-", *FROZEN, "bind", *actions)
    _, error = call(*words, code=code)
    assert message in error and error.count("\n") == 1
    assert {file: file.read_bytes() for file in tmp_path.glob("*.*")} == before


def test_a_model_that_was_not_bound_has_nothing_to_save(call, tmp_path):
    for words in (["save_model", "a.cache", "all"],
                  [*options(optimize="off"), "bind", "save", "a.cache", "all"]):
        _, error = call(*words, code=INVALID_ARGUMENT)
        assert error.startswith("InvalidArgument: ")
    assert not (tmp_path / "a.cache").exists()


def test_a_file_of_another_model_says_what_differs(program, model, saved, tmp_path):
    _, error = call_in(tmp_path, program, model, "load", "all.cache", "-", code=INVALID_ARGUMENT)
    assert "cache 'all.cache': it does not fit: model: " in error
