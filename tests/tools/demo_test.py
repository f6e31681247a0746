"""tools/demo judges the answers of its processes."""

import numpy
import pytest
from load_tool import load_tool

demo = load_tool("demo")


def answers(**changed):
    """The answers of two processes of each runtime; `changed` replaces parts of the answer of
    Tessera's second process."""
    good = {"output": numpy.array([0.25, 0.75], numpy.float32), "run_s": 1e-3, "is_known": True}
    made = {runtime: [dict(good), dict(good)] for runtime in demo.RUNTIMES}
    made["tessera"][1].update(changed)
    return made


# Changes to the answer of Tessera's second process, the interval, whether speed counts, and the
# expected message.
CASES = {
    "fine": ({}, (0.99, 1.1), True, None),
    "other outputs": ({"output": numpy.array([0.5, 0.5], numpy.float32)}, None, True,
                      "the outputs of Tessera and ONNX Runtime differ"),
    "no number": ({"output": numpy.array([numpy.nan, 0.75], numpy.float32)}, None, True, "differ"),
    "no cache": ({"is_known": False}, None, True, "its cache was not found"),
    "slower": ({}, (0.9, 0.979), True, "Tessera's run is slower than OpenVINO's"),
    "perhaps slower": ({}, (0.9, 0.981), True, None),
    "slower, in CI": ({}, (0.9, 0.95), False, None),
}


@pytest.mark.parametrize("case", CASES)
def test_faults_are_told(case):
    changed, interval, counts_speed, said = CASES[case]
    faults = demo.explain_faults(answers(**changed), "openvino", interval, counts_speed)
    assert [] == faults if said is None else said in " ".join(faults)


def test_the_faster_peer_is_the_one_to_beat():
    made = answers()
    for answer in made["openvino"]:
        answer["run_s"] = 2e-3
    peer, ratio = demo.ratio_to_best_peer(made)
    assert peer == "onnxruntime" and ratio.value == pytest.approx(1)


def test_few_rounds_give_no_interval():
    _, ratio = demo.ratio_to_best_peer(answers())
    assert demo.interval_of(ratio, 2) is None
    many = {runtime: list_of * 5 for runtime, list_of in answers().items()}
    _, ratio = demo.ratio_to_best_peer(many)
    low, high = demo.interval_of(ratio, 10)
    assert low <= 1 <= high


@pytest.mark.parametrize("seconds, text", [(0.21, "210 ms"), (12.7, "12.7 s"), (1148, "19 min 8 s")])
def test_times_are_for_people(seconds, text):
    assert demo.seconds_text(seconds) == text
