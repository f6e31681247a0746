"""A warm start does not read, rewrite or pack the model again."""

import json
import random

import numpy as np
import onnx
import pytest
from settled import wait_until_settled

SHAPE = ("--shape", "x=1x16x24x24", "--threads", "1")


@pytest.fixture
def model(make_model):
    """A model that was last changed long enough ago that its stamp is trusted."""
    path = make_model()
    wait_until_settled()
    return path


def files(user, folder):
    return sorted(path for path in (user / folder).rglob("*") if path.is_file())


def test_the_second_process_reads_no_model_and_packs_nothing(start, model, user, needs_a_library):
    first, output, _ = start(model)
    assert {"read", "tune"} <= first
    index, = files(user, "models")
    packs, = files(user, "packs")
    before = packs.stat()
    second, again, _ = start(model)
    assert "index" in second and not {"read", "tune", "place", "restore"} & second
    assert again == output
    assert files(user, "models") == [index] and files(user, "packs") == [packs]
    assert packs.stat() == before, "what is mapped keeps its stamp"


def test_a_model_that_is_new_is_not_trusted_and_one_that_changed_is_read(
        start, make_model, model, user, needs_a_library):
    fresh = make_model("fresh.onnx", seed=3)
    start(fresh)
    assert not files(user, "models"), "it was written within the last two seconds"
    _, output, _ = start(model)
    assert len(files(user, "models")) == 1
    bytes_before = model.read_bytes()
    other = make_model("other.onnx", seed=1).read_bytes()
    assert len(other) == len(bytes_before)
    model.write_bytes(other)
    stages, changed, _ = start(model)
    assert "read" in stages and changed != output
    model.write_bytes(bytes_before)
    stages, back, _ = start(model)
    assert "read" in stages and back == output


def test_other_shapes_share_packs_or_add_their_own(start, model, user, needs_a_library):
    start(model)
    stages, output, _ = start(model, shape=("--shape", "x=1x16x9x9", "--threads", "1"))
    assert "read" not in stages, "the index is one for all shapes"
    again_stages, again, _ = start(model, shape=("--shape", "x=1x16x9x9", "--threads", "1"))
    assert again == output and not {"read", "restore", "tune"} & again_stages


def test_copies_share_packs_and_fine_tunes_do_not(start, make_model, model, tmp_path, user,
                                                  needs_a_library):
    _, output, _ = start(model)
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "model.onnx"
    copy.write_bytes(model.read_bytes())
    fine_tune = make_model("tuned.onnx", seed=5)
    wait_until_settled()
    assert start(copy)[1] == output
    assert len(files(user, "packs")) == 1 and len(files(user, "models")) == 2
    _, other, _ = start(fine_tune)
    assert other != output and len(files(user, "packs")) == 2
    for _ in range(2):
        assert start(model)[1] == output
        stages, again, _ = start(fine_tune)
        assert again == other and "read" not in stages


@pytest.mark.parametrize("folder", ["models", "packs"])
def test_damage_is_a_miss_and_the_output_stays(start, model, user, folder, needs_a_library):
    _, output, _ = start(model)
    file, = files(user, folder)
    whole = file.read_bytes()
    draw = random.Random(2)
    cases = [("flip", at) for at in sorted(draw.sample(range(len(whole)), 12)) + [0, 70, 100]]
    cases += [("cut", draw.randrange(len(whole))) for _ in range(4)] + [("cut", 0)]
    for kind, at in cases:
        damaged = bytearray(whole)
        if kind == "flip":
            damaged[at] ^= 1 + draw.randrange(255)
        else:
            del damaged[at:]
        file.write_bytes(damaged)
        _, again, _ = start(model)
        assert again == output, (kind, at)
        file, = files(user, folder)


ASKS = """
import threading

def tell(message):
    told.append((message, model.cache_report().is_hit if model else None, bool(model.describe())))

told, model = [], None
model = tessera.load(sys.argv[1], log=tell)
thread = threading.Thread(target=lambda: model.bind(shapes={"x": [1, 16, 24, 24]}, threads=1), daemon=True)
thread.start()
thread.join(120)
print(json.dumps([thread.is_alive(), told]))
"""


def test_who_is_told_may_ask_the_model(python, start, model, user, tmp_path, work, needs_a_library):
    start(model)
    packs, = files(user, "packs")
    packs.write_bytes(packs.read_bytes()[:100])
    hangs, told = python(ASKS, model, XDG_CACHE_HOME=str(tmp_path / "user"),
                         TESSERA_CACHE_DIR=str(work))
    assert not hangs and any("damaged" in message for message, *_ in told), told


def test_another_users_key_makes_everything_anew(start, model, user, needs_a_library):
    _, output, _ = start(model)
    (user / "key").unlink()
    stages, again, errors = start(model)
    assert "read" in stages and again == output
    stages, again, _ = start(model)
    assert "read" not in stages and again == output, errors


def test_frozen_and_no_optimize_write_nothing(call, start, model, user, needs_a_library):
    call("run", model, *SHAPE, "--random", "1", "--no-optimize")
    assert not user.exists()
    start(model)
    for file in files(user, "models") + files(user, "packs"):
        file.unlink()
    stages, _, _ = start(model, "--frozen")
    assert "read" in stages
    assert not files(user, "models") and not files(user, "packs")


def test_explain_still_tells_all_candidates(call, start, model, needs_a_library):
    start(model)
    start(model)
    _, output, errors = call("explain", model, "--optimize", *SHAPE, "--json")
    report = json.loads(output)
    assert report["placement"]["predicted_us"] > 0
    assert any(not candidate["is_chosen"] for candidate in report["candidates"])


def test_prune_removes_what_is_worth_least(call, start, model, user, work, needs_a_library):
    _, output, _ = start(model)
    caches = list(work.glob("*.cache"))
    _, text, errors = call("cache", "prune", "--limit", "0", "--json")
    assert json.loads(text)["removed_count"] == 2
    assert not files(user, "models") and not files(user, "packs") and (user / "key").exists()
    assert list(work.glob("*.cache")) == caches, "those of the working folder stay"
    assert start(model)[1] == output
    assert json.loads(call("cache", "prune", "--json")[1])["removed_count"] == 0


def test_export_and_import_carry_plans_to_another_user(call, bench, tmp_path, work, needs_a_library):
    user = tmp_path / "user" / "tessera"
    bench("--cache-dir", user)
    _, text, errors = call("cache", "export", "all.export")
    assert "wrote 1 cache to all.export" in text, errors
    elsewhere = {"XDG_CACHE_HOME": str(tmp_path / "elsewhere")}
    _, text, errors = call("cache", "import", "all.export", **elsewhere)
    assert "imported 1 cache" in text, errors
    report = bench("--frozen", **elsewhere)
    assert report["cache"]["is_hit"] is True
    whole = (work / "all.export").read_bytes()
    (work / "all.export").write_bytes(whole[:-1] + b"?")
    code, _, errors = call("cache", "import", "all.export", code=None, **elsewhere)
    assert code != 0 and "Corrupt" in errors
    code, _, errors = call("cache", "import", report["cache"]["file"], code=None, **elsewhere)
    assert code != 0 and "export" in errors


SAVE_PACKS = """
model = tessera.load(sys.argv[1])
shapes = {"x": (1, 16, 24, 24)}
executor = model.bind(shapes, threads=1)
model.save_cache("shipped.cache", include_packs=True)
x = np.ones((1, 16, 24, 24), np.float32)
print(json.dumps(executor.run({"x": x})[0].tobytes().hex()))
"""
LOAD_PACKS = """
told = []
model = tessera.load(sys.argv[1], log=told.append)
model.load_cache("shipped.cache")
executor = model.bind({"x": (1, 16, 24, 24)}, threads=1, cache_dir="nowhere")
x = np.ones((1, 16, 24, 24), np.float32)
print(json.dumps([executor.run({"x": x})[0].tobytes().hex(), executor.cache_report().is_hit, told]))
"""


def test_packs_in_a_file_are_for_the_user_who_made_them(python, model, user, tmp_path,
                                                        needs_a_library):
    output = python(SAVE_PACKS, model)
    for file in files(user, "models") + files(user, "packs"):
        file.unlink()
    again, is_hit, told = python(LOAD_PACKS, model)
    assert again == output and is_hit and not told
    other = {"XDG_CACHE_HOME": str(tmp_path / "other")}
    again, is_hit, told = python(LOAD_PACKS, model, **other)
    assert again == output and is_hit
    assert len(told) == 1 and "another user's" in told[0]


def test_an_index_with_external_data_maps_it_and_sees_it_change(start, make_model, tmp_path,
                                                                needs_a_library):
    folder = tmp_path / "external"
    folder.mkdir()
    path = folder / "model.onnx"
    proto = onnx.load(make_model("inner.onnx"))
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    wait_until_settled()
    _, output, _ = start(path)
    stages, again, _ = start(path)
    assert "read" not in stages and again == output
    data = np.fromfile(folder / "weights.bin", np.float32)
    (data * 2).astype(np.float32).tofile(folder / "weights.bin")
    stages, changed, _ = start(path)
    assert "read" in stages and changed != output


EACH_BYTE = """
import pathlib
shapes = {"x": (1, 16, 24, 24)}
tessera.load(sys.argv[1]).bind(shapes, threads=1, optimize=True)
index, = pathlib.Path(sys.argv[2]).iterdir()
step = int(sys.argv[3])
whole = index.read_bytes()
x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype(np.float32)
told = []

def start(content):
    index.write_bytes(content)
    model = tessera.load(sys.argv[1], log=told.append)
    executor = model.bind(shapes, threads=1, optimize=False)
    y, = executor.run({"x": x})
    return "index" in [s.name for s in model.stages] and "read" not in [s.name for s in model.stages], y

is_hit, right = start(whole)
assert is_hit
wrong = []
for at in range(0, len(whole), step):
    for value in (whole[at] ^ 1, whole[at] ^ 255, (whole[at] + 128) % 256):
        damaged = bytearray(whole)
        damaged[at] = value
        is_hit, y = start(damaged)
        if not np.array_equal(y, right) or is_hit:
            wrong.append(at)
for size in range(0, len(whole), step):
    is_hit, y = start(whole[:size])
    if not np.array_equal(y, right) or is_hit:
        wrong.append(-size)
is_hit, y = start(whole)
print(json.dumps([len(whole), wrong, is_hit, bool(np.array_equal(y, right)), len(told)]))
"""


def test_no_byte_of_an_index_changes_what_is_computed(python, model, user, is_long, needs_a_library):
    size, wrong, is_hit, is_right, told = python(EACH_BYTE, model, user / "models",
                                                 1 if is_long else 29)
    assert size > 1000 and not wrong and is_hit and is_right
    assert told == 0, "a damaged index costs time and no word"
