"""The Debian packages that cpack makes of this build: what is in them, what they depend on, and that
they run where they are unpacked. tools/fresh_check installs them on a minimal Debian."""

import gzip
import re

import pytest

from installed import needed, run
from installed_test import EXAMPLE, build_by_cmake, check_programs, read_backends
from programs import run_program

# Libraries of plug-ins that no package of Debian has.
OF_NO_PACKAGE = ("libdnnl.so", "libopenvino.so")


@pytest.fixture(scope="module")
def packages(build_dir, tmp_path_factory):
    """The file of each package, by its name."""
    for program in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "file"):
        needed(program)
    folder = tmp_path_factory.mktemp("packages")
    run("cpack", "-G", "DEB", "--config", build_dir / "CPackConfig.cmake", "-B", folder)
    return {file.name.partition("_")[0]: file for file in folder.glob("*.deb")}


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    """A folder in which both packages were unpacked, as dpkg does in /."""
    root = tmp_path_factory.mktemp("root")
    for file in packages.values():
        run("dpkg-deb", "--extract", file, root)
    return root


def field(file, name):
    return run("dpkg-deb", "--field", file, name).stdout.strip()


def names_in(field_text):
    return set(re.findall(r"(?:^|[,|] )([a-z0-9.+-]+)", field_text))


def binaries_in(root):
    return [path for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and path.suffix != ".a"
            and path.read_bytes()[:4] == b"\x7fELF"]


def dynamic_entries(binary, tag):
    lines = run("readelf", "-d", binary).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", lines)


def test_there_is_one_to_run_and_one_to_build_with(packages):
    assert set(packages) == {"tessera", "libtessera-dev"}
    version = field(packages["tessera"], "Version")
    for file in packages.values():
        assert field(file, "Version") == version
        assert field(file, "Architecture") == "amd64"
    assert field(packages["libtessera-dev"], "Depends") == f"tessera (= {version})"


def test_files_are_where_debian_searches(packages):
    def files(name):
        lines = run("dpkg-deb", "--contents", packages[name]).stdout.splitlines()
        assert all(line.split()[1] == "root/root" for line in lines)
        return {line.split()[5].removeprefix("./usr/") for line in lines if line[0] != "d"}

    to_run, to_build = files("tessera"), files("libtessera-dev")
    assert to_run & to_build == set()
    assert {"bin/tessera", "bin/tessera-worker", "lib/libtessera.so.0.1",
            "lib/tessera/backend_native.so", "share/man/man1/tessera.1.gz",
            "share/bash-completion/completions/tessera",
            "share/zsh/vendor-completions/_tessera", "share/doc/tessera/copyright"} <= to_run
    assert {"include/tessera/tessera.h", "include/tessera/tessera_c.h", "lib/libtessera.so",
            "lib/libtessera.a", "lib/pkgconfig/tessera.pc",
            "lib/cmake/tessera/tessera-config.cmake",
            "share/doc/libtessera-dev/copyright"} <= to_build
    assert not any(name.startswith(("include", "lib/cmake")) for name in to_run)


def test_every_linked_library_is_a_dependency(packages, unpacked):
    needed("readelf")
    depends = names_in(field(packages["tessera"], "Depends"))
    libraries = {library for binary in binaries_in(unpacked)
                 for library in dynamic_entries(binary, "NEEDED")}
    assert len(libraries) > 5
    for library in libraries:
        if library.startswith((*OF_NO_PACKAGE, "ld-linux")):
            continue
        found = run("dpkg", "--search", f"*/{library}").stdout
        owners = {line.partition(":")[0] for line in found.splitlines()}
        assert owners & depends, f"{library} of {owners} is in none of {depends}"


def test_libraries_that_are_opened_when_they_are_needed_are_no_dependencies(packages):
    file = packages["tessera"]
    opened = names_in(field(file, "Recommends")) | names_in(field(file, "Suggests"))
    assert {"libllvm19", "libclblast1", "ocl-icd-libopencl1"} <= opened
    assert not any(name.startswith(("libllvm", "libclblast", "ocl-icd", "libdnnl", "pocl"))
                   for name in names_in(field(file, "Depends")))


def test_only_folders_of_the_package_are_searched_for_libraries(unpacked):
    needed("readelf")
    found = 0
    for binary in binaries_in(unpacked):
        for path in dynamic_entries(binary, "(?:RPATH|RUNPATH)"):
            found += 1
            assert all(folder.startswith("$ORIGIN") for folder in path.split(":")), (binary, path)
    assert found > 0


def test_it_runs_where_it_was_unpacked(unpacked, model, needs_native):
    program = unpacked / "usr" / "bin" / "tessera"
    entry = read_backends(program)["native"]
    assert entry["is_usable"]
    assert entry["file"] == str(unpacked / "usr" / "lib" / "tessera" / "backend_native.so")
    done = run(program, "run", model, "--shape", "x=4x2", "--random", 1)
    assert "relu" in done.stdout and done.stderr == ""


def test_a_library_that_is_missing_may_be_put_beside_the_plug_in(unpacked, needs_onednn):
    entry = read_backends(unpacked / "usr" / "bin" / "tessera")["onednn"]
    assert not entry["is_usable"]
    assert str(unpacked / "usr" / "lib" / "tessera" / "onednn") in entry["remedy"]


def test_the_example_builds_with_it(unpacked, model, tmp_path, needs_native):
    check_programs(build_by_cmake(unpacked / "usr", EXAMPLE, tmp_path / "build"), model)


def test_manual_page_and_completion_can_be_read(unpacked):
    share = unpacked / "usr" / "share"
    page = gzip.decompress((share / "man" / "man1" / "tessera.1.gz").read_bytes())
    assert b"\n.TH TESSERA 1 " in page
    script = f". {share / 'bash-completion' / 'completions' / 'tessera'} && complete -p tessera"
    assert "_tessera" in run("bash", "-c", script).stdout


def test_lintian_finds_no_error(packages):
    run_program(needed("lintian"), "--fail-on", "error", *packages.values())
