#!/usr/bin/env python3
"""Runs random models with nested graphs through a Python module that was built under sanitizers: each
model at three sizes, one of ten also chosen by measuring, with equal results. Other runtimes are left
out: nested_judge.py compares with them, and this finds errors of memory.

example: tools/build asan -DTESSERA_PYTHON=ON tessera_python tessera_python_package &&
  tests/fuzz/nested_memory.py --module-dir build/asan/python --count 5000"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The runtime comes before everything else in the process, which is not sanitized itself.
CLANG = "clang-19"
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
              "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def check(module_dir, seeds):
    """In a process of its own. Prints each seed that is done, and what is wrong."""
    sys.path[:0] = [str(HERE), module_dir]
    import nested_graphs
    import nested_judge
    import tessera

    for seed in seeds:
        model, feeds = nested_graphs.draw(seed)
        results = []
        for optimize in (False, True) if seed % nested_judge.OPTIMIZED == 0 else (False,):
            try:
                executor = tessera.load(model.SerializeToString(), log=lambda message: None).bind(
                    None, optimize=optimize, in_process=True, tune_budget_seconds=0.5)
                results.append([executor.run(feed) for feed in feeds])
            except tessera.Error as error:
                results.append(f"{type(error).__name__}: {error}")
        plain, measured = results[0], results[-1]
        if isinstance(plain, str) or isinstance(measured, str):
            line = "" if plain == measured else f"{plain}; measured: {measured}"
        else:
            line = nested_judge.explain_runs(plain, measured)
        print(seed, line.replace("\n", " "), flush=True)


def runtime():
    found = subprocess.run([CLANG, "-print-file-name=libclang_rt.asan-x86_64.so"],
                           capture_output=True, text=True, check=True)
    return found.stdout.strip()


def run_all(arguments, environment):
    """Starts another process after one that ended early. Returns the number of findings."""
    seed, end, found = arguments.first, arguments.first + arguments.count, 0
    while seed < end:
        process = subprocess.Popen(
            [sys.executable, __file__, "--here", "--module-dir", arguments.module_dir, "--first",
             str(seed), "--count", str(end - seed)], env=environment, stdout=subprocess.PIPE,
            text=True)
        for line in process.stdout:
            done, _, wrong = line.rstrip("\n").partition(" ")
            seed = int(done) + 1
            if wrong:
                found += 1
                print(f"seed {done}: {wrong}", flush=True)
        if process.wait() != 0:
            found += 1
            print(f"seed {seed}: the process ended with {process.returncode}", flush=True)
            seed += 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module-dir", default="build/asan/python", help="folder of the module")
    parser.add_argument("--first", type=int, default=0, help="the first model's number")
    parser.add_argument("--count", type=int, default=100, help="of models")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        first = arguments.first
        check(arguments.module_dir, range(first, first + arguments.count))
        return 0
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **SANITIZERS, "LD_PRELOAD": runtime(),
                       "TESSERA_CACHE_DIR": cache}
        found = run_all(arguments, environment)
    print(f"{arguments.count} models, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
