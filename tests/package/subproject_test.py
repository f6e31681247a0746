"""A project that contains Tessera's source tree links with the target that find_package() gives."""

from installed import ROOT, run

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(outer LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
{include}
add_executable(program program.cc)
target_link_libraries(program PRIVATE tessera::tessera)
install(TARGETS program)
"""
SUBFOLDER = f"add_subdirectory({ROOT} tessera)"
FETCHED = f"""include(FetchContent)
FetchContent_Declare(tessera SOURCE_DIR {ROOT})
FetchContent_MakeAvailable(tessera)"""


def configure(include, folder):
    (folder / "CMakeLists.txt").write_text(PROJECT.format(include=include))
    (folder / "program.cc").write_text("#include <tessera/tessera.h>\n"
                                       "int main() { return tessera::version().empty(); }\n")
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja")
    return run("ninja", "-C", folder / "build", "-t", "commands", "program").stdout.splitlines()


def check(commands, folder):
    [compiled] = [line for line in commands if line.endswith(f" {folder}/program.cc")]
    assert f"{ROOT}/include" in compiled and "-std=gnu++20" in compiled
    # The outer project's own settings stay as they are.
    assert "-Wshadow" not in compiled
    linked = commands[-1]
    assert "libtessera.so" in linked and "tessera_api.a" not in linked
    # What the library needs when it runs is built with the program.
    assert any("tessera-worker" in line for line in commands)
    # Only the library and what it needs; and the outer project installs its own program alone.
    assert not any("_test.cc" in line or "/python/" in line for line in commands)
    # The program compiles; linking it would need the whole library.
    run("bash", "-c", compiled, cwd=folder / "build")
    script = (folder / "build" / "tessera" / "cmake_install.cmake")
    assert not script.exists() or "libtessera" not in script.read_text()


def test_add_subdirectory(tmp_path):
    check(configure(SUBFOLDER, tmp_path), tmp_path)


def test_fetch_content(tmp_path):
    check(configure(FETCHED, tmp_path), tmp_path)
