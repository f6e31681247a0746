"""The arguments of programs: their types, those that several programs share, and the models that
--models names."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from harness import ROOT

ZOO = ROOT / "build" / "zoo"
ZOO_SOURCE = ROOT.parent / "shared" / "zoo"
RELEASE = ROOT / "build" / "release"
PROGRAM = pathlib.Path(sys.argv[0]).stem


def fail(message):
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    sys.exit(2)


# --- Types ---


def wrong(expected, text):
    return argparse.ArgumentTypeError(f"expected {expected}, found '{text}'")


def whole_number(text):
    if not text.isdecimal() or int(text) < 1:
        raise wrong("a whole number of at least 1", text)
    return int(text)


def whole_numbers(text):
    return [whole_number(part) for part in text.split(",")]


def positive_number(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise wrong("a number above 0", text)
    return number


def named_shape(text):
    name, _, dims = text.rpartition("=")
    if not name:
        raise wrong("NAME=DIMxDIM..., as tokens=1x128", text)
    return name, [whole_number(dim) for dim in dims.split("x")]


def some_of(known):
    """The type of a list of names that are among `known`."""
    def names(text):
        found = [name for name in text.split(",") if name]
        for name in found:
            if name not in known:
                raise wrong("some of " + ", ".join(known), name)
        return found

    return names


# --- Arguments ---

# By the type of the default: the type of the argument, and what its help calls it.
TYPES = {int: (whole_number, "N"), float: (positive_number, "NUMBER"),
         list: (whole_numbers, "LIST"), str: (str, "LIST"), type(RELEASE): (pathlib.Path, "PATH")}

# Name: default, what it is.
SHARED = {
    "models": ("", "names of the zoo, or files, separated by commas (default: the whole zoo)"),
    "threads": ([1, 2], "numbers of threads, separated by commas"),
    "tune_budget": (0.0, "most seconds for measuring prices, if not as many as a bind takes"),
    "least": (0.98, "the ratio below which no whole interval may lie"),
    "module_dir": (RELEASE / "python", "folder of the Python module"),
    "tessera": (RELEASE / "bin" / "tessera", "the program"),
}


class Parser(argparse.ArgumentParser):
    def __init__(self, description, example):
        super().__init__(description=description,
                         formatter_class=argparse.RawDescriptionHelpFormatter,
                         epilog=f"example: bench/{PROGRAM}.py {example}")

    def option(self, flag, default, text="", type=None, metavar=None, **more):
        """An option with a value. Without `type`, it has that of the default: whole numbers of at
        least 1, numbers above 0, texts, paths."""
        usual, word = TYPES.get(default.__class__, (None, None))
        if default or default == 0 and type:
            shown = (",".join(map(str, default)) if isinstance(default, list)
                     else f"{default:g}" if isinstance(default, float)
                     else str(default).removeprefix(f"{ROOT}/"))
            text = f"{text} (default: {shown})".strip()
        self.add_argument(flag, type=type or usual, default=default, metavar=metavar or word,
                          help=text.replace("%", "%%"), **more)

    def flag(self, flag, text):
        self.add_argument(flag, action="store_true", help=text)

    def share(self, *names, **defaults):
        """Arguments of SHARED, and with other defaults. `json` is a file, `shape` may be
        repeated."""
        for name in (*names, *defaults):
            if name == "json":
                self.option("--json", None, "write everything that was measured", pathlib.Path,
                            "FILE")
            elif name == "shape":
                self.option("--shape", [], "of an input that the model leaves open; repeatable",
                            named_shape, "NAME=DIMxDIM", action="append")
            else:
                usual, text = SHARED[name]
                default = defaults.get(name, usual)
                if name == "threads" and isinstance(default, int):
                    text = "number of threads"
                self.option("--" + name.replace("_", "-"), default, text)

    def parse(self):
        """The arguments, after checks: there are as many cores as threads, and what they name
        exists. `models` becomes name -> file. Makes the module `tessera` importable."""
        arguments = self.parse_args()
        told = vars(arguments)
        threads, cores = told.get("threads", 1), len(os.sched_getaffinity(0))
        most = max(threads) if isinstance(threads, list) else threads
        if most > cores:
            self.error(f"argument --threads: {most} threads, but this process may use {cores} "
                       "cores")
        if "tessera" in told and not arguments.tessera.is_file():
            fail(f"there is no {arguments.tessera}: tools/build release")
        if "module_dir" in told:
            arguments.module_dir = find_module(arguments.module_dir)
            sys.path.insert(0, str(arguments.module_dir))
        if "models" in told:
            arguments.models = find_models(arguments.models, told.get("folder"))
        return arguments


def find_module(folder):
    """The folder of a build with its Python module; exits if that is not built."""
    if not any(folder.glob("tessera/_core*")):
        fail(f"no Python module in {folder}: tools/build release")
    return folder.resolve()


# --- Models ---


def make_weights(name):
    """The model of the zoo with its weights, which are generated if they are missing."""
    if not (ZOO / name / "weights.bin").exists():
        unfinished = ZOO / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run([sys.executable, ZOO_SOURCE / "make_weights.py", unfinished, name],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(ZOO / name, ignore_errors=True)
        (unfinished / name).rename(ZOO / name)
    return ZOO / name / "model.onnx"


def name_of(path):
    return path.parent.name if path.stem == "model" else path.stem


def find_models(text, folder=None):
    """Name -> file of the models in `text`, or of all in `folder`, or of the zoo."""
    if folder:
        files = sorted(folder.rglob("*.onnx"))
        models = {name_of(path): path.resolve() for path in files}
        if not files:
            fail(f"--folder: no .onnx files in {folder}")
        if len(models) < len(files):
            fail(f"--folder: several files have the same name in {folder}")
        return models
    in_zoo = {path.parent.name for folder in (ZOO, ZOO_SOURCE)
              for path in folder.glob("*/model.onnx")} - {"unfinished"}
    if not text and not in_zoo:
        fail(f"no models in {ZOO}: name some with --models FILE,...")
    models = {}
    for word in text.split(",") if text else sorted(in_zoo):
        path = pathlib.Path(word)
        if word in in_zoo:
            models[word] = make_weights(word)
        elif path.is_file():
            models[name_of(path)] = path.resolve()
        else:
            fail(f"--models: '{word}' is neither a file nor a model of the zoo, which has "
                 + (", ".join(sorted(in_zoo)) or "none"))
    return models
