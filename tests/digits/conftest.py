"""Without --long, each backend gets every fourth of the values of each test, and the next backend
the ones beside them: there are more backends than four, so each value is still used."""

import pathlib

FOLDER = pathlib.Path(__file__).parent
SHARE = 4


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    seen = {}  # by test: the values so far, and the backends

    def is_chosen(item):
        if item.path.parent != FOLDER:
            return True
        values, backends = seen.setdefault(item.originalname, ([], []))
        parameters = dict(item.callspec.params)
        backend = parameters.pop("run")
        key = repr(parameters)
        for known, one in ((values, key), (backends, backend)):
            if one not in known:
                known.append(one)
        return (values.index(key) + backends.index(backend)) % SHARE == 0 or not parameters

    chosen, left_out = [], []
    for item in items:
        (chosen if is_chosen(item) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
