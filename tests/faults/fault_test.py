"""If any system call fails, a process ends with the right output or with a message that names
something, and the next process is right and finds no litter. tools/faults tries more faults."""

import subprocess
import time

import fault_run
import pytest

pytestmark = pytest.mark.alone

SECONDS = 40  # for trying faults, in addition to creating the initial states
LONG_SECONDS = 900
ALLOCATIONS = 200
ROOT = fault_run.HERE.parent.parent


@pytest.fixture(scope="module")
def slots(bin_dir, tessera, why_unusable, tmp_path_factory):
    if not (bin_dir.parent / "tests" / "faults" / "inject_faults.so").exists():
        pytest.skip("inject_faults is not built: no sanitizer's build has it")
    backends = [name for name in ("onednn", "native") if not why_unusable.get(name, "unknown")]
    if not backends:
        pytest.skip("neither onednn nor native is usable")
    return fault_run.make_slots(bin_dir, tmp_path_factory.mktemp("faults") / "slots", 2,
                                backends=",".join(backends))


def test_calls_of_each_kind_are_counted(slots, why_unusable):
    counts = slots[0].counts
    wanted = set(fault_run.ERRORS)
    if why_unusable.get("onednn"):
        wanted.remove("posix_spawn")  # nothing is measured in a worker
    assert {kind for kinds in counts.values() for kind, count in kinds.items() if count} == wanted
    assert counts["cold_start"]["open"] > counts["warm_start"]["open"] > 0
    assert counts["warm_start"]["link"] == counts["warm_start"]["posix_spawn"] == 0


def test_a_fault_reaches_the_program(slots):
    """Shows that the other tests can fail: the output cannot be written, and this is reported."""
    outcome = slots[0].try_fault(
        fault_run.Fault("warm_start", "rename", 1, "ENOSPC", lasts=True))
    assert outcome.was_met and outcome.is_told and not outcome.problems
    outcome = slots[0].try_fault(fault_run.Fault("warm_start", "rename", 100_000, "ENOSPC"))
    assert not outcome.was_met and not outcome.is_told


def test_what_is_bad_is_told(slots):
    slot = slots[0]
    fault = fault_run.Fault("warm_start", "open", 1, "EIO")
    slot.restore(fault.scenario)

    def problems(code, errors):
        return list(slot.problems_of(fault, fault_run.Ended(code, errors, {}, 1, "")))

    assert problems(3, "DeviceFailed: file 'model.onnx': Input/output error") == []
    assert "names nothing" in problems(3, "something failed")[0]
    assert "exit code -6" in problems(-6, "terminate called")[0]
    assert "longer than" in problems(None, "")[0]
    assert problems(0, "") == ["exit code 0 without an output"]
    slot.start(fault.scenario)
    slot.wanted[fault.scenario], right = slot.wanted[fault.scenario] + 1, slot.wanted[fault.scenario]
    assert problems(0, "") == ["a wrong output"]
    slot.wanted[fault.scenario] = right
    assert problems(0, "") == []
    (slot.work / ".abc.cache.new").touch()
    assert any("litter" in text for text in slot.problems_after("warm_start"))


def test_no_fault_does_harm(slots, is_long, capsys):
    counts = slots[0].counts
    draw = fault_run.draw_from(int(time.time()) if is_long else 1)
    faults = fault_run.in_turns(fault_run.faults_of(counts, draw, ALLOCATIONS), draw)
    end = time.monotonic() + (LONG_SECONDS if is_long else SECONDS)
    outcomes = fault_run.run_faults(slots, faults, end)
    with capsys.disabled():
        print("\n" + fault_run.table(counts, outcomes))
    assert len(outcomes) > 10
    assert [f"{one.fault.text()}: {problem}" for one in outcomes for problem in one.problems] == []


@pytest.mark.parametrize("arguments, words", [
    (["--only", "cold_start:sing:1:EIO"], "is no fault"), (["--bin-dir", "tests"], "tools/build release")])
def test_mistakes_of_the_caller_are_told(slots, arguments, words):
    done = subprocess.run([ROOT / "tools" / "faults", "--minutes", "0.1", *arguments], check=False,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and words in done.stderr
