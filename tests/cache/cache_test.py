"""A process uses what an earlier process found: the command line."""

import hashlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest
from programs import end_of, run_program, start_program

SHAPE = ("--shape", "x=1x16x24x24", "--threads", "1")


def fingerprint_of(ingredients):
    """The fingerprint by the rules of docs/formats/cache.md."""
    digest = hashlib.blake2b(digest_size=32)
    for one in ingredients:
        for text in (one["ingredient"], one["text"]):
            digest.update(struct.pack("<I", len(text.encode())) + text.encode())
    return digest.hexdigest()[:40]


def caches(folder):
    return sorted(path for path in folder.iterdir() if path.suffix == ".cache")


def stages(call, model, work, *arguments):
    """The names of the stages of a bind, and the report."""
    trace = work.parent / "trace.json"
    _, output, errors = call("bench", model, "--optimize", "--json", "--seconds", "0.001", *SHAPE,
                             "--trace", trace, *arguments)
    events = json.loads(trace.read_text())["traceEvents"]
    return {event["name"] for event in events if "name" in event}, json.loads(output)


def test_the_second_process_measures_nothing(call, model, work, needs_a_library):
    first, report = stages(call, model, work)
    assert "tune" in first
    assert report["cache"]["is_hit"] is False and "no cache of this model" in report["cache"]["reason"]
    file, = caches(work)
    second, report = stages(call, model, work)
    assert "tune" not in second
    assert report["cache"] == {"is_hit": True, "file": f"./{file.name}", "change": "", "reason": "",
                               "types": report["cache"]["types"]}
    assert {one["origin"] for one in report["cache"]["types"]} == {"found by this user"}
    assert report["placement"]["predicted_us"] > 0
    assert sorted(path.name for path in work.iterdir()) == [file.name], "nothing else stays"


def test_plan_and_outputs_are_the_same(call, model, work):
    outputs = []
    for number in range(3):
        _, _, errors = call("run", model, "--optimize", *SHAPE, "--random", "1", "--output",
                            f"out{number}")
        outputs.append((work / f"out{number}" / "output_0.npy").read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]


def test_without_optimize_nothing_is_read_or_written(call, model, work, tmp_path):
    call("run", model, *SHAPE, "--random", "1", "--no-optimize")
    assert not caches(work) and not (tmp_path / "user").exists()


def test_optimizing_is_the_default_and_the_environment_switches_it_off(call, model, work):
    call("run", model, *SHAPE, "--random", "1", TESSERA_OPTIMIZE="0")
    assert not caches(work)
    _, _, errors = call("run", model, *SHAPE, "--random", "1", "--optimize", "--no-optimize",
                        code=2)
    assert "--no-optimize" in errors
    # One run is not worth measuring.
    call("run", model, *SHAPE, "--random", "1")
    assert not caches(work)
    call("run", model, *SHAPE, "--random", "1", "--optimize")
    assert len(caches(work)) == 1
    call("bench", model, *SHAPE, "--seconds", "0.001", "--frozen")


def test_another_model_reuses_prices_and_says_what_that_saved(call, model, make_model, needs_native):
    # The run takes over a millisecond on every machine: faster graphs are measured with less
    # effort. There are few candidates, so even a busy machine measures some of them in both
    # processes.
    shape = ("--shape", "x=1x16x256x256", "--threads", "1", "--tune-budget", "30",
             "--backends", "native")
    _, first, errors = call("explain", model, *shape)
    assert "measured " in first and "known times saved" not in first
    other = make_model("other.onnx", swapped=True)
    _, second, errors = call("explain", other, *shape)
    saved = re.search(r"(\d+) known times saved at least ([\d.]+) (s|ms)", " ".join(second.split()))
    assert saved and int(saved[1]) > 0 and float(saved[2]) > 0, second
    # If the plan is known, nothing is measured, and no measuring is reported.
    _, third, _ = call("explain", other, *shape)
    assert "measured 0" not in third and "known times saved" not in third


def test_frozen_never_measures(call, model, work):
    _, _, errors = call("bench", model, "--optimize", "--frozen", *SHAPE, code=1)
    assert "CacheMiss" in errors and "no cache of this model" in errors
    assert not caches(work)
    call("bench", model, "--optimize", "--seconds", "0.001", *SHAPE)
    call("bench", model, "--optimize", "--frozen", "--seconds", "0.001", *SHAPE)
    _, _, errors = call("bench", model, "--optimize", "--frozen", "--shape", "x=1x16x24x24",
                        "--threads", "2", code=1)
    assert "threads: 1 in the file, 2 now" in " ".join(errors.split())


def test_a_folder_that_cannot_be_written_gives_way_to_the_users(bench, work, tmp_path):
    # Root may write to any folder, so the test uses one in which nobody can create files.
    report = bench("--cache-dir", "/proc/nowhere")
    assert report["cache"]["is_hit"] is False
    assert caches(tmp_path / "user" / "tessera")
    assert bench("--cache-dir", "/proc/nowhere")["cache"]["is_hit"] is True


def test_with_nowhere_to_write_it_runs_and_says_so_once(call, model, work):
    _, _, errors = call("bench", model, "--optimize", "--seconds", "0.001", *SHAPE, "--cache-dir",
                        "/proc/nowhere", XDG_CACHE_HOME="", HOME="")
    assert errors.count("are not saved") == 1 and "/proc/nowhere" in errors


def test_files_and_folders_that_others_may_write_to_are_not_used(bench, work):
    bench()
    file, = caches(work)
    file.chmod(0o666)
    report = bench()
    assert report["cache"]["is_hit"] is False and "others than its owner" in report["cache"]["reason"]
    assert bench()["cache"]["is_hit"] is True, "it was replaced"


@pytest.mark.parametrize("change", ["cut", "flipped", "emptied", "text"])
def test_damaged_files_are_misses_with_a_reason(bench, work, change):
    bench()
    file, = caches(work)
    content = file.read_bytes()
    damaged = {"cut": content[:-7], "flipped": content[:900] + b"\xff\x00" + content[902:],
               "emptied": b"", "text": b"no cache " * 100}[change]
    file.write_bytes(damaged)
    report = bench()
    assert report["cache"]["is_hit"] is False and "Corrupt" in report["cache"]["reason"]
    assert bench()["cache"]["is_hit"] is True


def test_eight_at_once_measure_once(tessera_binary, model, environment, work):
    command = [tessera_binary, "bench", model, "--optimize", "--json", "--seconds", "0.001", *SHAPE]
    processes = [start_program(*command, cwd=work, env=environment) for _ in range(8)]
    hits = [json.loads(end_of(process, timeout=300)[0])["cache"]["is_hit"] for process in processes]
    assert hits.count(False) == 1
    assert len(list(work.iterdir())) == 1


def test_killed_at_any_moment_the_next_start_is_right(tessera_binary, model, environment, work, call,
                                                      is_long):
    command = [tessera_binary, "bench", model, "--optimize", "--seconds", "0.001", *SHAPE]
    for round_number in range(200 if is_long else 12):
        process = start_program(*command, cwd=work, env=environment)
        time.sleep(0.02 * (1 + round_number % 12))
        end_of(process, None, signal.SIGKILL)
        _, _, errors = call("bench", model, "--optimize", "--seconds", "0.001", *SHAPE)
        assert "Corrupt" not in errors
        for path in caches(work):
            path.unlink()
    call("bench", model, "--optimize", "--seconds", "0.001", *SHAPE, code=None)
    assert len(caches(work)) == 1


@pytest.mark.alone
def test_whoever_waits_takes_over_when_the_other_dies(tessera_binary, model, environment, work, call):
    # The lock's name depends on the file, the bind and the libraries.
    shown = json.loads(call("cache", "fingerprint", model, "--json", *SHAPE)[1])
    lock = work / f".{fingerprint_of(shown['ingredients'] + shown['entry_ingredients'])}.lock"
    holder = subprocess.Popen(["flock", "-x", lock, "sleep", "60"])
    while not lock.exists():
        time.sleep(0.01)
    time.sleep(0.1)
    waiting = start_program(tessera_binary, "bench", model, "--optimize", "--json", "--seconds",
                            "0.001", *SHAPE, cwd=work, env=environment)
    time.sleep(0.5)
    assert waiting.poll() is None
    run_program("pkill", "-KILL", "-P", holder.pid)
    holder.wait()
    output, errors = end_of(waiting)
    assert "waiting for" in errors and json.loads(output)["cache"]["is_hit"] is False


# Each ingredient changed alone -> how why-miss calls it.
CHANGES = {
    "inputs": ["--shape", "x=1x16x20x20", "--threads", "1"],
    "threads": ["--shape", "x=1x16x24x24", "--threads", "2"],
    "precision": [*SHAPE, "--precision", "bfloat16"],
    "nan": [*SHAPE, "--nan", "fast"],
    "accuracy": [*SHAPE, "--accuracy", "fast"],
    "exclusions": [*SHAPE, "--exclude", "reference:Sub"],
    "pins": [*SHAPE, "--pin", "conv0=reference"],
    "backends": [*SHAPE, "--backends", "reference"],
    "strict storage": [*SHAPE, "--strict-storage"],
    "optimize for": [*SHAPE, "--optimize-for", "100-runs"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_ingredient_alone_is_a_miss_that_names_it(call, model, bench, name, needs_a_library):
    bench()
    _, output, _ = call("cache", "why-miss", model, *SHAPE)
    assert output.startswith("hit: ")
    _, output, errors = call("cache", "why-miss", model, *CHANGES[name], code=1)
    assert f"has a plan for another case, {name}: " in " ".join(output.split()) and " ".join(output.split()).count(" in the file, ") == 1, output


def test_names_do_not_matter_but_attributes_and_order_do(call, make_model, bench):
    bench(of=make_model())

    def is_hit(**options):
        other = make_model("other.onnx", **options)
        return call("cache", "why-miss", other, *SHAPE, code=None)[0] == 0

    assert is_hit()
    assert is_hit(prefix="renamed_", doc="something else")
    assert is_hit(seed=5), "weights are not in it"
    assert not is_hit(pads=2)
    assert not is_hit(swapped=True)


def test_two_fine_tunes_share_a_plan_and_give_their_own_outputs(call, make_model, bench, work):
    outputs = []
    for seed in (0, 1, 0, 1):
        one = make_model(f"tune{seed}.onnx", seed=seed)
        _, _, errors = call("run", one, "--optimize", *SHAPE, "--random", "1", "--output", "out")
        outputs.append((work / "out" / "output_0.npy").read_bytes())
    assert outputs[0] == outputs[2] and outputs[1] == outputs[3] and outputs[0] != outputs[1]
    assert len(caches(work)) == 1


def test_two_copies_in_different_folders_share_all(bench, make_model, tmp_path):
    bench(of=make_model())
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy(tmp_path / "model.onnx", tmp_path / "elsewhere" / "m.onnx")
    assert bench(of=copy)["cache"]["is_hit"] is True


def test_a_collision_of_short_names_hits_on_both_second_starts(bench, make_model, work):
    bench()
    first, = caches(work)
    bench(of=make_model("other.onnx", swapped=True))
    second, = (path for path in caches(work) if path != first)
    # Gives the second file the name of the first, like a collision of seven-digit names.
    second_bytes = second.read_bytes()
    first.write_bytes(second_bytes)
    second.unlink()
    report = bench()
    assert report["cache"]["is_hit"] is False
    longer, = (path for path in caches(work) if path != first)
    assert len(longer.stem) == 8 and longer.stem.endswith(first.stem)
    assert first.read_bytes() == second_bytes
    report = bench()["cache"]
    assert report["is_hit"] and report["file"] == f"./{longer.name}" and report["reason"] == ""


def test_tune_measures_anew_and_replaces(call, model, work, bench, needs_a_library):
    bench()
    file, = caches(work)
    before = file.read_bytes()
    _, output, _ = call("tune", model, "--json", *SHAPE)
    assert json.loads(output)["tuning"]["measured_count"] > 0
    assert file.read_bytes() != before
    assert bench()["cache"]["is_hit"] is True


def test_the_fingerprint_is_shown_with_its_ingredients(call, model, work, bench):
    _, output, _ = call("cache", "fingerprint", model, "--json", *SHAPE)
    shown = json.loads(output)
    assert len(shown["fingerprint"]) == 40
    names = {one["ingredient"] for one in shown["ingredients"]}
    assert names == {"tessera", "cache format", "model", "processor", "instruction set"}
    entry = {one["ingredient"] for one in shown["entry_ingredients"]}
    assert {"inputs", "backends", "precision", "threads", "core revision", "reference"} <= entry
    assert all(len(one["digest"]) == 40 for one in shown["ingredients"] + shown["entry_ingredients"])
    bench()
    file, = caches(work)
    assert shown["fingerprint"].endswith(file.stem)
    text = call("cache", "fingerprint", model, *SHAPE)[1]
    assert shown["fingerprint"] in text and "float32 1x16x24x24" in text


def test_caches_are_listed_shown_verified_and_cleared(call, bench, work, tmp_path, needs_a_library):
    bench()
    file, = caches(work)
    shown = json.loads(call("cache", "show", file, "--json")[1])
    types = {section["section"] for section in shown["sections"]}
    assert "plan" in types and len(types) > 1
    assert all(section["size_bytes"] > 0 or section["content"] == "settled"
               for section in shown["sections"])
    assert {section["origin"] for section in shown["sections"]} == {"found by this user"}
    assert shown["fingerprint"] in call("cache", "show", file)[1]
    assert file.name in call("cache", "ls")[1]
    call("cache", "verify")
    broken = work / "0123456.cache"
    broken.write_bytes(file.read_bytes()[:-1])
    _, output, _ = call("cache", "verify", code=1)
    assert "0123456.cache" in output
    call("cache", "show", broken, code=2)
    user = tmp_path / "user" / "tessera"
    user.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, user / file.name)
    assert "removed 3 caches" in call("cache", "clear")[1], "what `cache ls` lists"
    assert not caches(user) and not caches(work)


def test_what_was_saved_on_purpose_is_cleared_where_its_folder_is_named(python, call, model, work):
    python("model = tessera.load(sys.argv[1])\n"
           "executor = model.bind({'x': (1, 16, 24, 24)}, threads=1)\n"
           "executor.save_cache('1234567.cache')\nprint(json.dumps(None))\n", model)
    assert len(caches(work)) == 2
    output = " ".join(call("cache", "clear")[1].split())
    assert "removed 1 cache" in output and "1 cache that save_cache() wrote stays" in output
    assert [path.name for path in caches(work)] == ["1234567.cache"]
    call("cache", "clear", "--cache-dir", work)
    assert not caches(work)


def test_a_small_disk_says_why_nothing_was_saved(bench, call, model, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = run_program("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", disk, code=None)
    if mounted.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        (disk / "full").write_bytes(b"x" * 4096)
        _, _, errors = call("bench", model, "--optimize", "--seconds", "0.001", *SHAPE,
                            "--cache-dir", disk, XDG_CACHE_HOME="", HOME="")
        assert "No space left on device" in errors
        assert [path.name for path in disk.iterdir()] == ["full"]
    finally:
        run_program("umount", disk, code=None)
