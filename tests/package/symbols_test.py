"""libtessera exports what its public headers declare, and nothing else."""

import re

from installed import ROOT, needed, run
from load_tool import load_tool

SCRIPT = ROOT / "src" / "capi" / "public_symbols.map"


def listed():
    return set(re.findall(r"^  (\w+);$", SCRIPT.read_text(), re.M))


def test_it_exports_the_committed_list(prefix):
    needed("nm")
    lines = run("nm", "-D", "--defined-only", prefix / "lib" / "libtessera.so").stdout.splitlines()
    assert len(lines) > 100
    assert {line.split()[-1] for line in lines} == listed()


def test_the_list_is_what_the_headers_declare():
    compiler = needed("clang++-19")
    assert load_tool("public_symbols").print_script(compiler) == SCRIPT.read_text(), (
        "tools/public_symbols > src/capi/public_symbols.map")


def test_the_list_has_every_function_of_the_c_header():
    text = (ROOT / "include" / "tessera" / "tessera_c.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    declared = set(re.findall(r"\b(tessera_\w+)\(", text))
    assert declared == {name for name in listed() if name.startswith("tessera_")}
