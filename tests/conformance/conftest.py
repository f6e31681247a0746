"""The backends on which the cases run: the default ones, and with --long each list of libraries and
each other backend."""

LISTS = ("native", "onednn,native")  # the reference computes nodes that they refuse
LONG_LISTS = (*LISTS, "jit", "opencl", "openvino")


def pytest_generate_tests(metafunc):
    if "backends" in metafunc.fixturenames:
        is_long = metafunc.config.getoption("--long")
        # Files with few cases always run on all lists.
        is_thorough = is_long or getattr(metafunc.module, "RUNS_ON_ALL_LISTS", False)
        lists = LONG_LISTS if is_long else LISTS if is_thorough else ()
        metafunc.parametrize("backends", ["", *lists],
                             ids=lambda backends: backends or "default")
