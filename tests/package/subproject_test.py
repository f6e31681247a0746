"""A project that contains Tessera's source tree links with the targets that find_package() gives.
With --long, one is built and run, which compiles the whole library."""

import shutil

import pytest

from installed import ROOT, environment, run
from programs import run_program

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(outer LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
{include}
add_executable(program program.cc)
target_link_libraries(program PRIVATE tessera::tessera)
add_executable(contained EXCLUDE_FROM_ALL program.cc)
target_link_libraries(contained PRIVATE tessera::tessera_static)
install(TARGETS program)
"""
SUBFOLDER = f"add_subdirectory({ROOT} tessera)"
FETCHED = f"""include(FetchContent)
FetchContent_Declare(tessera SOURCE_DIR {ROOT})
FetchContent_MakeAvailable(tessera)"""
BUILD_MINUTES = 90


def configure(include, folder, *options):
    """Configures the project, and returns the function that lists the commands for a target."""
    (folder / "CMakeLists.txt").write_text(PROJECT.format(include=include))
    (folder / "program.cc").write_text("#include <tessera/tessera.h>\n"
                                       "int main() { return tessera::version().empty(); }\n")
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", *options)

    def commands(target):
        return run("ninja", "-C", folder / "build", "-t", "commands", target).stdout.splitlines()

    return commands


def check(commands, folder):
    of_program = commands("program")
    [compiled] = [line for line in of_program if line.endswith(f" {folder}/program.cc")]
    assert f"{ROOT}/include" in compiled and "-std=gnu++20" in compiled
    # The outer project's own settings stay as they are.
    assert "-Wshadow" not in compiled
    linked = of_program[-1]
    assert "libtessera.so" in linked and "tessera_api.a" not in linked
    # Programs that the library needs at run time are built with the program.
    assert any("tessera-worker" in line for line in of_program)
    # The program compiles; linking it would need the whole library.
    run("bash", "-c", compiled, cwd=folder / "build")
    # Nothing else is built by default; and the outer project installs its own program alone.
    unwanted = ("_test.cc", "/python/", "/cli/", "/bench/", "/examples/", "libtessera.a")
    assert [line for line in commands("all") if any(name in line for name in unwanted)] == []
    script = (folder / "build" / "tessera" / "cmake_install.cmake")
    assert not script.exists() or "libtessera" not in script.read_text()


def test_add_subdirectory(tmp_path):
    check(configure(SUBFOLDER, tmp_path), tmp_path)


def test_fetch_content(tmp_path):
    check(configure(FETCHED, tmp_path), tmp_path)


def test_the_static_library_is_built_if_a_program_links_with_it(tmp_path):
    commands = configure(SUBFOLDER, tmp_path)("contained")
    assert "libtessera.a" in commands[-1] and "libtessera.so" not in commands[-1]
    assert any("backend_native.so" in line for line in commands)


def test_the_program_is_built_if_it_is_asked_for(tmp_path):
    commands = configure(SUBFOLDER, tmp_path, "-DTESSERA_CLI=ON")("all")
    assert any("/cli/main.cc" in line for line in commands)
    assert not any("_test.cc" in line for line in commands)


def test_it_builds_and_runs(is_long, tmp_path, model):
    if not is_long:
        pytest.skip("compiles the whole library: --long")
    configure(FETCHED, tmp_path, "-DCMAKE_BUILD_TYPE=Release",
              f"-DCMAKE_CXX_COMPILER_LAUNCHER={shutil.which('ccache') or ''}")
    example = ROOT / "examples" / "06_installed" / "run_model.cc"
    (tmp_path / "program.cc").write_text(example.read_text())
    run_program("ninja", "-C", tmp_path / "build", "-j", "2", "all", "contained",
                timeout=60 * BUILD_MINUTES,
                env=environment(CCACHE_SLOPPINESS="pch_defines,time_macros"))
    # The program that contains the library does not lie beside its plug-ins.
    plugins = {"TESSERA_BACKEND_PATH": tmp_path / "build/_deps/tessera-build/lib/tessera"}
    for name, settings in (("program", {}), ("contained", plugins)):
        done = run(tmp_path / "build" / name, model, **settings)
        assert done.stdout.startswith("relu float32 1x3 ")
        # No warning: the plug-ins were found.
        assert done.stderr == ""
