"""Files and memory that a process holds for caches end with their last user."""

import pytest

START = """
import gc, os
def descriptors():
    gc.collect()
    return sorted(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{fd}"))
def caches():
    return [name for name in descriptors() if name.endswith((".cache", ".packs", ".model"))]
"""
BIND = "model.bind({'x': (1, 16, 24, 24)}, threads=1, optimize=True)"


def test_descriptors_end_with_models_and_executors(python, make_model, needs_a_library):
    models = [make_model(f"{seed}.onnx", seed=seed, pads=1 + seed % 3) for seed in range(6)]
    held = python(START + f"""
counts = []
for file in sys.argv[1:]:
    model = tessera.load(file)
    executor = {BIND}
    counts.append(len(caches()))
    del model, executor
    counts.append(len(caches()))
print(json.dumps(counts))
""", *models)
    assert all(count > 0 for count in held[::2]), "in use, a file is marked"
    assert held[1::2] == [0] * len(models)


def test_an_executor_holds_what_its_model_held(python, model, needs_a_library):
    held = python(START + f"""
model = tessera.load(sys.argv[1])
executors = [{BIND} for _ in range(3)]
counts = [len(caches())]
del model
gc.collect()
while executors:
    executors.pop()
    counts.append(len(caches()))
print(json.dumps(counts))
""", model)
    assert held[0] > 0 and held[0] == held[1] == held[2] and held[3] == 0


@pytest.mark.parametrize("change", ["", "shutil.copy('a.cache', f'{index}.cache')",
                                    "model.save_cache('a.cache')"])
@pytest.mark.parametrize("packs", [False, True])
def test_a_cache_that_is_loaded_again_replaces_itself(python, model, needs_a_library, change, packs):
    grown = python(START + f"""
import ctypes, shutil
class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]
libc = ctypes.CDLL(None)
if not hasattr(libc, "mallinfo2"):
    print("[0, 0]")
    sys.exit()
libc.mallinfo2.restype = Mallinfo
def allocated():
    gc.collect()
    figures = libc.mallinfo2()
    return figures.h + figures.e
model = tessera.load(sys.argv[1])
{BIND}
model.save_cache("a.cache", include_packs={packs})
size = os.path.getsize("a.cache")
def load(index):
    {change or "pass"}
    name = f"{{index}}.cache" if os.path.exists(f"{{index}}.cache") else "a.cache"
    model.load_cache(name)
    {BIND}
for index in range(6):
    load(index)
before = allocated()
for index in range(20):
    load(index)
print(json.dumps([allocated() - before, size]))
""", model)
    assert grown[0] < 5 * grown[1], "20 times the file would be more"


def test_a_cache_of_each_type_counts(python, model, needs_native):
    report = python(f"""
model = tessera.load(sys.argv[1])
{BIND}
model.save_cache("a.cache")
os = __import__("os")
for name in os.listdir():
    if name != "a.cache":
        os.remove(name)
fresh = tessera.load(sys.argv[1])
for kind in ("native", "plan", "native", "plan"):
    fresh.load_cache("a.cache", type=kind)
executor = fresh.bind({{'x': (1, 16, 24, 24)}}, threads=1, optimize=True, frozen=True)
report = executor.cache_report()
print(json.dumps([report.is_hit, [one.type for one in report.types]]))
""", model)
    assert report[0] and {"plan", "native"} <= set(report[1])


def test_what_is_kept_is_described(python, model):
    held = python(f"""
model = tessera.load(sys.argv[1])
executor = {BIND}
memory = executor.memory()
print(json.dumps([memory.plan_count, memory.max_plan_count, memory.arena_bytes, memory.pack_bytes,
                  {{one.name: [one.count, one.max_count, one.bytes, one.max_bytes]
                   for one in memory.caches}}]))
""", model)
    assert held[0] == 1 and held[1] == 8
    assert set(held[4]) == {"plans", "costs", "blobs"}
    assert held[4]["plans"][0] == 1 and held[4]["plans"][1] > 1
    for count, most, size, most_bytes in held[4].values():
        assert most or most_bytes
        assert not most or count <= most
        assert not most_bytes or size <= most_bytes
