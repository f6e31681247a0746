"""A process uses what an earlier process found: the Python module."""

import json
import shutil

import pytest

BIND = "executor = model.bind({'x': (1, 16, 24, 24)}, threads=1, optimize=True%s)\n"
LOAD = "model = tessera.load(sys.argv[1])\n"
PRINT_REPORT = """
report = executor.cache_report()
print(json.dumps({"is_hit": report.is_hit, "reason": report.reason, "file": report.file,
                  "saved": report.saved, "fingerprint": report.fingerprint,
                  "measured": executor.plan().tuning.measured,
                  "types": {one.type: [one.loaded, one.measured, one.seconds_saved]
                            for one in report.types}}))
"""


def error_of(python, model, text, *arguments):
    """The kind, Python classes and text of the error that `text` raises after loading the model."""
    program = LOAD + "try:\n    " + text.replace("\n", "\n    ") + """
    print(json.dumps(None))
except tessera.Error as error:
    print(json.dumps([error.kind, [one.__name__ for one in type(error).__mro__], str(error)]))
"""
    return python(program, model, *arguments)


def test_the_second_process_measures_nothing(python, model, needs_a_library):
    first = python(LOAD + BIND % "" + PRINT_REPORT, model)
    assert not first["is_hit"] and first["measured"] > 0 and first["saved"].endswith(".cache")
    assert any(measured > 0 for _, measured, _ in first["types"].values())
    second = python(LOAD + BIND % "" + PRINT_REPORT, model)
    assert second["is_hit"] and second["measured"] == 0 and second["saved"] == ""
    assert second["file"] == first["saved"]
    assert all(loaded > 0 and measured == 0 for loaded, measured, _ in second["types"].values())
    assert sum(seconds for *_, seconds in second["types"].values()) > 0


def test_an_interrupted_search_goes_on_after_its_plan_was_found_and_saved(python, model, work,
                                                                          needs_a_library):
    """A process with a longer budget measures what an earlier one had no time for."""
    short = BIND % ", tune_budget_seconds=0.01"
    assert not python(LOAD + short + PRINT_REPORT, model)["is_hit"]
    assert python(LOAD + short + "executor.save_cache('saved.cache')" + PRINT_REPORT, model)["is_hit"]
    shutil.rmtree(work.parent / "user")
    longer = python(LOAD + "model.load_cache('saved.cache')\n" + BIND % ", tune_budget_seconds=60" +
                    PRINT_REPORT, model)
    assert not longer["is_hit"] and longer["measured"] > 0 and "interrupted" in longer["reason"]


@pytest.mark.parametrize("options, variable, is_optimized", [
    ("", None, True), ("", "0", False), ("", "1", True), ("optimize=True", "0", True),
    ("optimize=False", None, False)])
def test_optimizing_is_the_default(python, model, work, options, variable, is_optimized):
    variables = {} if variable is None else {"TESSERA_OPTIMIZE": variable}
    report = python(LOAD + f"""
executor = model.bind({{'x': (1, 16, 24, 24)}}, threads=1, {options})
""" + PRINT_REPORT, model, **variables)
    assert (report["fingerprint"] != "") == is_optimized
    assert bool(list(work.iterdir())) == is_optimized


def test_each_aim_has_a_plan_of_its_own(python, model, needs_a_library):
    first = python(LOAD + BIND % ", optimize_for='start'" + PRINT_REPORT, model)
    again = python(LOAD + BIND % ", optimize_for='1-runs'" + PRINT_REPORT, model)
    assert again["is_hit"] and again["fingerprint"] == first["fingerprint"]
    other = python(LOAD + BIND % ", optimize_for='latency'" + PRINT_REPORT, model)
    assert not other["is_hit"] and other["fingerprint"] == first["fingerprint"], "one file a model"
    kind, kinds, text = error_of(python, model, BIND % ", optimize_for='soon'")
    assert kind == "InvalidArgument" and "ValueError" in kinds and "'soon'" in text


def test_outputs_are_equal_to_the_bit(python, model):
    run = """
x = np.random.default_rng(3).standard_normal((1, 16, 24, 24)).astype(np.float32)
y, = executor.run({"x": x})
print(json.dumps(y.tobytes().hex()))
"""
    assert python(LOAD + BIND % "" + run, model) == python(LOAD + BIND % "" + run, model)


def test_saved_and_loaded_by_type_in_another_process(python, model, work, needs_native):
    saved = python(LOAD + BIND % ", cache_dir='kept'" + """
executor.save_cache("all.cache")
model.save_cache("native.cache", type="native")
model.save_cache("native.cache", type="plan")
model.save_cache("reference.cache", type="reference")
""" + PRINT_REPORT, model)
    (work / "kept").rename(work / "gone")
    whole = python(LOAD + "model.load_cache('all.cache')\n" + BIND % ", frozen=True" + PRINT_REPORT,
                   model)
    assert whole["is_hit"] and whole["fingerprint"] == saved["fingerprint"]
    added = python(LOAD + """
model.load_cache("reference.cache")
model.load_cache("native.cache", type="plan")
""" + BIND % ", frozen=True" + PRINT_REPORT, model)
    assert added["is_hit"] and "native" not in added["types"]
    partly = python(LOAD + "model.load_cache('all.cache', type='reference')\n" +
                    BIND % ", cache_dir='other'" + PRINT_REPORT, model)
    assert not partly["is_hit"] and partly["types"]["plan"][0] == 0


def test_no_price_of_a_type_is_measured_twice(python, model, work, tmp_path, needs_native):
    # Everything is measured: what could win depends on the times of the other types, which differ.
    first = python(LOAD + BIND % ", tune_all=True" +
                   "model.save_cache('native.cache', type='native')\n" + PRINT_REPORT, model)

    def next_process(name, ending=""):
        # A user folder with the same key, but without caches.
        (tmp_path / name / "tessera").mkdir(parents=True, mode=0o700)
        shutil.copy2(tmp_path / "user" / "tessera" / "key", tmp_path / name / "tessera" / "key")
        report = python(
            LOAD + "model.load_cache('native.cache', type='native')\n" +
            BIND % f", tune_all=True, cache_dir='{name}'" + ending + PRINT_REPORT, model,
            XDG_CACHE_HOME=str(tmp_path / name))
        assert not report["is_hit"]
        loaded, measured, _ = report["types"]["native"]
        return loaded, measured

    loaded, measured = next_process(
        "second", "model.save_cache('native.cache', type='native')\n")
    assert loaded == first["types"]["native"][1] > 0, "the file has every price"
    # The second process may measure what the first one left out, because it certainly was slower than
    # a kernel of another type; if it measured a price again, the file would have fewer.
    assert next_process("third")[0] == loaded + measured


def test_a_type_is_saved_with_its_compiled_kernels(python, model, work, tmp_path, need_backend):
    need_backend("openvino")
    bind = "executor = model.bind({'x': (1, 16, 24, 24)}, threads=1, backends=['openvino'], swap=False, "
    saved = python(LOAD + bind + "optimize=True)\n" + """
model.save_cache('it.cache', type='openvino')
model.save_cache('it.cache', type='plan')
""" + "print(json.dumps(executor.shapes().plans[0].kernels))\n", model)
    (tmp_path / "fresh" / "tessera").mkdir(parents=True, mode=0o700)
    shutil.copy2(tmp_path / "user" / "tessera" / "key", tmp_path / "fresh" / "tessera" / "key")
    loaded = python(LOAD + "model.load_cache('it.cache')\n" + bind +
                    "frozen=True, optimize=True, cache_dir='elsewhere')\n" +
                    "plan = executor.shapes().plans[0]\n" +
                    "print(json.dumps([plan.kernels, plan.loaded_kernels]))\n",
                    model, XDG_CACHE_HOME=str(tmp_path / "fresh"))
    assert loaded[0] == saved
    assert loaded[1] > 0, "what OpenVINO compiled came with the file"


def test_saving_nothing_is_an_error(python, model, work):
    kind, _, text = error_of(
        python, model, "model.bind({'x': (1, 16, 24, 24)}, backends=['reference'])\n"
        "model.save_cache('a.cache', type='native')")
    assert kind in ("InvalidArgument", "Unsupported")
    assert kind == "Unsupported" or "expected something to save of 'native'" in text
    assert not (work / "a.cache").exists()


def test_load_cache_on_an_executor_plans_anew(python, model):
    result = python(LOAD + BIND % "" + """
executor.save_cache("all.cache")
model = tessera.load(sys.argv[1])
executor = model.bind({'x': (1, 16, 24, 24)}, threads=1, optimize=False)
assert executor.cache_report().fingerprint == ""
executor.load_cache("all.cache")
y, = executor.run({"x": np.ones((1, 16, 24, 24), np.float32)})
assert y.shape == (1, 16, 24, 24)
""" + PRINT_REPORT, model)
    assert result["is_hit"]


def test_types_that_are_unknown_or_not_here(python, model, why_unusable):
    kind, kinds, text = error_of(python, model, "model.load_cache('none.cache', type='torch')")
    assert kind == "InvalidArgument" and "ValueError" in kinds
    assert all(f"'{name}'" in text for name in ("all", "native", "onednn", "openvino", "jit", "tensorrt",
                                               "cuda", "cudnn", "tvm", "opencl"))
    kind, _, text = error_of(python, model, "model.load_cache('none.cache', type='mkldnn')")
    if why_unusable["onednn"]:
        assert kind == "Unsupported"
    else:
        assert kind == "InvalidArgument" and "none.cache" in text


@pytest.mark.parametrize("call", ["model.load_cache('none.cache', type=%r)",
                                  "model.save_cache('none.cache', %r)", "model.bind(backends=[%r])"])
def test_known_names_that_this_version_does_not_have(python, model, call):
    names = {"cuda": "kernels of its own for NVIDIA", "CUDA": "NVIDIA",
             "cudnn": "over cuDNN", "cuDNN": "over cuDNN", "tensorrt": "over TensorRT",
             "TensorRT": "over TensorRT", "trt": "over TensorRT", "tvm": "Apache TVM",
             "TVM": "TVM"}
    program = LOAD + "found = {}\nfor name in json.loads(sys.argv[2]):\n    try:\n        "
    program += call.replace("%r", "name") + """
    except tessera.Error as error:
        kinds = [one.__name__ for one in type(error).__mro__]
        found[name] = [error.kind, "NotImplementedError" in kinds, str(error)]
print(json.dumps(found))
"""
    found = python(program, model, json.dumps(list(names)))
    for name, missing in names.items():
        kind, is_not_implemented, text = found[name]
        assert kind == "Unsupported" and is_not_implemented, (name, text)
        assert f"'{name}': cannot be used: this version of Tessera" in text and missing in text


@pytest.mark.parametrize("name, likely", [
    ("tensorflow", ""), ("tensort", "tensorrt"), ("opncl", "opencl"), ("openvno", "openvino"),
    ("cudnnn", "cudnn"), ("All", "all"), ("", "")])
def test_a_name_that_nobody_has_is_answered_with_the_likely_one(python, model, name, likely):
    kind, kinds, text = error_of(python, model, f"model.load_cache('none.cache', type={name!r})")
    assert kind == "InvalidArgument" and "ValueError" in kinds and f"type '{name}'" in text
    assert text.endswith(f"; did you mean '{likely}'?" if likely else "found no such type")


@pytest.mark.parametrize("name", ["native", "Native", "ov", "OpenVINO", "open-vino", "oneDNN",
                                  "one_dnn", "mkl-dnn", "MKLDNN", "DNNL", "reference"])
def test_names_are_taken_as_their_makers_write_them(python, model, why_unusable, name):
    kind, _, text = error_of(python, model, f"model.load_cache('none.cache', type={name!r})")
    letters = name.lower().replace("-", "").replace("_", "")
    library = {"ov": "openvino", "mkldnn": "onednn", "dnnl": "onednn"}.get(letters, letters)
    if why_unusable.get(library):
        assert kind == "Unsupported" and f"type '{name}'" in text
    else:
        assert kind == "InvalidArgument" and "none.cache" in text


def test_saving_before_an_optimised_bind(python, model, work):
    kind, _, text = error_of(python, model, "model.save_cache('a.cache')")
    assert kind == "InvalidArgument" and "call bind(optimize=true) first" in text
    kind, _, text = error_of(
        python, model, "model.bind({'x': (1, 16, 24, 24)}, optimize=False).save_cache('a.cache')")
    assert kind == "InvalidArgument" and "call bind(optimize=true) first" in text
    assert not (work / "a.cache").exists()


def test_no_other_file_is_overwritten(python, model, work):
    kind, _, text = error_of(python, model, BIND % "" + "model.save_cache(sys.argv[1])")
    assert kind == "InvalidArgument" and "expected the name of a new file or of a cache" in text
    kind, _, text = error_of(python, model, BIND % "" + "model.save_cache('none/a.cache')")
    assert kind == "InvalidArgument" and "the folder 'none' does not exist; create it first" in text


def test_files_that_do_not_fit_say_what_differs(python, model, make_model, work):
    python(LOAD + BIND % "" + "model.save_cache('a.cache')\n" + PRINT_REPORT, model)
    other = make_model("other.onnx", pads=2)
    kind, _, text = error_of(python, other, "model.load_cache('a.cache')")
    assert kind == "InvalidArgument" and "it does not fit: model: " in text
    kind, _, text = error_of(
        python, model, "model.bind({'x': (1, 16, 24, 24)}, threads=2).load_cache('a.cache')")
    assert kind == "InvalidArgument" and "threads: 1 in the file, 2 now" in text
    (work / "a.cache").write_bytes((work / "a.cache").read_bytes()[:-1])
    kind, _, _ = error_of(python, model, "model.load_cache('a.cache')")
    assert kind == "Corrupt"


def test_frozen_is_an_error_of_its_own(python, model, work):
    kind, kinds, text = error_of(python, model, BIND % ", frozen=True")
    assert kind == "CacheMiss" and "LookupError" in kinds and "no cache of this model" in text
    assert not list(work.iterdir())


@pytest.mark.parametrize("folder", ["'.'", "'/proc/nowhere'"])
def test_many_threads_and_second_binds_measure_once(python, model, folder):
    result = python(LOAD + f"""
import threading
reports = []
def bind():
    executor = model.bind({{'x': (1, 16, 24, 24)}}, threads=1, optimize=True, cache_dir={folder})
    reports.append([executor.cache_report().is_hit, executor.plan().tuning.measured])
threads = [threading.Thread(target=bind) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
bind()
print(json.dumps(reports))
""", model, XDG_CACHE_HOME="", HOME="")
    assert len(result) == 9 and [hit for hit, _ in result].count(False) == 1
    assert all(measured == 0 for hit, measured in result if hit)
    assert json.dumps(result)
