"""A cache file of another user cannot change results: a plan that is not signed with this user's
key is only a proposal, whose kernels are checked before their results are used."""

import shutil

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

SIDE = 64
PROGRAM = """
exclude = [tessera.Exclusion(backend.name, "Relu") for backend in tessera.backends()
           if backend.is_usable and backend.name not in ("versioned", "newcomer")]
import logging
class Told(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
logging.getLogger("tessera").addHandler(Told())
logging.getLogger("tessera").setLevel(logging.INFO)
model = tessera.load(sys.argv[1])
executor = model.bind(threads=1, exclude=exclude, **options)
x = np.random.default_rng(1).standard_normal((%d, %d)).astype(np.float32)
y, = executor.run({"x": x})
report = executor.cache_report()
print(json.dumps({
    "is_right": bool(np.array_equal(y, np.maximum(x, 0))), "is_hit": report.is_hit,
    "reason": report.reason, "change": report.change, "told": told,
    "stages": [stage.name for stage in executor.stages],
    "steps": [step.algorithm for step in executor.plan().steps],
    "origins": {type.type: type.origin for type in report.types}}))
"""


def program(options="{}"):
    return f"told = []\noptions = {options}\n" + PROGRAM % (SIDE, SIDE)


@pytest.fixture
def relu(tmp_path):
    return save_model(tmp_path / "relu.onnx", [node("Relu", "x", "y", "relu")],
                      {"x": [SIDE, SIDE]}, {"y": [SIDE, SIDE]})


@pytest.fixture
def plugins(bin_dir):
    folder = bin_dir.parent / "tests" / "cache"
    assert (folder / "versioned_1.so").exists(), "tools/build release versioned_1 versioned_2"
    return folder


@pytest.fixture
def forge(bin_dir):
    return lambda *arguments: run_program(bin_dir / "forge_cache", *arguments)


@pytest.fixture
def start(python, relu, plugins):
    def run(text=program(), libraries=("versioned_2",), **variables):
        path = ":".join(str(plugins / f"{library}.so") for library in libraries)
        return python(text, relu, TESSERA_BACKEND_PATH=path, **variables)

    return run


def the_cache(work):
    file, = (path for path in work.iterdir() if path.suffix == ".cache")
    return file


def test_a_planted_plan_cannot_run_what_was_refused(start, work, forge):
    first = start()
    assert first["is_right"] and first["steps"] == ["fast"]
    file = the_cache(work)
    forge("replace", file, file, '"fast"', '"wrong"')
    planted = start()
    assert planted["is_right"] and planted["steps"] == ["fast"]
    assert any("a plan that somebody else found is not used" in text for text in planted["told"])
    # The result is now an artifact of this user, so nothing is checked again.
    again = start()
    assert again["is_right"] and again["is_hit"] and "judge" not in again["stages"]


def test_frozen_refuses_it_too(python, start, work, forge):
    start()
    file = the_cache(work)
    forge("replace", file, file, '"fast"', '"wrong"')
    with pytest.raises(AssertionError, match="CacheMiss"):
        start(program("{'frozen': True}"))


def test_a_right_plan_of_a_stranger_is_judged_once(start, work, tmp_path):
    start()
    shutil.rmtree(tmp_path / "user")
    judged = start()
    assert judged["is_hit"] and judged["is_right"] and "judge" in judged["stages"]
    assert judged["origins"]["plan"] == "found by somebody else"
    again = start()
    assert again["is_hit"] and "judge" not in again["stages"]
    assert again["origins"]["plan"] == "found by this user"


def test_ones_own_plan_goes_before_a_strangers(start, work, tmp_path):
    """In any search order: the working folder has an untrusted plan, the user's folder has a
    trusted one."""
    start()
    strangers = the_cache(work).read_bytes()
    shutil.rmtree(tmp_path / "user")
    the_cache(work).unlink()
    own = program("{'cache_dir': %r}" % str(tmp_path / "user" / "tessera"))
    assert not start(own)["is_hit"]
    name = the_cache(tmp_path / "user" / "tessera").name
    (work / name).write_bytes(strangers)
    found = start()
    assert found["is_hit"] and "judge" not in found["stages"]
    assert found["origins"]["plan"] == "found by this user"


def test_a_damaged_key_is_told(start, work, tmp_path):
    start()
    (tmp_path / "user" / "tessera" / "key").write_bytes(b"x")
    damaged = start()
    assert damaged["is_right"] and "judge" in damaged["stages"]
    assert any("are not signed" in text and "is damaged" in text for text in damaged["told"])


def test_a_file_that_is_loaded_on_purpose_is_judged_as_well(start, work, forge):
    start(program() + "model.save_cache('shipped.cache')\n")
    forge("replace", work / "shipped.cache", work / "shipped.cache", '"fast"', '"wrong"')
    the = program("{'cache_dir': 'elsewhere'}").replace(
        "executor = ", "model.load_cache('shipped.cache')\nexecutor = ")
    loaded = start(the)
    assert loaded["is_right"] and loaded["steps"] == ["fast"]


def test_none_of_many_forged_files_changes_a_result(bench, call, model, work, forge, tmp_path, is_long,
                                                    needs_a_library):
    """Correct checksums and structure, but arbitrary plans and prices: the outputs stay the same.
    """
    count = 500 if is_long else 40
    bench()
    file = the_cache(work)
    forged = tmp_path / "forged"
    forged.mkdir()
    forge("random", file, forged, count, 7)
    run = ("run", model, "--shape", "x=1x16x24x24", "--threads", "1", "--random", "1")
    call(*run, "--output", "right")
    right = np.load(work / "right" / "output_0.npy")
    original = file.read_bytes()
    for number in range(count):
        shutil.copy(forged / f"{number}.cache", file)
        _, _, errors = call(*run, "--output", "out", "--tune-budget", "0.5")
        np.testing.assert_allclose(np.load(work / "out" / "output_0.npy"), right, atol=1e-4,
                                   err_msg=f"forged file {number}")
    assert original != file.read_bytes()
