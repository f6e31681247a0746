"""tools/setup distinguishes why a download failed."""

import pytest
from load_tool import load_tool

setup = load_tool("setup")

# The output of pip or apt-get, and what the user must be told.
CASES = {
    "name": ("pip", "WARNING: Retrying (Retry(total=0)) after connection broken by "
             "'NewConnectionError(... Temporary failure in name resolution')': /simple/onnx/\n"
             "ERROR: No matching distribution found for onnx==1.23.0", "the network"),
    "refused": ("pip", "Failed to establish a new connection: [Errno 111] Connection refused\n"
                "ERROR: No matching distribution found for onnx==1.23.0", "the network"),
    "slow": ("pip", "ReadTimeoutError(\"HTTPSConnectionPool: Read timed out.\")", "the network"),
    "proxy": ("pip", "ProxyError('Cannot connect to proxy.', OSError(...))", "the network"),
    "certificate": ("pip", "Could not fetch URL https://pypi.org/simple/onnx/: connection error: "
                    "HTTPSConnectionPool: Max retries exceeded (Caused by SSLError(SSLCertVerif"
                    "icationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate')))",
                    "a certificate"),
    "apt certificate": ("apt-get", "Err:1 https://deb.debian.org: Certificate verification failed: "
                        "The certificate is NOT trusted.", "a certificate"),
    "apt network": ("apt-get", "Err:1 http://deb.debian.org: Temporary failure resolving "
                    "'deb.debian.org'", "the network"),
    "absent": ("pip", "ERROR: Could not find a version that satisfies the requirement\n"
               "ERROR: No matching distribution found for numpy==2.4.6", "does not have numpy"),
    "other": ("pip", "error: no space left on device", "no space left"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_failure_is_explained(name):
    tool, output, expected = CASES[name]
    sentence = setup.explain_failure(tool, output)
    assert sentence.startswith(f"{tool} failed") and expected in sentence
    other = {"the network": "a certificate", "a certificate": "the network"}.get(expected)
    assert other is None or f"failed: {other}" not in sentence


def test_check_installs_more_than_build():
    build, check = setup.read_packages("build"), setup.read_packages("check")
    assert "cmake" in build and "clang-tidy-19" not in build
    assert set(build) < set(check) and "clang-tidy-19" in check
