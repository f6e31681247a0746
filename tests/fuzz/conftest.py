"""Shared by the fuzzers' tests: the processes that run models, and valid uses of all ops."""

import pytest

from make_seeds import known_ops
from runner import Runner, usable_backends
from seeds import collect_seeds


@pytest.fixture(scope="session")
def runner(bin_dir):
    with Runner(bin_dir, usable_backends(bin_dir)) as runner:
        yield runner


@pytest.fixture(scope="session")
def seeds(bin_dir):
    return collect_seeds(known_ops(bin_dir))


@pytest.fixture(scope="session")
def newest_seeds(seeds):
    """The seeds of each op's newest version that the onnx package knows."""
    newest = {}
    for domain, op, version in seeds:
        newest[domain, op] = max(version, newest.get((domain, op), 0))
    return {key: found for key, found in seeds.items() if newest[key[:2]] == key[2]}
