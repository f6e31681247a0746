"""Options that the pytest files share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption(
        "--bin-dir",
        default=str(ROOT / "build" / "release" / "bin"),
        help="folder with the programs to test",
    )


@pytest.fixture(scope="session")
def bin_dir(request):
    return Path(request.config.getoption("--bin-dir")).resolve()
