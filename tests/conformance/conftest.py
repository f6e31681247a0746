"""The backends on which the cases run: the default ones, and with --long each list of libraries."""

LISTS = ("native", "onednn,native")  # the reference computes what they refuse


def pytest_generate_tests(metafunc):
    if "backends" in metafunc.fixturenames:
        is_long = metafunc.config.getoption("--long")
        # Files with few cases always run on all lists.
        is_thorough = is_long or getattr(metafunc.module, "RUNS_ON_ALL_LISTS", False)
        metafunc.parametrize("backends", ["", *(LISTS if is_thorough else ())],
                             ids=lambda backends: backends or "default")
