"""Configures a build whose optional backends are switched off. tools/test_without builds and tests
such builds, which takes long."""

import pathlib
import shutil

import pytest
from catalog import PLUGINS
from programs import run_program

ROOT = pathlib.Path(__file__).resolve().parents[2]


def configure(folder, *options, code=0):
    return run_program("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DTESSERA_TESTS=OFF",
                       "-DTESSERA_PYTHON=OFF", *options, code=code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("cmake or ninja is not installed: tools/setup check")
    folder = tmp_path_factory.mktemp("switched_off")
    libraries = folder / "lib" / "tessera"
    libraries.mkdir(parents=True)
    for name in PLUGINS:
        (libraries / f"backend_{name}.so").write_text("of an earlier configuration")
    configure(folder, *(f"-DTESSERA_{name.upper()}=OFF" for name in PLUGINS))
    return folder


@pytest.mark.parametrize("name", PLUGINS)
def test_what_is_switched_off_is_not_built_and_says_why(folder, name):
    assert not (folder / "lib" / "tessera" / f"backend_{name}.so").exists()
    assert f"backend_{name}.so" not in (folder / "build.ninja").read_text()
    # The table that the program is linked with has the text that `tessera backends` prints.
    [entry] = [line for line in (folder / "src" / "backend" / "catalog.cc").read_text().splitlines()
               if f'CatalogEntry{{"{name}"' in line]
    assert f"switched off when Tessera was configured (TESSERA_{name.upper()}=OFF)" in entry


def test_a_backend_that_is_asked_for_and_cannot_be_built_is_an_error(folder):
    # oneDNN needs oneTBB, so this must fail even if oneTBB is installed.
    done = configure(folder, "-DTESSERA_THREADS=std", "-DTESSERA_ONEDNN=ON", code=None)
    assert done.returncode != 0
    assert "TESSERA_ONEDNN=ON, but oneDNN needs oneTBB" in " ".join(done.stderr.split())
