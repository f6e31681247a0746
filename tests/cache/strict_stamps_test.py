"""An index is kept only if nobody was seen writing to the model's files while they were read."""

import os
import shutil

import pytest
from programs import run_program
from settled import wait_until_settled

SHAPE = ("--shape", "x=1x16x24x24", "--threads", "1", "--random", "1")
STRANGER = 12345


@pytest.fixture
def model(make_model):
    """A model that was last changed long enough ago that its stamp is trusted."""
    path = make_model()
    wait_until_settled()
    return path


@pytest.fixture
def indices(call, tmp_path):
    """Runs `tessera run --optimize`; returns the indices that exist afterwards."""

    def run(model, *arguments):
        _, _, errors = call("run", model, "--optimize", *SHAPE, *arguments)
        return list((tmp_path / "user" / "tessera" / "models").glob("*.model"))

    return run


@pytest.mark.parametrize("options", [(), ("--strict-stamps",)])
def test_no_index_while_somebody_writes(indices, model, options):
    with open(model, "r+b"):
        assert indices(model, *options) == []
    assert len(indices(model, *options)) == 1


def test_strict_stamps_have_an_index_of_their_own(indices, model):
    assert len(indices(model)) == 1
    assert len(indices(model, "--strict-stamps")) == 2


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"),
                    reason="only root can give up the right to take leases")
def test_a_lease_that_nobody_may_take_counts_only_where_it_is_wanted(model, tessera_binary, environment,
                                                                     tmp_path, work):
    os.chown(model, STRANGER, STRANGER)
    wait_until_settled()

    def run(*arguments):
        run_program("setpriv", "--bounding-set=-lease", "--inh-caps=-lease", tessera_binary, "run",
                    model, "--optimize", *SHAPE, *arguments, env=environment, cwd=work)
        return list((tmp_path / "user" / "tessera" / "models").glob("*.model"))

    assert run("--strict-stamps") == []
    assert len(run()) == 1
