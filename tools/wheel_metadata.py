"""Metadata of the wheel that other files state: the version from CMakeLists.txt, and the versions
of packages from requirements.txt. scikit-build-core calls these functions (pyproject.toml)."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Packages that the build uses from the Python environment: nanobind, onnx.proto, headers and
# libraries.
BUILD_PACKAGES = ("nanobind", "onnx", "onednn-cpu-tbb", "onednn-devel-cpu-tbb", "openvino")
# Extras have the names of their backends. A plug-in needs the version that it was built with.
# oneDNN's package does not declare that it needs Intel's runtime libraries.
EXTRAS = {"onednn": ("intel-cmplr-lib-rt", "onednn-cpu-tbb"), "openvino": ("openvino",)}


def read_version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"^project\(tessera VERSION (\d+\.\d+\.\d+)\b", text, re.M).group(1)


def pinned(names):
    """The lines of requirements.txt for these packages."""
    lines = (ROOT / "tools" / "requirements.txt").read_text().splitlines()
    by_name = {line.partition("==")[0]: line for line in lines if "==" in line}
    return [by_name[name] for name in names]


def get_requires_for_dynamic_metadata(_settings):
    return pinned(BUILD_PACKAGES)


def dynamic_metadata(_settings, _project):
    extras = {extra: pinned(packages) for extra, packages in EXTRAS.items()}
    return {"version": read_version(), "optional-dependencies": extras}
