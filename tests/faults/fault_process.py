"""A process in which a call may fail: saves or loads artifacts of binding, runs once, and writes
the output. It reports an exception on stderr, with exit code 1.

usage: fault_process.py save|load MODEL CACHE OUTPUT BACKENDS"""

import sys

import numpy as np
import tessera


def main():
    action, path, cache, output, backends = sys.argv[1:]
    model = tessera.load(path)
    if action == "load":
        model.load_cache(cache)
    executor = model.bind(threads=1, optimize=True, swap=False, backends=backends.split(","))
    if action == "save":
        model.save_cache(cache, include_packs=True)
    random = np.random.default_rng(1)
    inputs = {one.name: random.standard_normal(list(one.shape), dtype=np.float32)
              for one in executor.inputs}
    result, = executor.run(inputs)
    np.save(output, result)


try:
    main()
except Exception as error:  # report any exception of the module, never as a traceback
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(1)
