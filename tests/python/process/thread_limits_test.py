"""Numbers of threads that are too large, and a system that starts no further thread."""

import os
import pathlib
import tempfile
import textwrap

import numpy as np
import pytest
from programs import run_python

TOO_MANY = (4097, 65_535, 65_536, 1_000_000, 2**31 - 1, -1)
NOBODY = 65534


@pytest.mark.parametrize("threads", TOO_MANY)
def test_too_many_threads_are_refused(tessera, doubling_model, threads):
    model = tessera.load(doubling_model)
    refused = pytest.raises(tessera.InvalidArgument,
                            match="option 'threads': expected 0 .* to 4096, " f"found {threads}")
    with refused:
        model.bind({"x": (1, 3)}, threads=threads)
    with refused:
        tessera.load(doubling_model, threads=threads)
    with refused:
        tessera.Pool(model, {"x": (1, 3)}, executors=1, threads=threads)
    with pytest.raises(tessera.InvalidArgument, match="option 'executors' of the pool"):
        tessera.Pool(model, {"x": (1, 3)}, executors=threads)


@pytest.mark.parametrize("threads", (4097, 65_536, 2**31 - 1))
def test_too_many_threads_of_a_session_are_refused(tessera, doubling_model, threads):
    options = tessera.SessionOptions()
    options.intra_op_num_threads = threads
    with pytest.raises(tessera.Error, match=f"option 'threads': .*found {threads}"):
        session = tessera.InferenceSession(doubling_model, options)
        session.run(None, {"x": np.ones((1, 3), np.float32)})


def test_the_most_threads_run(tessera, doubling_model):
    executor = tessera.load(doubling_model).bind({"x": (50, 3)}, threads=4096)
    assert executor.threads == 4096
    assert (executor.run(np.ones((50, 3), np.float32))[0] == 2).all()


# Each prints "ok", or the error of the library.
PROGRAMS = {
    "bind": "model.bind({'x': (4, 3)}, threads=4).run(x)",
    "measure": "model.bind({'x': (4, 3)}, threads=4, optimize='now').run(x)",
    "measure behind": """
        executor = model.bind({'x': (4, 3)}, threads=4, optimize='behind')
        for _ in range(5):
            executor.run(x)
        executor.wait_for_swap()
        executor.run(x)""",
    "pool": "tessera.Pool(model, {'x': (4, 3)}, executors=3).submit({'x': x}).result()",
    "session": "tessera.InferenceSession(path).run(None, {'x': x})",
    "load": "tessera.load(path, threads=4)",
    "large": """
        big = np.ones((200_000, 3), np.float32)
        model.bind({'x': (200_000, 3)}, threads=4).run(big)""",
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("limit", (1, 2))
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_system_that_starts_no_thread(tessera, doubling_model, request, program, limit):
    """It is an error with kind and place, or no error, but never the end of the process."""
    # Folders of pytest can be read by their user only.
    temporary = tempfile.TemporaryDirectory()
    request.addfinalizer(temporary.cleanup)
    folder = pathlib.Path(temporary.name)
    folder.chmod(0o777)
    path = folder / "model.onnx"
    path.write_bytes(pathlib.Path(doubling_model).read_bytes())
    path.chmod(0o644)
    code = textwrap.dedent("""
        import os, resource, sys
        import numpy as np, tessera
        path = sys.argv[1]
        model = tessera.load(path, threads=1)
        x = np.ones((4, 3), np.float32)
        os.setgid(65534)
        os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (MOST, MOST))
        try:
        PROGRAM
            print("ok")
        except tessera.Error as error:
            print(type(error).__name__, error)
        """).replace("MOST", str(limit)).replace(
            "PROGRAM", textwrap.indent(textwrap.dedent(PROGRAMS[program]).strip(), "    "))
    result = run_python(tessera, code, path, cwd=folder, variables={
        "OPENBLAS_NUM_THREADS": "1", "HOME": folder, "XDG_CACHE_HOME": folder})
    printed = result.stdout.strip()
    kind, _, message = printed.partition(" ")
    assert printed == "ok" or (kind in ("OutOfMemory", "RuntimeException")
                               and message.startswith("option 'threads': expected")), printed
