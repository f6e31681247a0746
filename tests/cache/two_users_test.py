"""Two users and root share a folder in which everybody may write, like /tmp. Nothing that another
user put there is used, written through or waited for. Caches are used only if they belong to us or
to root, and only if they are regular files with one link."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
from programs import json_of, run_program
from settled import wait_until_settled

ANNA, BERT, ROOT = 12001, 12002, 0
NAMES = {ANNA: "anna", BERT: "bert", ROOT: "root"}
MOST_SECONDS = 30  # a start takes 1 to 2 seconds; waiting for another user would never end

# usage: MODULES MODEL CACHE_DIR FOLDER; reports mapped files under FOLDER.
START = """
import hashlib, json, struct, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import tessera
told = []
model = tessera.load(sys.argv[2], log=told.append)
executor = model.bind({"x": (1, 16, 24, 24)}, threads=1, optimize=True, swap=False,
                      cache_dir=sys.argv[3])
x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype(np.float32)
y, = executor.run({"x": x})
report = executor.cache_report()
entry = hashlib.blake2b(digest_size=32)
for name, value in [*report.ingredients.items(), *report.entry_ingredients.items()]:
    for text in (name.encode(), value.encode()):
        entry.update(struct.pack("<I", len(text)) + text)
mapped = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if sys.argv[4] in line}
print(json.dumps({
    "is_hit": report.is_hit, "reason": report.reason, "file": report.file, "saved": report.saved,
    "entry": entry.hexdigest()[:40], "stages": [one.name for one in model.stages], "told": told,
    "output": hashlib.sha256(y.tobytes()).hexdigest(), "largest": float(abs(y).max()),
    "mapped": sorted(mapped)}))
"""
HOLD = """
import fcntl, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


def as_user(user):
    """Arguments that make subprocess run as this user, who is in no other group."""
    return {"user": user, "group": user, "extra_groups": [], "umask": 0o022}


class Place:
    """A model that everybody may read, a folder in which everybody may write, and a folder for each
    user."""

    def __init__(self, folder, bin_dir, model):
        self.folder = folder
        self.modules = bin_dir.parent / "python"
        folder.chmod(0o755)
        self.model = pathlib.Path(shutil.copy(model, folder / "model.onnx"))
        self.model.chmod(0o644)
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)
        for user, name in NAMES.items():
            (folder / name).mkdir(mode=0o700)
            os.chown(folder / name, user, user)

    def home(self, user):
        return self.folder / NAMES[user]

    def command(self, cache_dir=None):
        return [sys.executable, "-c", START, self.modules, self.model, cache_dir or self.shared,
                self.folder]

    def environment(self, user, caches=None):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("TESSERA_", "XDG_"))}
        return {**kept, "HOME": str(self.home(user)), "PYTHONDONTWRITEBYTECODE": "1",
                "TESSERA_BACKENDS": "native",  # it measures fast; the tests are about what is kept
                "XDG_CACHE_HOME": str(caches or self.home(user) / "caches")}

    def start(self, user, cache_dir=None, caches=None):
        """Binds and runs the model as this user; returns the process's report. `caches` replaces
        the folder that contains the user's folder."""
        return json_of(*self.command(cache_dir), cwd=self.shared,
                       env=self.environment(user, caches), timeout=MOST_SECONDS, **as_user(user))

    def names(self, user):
        """The names of the files that this user's start creates: the cache, its staged file, and
        its lock. Determined in a folder that nobody else uses."""
        private = self.home(user) / "private"
        report = self.start(user, private, self.home(user) / "private_caches")
        file, = private.glob("*.cache")
        return file.name, f".{file.name}.new", f".{report['entry']}.lock"

    def as_user(self, user, *command):
        run_program(*command, **as_user(user))


@pytest.fixture
def place(bin_dir, tessera, model, needs_native):
    if os.geteuid() != 0:
        pytest.skip("starting processes of other users needs root")
    with tempfile.TemporaryDirectory(prefix="tessera_two_users_", dir="/tmp") as folder:
        made = Place(pathlib.Path(folder), bin_dir, model)
        tried = run_program(bin_dir / "tessera", "--version", code=None, cwd="/", **as_user(ANNA)
                            ) if is_reachable(bin_dir) else None
        if tried is None or tried.returncode != 0:
            pytest.skip("other users cannot reach the built programs")
        yield made


def is_reachable(path):
    """Whether all users may enter each folder of the path."""
    return all(folder.stat().st_mode & 0o001 for folder in path.resolve().parents)


def state_of(path):
    """Properties of a file that change if it is changed through any of its names."""
    status = path.lstat()
    content = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).digest()
    return status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns, content


def is_told_whose(reason):
    return any(words in reason for words in ("belongs to", "owner", "another user"))


def check_kept_or_told(place, user, report, **folders):
    """Either this user's file has the artifacts and the next start finds them, or the process
    reported why not."""
    if not report["saved"]:
        assert any("are not saved" in text for text in report["told"]), report
        return
    saved = place.shared / report["saved"]
    assert saved.is_file() and not saved.is_symlink() and saved.stat().st_uid == user, report
    again = place.start(user, **folders)
    assert again["is_hit"] and again["output"] == report["output"], again


@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
def test_a_cache_of_another_user_is_not_used(place, user):
    place.start(BERT)
    planted, = place.shared.glob("*.cache")
    before = state_of(planted)
    assert planted.stat().st_uid == BERT
    report = place.start(user)
    assert not report["is_hit"], report
    assert is_told_whose(report["reason"]), report
    # Root may replace the file. A user who may not must leave it unchanged.
    if user != ROOT:
        assert state_of(planted) == before
    check_kept_or_told(place, user, report)


def test_a_cache_of_root_is_used(place):
    place.start(ROOT)
    report = place.start(ANNA)
    assert report["is_hit"] and pathlib.Path(report["file"]).name.endswith(".cache"), report


@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
def test_a_folder_of_another_user_is_not_used(place, user):
    """Even if only its owner may write to it."""
    folder = place.home(BERT) / "published"
    place.start(BERT, folder)
    place.home(BERT).chmod(0o755)
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    report = place.start(user, folder)
    assert not report["is_hit"] and is_told_whose(report["reason"]), report
    check_kept_or_told(place, user, report, cache_dir=folder)


@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
def test_a_symlink_to_a_good_cache_is_not_followed(place, user):
    """Not even to a cache of the same user: the link's owner could choose among them."""
    name, *_ = place.names(user)
    target = place.home(user) / "private" / name
    before = state_of(target)
    place.as_user(BERT, "ln", "-s", target, place.shared / name)
    report = place.start(user)
    assert not report["is_hit"] and name in report["reason"], report
    assert state_of(target) == before
    check_kept_or_told(place, user, report)
    assert state_of(target) == before


@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
@pytest.mark.parametrize("number", range(3), ids=["cache", "staged", "lock"])
def test_nothing_is_written_through_a_symlink(place, user, number):
    name = place.names(user)[number]
    precious = place.home(user) / "precious"
    precious.write_text("do not touch")
    os.chown(precious, user, user)
    before = state_of(precious)
    missing = place.home(user) / "missing"
    for target in (precious, missing):
        place.as_user(BERT, "ln", "-sfn", target, place.shared / name)
        report = place.start(user)
        assert state_of(precious) == before and not missing.exists()
        assert not report["file"].endswith(f"/{name}"), report
        shutil.rmtree(place.home(user) / "caches", ignore_errors=True)
        (place.shared / name).unlink(missing_ok=True)
        for path in place.shared.glob("*.cache"):
            path.unlink()


@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
def test_a_file_with_two_names_is_not_used(place, user):
    """If the system allows it, another user may create further links to any file in this folder."""
    name, *_ = place.names(user)
    target = place.home(user) / "private" / name
    os.link(target, place.shared / name)
    content = target.read_bytes()
    report = place.start(user)
    assert not report["is_hit"] and name in report["reason"], report
    assert target.read_bytes() == content
    check_kept_or_told(place, user, report)


@pytest.mark.alone
@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
@pytest.mark.parametrize("number", [1, 2], ids=["staged", "lock"])
def test_nobody_waits_for_another_users_lock(place, user, number):
    name = place.names(user)[number]
    with subprocess.Popen([sys.executable, "-c", HOLD, place.shared / name],
                          stdout=subprocess.PIPE, text=True, **as_user(BERT)) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            report = place.start(user)
            assert not report["is_hit"]
            check_kept_or_told(place, user, report)
        finally:
            holder.kill()


@pytest.mark.alone
@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
@pytest.mark.parametrize("number", range(3), ids=["cache", "staged", "lock"])
def test_nobody_waits_for_a_pipe(place, user, number):
    name = place.names(user)[number]
    place.as_user(BERT, "mkfifo", "-m", "666", place.shared / name)
    report = place.start(user)
    assert not report["is_hit"]
    check_kept_or_told(place, user, report)


@pytest.mark.parametrize("mode", [0o755, 0o1777], ids=oct)
@pytest.mark.parametrize("user", [ANNA, ROOT], ids=NAMES.get)
def test_a_users_folder_that_another_made_is_not_used(place, user, mode):
    """It contains the other user's plan, index and packs for the same model, and his key."""
    wait_until_settled()
    folder = place.home(user) / "work"
    own = place.start(user, folder, place.home(user) / "own")
    shutil.rmtree(folder)
    planted = place.shared / "tessera"
    place.start(BERT, planted, place.shared)
    again = place.start(BERT, planted, place.shared)
    assert again["is_hit"] and "read" not in again["stages"], "all of it is there"
    planted.chmod(mode)
    for path in planted.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    before = {path: state_of(path) for path in planted.rglob("*") if path.is_file()}
    report = place.start(user, folder, place.shared)
    assert not report["is_hit"], report
    assert "read" in report["stages"], "his index is not used"
    assert not [path for path in report["mapped"] if path.startswith(str(planted))]
    assert report["largest"] == pytest.approx(own["largest"], rel=1e-4)
    assert {path: state_of(path) for path in before} == before
    check_kept_or_told(place, user, report, cache_dir=folder, caches=place.shared)


def test_a_users_folder_behind_another_users_symlink_is_not_used(place):
    elsewhere = place.home(BERT) / "elsewhere"
    place.as_user(BERT, "mkdir", elsewhere)
    place.home(BERT).chmod(0o755)
    elsewhere.chmod(0o1777)
    place.as_user(BERT, "ln", "-s", elsewhere, place.shared / "tessera")
    report = place.start(ANNA, place.home(ANNA) / "work", place.shared)
    assert not report["is_hit"]
    assert list(elsewhere.iterdir()) == [], "nothing of hers, and no key of hers, lies there"


def test_each_user_keeps_his_own_in_one_folder(place):
    outputs = {}
    for user in (ANNA, BERT, ANNA, BERT):
        report = place.start(user)
        assert report["is_hit"] == (user in outputs), report
        assert outputs.setdefault(user, report["output"]) == report["output"]
