"""An installed copy that was moved serves programs outside of it: built by CMake, pkg-config or a
Makefile, in C++ and in C, they find plug-ins and tessera-worker in any place."""

import json
import os
import re
import shutil
import sys

import pytest

from installed import ROOT, environment, needed, run
from programs import run_program

EXAMPLE = ROOT / "examples" / "06_installed"
# x is 0, 0.01.
OUTPUTS = "relu float32 1x3 0.02 0.01 0.0025\npositions {type} 2x1\n"
PROGRAMS = {"run_model_cpp": "int64", "run_model_c": "another type"}


def build_by_cmake(prefix, source, folder):
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_C_FLAGS=-pedantic -Wall -Werror")
    run("cmake", "--build", folder, "-j", 2)
    return folder


def build_by_pkg_config(prefix, source, folder):
    needed("pkg-config")
    shutil.copytree(source, folder)
    run("make", "-C", folder, f"PKG_CONFIG_PATH={prefix / 'lib' / 'pkgconfig'}",
        "CFLAGS=-Wall -Werror", "CXXFLAGS=-Wall -Wextra -Werror")
    return folder


def build_by_make(prefix, source, folder):
    shutil.copytree(source, folder)
    run("make", "-C", folder, f"TESSERA={prefix}", "CFLAGS=-Wall -Werror")
    return folder


@pytest.fixture(scope="session")
def programs(prefix, tmp_path_factory):
    return build_by_cmake(prefix, EXAMPLE, tmp_path_factory.mktemp("example") / "build")


def check_programs(folder, model):
    for name, type_name in PROGRAMS.items():
        done = run(folder / name, model)
        assert done.stdout == OUTPUTS.format(type=type_name)
        # No warning: the plug-ins were found.
        assert done.stderr == ""


def test_cmake_finds_it(programs, model, needs_a_library):
    check_programs(programs, model)


def test_the_chess_evaluator_is_a_project_of_its_own(prefix, tmp_path, needs_a_library):
    folder = build_by_cmake(prefix, ROOT / "examples" / "07_chess", tmp_path / "build")
    network = tmp_path / "model.onnx"
    run(sys.executable, ROOT / "examples" / "07_chess" / "make_network.py", network)
    done = run(folder / "chess_evaluator", network, "--answers", "20", "--search-threads", "1,2")
    assert done.stdout.startswith("start to first answer: ") and done.stderr == ""
    assert len(done.stdout.splitlines()) == 5


@pytest.mark.parametrize("build", [build_by_pkg_config, build_by_make])
def test_a_makefile_finds_it(build, prefix, model, tmp_path, needs_a_library):
    check_programs(build(prefix, EXAMPLE, tmp_path / "build"), model)


def test_a_program_needs_no_other_library(programs):
    needed("readelf")
    for name in PROGRAMS:
        lines = run("readelf", "-d", programs / name).stdout.splitlines()
        libraries = [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]
        system = ("libstdc++.so", "libm.so", "libgcc_s.so", "libc.so")
        assert [library for library in libraries if not library.startswith(system)] == [
            "libtessera.so.0.1"]


def test_a_program_measures_in_the_installed_worker(programs, prefix, measured_model, tmp_path,
                                                    needs_a_library):
    def warnings(folder, **more):
        return run(programs / "run_model_cpp", measured_model, TESSERA_OPTIMIZE=1,
                   XDG_CACHE_HOME=folder, TESSERA_CACHE_DIR=folder, **more).stderr

    assert "tessera-worker" not in warnings(tmp_path / "first")
    without = shutil.copytree(prefix, tmp_path / "without", symlinks=True)
    (without / "bin" / "tessera-worker").unlink()
    said = warnings(tmp_path / "second", LD_LIBRARY_PATH=without / "lib")
    assert "tessera-worker" in said and str(without) in said


def test_a_link_to_the_library_or_a_program_is_followed(programs, prefix, model, tmp_path,
                                                        needs_native):
    (tmp_path / "libtessera.so.0.1").symlink_to(prefix / "lib" / "libtessera.so.0.1")
    done = run(programs / "run_model_cpp", model, LD_LIBRARY_PATH=tmp_path)
    assert (done.stdout, done.stderr) == (OUTPUTS.format(type="int64"), "")
    (tmp_path / "linked").symlink_to(prefix / "bin" / "tessera")
    assert read_backends(tmp_path / "linked")["native"]["is_usable"]


def test_a_library_alone_warns_once(programs, prefix, model, tmp_path):
    for file in (prefix / "lib").glob("libtessera.so*"):
        shutil.copy2(file, tmp_path, follow_symlinks=False)
    for name in PROGRAMS:
        done = run(programs / name, model, LD_LIBRARY_PATH=tmp_path)
        assert done.stderr.count("\n") == 1 and "no acceleration library can be used" in done.stderr
        # The program `tessera`, if there is one, knows of another library.
        assert f"beside '{tmp_path / 'libtessera.so.0.1.0'}'" in done.stderr
        assert "TESSERA_BACKEND_PATH" in done.stderr and "tessera backends" not in done.stderr


def read_backends(binary, **more):
    listing = run(binary, "backends", "--json", **more).stdout
    return {entry["backend"]: entry for entry in json.loads(listing)["backends"]}


def test_moved_plug_ins_find_what_they_found_before(prefix, tessera_binary):
    before, after = read_backends(tessera_binary), read_backends(prefix / "bin" / "tessera")
    usable = [name for name, entry in before.items() if entry["is_usable"]]
    assert [name for name, entry in after.items() if entry["is_usable"]] == usable


def test_a_moved_plug_in_computes_with_its_library(prefix, model, why_unusable):
    for name, reason in why_unusable.items():
        if reason or name in ("reference", "opencl"):
            continue
        done = run(prefix / "bin" / "tessera", "explain", model, "--shape", "x=4x2", "--json",
                   "--backends", name)
        refusals = json.dumps(json.loads(done.stdout))
        assert "cannot be loaded" not in refusals and "cannot open" not in refusals, name


def test_a_program_in_path_is_not_mistaken_for_a_file_of_its_name(prefix, tmp_path, needs_native):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tessera").write_text("not the program")
    (tmp_path / "lib" / "tessera").mkdir(parents=True)
    (tmp_path / "lib" / "tessera" / "backend_native.so").write_text("not the plug-in")
    done = run("sh", "-c", "tessera backends --json", cwd=tmp_path / "bin",
               PATH=f"{prefix / 'bin'}:{os.environ['PATH']}")
    [entry] = [entry for entry in json.loads(done.stdout)["backends"]
               if entry["backend"] == "native"]
    assert entry["file"] == str(prefix / "lib" / "tessera" / "backend_native.so")
    assert entry["is_usable"]


def test_a_plug_in_of_the_user_replaces_the_one_of_its_name(prefix, model, tmp_path, needs_native):
    own = shutil.copy2(prefix / "lib" / "tessera" / "backend_native.so", tmp_path)
    for path in (own, tmp_path):
        entry = read_backends(prefix / "bin" / "tessera", TESSERA_BACKEND_PATH=path)["native"]
        assert entry["is_usable"] and entry["file"] == own
    done = run(prefix / "bin" / "tessera", "run", model, "--shape", "x=4x2", "--random", 1,
               "--backends", "native", "--backend-path", own)
    assert done.stderr == ""


def test_a_plug_in_without_its_library_says_what_is_missing(prefix, tmp_path, needs_onednn):
    # A file that is no library comes first in the plug-in's search path.
    folder = shutil.copytree(prefix, tmp_path / "copy", symlinks=True)
    own = folder / "lib" / "tessera" / "onednn"
    own.mkdir()
    (own / "libdnnl.so.3").write_text("no library")
    entry = read_backends(folder / "bin" / "tessera")["onednn"]
    assert not entry["is_usable"] and str(own / "libdnnl.so.3") in entry["reason"]


README_BLOCK = re.compile(r"^```(cmake|cpp)\n(.*?)^```$", re.M | re.S)


def test_the_project_of_the_readme_builds(prefix, tmp_path):
    blocks = dict(README_BLOCK.findall((ROOT / "README.md").read_text()))
    (tmp_path / "CMakeLists.txt").write_text(blocks["cmake"])
    (tmp_path / "first.cc").write_text(blocks["cpp"])
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    # Its model is not in this folder.
    done = run(tmp_path / "build" / "first", returncode=2, cwd=tmp_path)
    assert "InvalidArgument" in done.stderr and "squeezenet.onnx" in done.stderr


@pytest.mark.parametrize("wanted, is_found", [("0.1", True), ("0.2", False), ("1.0", False)])
def test_cmake_checks_the_version(wanted, is_found, prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(check LANGUAGES C)\n"
        f"find_package(tessera {wanted} REQUIRED)\nfile(WRITE found ${{TESSERA_PLUGIN_DIR}})\n")
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = run_program(*command, code=None, env=environment())
    assert (done.returncode == 0) == is_found, done.stderr
    if is_found:
        assert os.path.samefile((tmp_path / "found").read_text(), prefix / "lib" / "tessera")


def test_nothing_names_the_folder_of_the_build(prefix):
    texts = [*prefix.rglob("*.cmake"), *prefix.rglob("*.pc"), *prefix.rglob("*.h")]
    assert len(texts) > 20
    installed = str(prefix.parent)
    for file in texts:
        text = file.read_text()
        assert str(ROOT) not in text and installed not in text, file


HEADERS = sorted(f"tessera/{path.name}" for path in (ROOT / "include" / "tessera").glob("*.h"))


@pytest.mark.parametrize("name", HEADERS)
def test_each_header_compiles_alone(name, prefix, tmp_path):
    source = tmp_path / "header.cc"
    source.write_text(f"#include <{name}>\n#include <{name}>\n")
    run("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
        "-fsyntax-only", f"-I{prefix / 'include'}", source)


def test_the_c_header_is_c99(prefix, tmp_path):
    source = tmp_path / "header.c"
    source.write_text("#include <tessera/tessera_c.h>\n#include <tessera/backend_abi.h>\n")
    for compiler in ("gcc", "clang-19"):
        if shutil.which(compiler):
            run(compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wstrict-prototypes",
                "-Werror", "-fsyntax-only", f"-I{prefix / 'include'}", source)
