"""`tessera plan-memory`: problems with known solutions, published problems, and invalid files."""

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from cut_rectangle import csv_text, cut_rectangle
from programs import end_of, run_program, start_program

ROOT = Path(__file__).resolve().parents[2]
INSTANCES = sorted((ROOT.parent / "shared" / "instances").glob("*.csv"))
# Too large to be solved in the time that a test takes.
HARD = csv_text(cut_rectangle(2000, steps=200, size=5000, seed=1))


def plan_memory(binary, *arguments, code=0):
    return run_program(binary, "plan-memory", *arguments, code=code)


@pytest.fixture
def planned(tessera_binary, tmp_path):
    """Plans the text of a file; returns the finished process."""

    def plan(text, *arguments):
        path = tmp_path / "buffers.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return plan_memory(tessera_binary, path, *arguments, code=None)

    return plan


@pytest.mark.parametrize("count,seed", [(20, 1), (50, 2), (100, 3), (100, 4), (200, 2),
                                        (250, 2), (300, 7), (350, 3), (400, 2), (400, 6)])
def test_a_rectangle_is_put_together_again(planned, count, seed):
    done = planned(csv_text(cut_rectangle(count, seed=seed)), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert list(report) == ["format", "arena_bytes", "lower_bound_bytes", "is_proven_smallest",
                            "is_stopped", "is_out_of_time", "plan_us"]
    assert report["arena_bytes"] == report["lower_bound_bytes"] == 1 << 20
    assert report["is_proven_smallest"] is True
    assert report["is_stopped"] is False and report["is_out_of_time"] is False


@pytest.mark.skipif(not INSTANCES, reason="no ../shared/instances")
def test_the_instances_of_others_fit(tessera_binary):
    seconds = 0
    for path in INSTANCES:
        done = plan_memory(tessera_binary, path, "--capacity", "1048576", "--json")
        report = json.loads(done.stdout)
        print(path.name, report)
        assert report["lower_bound_bytes"] <= report["arena_bytes"] <= 1048576
        seconds += report["plan_us"] / 1e6
    assert seconds < 20


def test_generated_problems_are_solved_or_proven_impossible(tessera_binary):
    done = run_program(sys.executable, ROOT / "bench" / "memory_instances.py", "--count", "18",
                       "--time-limit", "20", "--published", "", "--tessera", tessera_binary)
    [*_, last] = done.stdout.splitlines()
    kind, problems, solved, impossible, neither, *_ = last.split()
    assert (kind, problems, solved, impossible, neither) == ("all", "18", "15", "3", "0")


def test_the_search_ends_at_its_time_limit(planned):
    start = time.monotonic()
    done = planned(HARD, "--time-limit", "0.5", "--json")
    assert time.monotonic() - start < 10
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["is_out_of_time"] is True and report["is_stopped"] is True
    assert report["is_proven_smallest"] is False
    assert report["plan_us"] >= 500_000
    assert ", the limit" in planned(HARD, "--time-limit", "0.5").stdout
    done = planned(HARD, "--time-limit", "0.5", "--capacity", "5000")
    assert done.returncode == 1 and "No way was found" in done.stdout


def start_search(tessera_binary, path):
    """A process that has begun to search."""
    path.write_text(HARD)
    process = start_program(tessera_binary, "plan-memory", path, "--json")
    time.sleep(1)
    return process


@pytest.mark.alone
def test_ctrl_c_gives_the_best_so_far(tessera_binary, tmp_path):
    process = start_search(tessera_binary, tmp_path / "buffers.csv")
    output, errors = end_of(process, 0, signal.SIGINT, timeout=5)
    assert errors == "stopped early; this is the best so far\n"
    report = json.loads(output)
    assert report["is_stopped"] is True and report["is_out_of_time"] is False
    assert report["arena_bytes"] > report["lower_bound_bytes"] == 5000


@pytest.mark.alone
def test_a_request_to_end_ends_the_search(tessera_binary, tmp_path):
    process = start_search(tessera_binary, tmp_path / "buffers.csv")
    end_of(process, -signal.SIGTERM, signal.SIGTERM, timeout=5)


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "x", "1e9"])
def test_a_time_limit_that_is_none(planned, limit):
    done = planned("id,lower,upper,size\na,0,1,1\n", "--time-limit=" + limit)
    assert done.returncode == 2
    assert "--time-limit" in done.stderr and len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_what_does_not_fit_says_how_high_it_is(planned):
    text = "id,lower,upper,size\na,0,2,5\nb,1,3,6\n"
    done = planned(text, "--capacity", "10")
    assert done.returncode == 1
    assert "height       11 bytes, proven the smallest" in done.stdout
    assert "do not fit into 10 bytes" in done.stdout
    done = planned(text, "--capacity", "10", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["arena_bytes"] == 11
    assert planned(text, "--capacity", "11").returncode == 0
    # A single buffer that is too large has the same exit code.
    assert planned("id,lower,upper,size\nbig,0,3,51\n", "--capacity", "50").returncode == 1


@pytest.mark.parametrize(
    "text,expected",
    [
        ("id,lower,upper,size\na,0,1,9223372036854775808\n", "line 2, buffer 'a'"),
        ("id,lower,upper,size\na,0,1,9223372036854775807\nb,5,6,7\n", "line 2, buffer 'a'"),
        ("id,lower,upper,size\na,-3,1,5\n", "line 2, buffer 'a'"),
        ("id,lower,upper,size\na,0,3,5\na,0,3,5\n", "line 3, buffer 'a'"),
        ("id,lower,upper\n", "none called 'size'"),
        ("", "expected a line of titles"),
        (b"\xff\xfe\x00", "expected the columns"),
    ],
)
def test_bad_input_names_the_place(planned, text, expected):
    done = planned(text, "--capacity", "50")
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_none(tessera_binary, tmp_path):
    for path in (tmp_path, tmp_path / "missing.csv"):
        done = plan_memory(tessera_binary, path, code=2)
        assert str(path) in done.stderr
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(65 << 20)
    done = plan_memory(tessera_binary, huge, code=2)
    assert "67108864 bytes" in done.stderr


@pytest.mark.parametrize("capacity", ["0", "-1", "x", "1e6"])
def test_a_capacity_that_is_none(planned, capacity):
    done = planned("id,lower,upper,size\na,0,1,1\n", "--capacity=" + capacity)
    assert done.returncode == 2
    assert "--capacity" in done.stderr
