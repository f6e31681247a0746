"""`tessera doctor` finds what is wrong with a machine, an installation or a setting, says what to do,
and changes nothing."""

import json
import os
import pathlib
import re
import shutil

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534


@pytest.fixture
def doctor(tessera_binary, tmp_path, monkeypatch):
    """Runs the command in a folder of its own; returns its exit code and its JSON. Without faults of
    the tests' own environment, which switches measuring off."""
    monkeypatch.delenv("TESSERA_OPTIMIZE")
    monkeypatch.delenv("TESSERA_CACHE_DIR")
    working = tmp_path / "working"
    working.mkdir(mode=0o755)

    def call(*arguments, before=(), binary=tessera_binary, **options):
        done = run_program(*before, binary, "doctor", *arguments, "--json", code=None,
                           cwd=options.pop("cwd", working), **options)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = json.loads(done.stdout)
        assert found["is_fine"] == (done.returncode == 0) == (not found["findings"])
        return found

    call.working = working
    return call


def findings(found, area):
    """The findings of an area: (where, message, remedy)."""
    assert all(one["message"] and one["remedy"] for one in found["findings"])
    return [(one["where"], one["message"], one["remedy"])
            for one in found["findings"] if one["area"] == area]


def folder_of(found, tier):
    folder, = [folder for folder in found["cache_folders"] if folder["tier"] == tier]
    return folder


def test_an_installation_without_faults(doctor):
    found = doctor()
    # The machine may be busy or small; everything else is fine.
    assert not {one["area"] for one in found["findings"]} & {"worker", "environment", "caches"}
    assert found["worker"]["is_answering"] and found["worker"]["answer_us"] > 0
    assert folder_of(found, "first")["folder"] == str(doctor.working)
    assert not folder_of(found, "user")["is_there"]
    assert found["processor_state"]["usable_core_count"] == len(os.sched_getaffinity(0))


def test_it_writes_nothing(doctor, tmp_path):
    def everything():
        return sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))

    before = everything()
    doctor("--cache-dir", tmp_path / "none")
    assert everything() == before
    # Libraries may have caches of their own there.
    assert not (pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "tessera").exists()


def test_a_folder_of_caches_that_is_a_file(doctor, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TESSERA_CACHE_DIR", str(tmp_path / "file" / "caches"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    found = doctor()
    (first, first_message, first_remedy), (user, user_message, _) = findings(found, "caches")
    assert (first, user) == ("first folder", "user's folder")
    assert "is a file, not a folder" in first_message and "TESSERA_CACHE_DIR" in first_remedy
    assert "is a file, not a folder" in user_message
    assert not folder_of(found, "first")["is_writable"]


def test_a_folder_that_this_user_may_not_write_to(doctor, tmp_path, monkeypatch, tessera_binary):
    """Root may write everywhere, so the process becomes another user."""
    options = {}
    if os.geteuid() == 0:
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        probe = run_program("test", "-x", tessera_binary, code=None, **options)
        if probe.returncode != 0:
            pytest.skip("another user cannot start the program")
    closed = pathlib.Path("/") / "usr" if os.geteuid() == 0 else tmp_path / "closed"
    if os.geteuid() != 0:
        closed.mkdir(mode=0o500)
    monkeypatch.setenv("TESSERA_CACHE_DIR", str(closed))
    monkeypatch.setenv("XDG_CACHE_HOME", str(closed / "caches"))
    found = doctor(cwd="/", **options)
    messages = [message for _, message, _ in findings(found, "caches")]
    assert len(messages) == 2 and all("cannot be written" in message for message in messages)
    assert not folder_of(found, "user")["is_writable"]


def test_a_variable_that_points_nowhere(doctor, tmp_path, monkeypatch):
    nowhere = tmp_path / "no" / "where"
    monkeypatch.setenv("TESSERA_CACHE_DIR", str(nowhere))
    found = doctor()
    (where, message, remedy), = findings(found, "caches")
    assert where == "first folder" and "TESSERA_CACHE_DIR names does not exist" in message
    assert "correct TESSERA_CACHE_DIR" in remedy
    folder = folder_of(found, "first")
    assert folder["folder"] == str(nowhere) and folder["named_by"] == "TESSERA_CACHE_DIR"
    assert not folder["is_there"] and folder["is_writable"]
    # An option takes precedence, so the variable does no harm.
    assert not findings(doctor("--cache-dir", doctor.working), "caches")


def test_a_folder_in_which_others_may_write(doctor):
    doctor.working.chmod(0o777)
    (where, message, remedy), = findings(doctor(), "caches")
    assert where == "first folder" and "others than its owner may write" in message
    assert f"chmod go-w {doctor.working}" in remedy
    doctor.working.chmod(0o1777)
    assert not findings(doctor(), "caches")


def test_plans_damaged_caches_and_those_of_another_version(doctor, tessera_binary, needs_a_library):
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "y")]
    weight = np.ones((8, 3, 3, 3), np.float32)
    save_model(doctor.working / "model.onnx", nodes, {"x": [1, 3, 12, 12]}, "y", {"w": weight})
    run_program(tessera_binary, "bench", "model.onnx", "--optimize", "--threads", "1", "--seconds",
                "0.01", cwd=doctor.working)
    file, = doctor.working.glob("*.cache")
    fine = doctor()
    assert not findings(fine, "caches")
    assert folder_of(fine, "first")["plan_count"] == 1
    assert folder_of(fine, "first")["other_version_count"] == 0
    # docs/formats/cache.md: after 8 bytes that say what it is, the version.
    content = file.read_bytes()
    (doctor.working / "abcdef0.cache").write_bytes(content[:8] + b"\x63" + content[9:])
    other = doctor()
    assert not findings(other, "caches")
    assert folder_of(other, "first")["plan_count"] == 1
    assert folder_of(other, "first")["other_version_count"] == 1
    (doctor.working / "0123456.cache").write_bytes(content[:-1])
    (where, message, _), = findings(doctor(), "caches")
    assert where == "first folder" and "0123456.cache" in message


def test_a_key_that_others_may_read(doctor):
    user = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "tessera"
    user.mkdir(parents=True, mode=0o700)
    key = user / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o644)
    (where, message, remedy), = findings(doctor(), "caches")
    assert where == "user's folder" and "nobody else may read" in message and "chmod 600" in remedy
    key.chmod(0o600)
    assert not findings(doctor(), "caches")


def test_one_core_of_several(doctor):
    if shutil.which("taskset") is None or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs taskset and two cores")
    core = str(min(os.sched_getaffinity(0)))
    found = doctor(before=("taskset", "--cpu-list", core))
    if found["processor_state"]["core_count"] is None:
        pytest.skip("the system does not tell how many cores there are")
    assert found["processor_state"]["usable_core_count"] == 1
    message, = [message for where, message, _ in findings(found, "processor")
                if where == "usable cores"]
    assert "may run on 1 core of" in message
    assert "usable cores" not in [where for where, _, _ in findings(doctor(), "processor")] or (
        len(os.sched_getaffinity(0)) < found["processor_state"]["core_count"])


def test_limits_of_the_shell(doctor):
    found = doctor(before=("bash", "-c", 'ulimit -n 64; ulimit -v 3000000; exec "$@"', "-"))
    assert found["memory_state"]["open_file_count"] == 64
    assert found["memory_state"]["address_space_bytes"] == 3000000 * 1024
    places = [where for where, _, _ in findings(found, "memory")]
    assert "open files" in places and "address space" in places


def test_plug_ins_that_are_broken_or_absent(doctor, tmp_path, monkeypatch):
    broken, empty = tmp_path / "broken", tmp_path / "empty"
    broken.mkdir()
    empty.mkdir()
    (broken / "backend_broken.so").write_bytes(b"no library")
    monkeypatch.setenv("TESSERA_BACKEND_PATH", f"{broken}:{empty}:{tmp_path / 'absent'}")
    found = findings(doctor(), "backends")
    told = {where: message for where, message, _ in found if where != "TESSERA_BACKEND_PATH"}
    assert any("broken" in where for where in told), told
    paths = [message for where, message, _ in found if where == "TESSERA_BACKEND_PATH"]
    assert paths == [f"'{empty}' has no plug-in", f"'{tmp_path / 'absent'}' does not exist"]


@pytest.mark.parametrize("mischief, reason", (
    ("crashes_opening", "ended by signal"),
    ("exits_opening", "ended with exit code 4"),
))
def test_a_plug_in_that_ends_the_process(doctor, bin_dir, monkeypatch, mischief, reason):
    monkeypatch.setenv("TESSERA_TEST_MISCHIEF", mischief)
    plugin = bin_dir.parent / "tests" / "backends" / "hostile.so"
    found = doctor("--backend-path", plugin)
    (where, message, remedy), = findings(found, "backends")
    assert where == "plug-ins" and f"opened '{plugin}' {reason}" in message
    assert f"tessera verify --backend {plugin}" in remedy
    assert found["backends"] == [] and found["worker"]["is_answering"]


def test_a_plug_in_that_ends_the_process_does_not_hide_the_version(tessera_binary, bin_dir,
                                                                   monkeypatch):
    monkeypatch.setenv("TESSERA_TEST_MISCHIEF", "crashes_opening")
    monkeypatch.setenv("TESSERA_BACKEND_PATH", str(bin_dir.parent / "tests/backends/hostile.so"))
    for options in ((), ("--json",)):
        done = run_program(tessera_binary, "--version", *options)
        assert done.stderr == ""
        if options:
            found = json.loads(done.stdout)
            assert found["version"] and found["backends"] is None
        else:
            assert done.stdout.startswith("tessera 0.1.0\nthe backends are not listed: ")
            assert "ended by signal" in " ".join(done.stdout.split())


def test_a_plug_in_path_that_does_not_exist_is_bad_input(tessera_binary, tmp_path):
    done = run_program(tessera_binary, "doctor", "--backend-path", tmp_path / "none", code=2)
    assert "none" in done.stderr


def test_variables_that_override_something(doctor, monkeypatch):
    monkeypatch.setenv("TESSERA_OPTIMIZE", "0")
    monkeypatch.setenv("TESSERA_BACKENDS", "reference,nativ")
    monkeypatch.setenv("TESSERA_CACHEDIR", "/tmp")
    found = doctor()
    told = {where: message for where, message, _ in findings(found, "environment")}
    assert "measures nothing" in told["TESSERA_OPTIMIZE"]
    assert "'nativ' is no backend; did you mean 'native'?" in told["TESSERA_BACKENDS"]
    assert "did you mean 'TESSERA_CACHE_DIR'?" in told["TESSERA_CACHEDIR"]
    assert "in use" in [where for where, _, _ in findings(found, "backends")]


def test_every_documented_variable_is_known(doctor, monkeypatch):
    page = (ROOT / "docs" / "command_line.md").read_text().partition("## Environment")[2]
    names = re.findall(r"^\| `(TESSERA_\w+)` \|", page, re.M)
    assert len(names) > 3
    for name in names:
        monkeypatch.setenv(name, "1")
    known = {one["variable"] for one in doctor()["environment"] if one["is_read"]}
    assert known - {"XDG_CACHE_HOME"} == set(names)


@pytest.mark.parametrize("script, reason", (
    (None, "expected it in"),
    ("#!/bin/sh\nexit 3\n", "ended with exit code 3 before it answered"),
    ("no program\n", ""),
))
def test_a_worker_that_does_not_answer(doctor, tessera_binary, tmp_path, script, reason):
    folder = tmp_path / "installed" / "bin"
    folder.mkdir(parents=True, mode=0o755)
    shutil.copy(tessera_binary, folder / "tessera")
    if script is not None:
        (folder / "tessera-worker").write_text(script)
        (folder / "tessera-worker").chmod(0o755)
    found = doctor(binary=folder / "tessera")
    assert not found["worker"]["is_answering"] and reason in found["worker"]["reason"]
    (where, message, remedy), = findings(found, "worker")
    assert where == "tessera-worker" and reason in message and "install Tessera again" in remedy


def test_a_file_in_place_of_a_folder_is_bad_input(tessera_binary, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_program(tessera_binary, "doctor", "--cache-dir", tmp_path / "file", code=2)
    assert "expected a folder" in done.stderr
