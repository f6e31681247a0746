"""The kernel revision that the build computes changes with sources and settings, and with nothing
else: of the script on made-up inputs, of a made-up project that is built, and of this build."""

import os
import re
import shutil

import pytest
from catalog import PLUGINS
from load_tool import ROOT
from programs import json_of, run_program
from small_models import node, save_model

SCRIPT = ROOT / "cmake" / "write_kernel_revision.cmake"
REVISION = re.compile(r'return "([0-9a-f]{16})";')
CMAKE = shutil.which("cmake")

pytestmark = pytest.mark.skipif(CMAKE is None, reason="cmake was not found")


def make_folder(place):
    (place / "kernels").mkdir(parents=True)
    (place / "kernels" / "add.cc").write_text("float add(float a, float b) { return a + b; }\n")
    (place / "kernels" / "add.h").write_text("float add(float a, float b);\n")
    return place


def revision_of(folder, flags="-O3", sources=("kernels/add.cc", "kernels/add.h")):
    """Runs the script next to `folder`; returns the revision and the file that it wrote."""
    inputs, output = folder.parent / "inputs.txt", folder.parent / "revision.cc"
    inputs.write_text("".join([f"flags {flags}\n", *(f"source {name}\n" for name in sources)]))
    run_program(CMAKE, f"-DROOT={folder}", f"-DINPUTS={inputs}", "-DNAMESPACE=made::up",
                f"-DOUTPUT={output}", "-P", SCRIPT)
    text = output.read_text()
    assert "namespace made::up {" in text
    return REVISION.search(text).group(1), output


def test_content_and_flags_count_and_nothing_else(tmp_path):
    folder = make_folder(tmp_path / "one")
    first, output = revision_of(folder)
    written = output.stat().st_mtime_ns
    source = folder / "kernels" / "add.cc"
    os.utime(source, (1, 1))
    assert revision_of(folder)[0] == first
    assert output.stat().st_mtime_ns == written, "nothing is to be compiled again"
    moved = tmp_path / "elsewhere" / "two"
    moved.parent.mkdir()
    folder.rename(moved)
    assert revision_of(moved)[0] == first
    others = {revision_of(moved, flags="-O2")[0], revision_of(moved, sources=["kernels/add.cc"])[0]}
    source = moved / "kernels" / "add.cc"
    source.write_text(source.read_text().replace("a + b", "b + a"))
    others.add(revision_of(moved)[0])
    assert len(others) == 3 and first not in others


def test_a_call_without_an_argument_is_refused():
    done = run_program(CMAKE, "-DROOT=.", "-P", SCRIPT, code=None)
    assert done.returncode != 0 and "expected -DINPUTS=..." in done.stderr


PROJECT = """cmake_minimum_required(VERSION 3.25)
project(made_up LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
include(TesseraKernelRevision)
add_library(kernels STATIC kernels/add.cc)
tessera_kernel_revision(kernels made::up SOURCES kernels SETTINGS "Library 1.2")
"""


@pytest.fixture
def project(tmp_path):
    """Creates a project in a folder of tmp_path and builds it; returns its revision."""
    if not shutil.which("ninja") or not shutil.which("c++"):
        pytest.skip("ninja or c++ was not found")

    def build(name, *options):
        folder = tmp_path / name
        if not folder.exists():
            make_folder(folder)
            (folder / "CMakeLists.txt").write_text(PROJECT)
            shutil.copytree(ROOT / "cmake", folder / "cmake")
        configured = (folder / "build" / "build.ninja").exists()
        commands = [["cmake", "--build", "build"]]
        if options or not configured:
            commands.insert(0, ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", *options])
        for command in commands:
            run_program(*command, cwd=folder)
        output = folder / "build" / "kernels_revision.cc"
        return REVISION.search(output.read_text()).group(1)

    return build


def test_a_build_finds_what_changed(project, tmp_path):
    release = "-DCMAKE_BUILD_TYPE=Release"
    first = project("one", release)
    assert project("two", release) == first, "an equal project in another folder"
    kernels = tmp_path / "one" / "kernels"
    compiled = next((tmp_path / "one" / "build").rglob("add.cc.o"))
    compiled_ns = compiled.stat().st_mtime_ns
    (kernels / "add_test.cc").write_text("int main() { return 0; }\n")
    (kernels / "test_kernels.h").write_text("\n")
    assert project("one") == first, "tests do not count"
    seen = [first]
    (kernels / "subtract.h").write_text("float subtract(float a, float b);\n")
    seen.append(project("one"))
    (kernels / "subtract.h").write_text("double subtract(double a, double b);\n")
    seen.append(project("one"))
    assert compiled.stat().st_mtime_ns == compiled_ns, "of no concern to other files"
    seen.append(project("one", "-DCMAKE_CXX_FLAGS=-ffast-math"))
    seen.append(project("one", "-DCMAKE_BUILD_TYPE=Debug"))
    assert len(set(seen)) == len(seen)
    (kernels / "subtract.h").unlink()
    assert project("one", "-DCMAKE_CXX_FLAGS=", release) == first, "what is gone is gone"


def test_the_program_tells_its_revisions(tessera_binary, tmp_path, why_unusable):
    model = tmp_path / "model.onnx"
    write_model(model)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_")}
    environment = {**clean, "XDG_CACHE_HOME": str(tmp_path / "user")}

    def call(*arguments):
        return json_of(tessera_binary, *arguments, cwd=tmp_path, env=environment)

    def revisions(ingredients, name):
        return [one["text"] for one in ingredients if one["ingredient"] == name]

    fingerprint = call("cache", "fingerprint", model, "--json")
    core, = revisions(fingerprint["entry_ingredients"], "core revision")
    assert re.fullmatch("[0-9a-f]{16}", core)
    call("bench", model, "--optimize", "--json", "--seconds", "0.001", "--threads", "1")
    file, = tmp_path.glob("*.cache")
    sections = call("cache", "show", file, "--json")["sections"]
    libraries = [name for name in PLUGINS if not why_unusable.get(name)]
    found = {name: revisions(section["ingredients"], "revision") for section in sections
             for name in [section["section"]] if name in libraries}
    assert set(found) <= set(libraries) and bool(found) == bool(libraries)
    for name, values in found.items():
        assert len(values) == 1 and re.fullmatch("[0-9a-f]{16}", values[0]), (name, values)
        assert values[0] != core


def write_model(path):
    # Imported only here: collecting the other tests needs no onnx.
    from small_models import node, save_model
    save_model(path, [node("MatMul", "x x", "y"), node("Tanh", "y", "z")], {"x": [64, 64]},
               {"z": [64, 64]}, opset=13)
