"""tools/test_without notices a backend that is missing without a word, or not missing at all."""

import pytest
from load_tool import load_tool

test_without = load_tool("test_without")

OFF = "switched off when Tessera was configured (TESSERA_NATIVE=OFF)"
# What is listed of native, and what is said of it.
CASES = {
    "told": ({"name": "native", "is_usable": False, "reason": OFF}, ""),
    "usable": ({"name": "native", "is_usable": True, "reason": ""}, "native is usable"),
    "no reason": ({"name": "native", "is_usable": False, "reason": ""}, "TESSERA_NATIVE=OFF"),
    "not listed": ({"name": "other", "is_usable": True, "reason": ""}, "native is not listed"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_missing_backend_needs_its_reason(case):
    entry, expected = CASES[case]
    wrong = test_without.missing_explanations({"backends": [entry]}, ("native",))
    assert (not wrong) if expected == "" else expected in " ".join(wrong)


def test_all_means_every_optional_backend():
    assert test_without.switched_off("all") == test_without.OPTIONAL
    assert test_without.switched_off("onednn") == ("onednn",)
