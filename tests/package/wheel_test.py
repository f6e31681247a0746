"""The Python wheel in an environment of its own. With --long, tools/wheel builds it, which compiles
everything the first time, and pip installs it; otherwise its files come from this build."""

import importlib.metadata
import json
import pathlib
import re
import shutil
import sys

import pytest

from installed import ROOT, needed, run
from load_tool import load_tool
from programs import run_program

EXAMPLE = ROOT / "examples" / "05_onnxruntime" / "classify.py"
BUILD_MINUTES = 90
# Libraries that are opened when a plug-in needs them, and not before.
HEAVY = ("libLLVM", "libopenvino", "libdnnl", "libOpenCL", "backend_")


class Environment:
    """A Python environment in which tessera is installed. It sees the Python packages of the tests
    (NumPy, onnx), but no library that they brought."""

    def __init__(self, folder):
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.command = folder / "bin" / "tessera"
        self.site_packages, = folder.glob("lib/python3*/site-packages")
        packages = pathlib.Path(importlib.metadata.distribution("numpy").locate_file(""))
        (self.site_packages / "packages_of_the_tests.pth").write_text(f"{packages}\n")

    def pip(self, *arguments):
        run(sys.executable, "-m", "pip", "--python", self.python, *arguments)

    def files(self):
        return {path for path in self.folder.rglob("*") if "__pycache__" not in path.parts}

    def backends(self):
        listing = json.loads(run(self.command, "backends", "--json").stdout)
        return {entry["backend"]: entry for entry in listing["backends"]}


def build_wheel(folder, *options):
    pytest.importorskip("auditwheel", reason="auditwheel is not installed: tools/setup check")
    run_program(ROOT / "tools" / "wheel", "--output", folder, *options, timeout=60 * BUILD_MINUTES)
    wheel, = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(is_long, tmp_path_factory):
    if not is_long:
        pytest.skip("needs the whole wheel: --long")
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environment(request, bin_dir, is_long, tmp_path_factory):
    build = bin_dir.parent
    made = Environment(tmp_path_factory.mktemp("environment") / "here")
    if is_long:
        made.pip("install", "--no-index", "--no-deps", request.getfixturevalue("wheel"))
        return made
    if not any((build / "python").glob("tessera/_core*.so")):
        pytest.skip("this build has no Python module")
    run("cmake", "--install", build, "--component", "wheel", "--prefix", made.site_packages)
    # Installs the files as pip does.
    text = made.command.read_text()
    assert text.startswith("#!python\n")
    made.command.write_text(text.replace("#!python", f"#!{made.python}", 1))
    return made


def test_an_example_runs_in_another_folder(environment, tmp_path, needs_a_library):
    example = shutil.copy2(EXAMPLE, tmp_path)
    done = run(environment.python, example, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "points with 5 coordinates are an InvalidArgument"
    assert "no acceleration library" not in done.stderr


def test_it_is_the_installed_module_that_runs(environment, tmp_path):
    done = run(environment.python, "-c", "import tessera; print(tessera._core.__file__)",
               cwd=tmp_path)
    assert pathlib.Path(done.stdout.strip()).parent == environment.site_packages / "tessera"


def test_import_loads_no_library_of_a_plug_in(environment, tmp_path):
    mapped = run(environment.python, "-c",
                 "import tessera; print(open('/proc/self/maps').read())", cwd=tmp_path).stdout
    assert "_core" in mapped
    assert [name for name in HEAVY if name in mapped] == []


@pytest.mark.alone
def test_import_takes_less_than_60_ms(environment, tmp_path):
    # Time of the processor, because another program may delay this one.
    program = ("import time; start = time.process_time(); import tessera; "
               "print(1000 * (time.process_time() - start))")
    times = [float(run(environment.python, "-c", program, cwd=tmp_path).stdout) for _ in range(9)]
    assert min(times) < 60, times


def test_the_command_finds_the_plug_ins_of_its_package(environment, why_unusable):
    entries = environment.backends()
    folder = environment.site_packages / "tessera" / "backends"
    for name, entry in entries.items():
        if entry["file"]:
            assert pathlib.Path(entry["file"]).parent == folder, name
    # Backends that need no library of a Python package are as usable as in the build.
    for name in ("native", "jit", "opencl", "reference"):
        assert entries[name]["is_usable"] == (not why_unusable[name]), entries[name]


def test_module_and_command_find_the_same(environment, tmp_path):
    program = ("import tessera, json; print(json.dumps({backend.name: backend.is_usable "
               "for backend in tessera.backends()}))")
    found = json.loads(run(environment.python, "-c", program, cwd=tmp_path).stdout)
    assert found == {name: entry["is_usable"] for name, entry in environment.backends().items()}


def test_the_command_is_the_program(environment, model, tmp_path, needs_a_library):
    done = run(environment.command, "run", model, "--shape", "x=4x2", "--random", 1, cwd=tmp_path)
    assert "relu" in done.stdout and done.stderr == ""
    done = run(environment.command, "runs", returncode=2)
    assert "run" in done.stderr
    done = run(environment.command, "run", tmp_path / "not there.onnx", returncode=2)
    assert "not there.onnx" in done.stderr


def test_it_measures_in_the_worker_of_the_package(environment, measured_model, tmp_path,
                                                  needs_a_library):
    def warnings(*command):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return run(*command, measured_model, cwd=tmp_path, XDG_CACHE_HOME=folder,
                   TESSERA_CACHE_DIR=folder, TESSERA_OPTIMIZE=1).stderr

    module = (environment.python, "-c", "import sys, tessera; tessera.load(sys.argv[1]).bind()")
    command = (environment.command, "tune")
    worker = environment.site_packages / "tessera" / "tessera-worker"
    assert "tessera-worker" not in warnings(*module) + warnings(*command)
    hidden = worker.rename(worker.with_name("hidden"))
    try:
        assert "tessera-worker" in warnings(*module)
        assert "tessera-worker" in warnings(*command)
    finally:
        hidden.rename(worker)


def test_the_command_says_that_its_program_is_missing(environment, tmp_path):
    (tmp_path / "tessera").mkdir()
    (tmp_path / "tessera" / "__init__.py").write_text("")
    done = run(environment.command, "backends", returncode=1, PYTHONPATH=tmp_path)
    assert f"program '{tmp_path / 'tessera' / 'tessera'}': expected" in done.stderr
    assert "PYTHONPATH" in done.stderr


def test_it_has_every_python_file_and_the_stub(environment):
    def python_files(folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*.py*")
                if path.suffix != ".pyc"} | {"py.typed"}

    wanted = python_files(ROOT / "python" / "tessera") | {"_core.pyi"}
    package = environment.site_packages / "tessera"
    assert {str(path.relative_to(package)) for path in package.rglob("*")
            if path.suffix in (".py", ".pyi", ".typed")} == wanted


def test_an_installed_library_has_no_file_of_the_wheel(prefix):
    assert list(prefix.rglob("*.py")) == [] and list(prefix.rglob("_core*")) == []


METADATA = """
import pathlib, sys
from scikit_build_core.build import get_requires_for_build_wheel, prepare_metadata_for_build_wheel
print(*get_requires_for_build_wheel({}))
folder = pathlib.Path(sys.argv[1], prepare_metadata_for_build_wheel(sys.argv[1]))
print((folder / "METADATA").read_text())
"""


def test_versions_are_those_of_the_build(environment, tmp_path):
    pytest.importorskip("scikit_build_core")
    build, text = run(sys.executable, "-c", METADATA, tmp_path, cwd=ROOT).stdout.split("\n", 1)
    version = run(environment.python, "-c", "import tessera; print(tessera.__version__)").stdout
    assert re.search(r"^Version: (.*)$", text, re.M).group(1) == version.strip()
    pins = (ROOT / "tools" / "requirements.txt").read_text().splitlines()
    extras = re.findall(r"^Requires-Dist: (\S+); extra == \W(\w+)\W$", text, re.M)
    assert {requirement for requirement, _ in extras} <= set(pins)
    by_extra = {extra: {requirement.partition("==")[0] for requirement, other in extras
                        if other == extra} for _, extra in extras}
    # Without Intel's runtime libraries, oneDNN's package cannot be loaded.
    assert by_extra == {"onednn": {"onednn-cpu-tbb", "intel-cmplr-lib-rt"},
                        "openvino": {"openvino"}}
    # Headers and libraries are those with which `tools/build` compiles.
    assert {name for name in build.split() if "==" in name} <= set(pins)
    assert {"nanobind", "onnx", "openvino"} <= {name.partition("==")[0] for name in build.split()}


def test_each_library_of_pypi_is_an_extra():
    # Wheels advise to install the extra (cmake/TesseraCatalog.cmake).
    catalog = json.loads((ROOT / "backends" / "catalog.json").read_text())["backends"]
    of_pypi = {entry["name"] for entry in catalog if entry["install"].startswith("pip ")}
    assert of_pypi == set(load_tool("wheel_metadata.py").EXTRAS)


# From here on: the whole wheel, with --long.


def test_pip_uninstalls_all_of_it(wheel, tmp_path):
    made = Environment(tmp_path / "here")
    before = made.files()
    made.pip("install", "--no-index", "--no-deps", wheel)
    run(made.python, "-c", "import tessera.onnxruntime")
    new = made.files() - before
    folders = [made.site_packages / "tessera", made.site_packages / "tessera.libs", made.command,
               *made.site_packages.glob("tessera-*.dist-info")]
    assert len(folders) == 4
    assert all(any(file.is_relative_to(folder) for folder in folders) for file in new)
    made.pip("uninstall", "--yes", "tessera")
    assert made.files() == before


MAPPED = """
import sys, tessera
tessera.load(sys.argv[1]).bind({"x": (4, 2)})
print(*{line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}, sep="\\n")
"""


def test_it_needs_no_library_of_debian(wheel, environment, model, tmp_path):
    # How old the C library may be, as auditwheel found out.
    assert re.search(r"-manylinux_2_\d+_x86_64\.whl$", wheel.name)
    mapped = run(environment.python, "-c", MAPPED, model, cwd=tmp_path).stdout.split()
    assert len(mapped) > 5
    for name in ("libtbb", "libprotobuf", "libre2", "libsodium", "libxxhash"):
        [file] = [pathlib.Path(file) for file in mapped if f"/{name}" in file]
        assert file.is_relative_to(environment.site_packages), file
        assert [license for license in environment.site_packages.glob("tessera/licenses/*.txt")
                if license.name.startswith(name)], name
    # oneDNN and OpenVINO find the oneTBB of the process by this name.
    assert (environment.site_packages / "tessera" / "libtbb.so.12").exists()


def newer_pythons():
    """Interpreters from 3.12 on that this machine has, the oldest first."""
    found = [shutil.which(f"python3.{minor}") for minor in range(12, 20)]
    # Some names only say that another tool would have to be told to use that version.
    return [python for python in filter(None, found)
            if run_program(python, "-c", "", code=None).returncode == 0]


def test_one_wheel_serves_all_newer_versions_of_python(is_long, tmp_path):
    if not is_long:
        pytest.skip("needs another wheel: --long")
    pythons = newer_pythons()
    if not pythons:
        pytest.skip("no Python 3.12 or newer is installed")
    built = build_wheel(tmp_path, "--python", pythons[0])
    assert "-cp312-abi3-manylinux" in built.name
    for number, python in enumerate(pythons):
        folder = tmp_path / str(number)
        run(python, "-m", "venv", folder)
        run(folder / "bin" / "pip", "install", built, "onnx")
        done = run(folder / "bin" / "python", shutil.copy2(EXAMPLE, tmp_path), cwd=tmp_path)
        assert done.stdout.splitlines()[-1].endswith("InvalidArgument"), done.stdout
        assert run(folder / "bin" / "tessera", "--version").stdout.startswith("tessera ")


def test_no_file_knows_the_folders_of_the_build(wheel, environment):
    needed("readelf")
    binaries = [path for path in (environment.site_packages / "tessera").rglob("*")
                if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(binaries) > 4
    for binary in binaries:
        dynamic = run("readelf", "-d", binary).stdout
        for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
            for folder in filter(None, path.split(":")):
                assert folder.startswith(("$ORIGIN", "/usr/lib/")), (binary.name, folder)
        # OpenVINO's headers put the names of their files into messages.
        if binary.name != "openvino_compiler.so":
            assert str(ROOT / ".venv").encode() not in binary.read_bytes(), binary.name


@pytest.mark.parametrize("name, pattern", [("onednn", "lib/lib*.so*"),
                                           ("openvino", "lib/python3*/site-packages/openvino")])
def test_a_package_is_found_where_pip_puts_it(name, pattern, wheel, tmp_path, model, need_backend):
    need_backend(name)
    made = Environment(tmp_path / "here")
    made.pip("install", "--no-index", "--no-deps", wheel)
    entry = made.backends()[name]
    assert not entry["is_usable"] and "No such file" in entry["reason"], entry
    own = pathlib.Path(sys.prefix)
    found = list(own.glob(pattern))
    assert found
    for path in found:
        (made.folder / path.relative_to(own)).symlink_to(path)
    assert made.backends()[name]["is_usable"]
    done = run(made.command, "explain", model, "--shape", "x=4x2", "--json", "--backends", name)
    assert "cannot be loaded" not in done.stdout and "cannot open" not in done.stdout
