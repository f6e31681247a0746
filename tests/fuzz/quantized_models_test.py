"""Random networks of quantised tensors on each backend, beside the reference and ONNX Runtime. They
are always the same; quantized_models.py runs thousands."""

import pytest

from quantized_models import Network, Targets, Trial
from runner import usable_backends

PARTS = 4
NETWORKS = 40
LONG_NETWORKS = 1000


@pytest.mark.parametrize("part", range(PARTS))
def test_networks_of_integers_agree(tessera, bin_dir, is_long, part):
    names = [name for name in usable_backends(bin_dir) if name != "reference"]
    trial = Trial(tessera, [[name, "reference"] if name else [] for name in names])
    wrong = []
    for number in range(LONG_NETWORKS if is_long else NETWORKS):
        number = 1_000_000 * part + number
        wrong += [f"{number}: {text}" for text in trial.findings(Network(number))]
    assert not wrong, "\n".join(wrong)


def test_instruction_sets_agree(tessera, bin_dir, is_long):
    if "native" not in usable_backends(bin_dir):
        pytest.skip("this build has no backend native")
    targets = Targets(bin_dir.parent)
    trial = Trial(tessera, [["native", "reference"]], has_judge=False)
    wrong = []
    try:
        for target in targets.all():
            targets.choose(target)
            for number in range(2_000_000, 2_000_000 + (LONG_NETWORKS if is_long else NETWORKS)):
                wrong += [f"{target:#x} {number}: {text}"
                          for text in trial.findings(Network(number))]
    finally:
        targets.choose(0)
    assert not wrong, "\n".join(wrong)


def test_a_number_is_one_network():
    for number in range(30):
        one, other = Network(number), Network(number)
        assert one.model(one.outputs()) == other.model(other.outputs())
