"""`tessera backends` distinguishes backends that were not built, lack their library, or were
refused. A program that can use only the reference says so once. Each case is a copy of the program
with its own folder of plug-ins."""

import json
import os
import shutil

import numpy
import pytest
from catalog import PLUGINS
from programs import run_program
from small_models import node, save_model


@pytest.fixture
def place(tessera_binary, tmp_path):
    """A copy of the program in bin/, without plug-ins, and the plug-ins that were configured."""
    (tmp_path / "bin").mkdir()
    shutil.copy2(tessera_binary, tmp_path / "bin" / "tessera")
    return tmp_path


@pytest.fixture
def built(why_unusable):
    names = [name for name in PLUGINS if not why_unusable.get(name)]
    if not names:
        pytest.skip(f"no plug-in was built: {why_unusable}")
    return names


def call(place, *arguments, code=0):
    environment = {name: value for name, value in os.environ.items() if name != "TESSERA_BACKENDS"}
    return run_program(place / "bin" / "tessera", *arguments, code=code, cwd=place, env=environment)


def listing(place):
    done = call(place, "backends", "--json")
    return {entry["backend"]: entry for entry in json.loads(done.stdout)["backends"]}


def plugin_folder(place):
    folder = place / "lib" / "tessera"
    folder.mkdir(parents=True)
    return folder


def test_a_plugin_that_is_not_there_was_not_built(place, built):
    folder = plugin_folder(place)
    for name in built:
        entry = listing(place)[name]
        assert not entry["is_usable"]
        assert entry["status"] == "not_built"
        assert f"'backend_{name}.so' is not in '{folder}'" in entry["reason"]
        assert "make demo" in entry["remedy"]
        assert f"tools/build release tessera_backend_{name}" in entry["remedy"]


def test_a_program_away_from_its_plugins_says_what_it_looked_for(place, built):
    entry = listing(place)[built[0]]
    assert entry["status"] == "not_built"
    assert "no folder lib/tessera lies beside" in entry["reason"]
    assert "TESSERA_BACKEND_PATH" in entry["remedy"]


def test_a_plugin_without_its_library_says_what_to_install(place, built):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    folder = plugin_folder(place)
    library = place / "libnowhere.so"
    for command in (["cc", "-shared", "-o", library, "-x", "c", os.devnull],
                    ["cc", "-shared", "-o", folder / f"backend_{built[0]}.so", "-x", "c", os.devnull,
                     "-Wl,--no-as-needed", f"-L{place}", "-lnowhere"]):
        run_program(*command)
    library.unlink()
    entry = listing(place)[built[0]]
    assert entry["status"] == "library_missing"
    assert "libnowhere.so" in entry["reason"]
    assert "install" in entry["remedy"]
    assert "tools/setup" in entry["remedy"]


@pytest.mark.parametrize("content, reason", [(b"no library", "file too short|invalid ELF header"),
                                             (None, "exports no function")])
def test_a_file_that_is_no_plugin_is_refused(place, built, content, reason):
    file = plugin_folder(place) / f"backend_{built[0]}.so"
    if content is None:
        if not shutil.which("cc"):
            pytest.skip("there is no C compiler")
        run_program("cc", "-shared", "-o", file, "-x", "c", os.devnull)
    else:
        file.write_bytes(content)
    entry = listing(place)[built[0]]
    assert entry["status"] == "refused"
    assert any(part in entry["reason"] for part in reason.split("|"))
    text = call(place, "backends").stdout
    assert f"{built[0]} ({file}), refused:" in " ".join(text.split())


def test_the_table_says_the_status_of_each(place, built):
    plugin_folder(place)
    text = call(place, "backends").stdout
    assert text.count("not built") >= 2 * len(built)
    assert "What to do: build it: make demo" in " ".join(text.split())


@pytest.fixture
def relu(place):
    return save_model(place / "relu.onnx", [node("Relu", "x", "y")], {"x": [2]}, {"y": [2]},
                      opset=13)


def test_a_program_that_has_only_the_reference_says_so_once(place, relu):
    plugin_folder(place)
    numpy.save(place / "x.npy", numpy.ones(2, numpy.float32))
    arguments = ("run", str(relu), "--input", "x=x.npy", "--no-optimize")
    done = call(place, *arguments)
    assert done.stderr.count("no acceleration library can be used") == 1
    assert "'tessera backends' says why" in " ".join(done.stderr.split())
    # A user who asks for the reference needs no warning.
    done = call(place, *arguments, "--backends", "reference")
    assert "no acceleration library" not in done.stderr


@pytest.mark.parametrize("name, missing", [
    ("trt", "no plug-in over TensorRT"), ("CUDA", "kernels of its own for NVIDIA"), ("cudnn", "cuDNN"),
    ("tvm", "Apache TVM")])
def test_a_library_that_this_version_does_not_have_says_what_is_missing(place, relu, name, missing):
    done = call(place, "run", str(relu), "--random", "1", "--no-optimize", "--backends", name,
                code=None)
    assert done.returncode != 0
    text = " ".join(done.stderr.split())
    assert f"backend '{name}': cannot be used: this version of Tessera" in text and missing in text
