"""Plug-ins and programs that Tessera finds by searching are run only if they belong to a user whose
code runs anyway. Each case is a copy of the program with its own folder of plug-ins."""

import os
import shutil

import pytest
from programs import json_of, run_program

STRANGER = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.fixture
def place(tessera_binary, needs_native, tmp_path):
    """A copy of the program in bin/, with the plug-in 'native' in lib/tessera."""
    folder = tmp_path / "lib" / "tessera"
    folder.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.copy2(tessera_binary, tmp_path / "bin" / "tessera")
    shutil.copy2(tessera_binary.parent.parent / "lib" / "tessera" / "backend_native.so", folder)
    for path in (tmp_path, *tmp_path.rglob("*")):
        path.chmod(0o755)
    return tmp_path


def native(place, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "TESSERA_BACKENDS"}
    listing = json_of(place / "bin" / "tessera", "backends", "--json", cwd=place,
                      env={**environment, **variables})
    entry, = [entry for entry in listing["backends"] if entry["backend"] == "native"]
    return entry


def plugin(place):
    return place / "lib" / "tessera" / "backend_native.so"


def test_ones_own_plugin_is_usable(place):
    assert native(place)["is_usable"]


def test_a_link_to_ones_own_plugin_is_usable(place):
    target = place / "build" / "backend_native.so"
    target.parent.mkdir()
    shutil.move(plugin(place), target)
    plugin(place).symlink_to(target)
    assert native(place)["is_usable"]


@pytest.mark.parametrize("writable", ["lib/tessera/backend_native.so", "lib/tessera", "lib"])
def test_what_everybody_may_write_to_is_refused(place, writable):
    (place / writable).chmod(0o757)
    entry = native(place)
    assert entry["status"] == "refused"
    assert "others than its owner may write to" in entry["reason"]
    assert str(place / writable) in entry["reason"]
    assert "TESSERA_BACKEND_PATH" in entry["remedy"]


@needs_root
@pytest.mark.parametrize("owned", ["lib/tessera/backend_native.so", "lib/tessera", "lib"])
def test_what_belongs_to_another_user_is_refused(place, owned):
    os.chown(place / owned, STRANGER, STRANGER)
    entry = native(place)
    assert entry["status"] == "refused"
    assert f"'{place / owned}' belongs to another user (number {STRANGER})" in entry["reason"]


@needs_root
def test_a_link_of_another_user_is_refused(place):
    """Even if the link now leads to a file of ours: its owner may change its target later."""
    target = place / "backend_native.so"
    shutil.move(plugin(place), target)
    plugin(place).symlink_to(target)
    os.chown(plugin(place).parent, STRANGER, STRANGER)
    assert native(place)["status"] == "refused"


@needs_root
def test_what_belongs_to_the_owner_of_the_program_is_usable(place):
    """For example, the root user of a container runs a user's checkout."""
    for path in (place / "bin" / "tessera", place / "lib", plugin(place).parent, plugin(place)):
        os.chown(path, STRANGER, STRANGER)
    assert native(place)["is_usable"]


@needs_root
def test_what_the_user_names_is_taken(place):
    os.chown(plugin(place), STRANGER, STRANGER)
    assert native(place, TESSERA_BACKEND_PATH=str(plugin(place)))["is_usable"]
    assert native(place, TESSERA_BACKEND_PATH=str(plugin(place).parent))["is_usable"]


@needs_root
def test_a_folder_that_nobody_else_may_read_does_no_harm(place):
    folder = plugin(place).parent
    os.chown(folder, STRANGER, STRANGER)
    folder.chmod(0o700)
    assert native(place)["status"] == "refused"


@needs_root
def test_the_worker_of_another_user_is_not_started(place, bin_dir):
    worker = place / "bin" / "tessera-worker"
    shutil.copy2(bin_dir / "tessera-worker", worker)
    os.chown(worker, STRANGER, STRANGER)
    done = run_program(place / "bin" / "tessera", "verify", "--backend", plugin(place), "--cases",
                       "1", code=None)
    text = " ".join(done.stderr.split())
    assert f"is not started: '{worker}' belongs to another user (number {STRANGER})" in text
