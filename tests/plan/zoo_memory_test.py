"""The memory of every network's plan is close to the maximum that is live at one time. Skipped if
the networks of ../shared/zoo have no weights yet, as tests/models/zoo_test.py does."""

import xml.etree.ElementTree
from pathlib import Path

import pytest
from programs import json_of

ROOT = Path(__file__).resolve().parents[2]
MODELS = sorted((ROOT / "build" / "zoo").glob("*/weights.bin"))
MOST_RATIO = 1.02
MOST_PLAN_US = 50_000

if not MODELS:
    pytest.skip("no networks in build/zoo", allow_module_level=True)


def inspect(binary, model, *options):
    return json_of(binary, "inspect", model, "--memory", "--json", "--threads", "1", *options)


def explain_overlap(blocks, arena_bytes):
    """Describes overlapping blocks, or blocks outside of the arena; falsy if there are none."""
    for place, one in enumerate(blocks):
        if one["offset_bytes"] < 0 or one["offset_bytes"] + one["size_bytes"] > arena_bytes:
            return f"{one['name']} is outside"
        for other in blocks[:place]:
            is_apart = (one["last_step"] < other["first_step"]
                        or other["last_step"] < one["first_step"]
                        or one["offset_bytes"] + one["size_bytes"] <= other["offset_bytes"]
                        or other["offset_bytes"] + other["size_bytes"] <= one["offset_bytes"])
            if not is_apart:
                return f"{one['name']} overlaps {other['name']}"
    return None


@pytest.mark.parametrize("name", [path.parent.name for path in MODELS])
def test_the_arena_is_close_to_its_bound(tessera_binary, name, needs_native):
    model = ROOT / "build" / "zoo" / name / "model.onnx"
    report = inspect(tessera_binary, model)
    # Tries again, because other programs may have used the processor.
    for _ in range(4):
        if report["plan_us"] >= MOST_PLAN_US:
            report = inspect(tessera_binary, model)
    print(f"{name}: arena {report['arena_bytes']} bound {report['lower_bound_bytes']} "
          f"ratio {report['ratio']:.4f} proven {report['is_proven_smallest']} naive {report['naive_bytes']} "
          f"padding {report['padding_bytes']} libraries {report['library_bytes']} "
          f"plan {report['plan_us'] / 1000:.1f} ms")
    live = max((sum((block["size_bytes"] + 63) // 64 * 64 for block in report["blocks"]
                    if block["first_step"] <= step <= block["last_step"])
                for step in range(report["step_count"])), default=0)
    assert report["lower_bound_bytes"] == live
    assert report["arena_bytes"] <= MOST_RATIO * live
    assert explain_overlap(report["blocks"], report["arena_bytes"]) is None
    assert report["plan_us"] < MOST_PLAN_US


def test_the_picture_has_a_rectangle_for_each_block(tessera_binary, tmp_path):
    picture = tmp_path / "memory.svg"
    report = inspect(tessera_binary, MODELS[0].parent / "model.onnx", "--svg", picture)
    root = xml.etree.ElementTree.parse(picture).getroot()
    space = "{http://www.w3.org/2000/svg}"
    rectangles = [entry for entry in root.iter(space + "rect") if entry.get("class") == "block"]
    assert len(rectangles) == len(report["blocks"])
    titles = [entry.find(space + "title").text for entry in rectangles]
    assert all(block["name"] in title for block, title in zip(report["blocks"], titles))
    assert root.find(space + "line") is not None


@pytest.mark.parametrize("name,op", [("mobilenet_v2", "Add"), ("densenet121", "Concat")])
def test_sums_and_concats_take_no_memory_of_their_own(tessera_binary, name, op, needs_native):
    model = ROOT / "build" / "zoo" / name / "model.onnx"
    if not model.exists():
        pytest.skip(f"no {name}")
    steps = json_of(tessera_binary, "explain", model, "--json", "--threads", "1",
                    "--runs", "1")["steps"]
    found = [step for step in steps if step["op"].split("+")[-1] == op]
    assert found
    assert [step["name"] for step in steps if step["op"] == "copy"] == []
    if op == "Add":
        # oneDNN's convolutions for AVX2 read the other term where it is, and write elsewhere.
        in_place = [step for step in found if not step["algorithm"].endswith(":avx2")]
        assert [step["name"] for step in in_place if not step["is_in_place"]] == []
    else:
        assert [step["name"] for step in found if step["moved_bytes"] > 0] == []
