"""Which backends the cases run on: the default ones, and with --long each list of libraries."""

LISTS = ("native", "onednn,native")  # the reference takes what they refuse


def pytest_generate_tests(metafunc):
    if "backends" in metafunc.fixturenames:
        is_long = metafunc.config.getoption("--long")
        # Files of few cases run on all lists always.
        is_thorough = is_long or getattr(metafunc.module, "RUNS_ON_ALL_LISTS", False)
        metafunc.parametrize("backends", ["", *(LISTS if is_thorough else ())],
                             ids=lambda backends: backends or "default")
