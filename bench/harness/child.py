"""A process that run_process() starts. Its arguments are a module and a function of it; the task is
JSON on stdin, and what the function returns becomes JSON on stdout."""

import importlib
import json
import os
import pathlib
import sys


def main():
    module, function = sys.argv[1:]
    task = json.load(sys.stdin)
    if "cores" in task:
        os.sched_setaffinity(0, task["cores"])
    # Runtimes may print to stdout; send that to stderr and keep stdout for the result.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    sys.path.insert(0, task["module_dir"])
    try:
        json.dump(getattr(importlib.import_module(module), function)(task), answer)
        answer.flush()
        code = 0
    except SystemExit as exit:
        print(exit, file=sys.stderr, flush=True)
        code = 1
    if not task.get("has_destructors", False):
        # Runtimes that share a process may depend on the order in which they are destroyed.
        os._exit(code)


if __name__ == "__main__":
    main()
