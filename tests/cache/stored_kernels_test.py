"""Kernels that a library can serialise are kept with the packs, and the next process loads them."""

import pytest
from settled import wait_until_settled

BIND = """
model = tessera.load(sys.argv[1])
x = np.random.default_rng(1).standard_normal((1, 16, 24, 24)).astype(np.float32)
executor = model.bind(shapes={"x": list(x.shape)}, threads=1, backends=["openvino", "reference"],
                      pins=[tessera.Pin("*", "openvino")], swap=False)
y, = executor.run({"x": x})
plan = executor.shapes().plans[0]
print(json.dumps([plan.kernels, plan.loaded_kernels, y.tobytes().hex(),
                  [stage.name for stage in model.stages + executor.stages]]))
"""


@pytest.fixture
def start(python, need_backend):
    """Starts a process; returns the number of kernels, how many of them were loaded, the output's
    bytes, and the stages."""
    need_backend("openvino")
    return lambda model, text=BIND, **variables: python(text, model, **variables)


@pytest.fixture
def settled(make_model):
    def make(*arguments, **options):
        path = make_model(*arguments, **options)
        wait_until_settled()
        return path

    return make


def packs(tmp_path):
    return [path for kind in ("packs", "kernels")
            for path in (tmp_path / "user" / "tessera" / kind).rglob("*") if path.is_file()]


def test_the_second_process_loads_what_the_first_has_built(start, settled):
    model = settled()
    kernels, loaded, output, stages = start(model)
    assert (kernels, loaded) == (1, 0) and "read" in stages
    kernels, loaded, again, stages = start(model)
    assert (kernels, loaded) == (1, 1)
    assert not {"read", "restore", "tune"} & set(stages), "the weights are in the kernel"
    assert again == output


def test_other_weights_threads_and_shapes_have_kernels_of_their_own(start, settled, make_model):
    model, tuned = settled(), make_model("tuned.onnx", seed=5)
    _, _, output, _ = start(model)
    _, loaded, other, _ = start(tuned)
    assert loaded == 0 and other != output
    # With two threads, a plan may still choose the kernel for one thread, which is the stored one.
    with_two = BIND.replace("threads=1", "threads=2").replace("y.tobytes().hex()", """[
        one.threads for one in executor.plan().candidates if one.is_chosen]""")
    _, loaded, threads, _ = start(model, with_two)
    assert loaded == (threads == [1])
    assert start(model, BIND.replace("24, 24", "20, 28"))[1] == 0
    assert start(tuned)[1:3] == [1, other] and start(model)[1:3] == [1, output]


def test_an_executor_that_meets_other_shapes_loads_their_kernels(start, settled):
    model = settled()
    start(model)
    assert start(model, BIND.replace("24, 24", "20, 28"))[1] == 0
    both = BIND.replace("plan =", 'executor.run({"x": np.ones((1, 16, 20, 28), np.float32)}); plan =')
    kernels, loaded, *_ = start(model, both)
    assert (kernels, loaded) == (1, 1)


@pytest.mark.parametrize("place", ("first", "middle", "last"))
def test_damage_means_building_anew(start, settled, tmp_path, place):
    model = settled()
    _, _, output, _ = start(model)
    stored, = (path for path in packs(tmp_path) if path.name == "kernel.packs")
    content = bytearray(stored.read_bytes())
    content[{"first": 200, "middle": len(content) // 2, "last": len(content) - 1}[place]] ^= 1
    stored.write_bytes(content)
    _, _, again, _ = start(model)
    assert again == output
    assert start(model)[1:3] == [1, output], "what was damaged is stored again"


def test_kernels_are_shipped_with_packs(start, settled, tmp_path):
    model = settled()
    _, _, output, _ = start(model)
    file = tmp_path / "all.cache"
    save = BIND + f"executor.save_cache({str(file)!r}, include_packs=True)\n"
    start(model, save)
    for path in packs(tmp_path):
        path.unlink()
    load = BIND.replace("executor = ", f"model.load_cache({str(file)!r})\nexecutor = ")
    assert start(model, load)[1:3] == [1, output]


def test_another_model_with_the_same_region_builds_nothing(start, settled, make_model):
    _, _, output, _ = start(settled())
    # The network with other names of nodes.
    other = make_model("renamed.onnx", prefix="other_")
    wait_until_settled()
    assert start(other)[:3] == [1, 1, output]


def test_models_of_one_process_have_one_kernel_for_the_same_region(start, settled, make_model):
    first = settled()
    # The network with other names of nodes.
    second = make_model("renamed.onnx", prefix="other_")
    both = BIND[:BIND.index("plan = ")].replace(
        "model = tessera.load(sys.argv[1])",
        "backends = tessera.Backends()\nmodel = tessera.load(sys.argv[1], backends=backends)") + f"""
again = tessera.load({str(second)!r}, backends=backends)
other = again.bind(shapes={{"x": list(x.shape)}}, threads=1, backends=["openvino", "reference"],
                   pins=[tessera.Pin("*", "openvino")], optimize=False)
plan = other.shapes().plans[0]
print(json.dumps([plan.kernels, plan.reused_kernels, bool((other.run({{"x": x}})[0] == y).all())]))
"""
    assert start(first, both) == [1, 1, True]
