"""The solver on instances in a format that other solvers read too: the JSON format of cost function
networks. toulbar2 found the optimal costs."""

import json
import pathlib

import pytest
from programs import run_program

INSTANCES = pathlib.Path(__file__).parent / "instances"
LEAST = json.loads((INSTANCES / "optima.json").read_text())["least"]
# Costs have three decimals.
CLOSE = 1e-4


def solved(bin_dir, files):
    lines = run_program(bin_dir / "solver_cases", "solve", *files).stdout.splitlines()
    return {one["name"]: one for one in map(json.loads, lines)}


def test_each_instance_is_solved_to_its_least(bin_dir):
    files = sorted(INSTANCES.glob("*.cfn"))
    answers = solved(bin_dir, files)
    assert set(answers) == set(LEAST) == {file.stem for file in files}
    for name, answer in answers.items():
        assert answer["violation"] == "", name
        assert answer["cost"] == pytest.approx(LEAST[name], abs=CLOSE), name
        assert answer["lower_bound"] == pytest.approx(answer["cost"], abs=CLOSE), "it is proven"


def test_what_is_written_is_read_again(bin_dir, tmp_path):
    run_program(bin_dir / "solver_cases", "write", tmp_path)
    for name in LEAST:
        written = json.loads((tmp_path / f"{name}.cfn").read_text())
        assert written == json.loads((INSTANCES / f"{name}.cfn").read_text()), (
            f"tests/solver/instances/{name}.cfn is of other problems: run solver_cases write, and toulbar2")


def test_toulbar2_finds_the_same(bin_dir, tmp_path):
    toulbar2 = pytest.importorskip("pytoulbar2", reason="pip install pytoulbar2")
    run_program(bin_dir / "solver_cases", "write", tmp_path)
    answers = solved(bin_dir, sorted(tmp_path.glob("*.cfn")))
    for name, answer in answers.items():
        network = toulbar2.CFN(resolution=3, verbose=-1)
        network.Read(str(tmp_path / f"{name}.cfn"))
        assert network.Solve()[1] == pytest.approx(answer["cost"], abs=CLOSE), name
