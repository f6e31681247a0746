"""Arguments: suggestions for unknown names, sizes, files to write, standard input, exit codes."""

import json
import os
import pathlib
import pty
import re

import numpy as np
import pytest
from programs import run_program
from small_models import node, save_model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REFERENCE = ("--backends", "reference")
RUN = ("run", "model.onnx", "--random", "1", *REFERENCE)


def write_model(path, external=False, columns=300):
    """softmax(picture + weight), with the nodes of two blocks."""
    weight = np.ones((2, columns), np.float32)
    save_model(path,
               [node("Add", "picture weight", "sum", "layer1/add"),
                node("Softmax", "sum", "scores", "layer2/softmax")], {"picture": [2, columns]},
               {"scores": [2, columns]}, {"weight": weight}, is_external=external)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    write_model(folder / "model.onnx")
    (folder / "file").write_text("")
    (folder / "there").mkdir()
    return folder


@pytest.fixture
def call(tessera_binary, folder):
    """Calls the program in the folder; returns exit code, stdout and stderr."""

    def call(*arguments, **options):
        done = run_program(tessera_binary, *arguments, text=False, **{"cwd": folder} | options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return call


# Arguments, and a part of stderr; the exit code is 2.
UNKNOWN = [
    (["run", "--bogus"], "tessera run: there is no option '--bogus'; 'tessera run --help' lists"),
    (["run", "--thread", "2"],
     "tessera run: there is no option '--thread'; did you mean '--threads'?"),
    (["bench", "model.onnx", "x", "--tread=2"],
     "there is no option '--tread'; did you mean '--threads'?"),
    (["rn", "model.onnx"], "tessera: there is no command 'rn'; did you mean 'run'?"),
    (["cache", "prun"], "tessera cache: there is no command 'prun'; did you mean 'prune'?"),
    (["cache", "ls", "--jsn"],
     "tessera cache ls: there is no option '--jsn'; did you mean '--json'?"),
    (["run"], "tessera run: expected MODEL, found none"),
    (["plan-memory"], "tessera plan-memory: expected FILE, found none"),
    (["run", "a.onnx", "b.onnx"], "expected one MODEL, found 'a.onnx' and 'b.onnx'"),
    (["run", "model.onnx", "--threads"], "expected a value after '--threads', found nothing"),
    (["run", "model.onnx", "--threads", "--frozen"],
     "expected a value after '--threads', found '--frozen'"),
    (["run", "model.onnx", "--output", ""],
     "expected a value for '--output', found an empty text"),
    (["run", "model.onnx", "--threads=1", "--threads=2"],
     "expected '--threads' once, found it twice"),
    (["run", "model.onnx", "--threads", "-1"], "--threads '-1': expected a whole number from 0"),
    ([*RUN, "--precision", "flaot32"], "expected float32 or bfloat16; did you mean 'float32'?"),
    ([*RUN, "--swap", "of"], "--swap 'of': expected off or on; did you mean 'o"),
    ([*RUN, "--optimize-for", "latncy"], "did you mean 'latency'?"),
    ([*RUN, "--device", "gpu"], "device 'gpu': expected a device of the backends that are used"),
    ([*RUN, "--rtol", "abc"], "--rtol 'abc': expected a finite number of at least 0"),
    (["run", "model.onnx", "--random", "1", "--backends", "referense"],
     "found no backend of this name; did you mean 'reference'?"),
    (["run", "model.onnx", "--random", "1", "--backends", "tensorr"], "did you mean 'tensorrt'?"),
    ([*RUN, "--pin", "layer1/add=refernce"], "did you mean 'reference'?"),
    ([*RUN, "--pin", "layer1/ad=reference"], "did you mean 'layer1/add'?"),
    ([*RUN, "--pin", "layr1/*=reference"], "did you mean 'layer1/*'?"),
    ([*RUN, "--pin", "layer2/softmax=reference:referense"],
     "one kernel for it, without a name: pin layer2/softmax=reference"),
    ([*RUN, "--exclude", "refernce"], "did you mean 'reference'?"),
    ([*RUN, "--exclude", "reference:Cnov"],
     "exclusion of 'reference:Cnov': expected an op of ONNX or of a plug-in, found 'Cnov'; "
     "did you mean 'Conv'?"),
    (["verify", "model.onnx", *REFERENCE, "--exclude", "reference:Cnov"], "did you mean 'Conv'?"),
    ([*RUN, "--exclude", "reference:Frobnicate"], "found 'Frobnicate'\n"),
    ([*RUN, "--layout", "pictur=csr"], "did you mean 'picture'?"),
    ([*RUN, "--layout", "picture=crs:3"], "found 'crs:3'; did you mean 'csr'?"),
    ([*RUN, "--input", "pictur=x.npy"], "its inputs are #0 'picture'; did you mean 'picture'?"),
    ([*RUN, "--shape", "picure=2x300"], "did you mean 'picture'?"),
    ([*RUN, "--expect", "score=x.npy"], "did you mean 'scores'?"),
    (["explain", "model.onnx", *REFERENCE, "--runs", "1", "--node", "layer1/ad"],
     "did you mean 'layer1/add'?"),
    # Options without an effect are errors.
    (["inspect", "model.onnx", "--memory-budget", "1M"], "expected --memory or --svg beside options"),
    (["inspect", "model.onnx", "--threads", "some"], "expected --memory or --svg beside options"),
    (["run", "model.onnx", "--random", "1", "--optimize", "--cache-dir", "file"],
     "cache_dir 'file': expected a folder, or a path where nothing is yet; found a file"),
    (["cache", "ls", "--cache-dir", "absent"], "--cache-dir 'absent': there is no such folder"),
    (["cache", "prune", "--cache-dir", "absent"], "--cache-dir 'absent': there is no such folder"),
    (["verify", "model.onnx", "--cases", "2"], "--seed, --cases and --timeout have an effect only"),
    (["verify", "--backend", "file", "--threads", "2"], "with --backend, only --seed, --cases"),
    (["inspect", "model.onnx", "--memory", "--weights"], "--passes and --weights without --memory"),
    ([*RUN, "--dump-values", "both", "--fetch-steps", "both"],
     "expected one option to write it, found two"),
    (["verify"], "expected MODEL or --backend, found neither; 'tessera verify --help'"),
]  # fmt: skip


def test_what_is_not_known_is_answered_with_the_likely_one(call):
    for arguments, text in UNKNOWN:
        code, output, errors = call(*arguments, code=None)
        assert (code, output) == (2, ""), (arguments, errors)
        assert text in errors, (arguments, errors)


def test_json_has_the_same_message(call):
    for arguments, where in ((["run", "--thread", "2"], "tessera run"), (["rn"], "tessera")):
        code, output, errors = call(*arguments, "--json", code=None)
        error = json.loads(output)["error"]
        assert code == 2 and (error["kind"], error["where"]) == ("invalid_argument", where)
        assert errors == f"{where}: {error['message']}\n"


def test_json_stands_behind_the_command(call):
    _, output, errors = call("--json", "backends", code=2)
    assert "write it after the command's name" in errors
    assert json.loads(output)["error"]["kind"] == "invalid_argument"


def test_known_names_are_taken(call):
    rows = [
        ("--exclude", "reference:Conv"),  # the model has no such op
        ("--pin", "layer1/*=reference", "--pin", "layer2/softmax=reference"),
        ("--threads=1", "--swap=off", "--memory-budget", "1G", "--", ),
    ]  # fmt: skip
    for row in rows:
        _, _, errors = call(*RUN, *row)


def test_python_hears_the_likely_name_too(tessera, folder):
    model = tessera.load(folder / "model.onnx")
    rows = [
        ({"backends": ["referense"]}, "did you mean 'reference'"),
        ({"exclude": [tessera.Exclusion("reference", "Sofmax")]}, "did you mean 'Softmax'"),
        ({"pins": [tessera.Pin("layer1/ad", "reference")]}, "did you mean 'layer1/add'"),
        ({"shapes": {"pictur": (2, 300)}}, "did you mean 'picture'"),
        ({"fetch": ["sun"]}, "did you mean 'sum'"),
        ({"optimize_for": "strat"}, "did you mean 'start'"),
    ]  # fmt: skip
    for options, text in rows:
        with pytest.raises(tessera.InvalidArgument, match=re.escape(text)):
            model.bind(**options)


def test_sizes_have_units(call, folder):
    (folder / "buffers.csv").write_text("id,lower,upper,size\na,0,2,1048576\nb,1,3,524288\n")
    rows = [("1M", 2), ("1.5M", 0), ("1.5MiB", 0), ("1536k", 0), ("1572864", 0), ("1572863", 1),
            ("1T", 0)]  # fmt: skip
    for size, expected in rows:
        _, output, errors = call("plan-memory", "buffers.csv", "--capacity", size,
                                 code=1 if size == "1M" else expected)
    commands = (["run"], ["bench"], ["tune"], ["explain"], ["inspect", "--memory"])
    refused = [[*command, "model.onnx", "--memory-budget"] for command in commands]
    refused += [["plan-memory", "buffers.csv", "--capacity"], ["cache", "prune", "--limit"]]
    for arguments in refused:
        _, _, errors = call(*arguments, "1X", code=2)
        assert "expected a size such as 512M or 1.5G, found '1X'" in errors, errors
    for size in ("-1M", "nan", "1e6", "8388608T", "1MB", "0"):
        _, _, errors = call(*RUN, f"--memory-budget={size}", code=2)
        assert "--memory-budget" in errors and f"found '{size}'" in errors
    call(*RUN, "--memory-budget", "1M")
    _, _, errors = call(*RUN, "--memory-budget", "1K", code=3)
    assert "OutOfMemory" in errors
    _, _, errors = call("cache", "prune", "--limit", "8192", code=2)
    assert "expected a size with its unit" in errors
    for size in ("0", "8G"):
        call("cache", "prune", "--limit", size, "--cache-dir", "there")


def test_a_missing_folder_is_told_before_the_model_is_loaded(call):
    files = [(["explain"], "--html"), (["explain"], "--onnx"), (["inspect"], "--svg"),
             (["tune"], "--output"), (["run"], "--trace"), (["bench"], "--trace")]  # fmt: skip
    paths = [("out/a", "the folder 'out' does not exist; create it first"),
             ("file/a", "'file' is a file, not a folder"),
             ("there", "'there' is a folder, not a file")]  # fmt: skip
    for command, option in files:
        for path, text in paths:
            _, _, errors = call(*command, "absent.onnx", option, path, code=2)
            assert f"InvalidArgument: {option} '{path}': {text}" in errors, errors
    for option in ("--output", "--save-inputs", "--dump-values", "--fetch-steps"):
        _, _, errors = call("run", "absent.onnx", option, "file/in/it", code=2)
        assert f"{option} 'file/in/it': 'file' is a file, not a folder" in errors
    _, _, errors = call("cache", "export", "out/a", code=2)
    assert "FILE 'out/a': the folder 'out' does not exist" in errors


def test_a_closed_folder_is_told(call, folder):
    if os.geteuid() == 0:
        pytest.skip("no folder is closed to root")
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    _, _, errors = call("run", "absent.onnx", "--trace", "closed/a", code=2)
    assert "cannot be written into the folder 'closed': Permission denied" in errors


def test_a_model_comes_from_standard_input(call, folder):
    model = (folder / "model.onnx").read_bytes()
    commands = [["run", "--random", "1"], ["bench", "--seconds", "0.01"],
                ["explain", "--runs", "1"],
                ["tune"], ["inspect"], ["inspect", "--memory"], ["verify"],
                ["cache", "fingerprint"],
                ["run", "--random", "1", "--dump-values", "there"]]  # fmt: skip
    for command in commands:
        backends = [] if command == ["inspect"] else REFERENCE
        _, output, errors = call(*command, "-", *backends, input=model)
        assert output, (command, errors)
    with open(folder / "model.onnx", "rb") as file:
        code, output, _ = call("inspect", "-", "--json", code=None, stdin=file)
    assert code == 0 and json.loads(output)["model"] == "standard input"
    given = call(*RUN)[1].splitlines()[0]
    assert call("run", "-", *RUN[2:], input=model)[1].splitlines()[0] == given


def test_a_model_from_standard_input_uses_caches(call, tmp_path):
    # Results for a small model are not kept in a file, because they are found again soon.
    write_model(tmp_path / "wide.onnx", columns=30_000)
    model = (tmp_path / "wide.onnx").read_bytes()
    options = ("-", *REFERENCE, "--threads", "1", "--cache-dir", tmp_path)

    def piped(*arguments):
        return call(*arguments, input=model, code=None)

    assert piped("cache", "why-miss", *options)[0] == 1
    assert piped("run", *options, "--random", "1", "--optimize")[0] == 0
    assert piped("cache", "why-miss", *options)[0] == 0
    assert piped("run", *options, "--random", "1", "--frozen", "--optimize")[0] == 0
    # A model from a file has the cache of an equal model from standard input.
    call("cache", "why-miss", tmp_path / "wide.onnx", *options[1:])


def test_what_is_no_model_on_standard_input(call, tmp_path):
    _, _, errors = call("run", "-", code=2)
    assert "standard input: expected a model, found nothing" in errors
    _, _, errors = call("run", "-", code=2, input=b"hello world")
    assert "InvalidModel: standard input" in errors
    main, terminal = pty.openpty()
    try:
        code, _, errors = call("run", "-", code=None, stdin=terminal)
    finally:
        os.close(main)
        os.close(terminal)
    assert code == 2 and "standard input: expected a model, found a terminal" in errors
    write_model(tmp_path / "model.onnx", external=True)
    arguments = ("run", "-", *RUN[2:])
    with open(tmp_path / "model.onnx", "rb") as file:
        call(*arguments, stdin=file, cwd=tmp_path)
    with open(tmp_path / "model.onnx", "rb") as file:
        code, _, errors = call(*arguments, code=None, stdin=file)
    assert code == 2 and "'weights.bin', which does not exist" in errors
    assert "the working folder" in errors


def command_names(call, *path):
    """The commands that help lists, including subcommands."""
    text = call(*path, "--help")[1]
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.M)
    if listed is None:
        return [path]
    names = re.findall(r"^  (\S+)", listed[1], re.M)
    return [name for first in names for name in command_names(call, *path, first)]


def test_every_command_has_help_with_an_example(call):
    commands = command_names(call)
    assert ("run",) in commands and ("cache", "ls") in commands and len(commands) >= 17
    for command in commands:
        _, text, _ = call(*command, "--help")
        assert f"Example:\n  tessera {' '.join(command)}" in text, command
        assert not re.search(r"\b(TEXT|INT|FLOAT)\b", text), "an option's value has no name"
        assert "--json" in text and max(map(len, text.splitlines())) <= 100, command
        assert call(*command, "-h")[1] == text


def test_exit_codes_are_documented(call):
    header = (ROOT / "cli" / "commands" / "command.h").read_text()
    enumerators = re.search(r"enum ExitCode : int \{(.*?)\};", header, re.S)[1]
    codes = [int(code) for code in re.findall(r"= (\d+),", enumerators)]
    assert codes == [0, 1, 2, 3]
    shown = re.findall(r"^  (\d)  (.*)$", call("--help")[1].split("Exit codes (docs/command_line.md):\n")[1], re.M)
    assert [int(code) for code, _ in shown] == codes
    documented = re.findall(r"^\| (\d) \| (.*?) \|",
                            (ROOT / "docs" / "command_line.md").read_text(), re.M)
    assert documented == shown
