"""Shared by all Python tests: paths of the programs, and the module of the same build."""

import importlib
import math
import os
import pathlib
import signal
import sys
import time

import pytest
from programs import json_of

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--bin-dir", default="build/release/bin",
                     help="folder of the built programs, relative to the project")
    parser.addoption("--long", action="store_true",
                     help="the long versions of tests that have one (make test-long)")
    parser.addoption("--end", type=float, default=math.inf, metavar="SECONDS",
                     help="a time in seconds since 1970, after which no test begins: it is skipped")


@pytest.fixture(scope="session", autouse=True)
def no_caches_of_the_user(tmp_path_factory):
    """Caches of tests are in a folder of their own, neither the user's nor the tree's."""
    folder = tmp_path_factory.mktemp("caches")
    for name in [name for name in os.environ if name.startswith("TESSERA_")]:
        del os.environ[name]
    os.environ["XDG_CACHE_HOME"] = str(folder / "user")
    os.environ["TESSERA_CACHE_DIR"] = str(folder / "work")
    # Few tests are about measuring; the others should not wait for it.
    os.environ["TESSERA_OPTIMIZE"] = "0"


@pytest.fixture(autouse=True)
def fresh_caches(tmp_path_factory, monkeypatch):
    """Each test starts without caches."""
    folder = tmp_path_factory.mktemp("caches")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "user"))
    monkeypatch.setenv("TESSERA_CACHE_DIR", str(folder / "work"))


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "alone: measures, interrupts or watches the clock: no other test runs beside it")
    stop_being_deaf()


def pytest_runtest_setup(item):
    if time.time() > item.config.getoption("--end"):
        pytest.skip("no time left")


def stop_being_deaf():
    """If a shell starts us in the background, or nohup does, we and our child processes would
    ignore Ctrl-C or SIGHUP."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler),
                            (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


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


@pytest.fixture(scope="session")
def why_unusable(tessera_binary):
    """For every backend that `tessera backends` lists: why it cannot be used, or "" if it can."""
    return {entry["backend"]: "" if entry["is_usable"] else entry["reason"] or "no reason given"
            for entry in json_of(tessera_binary, "backends", "--json")["backends"]}


@pytest.fixture(scope="session")
def needs_a_library(why_unusable):
    """For tests of the choice: there is none if only the reference is usable."""
    if not any(name != "reference" and not reason for name, reason in why_unusable.items()):
        pytest.skip("only the reference is usable: " + "; ".join(
            f"{name} is {reason}" for name, reason in why_unusable.items() if reason))


@pytest.fixture(scope="session")
def need_backend(why_unusable):
    """A function that skips the test if a backend is not usable."""

    def need(name):
        reason = why_unusable.get(name, "unknown")
        if reason:
            pytest.skip(f"{name} is not usable: {reason}")

    return need


@pytest.fixture(scope="session")
def needs_native(need_backend):
    """For tests of promises of `native`, or of plans that use it."""
    need_backend("native")


@pytest.fixture(scope="session")
def needs_onednn(need_backend):
    need_backend("onednn")


@pytest.fixture(scope="session")
def needs_opencl(need_backend):
    need_backend("opencl")


@pytest.fixture(scope="session")
def needs_jit(need_backend):
    need_backend("jit")


@pytest.fixture(scope="session")
def built_plugin(bin_dir):
    """A function that returns the file of a plug-in of tests/backends by its name."""

    def find(name):
        file = bin_dir.parent / "tests" / "backends" / f"{name}.so"
        assert file.exists(), f"{file} is not built: tools/build release {name}"
        return file

    return find


@pytest.fixture(scope="session")
def choose_backends(need_backend):
    """A function that returns the arguments of `tessera` for a list of backends, "" for the default
    ones; it skips the test if one of the list is not usable."""

    def choose(backends):
        for name in filter(None, backends.split(",")):
            need_backend(name)
        return ["--backends", backends] if backends else []

    return choose


@pytest.fixture(scope="session")
def tessera(bin_dir):
    """The module of this build; tests that need it are skipped if it was not built."""
    folder = bin_dir.parent / "python"
    if not any(folder.glob("tessera/_core*")):
        pytest.skip(
            f"{folder.parent.name} has no Python module: a sanitizer's build never has one; "
            "another's configure.log says why"
        )
    sys.path.insert(0, str(folder))
    module = importlib.import_module("tessera")
    assert module.__file__.startswith(str(folder)), f"another tessera came first: {module.__file__}"
    return module
