#!python
# The command `tessera` of the wheel: becomes the program in the package's folder. It does not
# import the package, which would take longer than most commands.
import importlib.util
import os
import sys

spec = importlib.util.find_spec("tessera")
if spec is None or spec.origin is None:
    sys.exit(f"tessera: InvalidArgument: package 'tessera': expected it among the packages of "
             f"{sys.executable}, found none; install the wheel with this Python's pip")
program = os.path.join(os.path.dirname(spec.origin), "tessera")
try:
    os.execv(program, ["tessera", *sys.argv[1:]])
except OSError as error:
    sys.exit(f"tessera: InvalidArgument: program '{program}': expected that of the wheel, found: "
             f"{error.strerror}; if PYTHONPATH names another copy of the package, unset it")
