"""tools/check_layers finds each kind of violation in a made-up tree, and none in this project."""

import pytest
from load_tool import ROOT, load_tool

check_layers = load_tool("check_layers")

ARCHITECTURE = """# Made up

## Layers

Reserved names: `fastlib`.

| Layer | Folders | What |
|---|---|---|
| 0 | `include/tessera` | the public face |
| 1 | `src/base` | |
| 2 | `src/left`, `src/right` | |
| 3 | `cli` | |

## Something else

| 9 | `src/not_a_layer` | |
"""

SOUND = {
    "ARCHITECTURE.md": ARCHITECTURE,
    "include/tessera/backend.h": "",
    "include/tessera/tensor.h": "",
    "src/base/log.h": '#include <string>\n#include "tessera/tensor.h"\n',
    "src/left/left.h": '#include "base/log.h"\n',
    "src/left/left.cc": '#include "left/left.h"\n',
    "src/right/right.h": '#include "base/log.h"  // a native, reference kernel\n',
    "cli/main.cc": '#include "left/left.h"\n#include "right/right.h"\n// Fastlib\n',
    "backends/quick/quick.h": "",
    "backends/quick/quick.cc": '#include "quick.h"\n#include "tessera/backend.h"\n',
}


def offences_of(folder, changes):
    for name, text in {**SOUND, **changes}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_layers.check(folder)


def test_a_sound_tree_has_no_offence(tmp_path):
    assert offences_of(tmp_path, {}) == []


# The changes to the correct tree, and what the only violation must say.
CASES = {
    "upwards": ({"src/base/log.h": '#include "left/left.h"\n', "src/left/left.h": ""},
                'src/base/log.h:1: includes "left/left.h" upwards'),
    "upwards out of the public face": (
        {"include/tessera/tensor.h": '#include "left/left.h"\n', "src/left/left.h": ""},
        "include/tessera is layer 0, src/left is layer 2"),
    "upwards by a relative path": (
        {"src/base/log.cc": '#include "../left/left.h"\n', "src/left/left.h": ""},
        "src/base/log.cc:1: includes"),
    "sideways": ({"src/left/left.cc": '\n#include "right/right.h"\n'},
                 'src/left/left.cc:2: includes "right/right.h" sideways'),
    "cycle inside one row": (
        {"src/left/deep/deep.h": '#include "left/left.h"\n',
         "src/left/left.h": '#include "left/deep/deep.h"\n'},
        "folders include each other: src/left -> src/left/deep -> src/left"),
    "reserved name": ({"src/base/log.cc": "// as Fastlib does\n"},
                      "src/base/log.cc:1: names the backend 'Fastlib'"),
    "name within an identifier": ({"src/base/log.cc": "void run_fastlib();\n"},
                                  "names the backend 'fastlib'"),
    "name within a CamelCase identifier": ({"src/base/log.cc": "struct RunFastlibKernel;\n"},
                                           "names the backend 'Fastlib'"),
    "folder of a backend": ({"src/base/log.cc": "// the quick one\n"},
                            "names the backend 'quick'"),
    "alias in the catalog": (
        {"backends/catalog.json": '{"backends": [{"name": "other", "aliases": ["othr"]}]}',
         "src/left/left.cc": "int othr;\n"}, "names the backend 'othr'"),
    "alias of a backend that is absent": (
        {"backends/catalog.json": '{"backends": [], "absent": [{"name": "other", "aliases": ["othr"]}]}',
         "src/left/left.cc": "int othr;\n"}, "names the backend 'othr'"),
    "plug-in includes the core": (
        {"backends/quick/quick.cc": '#include "base/log.h"\n'},
        'a plug-in includes "base/log.h"'),
    "plug-in includes another public header": (
        {"backends/quick/quick.cc": "#include <tessera/tensor.h>\n"},
        'a plug-in includes "tessera/tensor.h"'),
    "folders of a plug-in in a cycle": (
        {"backends/quick/a/a.h": '#include "b/b.h"\n', "backends/quick/b/b.h": '#include "a/a.h"\n'},
        "folders include each other: backends/quick/a -> backends/quick/b -> backends/quick/a"),
    "reference includes the code of plug-ins": (
        {"backends/reference/reference.cc": '#include "tessera/backend_ops.h"\n',
         "include/tessera/backend_ops.h": ""},
        'backends/reference/reference.cc:1: includes "tessera/backend_ops.h", which the plug-ins share'),
    "plug-in includes another plug-in": (
        {"backends/second/second.cc": '#include "../quick/quick.h"\n'},
        'a plug-in includes "../quick/quick.h"'),
    "folder not in the table": ({"src/lost/lost.cc": ""}, "src/lost: has sources but is not in"),
    "row without a folder": (
        {"ARCHITECTURE.md": ARCHITECTURE.replace("`src/base`", "`src/base`, `src/gone`")},
        "the table lists src/gone"),
    "no table": ({"ARCHITECTURE.md": "# Nothing\n"}, "no table of layers"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_offence_is_found(tmp_path, name):
    changes, message = CASES[name]
    offences = offences_of(tmp_path, changes)
    assert len(offences) == 1, offences
    assert message in offences[0]


def test_a_test_may_include_what_is_above_its_subfolder(tmp_path):
    assert offences_of(tmp_path, {
        "src/left/deep/deep.h": "", "src/left/deep/deep_test.cc": '#include "left/left.h"\n',
        "src/left/left.h": '#include "left/deep/deep.h"\n'}) == []


def test_a_cycle_between_layers_is_found_too(tmp_path):
    offences = offences_of(tmp_path, {"src/base/log.h": '#include "left/left.h"\n'})
    assert any("folders include each other" in offence and "src/left -> src/base" in offence
               for offence in offences)
    assert any("upwards" in offence for offence in offences)


def test_this_project_keeps_its_layers():
    assert check_layers.check(ROOT) == []
