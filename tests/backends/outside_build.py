"""Builds examples/01_backend as a user would: from a copy of its folder outside of the tree."""

import pathlib
import shutil

import pytest
from programs import run_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "01_backend"
COMPILERS = {
    "g++": ("g++", ""),
    "clang++ with libc++": ("clang++-19", "-stdlib=libc++"),
}


def has_libcxx(compiler, folder):
    """Whether `compiler` finds libc++, whose headers are a separate package."""
    source = folder / "libcxx.cc"
    source.write_text("#include <string>\n")
    return run_program(compiler, "-stdlib=libc++", "-fsyntax-only", source,
                       code=None).returncode == 0


def build_example(name, folder):
    """The plug-in, built in `folder` by the compiler `name` of COMPILERS; skips the test if that is
    missing."""
    compiler, flags = COMPILERS[name]
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed: tools/setup check")
    if flags and not has_libcxx(compiler, folder):
        pytest.skip("libc++ is not installed: tools/setup check")
    shutil.copytree(EXAMPLE, folder / "source")
    shutil.copytree(ROOT / "include", folder / "include")
    run_program("cmake", "-S", folder / "source", "-B", folder / "build",
                f"-DTESSERA_INCLUDE_DIR={folder / 'include'}", f"-DCMAKE_CXX_COMPILER={compiler}",
                f"-DCMAKE_CXX_FLAGS={flags} -Wall -Wextra -Werror", "-DCMAKE_BUILD_TYPE=Release")
    run_program("cmake", "--build", folder / "build")
    built = folder / "build" / "example_backend.so"
    needed = run_program("ldd", built).stdout
    assert ("libc++" in needed) == bool(flags)
    return built
