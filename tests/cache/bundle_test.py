"""`tessera bundle`: one file with a model and all that it needs to start at once, in any folder and
with any name."""

import json
import os
import shutil
import signal
import struct
import time

import onnx
import pytest
from programs import end_of, outcome_of, run_program, start_program
from small_models import chain, save_model

SHAPE = ("--shape", "x=1x16x24x24", "--threads", "1")
MEASURED = {"tune", "judge"}
# The stages that a warm start leaves out.
COLD = MEASURED | {"read", "place", "restore"}


@pytest.fixture
def make_bundle(call, model, tmp_path):
    def make(*arguments, of=None, name="model.bundle", shape=SHAPE, **options):
        file = tmp_path / name
        _, output, errors = call("bundle", of or model, "-o", file, *shape, *arguments, **options)
        assert str(file) in output
        return file

    return make


@pytest.fixture
def elsewhere(tmp_path, user):
    """A process of the same user that has nothing but the key: a fresh container, say."""

    def make(name, *, with_key=True):
        folder = tmp_path / name
        (folder / "tessera").mkdir(parents=True, mode=0o700)
        if with_key:
            shutil.copy(user / "key", folder / "tessera" / "key")
        return {"XDG_CACHE_HOME": str(folder), "TESSERA_CACHE_DIR": str(folder / "work")}

    return make


def contents(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def parts_of(file):
    """The parts as docs/formats/bundle.md describes them: kind, name, offset and bytes."""
    data = file.read_bytes()
    assert data[:8] == b"TESBNDL\x1a" and struct.unpack_from("<I", data, 8) == (1,)
    at = 64
    length, = struct.unpack_from("<I", data, at)
    at += 4 + length
    count, = struct.unpack_from("<I", data, at)
    at += 4
    parts = []
    for _ in range(count):
        kind, length = struct.unpack_from("<BI", data, at)
        name = data[at + 5:at + 5 + length].decode()
        at += 5 + length
        offset, size = struct.unpack_from("<QQ", data, at)
        at += 32
        parts.append((("model", "external data", "caches", "index", "packs")[kind], name, offset, size))
    assert parts[-1][2] + parts[-1][3] == len(data)
    return parts


@pytest.fixture
def external_model(make_model):
    """A model in a folder of its own, with its weights in a file beside it."""

    def make(folder, name="model.onnx", data="weights.bin"):
        folder.mkdir(exist_ok=True)
        onnx.save(onnx.load(make_model("inline.onnx")), folder / name, save_as_external_data=True,
                  location=data, size_threshold=0)
        return folder / name

    return make


def test_it_starts_warm_without_any_cache_and_writes_nothing(
        make_bundle, start, model, elsewhere, tmp_path, needs_a_library):
    _, expected, _ = start(model)
    file = make_bundle()
    os.remove(model)
    for suffix in ("", ".onnx"):  # its name does not matter
        moved = shutil.move(file, tmp_path / f"moved{suffix}")
        file = moved
        there = elsewhere(f"there{suffix}")
        folder = tmp_path / f"read only{suffix}"
        folder.mkdir()
        for path in (folder, tmp_path / f"there{suffix}" / "tessera"):
            path.chmod(0o500)
        before = contents(tmp_path / f"there{suffix}")
        stages, output, errors = start(moved, "--frozen", folder=folder, **there)
        assert output == expected and not errors
        assert "index" in stages and not COLD & stages, stages
        assert contents(tmp_path / f"there{suffix}") == before and contents(folder) == []


def test_a_later_start_need_not_verify_what_the_first_has(make_bundle, start, elsewhere, tmp_path,
                                                          needs_a_library):
    file = make_bundle()
    time.sleep(2.1)  # a younger file is not trusted by its stamp
    there = elsewhere("there")
    _, first, _ = start(file, **there)
    assert contents(tmp_path / "there" / "tessera" / "models"), "its index, with the stamp"
    assert not (tmp_path / "there" / "tessera" / "packs").exists(), "the bundle has them"
    stages, again, _ = start(file, **there)
    assert again == first and not COLD & stages


def test_a_plan_for_each_of_the_shapes_that_were_named(make_bundle, start, call, elsewhere,
                                                       needs_a_library):
    sizes = (8, 24, 40)
    file = make_bundle(shape=[word for size in sizes
                              for word in ("--shape", f"x=1x16x{size}x{size}")] + ["--threads", "1"])
    _, shown, _ = call("inspect", file)
    for size in sizes:
        assert f"inputs float32 1x16x{size}x{size}" in " ".join(shown.split())
        stages, _, errors = start(file, "--frozen", **elsewhere(f"for {size}"),
                                  shape=("--shape", f"x=1x16x{size}x{size}", "--threads", "1"))
        assert not COLD & stages and not errors
    stages, _, errors = start(file, shape=("--shape", "x=1x16x9x9", "--threads", "1"),
                              **elsewhere("for another one"))
    assert "tune" in stages
    assert f"the plans of bundle '{file}' do not fit" in errors and "1x16x9x9" in errors
    assert errors.count("\n") == 1


def test_without_measuring_it_has_the_plan_that_was_chosen(make_bundle, start, call, elsewhere,
                                                           needs_a_library):
    file = make_bundle("--no-optimize")
    stages, _, errors = start(file, "--frozen", **elsewhere("there"))
    assert not COLD & stages and not errors


def test_external_data_is_in_it_and_not_twice(external_model, tmp_path, make_bundle, start,
                                              elsewhere, needs_a_library):
    path = external_model(tmp_path / "external")
    _, expected, _ = start(path)
    file = make_bundle(of=path)
    assert [(kind, name) for kind, name, _, _ in parts_of(file)[:2]] == [
        ("model", "model.onnx"), ("external data", "weights.bin")]
    shutil.rmtree(path.parent)
    for with_key in (True, False):
        _, output, _ = start(file, **elsewhere(f"with {with_key}", with_key=with_key))
        assert output == expected


def test_external_data_behind_links(external_model, tmp_path, make_bundle, start, elsewhere):
    """As caches of downloads lay out models: links to files with other names."""
    path = external_model(tmp_path / "blobs", name="a", data="model.onnx_data")
    (path.parent / "model.onnx_data").rename(path.parent / "b")
    snapshot = path.parent / "snapshot"
    snapshot.mkdir()
    (snapshot / "model.onnx").symlink_to("../a")
    (path.parent / "model.onnx_data").symlink_to("b")
    file = make_bundle(of=snapshot / "model.onnx")
    shutil.rmtree(path.parent)
    start(file, **elsewhere("there"))


def test_somebody_elses_plans_are_judged_and_nothing_of_it_is_executed(
        make_bundle, start, elsewhere, tmp_path, needs_a_library):
    file = make_bundle()
    _, expected, _ = start(file)
    there = elsewhere("stranger", with_key=False)
    stages, output, errors = start(file, **there)
    assert "judge" in stages and "index" in stages and "tune" not in stages
    assert {"read", "pack"} <= stages and output == expected
    assert f"packed weights and kernels of bundle '{file}' are not used" in errors
    assert "another user's" in errors and errors.count("\n") == 1
    # The next time, the plan is this user's.
    time.sleep(2.1)
    start(file, **there)
    stages, output, errors = start(file, **there)
    assert not MEASURED & stages and output == expected


def test_machine_code_comes_from_it_for_its_maker_alone(make_bundle, call, elsewhere, tmp_path,
                                                        needs_jit):
    ops = ("Exp", "Neg", "Sigmoid", "Tanh")
    model = save_model(tmp_path / "chain.onnx", chain(*ops), {"x": [64, 256]}, "y")
    options = ("--backends", "jit,reference", "--threads", "1")
    file = make_bundle(of=model, shape=options)
    for with_key in (True, False):
        _, output, errors = call("bench", file, "--frozen", "--seconds", "0.01", "--json", *options,
                                 **elsewhere(f"with {with_key}", with_key=with_key))
        compiled, = json.loads(output)["codegen"]
        assert compiled["group_count"] == 1
        assert (compiled["compiled_count"] == 0) == with_key
        assert bool(errors) != with_key


def test_what_was_tuned_later_precedes_it(make_bundle, call, needs_a_library):
    # The user's folder has the plan, too, and would be searched before the bundle.
    file = make_bundle("--cache-dir", "elsewhere")
    where = []
    for _ in range(2):
        _, output, _ = call("cache", "why-miss", file, *SHAPE, "--cache-dir", "later", "--json",
                            code=None)
        where.append(json.loads(output)["file"])
        _, _, errors = call("tune", file, *SHAPE, "--cache-dir", "later")
    assert where[0] == str(file) and where[1].startswith("later/"), where


def test_others_who_may_write_to_it_could_change_it_after_the_check(make_bundle, start, elsewhere,
                                                                   needs_a_library):
    file = make_bundle()
    file.chmod(0o666)
    stages, _, errors = start(file, **elsewhere("there"))
    assert "read" in stages and "tune" not in stages
    assert "chmod go-w" in errors and errors.count("\n") == 1


@pytest.fixture
def forge(bin_dir, tmp_path):
    """Replaces a part of a bundle by bytes, as anybody can: checksums are right, and the codes that
    need our key stay as they are."""

    def run(file, kind, content):
        part = tmp_path / "part"
        part.write_bytes(content)
        run_program(bin_dir / "forge_cache", "part", file, file, kind, part)

    return run


def part_of(file, kind):
    offset, size = next((offset, size) for one, _, offset, size in parts_of(file) if one == kind)
    return file.read_bytes()[offset:offset + size]


def test_another_machine_ignores_the_plans_and_says_so(make_bundle, start, elsewhere, call, forge,
                                                       bin_dir, tmp_path, needs_a_library):
    """As a machine with another processor sees it: the plans are for that one."""
    file = make_bundle()
    _, expected, _ = start(file)
    (tmp_path / "caches").write_bytes(part_of(file, "caches"))
    run_program(bin_dir / "forge_cache", "ingredient", tmp_path / "caches", tmp_path / "caches",
                "processor", "Abacus")
    forge(file, "caches", (tmp_path / "caches").read_bytes())
    stages, output, errors = start(file, **elsewhere("there"))
    assert "tune" in stages and output
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    assert f"the plans of bundle '{file}' are not used: processor: Abacus in the file, " in lines[0]
    _, _, errors = call("run", file, "--frozen", "--optimize", *SHAPE, "--random", "1", code=1,
                        **elsewhere("frozen"))
    assert "CacheMiss" in errors and "Abacus" in errors
    _, shown, _ = call("inspect", file)
    assert "not on this machine: processor: Abacus" in " ".join(shown.split())


def test_packs_that_were_changed_are_never_used(make_bundle, call, elsewhere, forge,
                                                needs_a_library):
    """Their bytes are authenticated, not only summed up."""
    file = make_bundle()
    packs = bytearray(part_of(file, "packs"))
    table_bytes, = struct.unpack_from("<I", packs, 12)
    for at in range(96 + table_bytes, len(packs), 64):
        packs[at] ^= 1
    forge(file, "packs", bytes(packs))
    _, _, errors = call("run", file, *SHAPE, "--random", "1", "--optimize", code=2,
                        **elsewhere("there"))
    assert f"Corrupt: bundle '{file}': expected packed weights" in errors
    assert "make the bundle again" in errors


def test_an_index_of_another_model_is_found_out(make_bundle, make_model, call, elsewhere, forge,
                                                needs_a_library):
    """Somebody who mixes parts that we signed cannot make a process take one model for another."""
    file = make_bundle()
    other = make_bundle(of=make_model("other.onnx", pads=2), name="other.bundle")
    forge(file, "model", part_of(other, "model"))
    # Another shape needs the weights, which are read from the model.
    _, _, errors = call("run", file, "--shape", "x=1x16x9x9", "--threads", "1", "--random", "1",
                        "--optimize", code=2, **elsewhere("there"))
    assert "expected the model that its index describes" in errors, errors


def test_a_bundle_in_a_bundle_and_other_parts_that_are_none(make_bundle, call, elsewhere, forge):
    file = make_bundle("--no-optimize")
    whole = file.read_bytes()
    for number, (kind, content) in enumerate([
            ("model", whole), ("model", b""), ("caches", b""), ("caches", whole), ("index", b"x"),
            ("packs", b""), ("packs", part_of(file, "packs")[:50])]):
        file.write_bytes(whole)
        forge(file, kind, content)
        there = elsewhere(f"there {number}")
        code, _, errors = call("run", file, *SHAPE, "--random", "1", "--optimize", code=None,
                               **there)
        assert code == 0 or code == 2 and str(file) in errors, (kind, errors)
        if kind in ("model", "caches"):
            there = elsewhere(f"stranger {number}", with_key=False)
            _, _, errors = call("run", file, *SHAPE, "--random", "1", "--optimize", code=2, **there)
            assert str(file) in errors, (kind, errors)


def damaged(file, tmp_path):
    """Bundles with one changed byte in each class of ranges, and their names."""
    data = file.read_bytes()
    places = {"magic": 3, "version": 8, "table length": 13, "file length": 17, "checksum": 30,
              "unused": 50, "a text in the table": 66, "the table": 90}
    for kind, name, offset, size in parts_of(file):
        for at in (0, size // 2, size - 1):
            places[f"{kind} {name} at {at}"] = offset + at
    for name, at in places.items():
        path = tmp_path / "damaged.bundle"
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1:])
        yield name, path
    path = tmp_path / "cut.bundle"
    for length in (0, 4, 8, 40, 64, 100, 5000, len(data) - 1):
        path.write_bytes(data[:length])
        yield f"{length} bytes", path
    path.write_bytes(data + b"\0")
    yield "one byte more", path


def test_damage_is_an_error_or_without_effect(external_model, make_bundle, start, call, elsewhere,
                                              tmp_path, needs_a_library):
    file = make_bundle(of=external_model(tmp_path / "external"))
    _, expected, _ = start(file)
    for number, (name, path) in enumerate(damaged(file, tmp_path)):
        there = elsewhere(f"there {number}")
        code, output, errors = call("run", path, *SHAPE, "--random", "1", "--optimize", "--output",
                                    tmp_path / "out", code=None, **there)
        if code == 0:
            # Nothing that was damaged was read, or it was made again.
            assert (tmp_path / "out" / "output_0.npy").read_bytes() == expected, name
        else:
            assert code == 2, (name, errors)
            assert str(path) in errors, name
            assert any(kind in errors for kind in ("Corrupt", "InvalidModel", "Unsupported",
                                                   "InvalidArgument")), (name, errors)
        # inspect reads every byte.
        _, _, errors = call("inspect", path, code=2, **there)
        assert len(errors.splitlines()) == 1, (name, errors)


def test_lengths_beyond_the_file_allocate_nothing(make_bundle, call, elsewhere):
    file = make_bundle("--no-optimize")
    data = bytearray(file.read_bytes())
    for at, size in ((12, 4), (16, 8)):
        changed = bytearray(data)
        changed[at:at + size] = b"\xff" * (size - 1) + b"\x7f"
        file.write_bytes(changed)
        _, _, errors = call("inspect", file, code=2, **elsewhere(f"there {at}", with_key=False))
        assert "Corrupt" in errors


@pytest.mark.parametrize("target", ["a folder", "no folder", "another file", "the model",
                                    "a link to the model", "its weights", "a device"])
def test_a_target_that_must_not_be_replaced(external_model, call, tmp_path, target):
    model = external_model(tmp_path / "external")
    before = {path: path.read_bytes() for path in model.parent.iterdir()}
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to(model)
    file = {"a folder": tmp_path, "no folder": tmp_path / "none" / "x.bundle",
            "another file": tmp_path / "notes.txt", "the model": model,
            "a link to the model": tmp_path / "link",
            "its weights": model.parent / "weights.bin", "a device": "/dev/full"}[target]
    _, _, errors = call("bundle", model, "-o", file, "--no-optimize", *SHAPE, code=2)
    assert f"InvalidArgument: bundle '{file}': " in errors, errors
    assert {path: path.read_bytes() for path in model.parent.iterdir()} == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_other_wrong_requests(make_bundle, call, model, tmp_path):
    file = make_bundle("--no-optimize")
    _, _, errors = call("bundle", file, "-o", tmp_path / "two.bundle", *SHAPE, code=2)
    assert "make it from the ONNX file" in errors
    assert not (tmp_path / "two.bundle").exists()
    _, _, errors = call("bundle", model, *SHAPE, code=2)
    assert "--output FILE" in errors
    _, _, errors = call("bundle", model, "-o", tmp_path / "x", "--shape", "x=1x16x8x8", "--shape",
                        "x=1x16x9x9", "--shape", "#0=1x16x8x8", "--shape", "#0=2x16x8x8", "--shape",
                        "#0=3x16x8x8", code=2)
    assert "--shape 'x'" in errors and "found 2" in errors
    call("bundle", model, "-o", tmp_path / "x", "--shape", "x=1x16xQ", code=2)
    assert not (tmp_path / "x").exists()


@pytest.fixture
def limited(tessera_binary, environment, work):
    """Runs `tessera` with a limit for the size of files, as if the disk were full."""
    return lambda kib, *arguments, code=0: outcome_of(
        "bash", "-c", f'ulimit -f {kib}; exec "$@"', "bash", tessera_binary, *arguments, code=code,
        cwd=work, env=environment)


def test_a_full_disk_is_an_error_with_the_name_of_the_file(make_bundle, limited, model, tmp_path):
    file = make_bundle("--no-optimize")
    before = file.read_bytes()
    names = contents(tmp_path)
    _, _, errors = limited(16, "bundle", model, "-o", file, "--no-optimize", *SHAPE, code=3)
    assert f"DeviceFailed: bundle '{file}': cannot be written: " in errors, errors
    assert file.read_bytes() == before
    left = set(contents(tmp_path)) - set(names)
    assert not [name for name in left if "model.bundle" in name]
    # With room, the bundle of before is replaced.
    _, _, errors = limited(1 << 20, "bundle", model, "-o", file, "--no-optimize", *SHAPE)
    assert file.read_bytes() != before and parts_of(file)


@pytest.mark.alone
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_it_finds_nothing_or_a_whole_bundle(tessera_binary, environment, model, work,
                                                          tmp_path, sent):
    file = tmp_path / "stopped.bundle"
    for delay in (0.02, 0.1, 0.3, 0.6, 1.0):
        process = start_program(tessera_binary, "bundle", model, "-o", file, *SHAPE, cwd=work,
                                env=environment)
        time.sleep(delay)
        end_of(process, None, sent)
        left = [path.name for path in tmp_path.iterdir() if "stopped" in path.name]
        assert left in ([], [file.name]), left
        if left:
            parts_of(file)


def test_python_saves_and_loads_it(python, model, tmp_path, needs_a_library):
    said = python("""
shapes = [{"x": (1, 16, 8, 8)}, {"x": (1, 16, 24, 24)}]
model = tessera.load(sys.argv[1])
model.save_bundle(sys.argv[2], shapes, threads=1)
seen = []
def load(source):
    from_bundle = tessera.load(source, log=seen.append)
    stages = [one.name for one in from_bundle.stages]
    for shape in shapes:
        executor = from_bundle.bind(shape, threads=1, frozen=True)
        x = np.random.default_rng(1).standard_normal(shape["x"]).astype(np.float32)
        expected, = model.bind(shape, threads=1).run({"x": x})
        y, = executor.run({"x": x})
        assert np.array_equal(y, expected)
        stages += [one.name for one in executor.stages]
    return stages
all_stages = [load(sys.argv[2]), load(open(sys.argv[2], "rb").read())]
errors = []
for wrong in (lambda: model.save_bundle(sys.argv[1]), lambda: model.save_bundle("/none/x"),
              lambda: model.save_bundle("y", thread=1),
              lambda: tessera.load(sys.argv[2]).save_bundle("y", shapes[0])):
    try:
        wrong()
    except (tessera.Error, TypeError) as error:
        errors.append(type(error).__name__)
def stop(progress):
    raise ZeroDivisionError("enough")
try:
    model.save_bundle("z", {"x": (1, 16, 10, 10)}, threads=1, on_progress=stop)
except ZeroDivisionError:
    errors.append("ZeroDivisionError")
import os
print(json.dumps({"stages": all_stages, "seen": seen, "errors": errors, "left": os.listdir(".")}))
""", model, tmp_path / "python.bundle")
    for stages in said["stages"]:
        assert not COLD & set(stages), stages
    assert said["seen"] == []
    assert said["errors"] == ["InvalidArgument", "InvalidArgument", "TypeError", "InvalidArgument",
                              "ZeroDivisionError"]
    assert not [name for name in said["left"] if name in ("y", "z") or name.endswith(".new")]


def test_inference_session_takes_it(python, make_bundle, model):
    file = make_bundle("--no-optimize")
    said = python("""
import tessera.onnxruntime as ort
x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype(np.float32)
results = [ort.InferenceSession(source).run(None, {"x": x})[0]
           for source in (sys.argv[1], sys.argv[2], open(sys.argv[2], "rb").read())]
data = bytearray(open(sys.argv[2], "rb").read())
data[70] ^= 1
try:
    ort.InferenceSession(bytes(data))
    kind = None
except Exception as error:
    kind = type(error).__name__
print(json.dumps([bool(np.allclose(results[0], one, atol=1e-4)) for one in results] + [kind]))
""", model, file, TESSERA_OPTIMIZE="0")
    assert said == [True, True, True, "Corrupt"]


def test_every_command_and_standard_input_take_it(make_bundle, call, tessera_binary, environment,
                                                  work):
    file = make_bundle()
    for command in (("bench", file, "--seconds", "0.01"), ("explain", file, "--runs", "1"),
                    ("inspect", file, "--memory"), ("tune", file, "--dry-run"),
                    ("cache", "fingerprint", file), ("cache", "why-miss", file), ("verify", file)):
        _, output, errors = call(*command, *SHAPE)
        assert output, (command, errors)
    with open(file, "rb") as stream:
        done = run_program(tessera_binary, "run", "-", *SHAPE, "--random", "1", stdin=stream,
                           cwd=work, env=environment)
    assert not done.stderr, done.stderr


def test_inspect_says_what_it_holds(make_bundle, call, elsewhere):
    file = make_bundle()
    _, text, _ = call("inspect", file)
    shown = " ".join(text.split())
    for what in (f"{file} of model.onnx", "tessera 0.", "processor", "yes, by this user",
                 "found by this user", "inputs float32 1x16x24x24", "threads 1"):
        assert what in shown, text
    _, output, _ = call("inspect", file, "--json")
    bundle = json.loads(output)["bundle"]
    assert [(one["part"], one["size_bytes"]) for one in bundle["parts"]] == [
        (kind, size) for kind, _, _, size in parts_of(file)]
    assert bundle["size_bytes"] == file.stat().st_size
    _, text, _ = call("inspect", file, **elsewhere("stranger", with_key=False))
    assert "plans are checked first" in " ".join(text.split())
