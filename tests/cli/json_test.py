"""The output of every command with --json matches docs/formats/json.md: each key, its kind and its
position; and every key on that page is printed by some command."""

import json
import os
import pathlib
import re
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from programs import run_program
from small_models import model_of, node, normal, save_model, tensor_type

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "formats" / "json.md"
# Kinds whose keys must end with their unit, and units that no key may use.
UNITS = {"microseconds": "_us", "bytes": "_bytes", "count": "_count"}
OTHER_UNITS = ("seconds", "_s", "_ms", "_ns", "milliseconds", "_kib", "_mib", "_kb", "_mb")
QUICK = ("--threads", "1")


def read_page():
    """For each title: the rows of its table, as (key, kind), and the object that it extends, or
    None."""
    tables, title = {}, None
    for line in PAGE.read_text().splitlines():
        if heading := re.fullmatch(r"#{2,3} `?([^`]+)`?", line):
            title = heading[1]
            tables[title] = {"keys": {}, "extends": None}
        elif extended := re.fullmatch(r"A (\w+) with", line):
            tables[title]["extends"] = extended[1]
        elif row := re.fullmatch(r"\| `(\w+)` \| (.+?) \|(.*)\|", line):
            assert row[1] not in tables[title]["keys"], (title, row[1])
            tables[title]["keys"][row[1]] = (row[2], "only with" in row[3])
    return {name: table for name, table in tables.items() if table["keys"]}


TABLES = read_page()


def keys_of(shape):
    table = TABLES[shape]
    extended = keys_of(table["extends"]) if table["extends"] else {}
    return {**extended, **table["keys"]}


class Reader:
    """Compares JSON with the page, and records which of the page's keys had a value."""

    def __init__(self):
        self.found = set()
        self.choices = set()

    def read(self, value, shape):
        keys = keys_of(shape)
        wanted = [key for key, (_, is_optional) in keys.items() if not is_optional or key in value]
        assert list(value) == wanted, f"{shape}: keys, and their order"
        for key, one in value.items():
            kind = keys[key][0]
            self.read_kind(one, kind, f"{shape}.{key}")
            owner = next(name for name in self.chain(shape) if key in TABLES[name]["keys"])
            if one is not None and one != []:
                self.found.add((owner, key))

    @staticmethod
    def chain(shape):
        while shape:
            yield shape
            shape = TABLES[shape]["extends"]

    def read_kind(self, value, kind, place):
        if kind.endswith(" or null") and value is None:
            return
        kind = kind.removesuffix(" or null").removesuffix(",")
        if kind.startswith("list of "):
            assert isinstance(value, list), place
            for one in value:
                if kind == "list of integer or text":
                    assert type(one) in (int, str), place
                else:
                    self.read_kind(one, kind.removeprefix("list of "), place)
        elif kind.startswith("one of "):
            assert value in re.findall(r"`(\w+)`", kind), (place, value)
            self.choices.add((place, value))
        elif kind in TABLES:
            assert isinstance(value, dict), place
            self.read(value, kind)
        else:
            types = {"text": (str,), "boolean": (bool,), "integer": (int,), "count": (int,),
                     "bytes": (int,), "number": (int, float), "microseconds": (int, float)}
            assert type(value) in types[kind], (place, kind, value)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Several ops, so that there are groups, constants and refusals; names that are not valid
    UTF-8."""
    random = np.random.default_rng(0)
    nodes = [node("Conv", "x w1", "c1", "stem_BYTES_\x07\x1b[31m\"\\", pads=[1] * 4),
             node("Relu", "c1", "r1", "relu"), node("Conv", "r1 w2", "c2", "head", pads=[1] * 4),
             node("Dropout", "c2", "d", "drop"), node("Gather", "d i", "g", "pick", axis=1),
             node("ArgMax", "g", "y", "top", axis=1)]
    made = model_of(nodes, {"x": ["batch", 3, 12, 12], "i": tensor_type(TensorProto.INT64, [4])},
                    {"y": tensor_type(TensorProto.INT64, None), "c2": None},
                    {"w1": normal(random, 16, 3, 3, 3), "w2": normal(random, 16, 16, 3, 3)})
    folder = tmp_path_factory.mktemp("json")
    # The onnx package refuses to write invalid UTF-8; other programs do not.
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString().replace(b"BYTES", b"\xff\xfe\xc3\x28\xed"))
    buffers = folder / "buffers.csv"
    buffers.write_text("id,lower,upper,size\na,0,2,64\nb,1,3,64\n")
    return path


SHAPE = ("--shape", "x=1x3x12x12")


@pytest.fixture
def ask(tessera_binary, tmp_path):
    """The JSON of a command, checked against the page's table `title`."""
    reader = Reader()

    def call(title, *arguments, code=0):
        done = run_program(tessera_binary, *arguments, "--json", code=code, cwd=tmp_path,
                           text=False)
        assert done.stdout.endswith(b"}\n") and not done.stdout.endswith(b"\n\n")
        text = done.stdout.decode("utf-8", errors="strict")

        def refuse(name):
            raise AssertionError(f"{title}: {name} is no JSON")

        found = json.loads(text, parse_constant=refuse)
        assert next(iter(found)) == "format" and found["format"] == 1
        reader.read(found, title)
        return found

    call.reader = reader
    return call


def conditional(path):
    """A model with nested graphs."""
    branches = {name: model_of([node(op, "x", "t")], {}, "t").graph
                for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))}
    return save_model(path, [node("If", "c", "y", **branches)],
                      {"c": tensor_type(onnx.TensorProto.BOOL, ()), "x": [2]}, "y")


def run_all(ask, model, tmp_path, bin_dir):
    """Runs every command in all forms that print different keys."""
    seeded = (*SHAPE, "--random", "1")
    ask("tessera --version", "--version")
    ask("tessera run", "run", model, *seeded, *QUICK, "--output", tmp_path / "out")
    expected = tmp_path / "expected.npy"
    np.save(expected, np.load(tmp_path / "out" / "output_1.npy") + 1)
    assert ask("tessera run", "run", model, *seeded, *QUICK, "--expect", f"#1={expected}",
               code=1)["mismatches"]
    np.save(expected, np.zeros(3, np.float32))
    ask("tessera run", "run", model, *seeded, *QUICK, "--expect", f"#1={expected}", code=1)
    ask("tessera bench", "bench", model, *SHAPE, *QUICK, "--seconds", "0.01", "--no-optimize")
    ask("tessera explain", "explain", model, *SHAPE, *QUICK, "--runs", "2", "--no-optimize")
    ask("tessera explain", "explain", conditional(tmp_path / "nested.onnx"), "--random", "1", "--runs",
        "1", "--no-optimize")
    tuned = ask("tessera tune", "tune", model, *SHAPE, *QUICK, "--all", "--output", tmp_path / "costs.json")
    assert tuned["placement"]["predicted_us"] > 0
    ask("tessera tune --dry-run", "tune", model, *SHAPE, *QUICK, "--dry-run")
    ask("tessera bench", "bench", model, *SHAPE, *QUICK, "--seconds", "0.01", "--optimize")
    ask("tessera bench --streams", "bench", model, *SHAPE, "--seconds", "0.01", "--optimize",
        "--streams", "2")
    ask("tessera bench --requests", "bench", model, "--shape", "x=1..2x3x12x12", *QUICK,
        "--requests", "3", "--optimize")
    ask("tessera explain", "explain", model, *SHAPE, *QUICK, "--optimize", "--runs", "2")
    for options in ((), ("--node", "head")):
        ask("tessera explain", "explain", model, *SHAPE, *QUICK, *options, "--runs", "1",
            "--costs", tmp_path / "costs.json")
    same = ask("tessera diff", "diff", model, model, *SHAPE, *QUICK, "--runs", "1", "--no-optimize")
    assert same["is_equal"] and not same["step_changes"]
    ask("tessera diff", "diff", model, *SHAPE, "--runs", "1", "--no-optimize",
        "--a=--threads 1", "--b=--threads 2 --backends reference", code=1)
    ask("tessera inspect", "inspect", model)
    ask("tessera inspect", "inspect", model, *SHAPE, "--passes", "--weights")
    lacking = model.parent / "lacking.onnx"
    changed = onnx.load_from_string(model.read_bytes().replace(b"\xff\xfe\xc3\x28\xed", b"BYTES"))
    changed.graph.node[1].op_type = "Affine"
    onnx.save(changed, lacking)
    assert ask("tessera inspect", "inspect", lacking, code=2)["missing"][0]["name"] == "Affine"
    bundle = tmp_path / "model.bundle"
    ask("tessera bundle", "bundle", model, *SHAPE, *QUICK, "-o", bundle)
    assert ask("tessera inspect", "inspect", bundle)["bundle"]["parts"]
    assert ask("tessera inspect --ops", "inspect", "--ops")["operators"]
    ask("tessera inspect --memory", "inspect", model, *SHAPE, *QUICK, "--memory")
    fake = bin_dir.parent / "tests" / "backends" / "fake.so"
    memory = ask("tessera inspect --memory", "inspect", model, *SHAPE, "--memory", "--backend-path",
                 fake, "--backends", "fake,reference", "--no-optimize")
    assert memory["device_memory"][0]["weight_bytes"] > 0
    ask("tessera plan-memory", "plan-memory", model.parent / "buffers.csv")
    ask("tessera backends", "backends")
    ask("tessera completion", "completion", "bash")
    folder = tmp_path / "caches"
    # Measures again, because a bind that knows all times writes no file.
    ask("tessera tune", "tune", model, *SHAPE, *QUICK, "--cache-dir", folder)
    # Tests switch measuring off, which is a finding.
    ask("tessera doctor", "doctor", "--cache-dir", folder, code=1)
    ask("tessera cache ls", "cache", "ls", "--cache-dir", folder)
    ask("tessera cache stats", "cache", "stats", "--cache-dir", folder)
    file, = folder.glob("*.cache")
    ask("tessera cache show", "cache", "show", file)
    ask("tessera cache fingerprint", "cache", "fingerprint", model, *SHAPE, *QUICK)
    ask("tessera cache why-miss", "cache", "why-miss", model, *SHAPE, *QUICK, "--cache-dir", folder)
    assert ask("tessera cache why-miss", "cache", "why-miss", model, *SHAPE, *QUICK, "--cache-dir",
               tmp_path / "none", "--backends", "reference", code=1)["is_hit"] is False
    ask("tessera cache export", "cache", "export", "all.export", "--cache-dir", folder)
    ask("tessera cache import", "cache", "import", "all.export", "--cache-dir", tmp_path / "other")
    (folder / "0123456.cache").write_bytes(file.read_bytes()[:-1])
    damaged = ask("tessera cache verify", "cache", "verify", "--cache-dir", folder, code=1)
    assert damaged["cache_count"] == 2 and damaged["caches"][0]["reason"]
    ask("tessera cache prune", "cache", "prune", "--cache-dir", folder)
    ask("tessera cache clear", "cache", "clear", "--cache-dir", folder)
    ask("tessera verify MODEL", "verify", model, *SHAPE, *QUICK)
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"no library")
    ask("tessera verify --backend", "verify", "--backend", broken, code=1)
    for library in sorted((bin_dir.parent / "lib" / "tessera").glob("*native.so"))[:1]:
        ask("tessera verify --backend", "verify", "--backend", library)
    ask("Errors", "inspect", "absent.onnx", code=2)
    ask("Errors", "run", "--frobnicate", code=2)


def test_the_page_and_what_is_printed_agree(ask, model, tmp_path, bin_dir, why_unusable):
    run_all(ask, model, tmp_path, bin_dir)
    compiles = not why_unusable.get("jit", "unknown")
    if compiles:
        ask("tessera bench", "bench", model, *SHAPE, *QUICK, "--no-optimize",
            "--backends", "jit,reference")
    told = {(title, key) for title, table in TABLES.items() for key in table["keys"]}
    missing = told - ask.reader.found
    # Each of these needs something that a small model, or a machine without libraries, does not
    # have.
    rare = {("Port", "capacity_count"), ("Port", "density"), ("Failure", "check"),
            ("Failure", "where"), ("Failure", "message"),
            # Printed only in unusual cases.
            ("Tuning", "notes"), ("tessera verify MODEL", "notes"),
            # Limits and settings that a machine need not have, or not tell.
            ("ProcessorState", "quota"), ("ProcessorState", "governors"),
            ("MemoryState", "group_bytes"), ("MemoryState", "address_space_bytes"),
            ("MemoryState", "locked_bytes"),
            # Known if the nodes of a group were measured alone, too, before the time was over.
            ("Step", "unfused_us"),
            # Known after several larger models were tuned.
            ("Tuning", "gain"), ("Quote", "gain_low"), ("Quote", "gain_high"), ("Quote", "run_count")}
    if not compiles:
        rare |= {("tessera bench", "codegen"), *(("Compiled", key)
                                                 for key in TABLES["Compiled"]["keys"])}
    without_libraries = set()
    if not any(name != "reference" and not reason for name, reason in why_unusable.items()):
        without_libraries = {("tessera verify --backend", "ops"), ("Step", "refusals"),
                             ("Step", "unfused_bytes"), ("Step", "unfused_us"),
                             ("tessera explain", "refusals"),
                             *((shape, key) for shape in ("CheckedOp", "Refusal", "RefusalGroup",
                                                          "Conversion")
                               for key in TABLES[shape]["keys"])}
    assert missing <= rare | without_libraries, "the page tells of keys that nobody printed"


def test_the_name_of_a_key_says_its_kind():
    """So there is exactly one unit for times and one for sizes."""
    for title, table in TABLES.items():
        for key, (kind, _) in table["keys"].items():
            where = f"{title}: {key} ({kind})"
            bare = kind.removesuffix(" or null")
            for unit, suffix in UNITS.items():
                assert (bare == unit) == key.endswith(suffix), where
            assert (bare == "boolean") == key.startswith(("is_", "has_")), where
            assert not key.endswith(OTHER_UNITS), where
            assert key == key.lower() and re.fullmatch("[a-z0-9_]+", key), where


def test_one_name_has_one_kind():
    kinds = {}
    for table in TABLES.values():
        for key, (kind, _) in table["keys"].items():
            bare = kind.removesuffix(" or null").removesuffix(",")
            kinds.setdefault(key, set()).add(re.sub("^one of .*", "one of", bare))
    # "inputs" of steps are ports, "inputs" of nodes are values; both are lists.
    plain = {key: found for key, found in kinds.items()
             if any(not kind.startswith("list of") and kind not in TABLES for kind in found)}
    mixed = {key: found for key, found in plain.items() if len(found) > 1}
    assert mixed == {}


def test_names_of_any_bytes_and_control_characters_stay_apart(ask, model):
    nodes = [node["node"] for node in ask("tessera inspect", "inspect", model)["nodes"]]
    stem, = [name for name in nodes if name.startswith("stem_")]
    assert "\ufffd" in stem and stem.endswith("\x07\x1b[31m\"\\")


def test_two_runs_have_the_same_keys_in_the_same_order(ask, model):
    def keys(value):
        if isinstance(value, dict):
            return [(key, keys(one)) for key, one in value.items()]
        return [keys(one) for one in value] if isinstance(value, list) else None

    first, second = (keys(ask("tessera explain", "explain", model, *SHAPE, *QUICK, "--runs", "1",
                              "--no-optimize")) for _ in range(2))
    assert first == second


def test_a_reader_that_goes_away_gets_no_message(tessera_binary, model):
    reader, writer = os.pipe()
    os.close(reader)
    done = run_program(tessera_binary, "inspect", model, "--json", code=None, stdout=writer,
                       stderr=subprocess.PIPE, text=False)
    os.close(writer)
    assert done.returncode == 3 and done.stderr == b""
