"""tools/test_without detects a backend that is missing without a reason, or not missing at all."""

import pytest
from load_tool import load_tool
from programs import json_of

test_without = load_tool("test_without")

OFF = "switched off when Tessera was configured (TESSERA_NATIVE=OFF)"
# The entry that lists native, and the expected message.
CASES = {
    "told": ({"backend": "native", "is_usable": False, "reason": OFF}, ""),
    "usable": ({"backend": "native", "is_usable": True, "reason": ""}, "native is usable"),
    "no reason": ({"backend": "native", "is_usable": False, "reason": ""}, "TESSERA_NATIVE=OFF"),
    "not listed": ({"backend": "other", "is_usable": True, "reason": ""}, "native is not listed"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_missing_backend_needs_its_reason(case):
    entry, expected = CASES[case]
    wrong = test_without.missing_explanations({"backends": [entry]}, ("native",))
    assert (not wrong) if expected == "" else expected in " ".join(wrong)


def test_it_reads_what_the_program_prints(tessera_binary):
    listing = json_of(tessera_binary, "backends", "--json")
    wrong = test_without.missing_explanations(listing, test_without.OPTIONAL)
    assert not any("is not listed" in line for line in wrong), wrong
    assert test_without.switched_off("all") == test_without.OPTIONAL
    assert test_without.switched_off("onednn") == ("onednn",)
