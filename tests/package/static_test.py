"""Programs that contain libtessera.a: built by CMake and pkg-config, in C++ and in C, they find
plug-ins from where they are themselves."""

import re
import shutil

import pytest

from installed import needed, run
from installed_test import EXAMPLE, OUTPUTS, PROGRAMS
from symbols_test import listed

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(contained LANGUAGES {languages})
find_package(tessera 0.1 REQUIRED COMPONENTS static)
add_executable(program {source})
target_link_libraries(program PRIVATE tessera::tessera_static)
"""
# A program may have classes of its own for the same messages, and inner functions of the same name.
RIVAL = """
#include <tessera/tessera.h>
#include <cstdlib>
namespace tessera {{
std::string module_folder() {{ std::abort(); }}
}}
namespace onnx {{
class ModelProto {{ public: ModelProto(); }};
ModelProto::ModelProto() {{ std::abort(); }}
}}
int main() {{
  try {{
    tessera::load("{model}").bind();
    tessera::load("no such file");
  }} catch (const tessera::Error& error) {{
    return error.kind() == tessera::ErrorKind::InvalidArgument ? 0 : 1;
  }}
  return 2;
}}
"""


@pytest.fixture(scope="module")
def own_prefix(prefix, tmp_path_factory):
    """A copy of the installed one, into whose bin/ the tests put programs."""
    if not (prefix / "lib" / "libtessera.a").exists():
        pytest.skip("this build has no static library: link-time optimisation")
    return shutil.copytree(prefix, tmp_path_factory.mktemp("static") / "prefix", symlinks=True)


def build(prefix, folder, languages, source):
    (folder / "CMakeLists.txt").write_text(PROJECT.format(languages=languages, source=source))
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "build")
    return folder / "build" / "program"


def check(built, prefix, name, model, type_name):
    assert "libtessera" not in run(needed("readelf"), "-d", built).stdout
    program = shutil.copy2(built, prefix / "bin" / name)
    done = run(program, model)
    assert done.stdout == OUTPUTS.format(type=type_name)
    # No warning: the plug-ins were found.
    assert done.stderr == ""


@pytest.mark.parametrize("languages, source", [("CXX", "run_model.cc"), ("C", "run_model.c")])
def test_cmake_links_the_archive(languages, source, own_prefix, model, tmp_path, needs_a_library):
    built = build(own_prefix, tmp_path, languages, EXAMPLE / source)
    check(built, own_prefix, f"by_cmake_{languages}", model,
          PROGRAMS["run_model_c" if languages == "C" else "run_model_cpp"])


def test_pkg_config_links_the_archive(own_prefix, model, tmp_path, needs_a_library):
    needed("pkg-config")
    shutil.copytree(EXAMPLE, tmp_path / "example")
    run("make", "-C", tmp_path / "example", "STATIC=1",
        f"PKG_CONFIG_PATH={own_prefix / 'lib' / 'pkgconfig'}")
    for name, type_name in PROGRAMS.items():
        check(tmp_path / "example" / name, own_prefix, f"by_make_{name}", model, type_name)


def test_a_program_alone_warns_once_and_says_what_to_do(own_prefix, model, tmp_path,
                                                        needs_a_library):
    built = build(own_prefix, tmp_path, "CXX", EXAMPLE / "run_model.cc")
    done = run(built, model)
    assert done.stderr.count("\n") == 1
    assert f"beside '{built}'" in done.stderr and "TESSERA_BACKEND_PATH" in done.stderr
    done = run(built, model, TESSERA_BACKEND_PATH=own_prefix / "lib" / "tessera")
    assert (done.stdout, done.stderr) == (OUTPUTS.format(type="int64"), "")


def test_names_of_the_program_do_not_collide_with_inner_ones(own_prefix, model, tmp_path):
    static = shutil.copy2(model, tmp_path / "model.onnx")
    (tmp_path / "rival.cc").write_text(RIVAL.format(model=static))
    run(build(own_prefix, tmp_path, "CXX", "rival.cc"))


def test_the_archive_exports_the_committed_list(own_prefix):
    lines = run(needed("nm"), "-g", "--defined-only", own_prefix / "lib" / "libtessera.a").stdout
    assert set(re.findall(r"^\w+ \w (\S+)$", lines, re.M)) == listed()


def test_a_component_that_does_not_exist_is_not_found(own_prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(check LANGUAGES C)\n"
        "find_package(tessera COMPONENTS other)\nfile(WRITE found \"${tessera_FOUND}\")\n")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={own_prefix}")
    assert (tmp_path / "found").read_text() == "0"
