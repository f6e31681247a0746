"""What all tests in Python share: where the programs are."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--bin-dir", default="build/release/bin",
                     help="folder of the built programs, relative to the project")
    parser.addoption("--long", action="store_true",
                     help="the long versions of tests that have one (make test-long)")


@pytest.fixture(scope="session")
def bin_dir(request):
    return ROOT / request.config.getoption("--bin-dir")


@pytest.fixture(scope="session")
def is_long(request):
    return request.config.getoption("--long")


@pytest.fixture(scope="session")
def tessera_binary(bin_dir):
    binary = bin_dir / "tessera"
    assert binary.exists(), f"{binary} is not built: tools/build release"
    return binary
