"""A minute of tools/soak: many processes, some killed, in one working folder and one user's folder.
"""

import pathlib
import re
import signal
import subprocess
import time

import pytest
import soak_run

pytestmark = pytest.mark.alone

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MINUTES = 0.8
LONG_MINUTES = 20


@pytest.fixture
def command(bin_dir, tessera, why_unusable, tmp_path):
    backends = [name for name in ("onednn", "native") if not why_unusable.get(name, "unknown")]
    if not backends:
        pytest.skip("neither onednn nor native is usable")
    return [ROOT / "tools" / "soak", "--bin-dir", bin_dir, "--out", tmp_path / "soak", "--backends",
            ",".join(backends)]


def figure(text, name):
    return int(re.search(rf"\b{name}: (\d+)", text)[1])


def test_every_output_is_that_of_a_fresh_process(command, is_long, tmp_path):
    minutes = LONG_MINUTES if is_long else MINUTES
    done = subprocess.run([*command, "--minutes", str(minutes), "--seed", "11"], check=False,
                          capture_output=True, text=True, timeout=60 * minutes + 300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert figure(done.stdout, "compared") == figure(done.stdout, "cases") > 10
    assert figure(done.stdout, "killed") > 0 and figure(done.stdout, "hits") > 0
    assert figure(done.stdout, "upgrades") > 1
    assert not (tmp_path / "soak").exists()


def test_control_c_ends_it_with_the_figures_so_far(command, tmp_path):
    with subprocess.Popen([*command, "--minutes", "5"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as soak:
        time.sleep(12)
        soak.send_signal(signal.SIGINT)
        output, errors = soak.communicate(timeout=60)
    assert soak.returncode == 0, output + errors
    assert "stopped early" in output and figure(output, "processes") > 0 and "Traceback" not in errors
    assert not (tmp_path / "soak").exists(), "and no process of its that works there"


def test_what_is_wrong_is_a_failure(bin_dir, tessera, tmp_path, monkeypatch):
    """The soak test must detect failures: it gets processes that end with an error."""
    told = []
    soak = soak_run.Soak(bin_dir, tmp_path / "soak", 1, 2, "no_such_backend", tell=told.append)
    figures = soak.run(3)
    assert any("ended with exit code 1" in text and "no_such_backend" in text
               for text in figures.failures), told


def test_another_output_and_growth_are_failures(bin_dir, tmp_path):
    soak = soak_run.Soak(bin_dir, tmp_path / "soak", 1, tell=lambda text: None)
    soak.out.mkdir(parents=True)
    line = {"name": 7, "case": 0, "is_hit": True, "is_outdated": False, "installed": (),
            "descriptors": 4, "resident_bytes": 1 << 20}
    for name, value in (("7", 1.0), ("7.fresh", 1.5), ("7.second", 1.5)):
        soak_run.np.save(soak.out / f"{name}.npy", soak_run.np.full(3, value, "float32"))
    soak.compare(line, False, 0)
    assert soak.waiting == [(line, True)], "a second fresh process is asked"
    soak.compare(line, True, 0)
    one = soak_run.Running(None, pathlib.Path("0.out"), 0)
    for index in range(soak_run.SETTLED_CASES + 1):
        soak.take(one, line | {"descriptors": 4 + 100 * (index == soak_run.SETTLED_CASES)})
    first, second = soak.figures.failures
    assert "two fresh processes agree" in first and "descriptors grew from 4 to 104" in second
