"""`tessera cache stats` counts the files of the project's and the user's folder by kind."""

import json
import os
import time

import pytest
from leaky_model import save_model
from settled import wait_until_settled


@pytest.fixture
def stats(call, tmp_path):
    def run(folder=None):
        _, output, errors = call("cache", "stats", "--json",
                                 *["--cache-dir", folder] if folder else [])
        return json.loads(output)["folders"]

    return run


def users(tmp_path):
    return tmp_path / "user" / "tessera"


def kind(folder, name):
    found, = [one for one in folder["kinds"] if one["kind"] == name]
    return found


def test_an_empty_folder_has_no_kinds(stats, call, tmp_path):
    project, user = stats()
    assert project["kinds"] == user["kinds"] == [] and project["size_bytes"] == 0
    text = " ".join(call("cache", "stats")[1].split())  # long paths wrap lines
    assert text.count(": 0 files, 0 B; at most") == 2
    _, _, errors = call("cache", "stats", "--cache-dir", tmp_path / "nowhere", code=2)
    assert "there is no such folder" in errors


def test_each_kind_is_counted(stats, bench, work, tmp_path, call):
    wait_until_settled()  # files that changed just now have no index
    began = int(time.time())
    bench("--backends", "native,reference", "--cache-dir", work)
    project, user = stats()
    assert kind(project, "caches")["file_count"] == len(list(work.glob("*.cache"))) == 1
    assert project["max_file_count"] == 256 and user["max_file_count"] == 10000
    models = list((users(tmp_path) / "models").iterdir())
    assert kind(user, "models")["file_count"] == len(models) == 1
    assert kind(user, "models")["size_bytes"] == models[0].stat().st_size
    for folder in (project, user):
        assert folder["file_count"] == sum(one["file_count"] for one in folder["kinds"])
        assert folder["size_bytes"] == sum(one["size_bytes"] for one in folder["kinds"])
        for one in folder["kinds"]:
            assert one["unusable_count"] == 0 and one["oldest_use_at"] <= one["newest_use_at"]
            used = time.strptime(one["newest_use_at"], "%Y-%m-%dT%H:%M:%SZ")
            assert time.mktime(used) - time.timezone >= began - 1
    text = call("cache", "stats")[1]
    assert "models" in text and "unusable" in text


def test_what_cannot_be_used_is_counted(stats, bench, work, tmp_path):
    bench("--backends", "native,reference", "--cache-dir", work)
    cache, = work.glob("*.cache")
    content = cache.read_bytes()
    (work / "0123456.cache").write_bytes(content[:-1])
    assert kind(stats(work)[0], "caches") | {"oldest_use_at": "", "newest_use_at": ""} == {
        "kind": "caches", "backend": "", "file_count": 2, "size_bytes": 2 * len(content) - 1,
        "unusable_count": 1, "oldest_use_at": "", "newest_use_at": ""}


def test_blobs_and_kernels_are_counted_for_each_backend(stats, call, built_plugin, tmp_path):
    library = built_plugin("compiler")
    leaky = save_model(tmp_path / "leaky.onnx", [0.1, 0.2, 0.3], 100)
    _, _, errors = call("bench", leaky, "--seconds", "0.001", "--threads", "1", "--optimize",
                        "--backend-path", library, "--backends", "compiler,reference")
    blobs = kind(stats(users(tmp_path))[0], "blobs")
    # The blobs of each kernel: its code and its judgement.
    assert (blobs["backend"], blobs["file_count"], blobs["unusable_count"]) == ("compiler", 6, 0)
    damaged = next((users(tmp_path) / "kernels").rglob("kernel.packs"))
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert kind(stats(users(tmp_path))[0], "blobs")["unusable_count"] == 1
    # Nobody can use what another key authenticates.
    (users(tmp_path) / "key").write_bytes(os.urandom(32))
    found = kind(stats(users(tmp_path))[0], "kernels")
    assert (found["backend"], found["file_count"], found["unusable_count"]) == ("", 6, 6)

