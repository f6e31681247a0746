"""Random groups on each backend, between guard pages, compared with the reference. tools/fuzz and
`make fuzz-groups` run many more of them."""

import re
import subprocess

import pytest

GROUPS = {"jit": 600, "native": 600, "onednn": 300, "openvino": 40, "opencl": 40}
# Groups that were wrong once.
FOUND = {
    "jit": ["Elu(float64:2); GreaterOrEqual(@, #+float64:s)",
            "ReduceL2(float32:11x2x11x3, {3}) keepdims=1; Sigmoid(=0); Equal(@, @); "
            "Cast(@) to=11; Not(@2)",
            "Elu(float64:3x5); GreaterOrEqual(@0, @0); Where(@1, =0, @0); GreaterOrEqual(@0, =0); "
            "Where(@3, @2, =0); And(@3, @1); Equal(=0, @4)",
            "Elu(float64:3x11); GreaterOrEqual(@0, =0); Elu(=0); GreaterOrEqual(=0, =0); "
            "Xor(@1, @3); Cast(@1) to=11; Xor(@1, @4)",
            "Elu(float64:3x7); Elu(=0); Equal(=0, @0); Equal(@0, @1); Xor(@2, @3); Cast(@3) to=11; "
            "Cast(@3) to=2"],
}


@pytest.fixture
def fuzz(bin_dir, why_unusable):
    program = bin_dir / "tessera_fuzz_groups"
    assert program.exists(), f"{program} is not built: tools/build release fuzzers"

    def call(backend, *options):
        if why_unusable.get(backend, "unknown"):
            pytest.skip(f"{backend} is not usable: {why_unusable.get(backend, 'unknown')}")
        library = bin_dir.parent / "lib" / "tessera" / f"backend_{backend}.so"
        done = subprocess.run([program, "--backend", library, *options], capture_output=True,
                              text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


@pytest.mark.parametrize("backend", GROUPS)
def test_random_groups(fuzz, backend):
    printed = fuzz(backend, "--count", str(GROUPS[backend]), "--seconds", "60", "--seed", "7")
    groups, findings = re.search(r"^(\d+) groups .* (\d+) findings$", printed, re.M).groups()
    assert int(groups) > 0
    assert findings == "0"


@pytest.mark.parametrize("backend,text", [(backend, text) for backend in FOUND
                                          for text in FOUND[backend]])
def test_what_was_found(fuzz, backend, text):
    printed = fuzz(backend, "--case", text, "--seed", "1")
    assert not printed.startswith("0 groups")
