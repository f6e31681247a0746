"""TESSERA_DUMP_KERNELS writes the texts of compiled kernels to files. Skipped where jit cannot be
used."""

import logging

import numpy as np
import onnx
import pytest
from fused_models_test import bind, gelu, inferred, masked_softmax, silu_with_bias
from onnx import TensorProto
from programs import run_program

pytestmark = pytest.mark.usefixtures("needs_jit")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "some" / "where"
    monkeypatch.setenv("TESSERA_DUMP_KERNELS", str(path))
    return path


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_each_form_of_a_kernel_is_in_a_file(tessera, folder):
    executor = bind(tessera, gelu([2, 3]))
    files = contents(folder)
    stem, = {name.rpartition(".")[0] for name in files}
    assert stem.startswith("jit-Div_Erf_Add_2_more-")
    assert set(files) == {f"{stem}.expr", f"{stem}.ll", f"{stem}.s"}
    for extension, form in (("expr", "expression"), ("ll", "source"), ("s", "assembly")):
        assert files[f"{stem}.{extension}"].strip() == executor.kernel_text(0, form).strip()


def test_equal_kernels_are_written_once_and_names_are_stable(tessera, folder, caplog):
    caplog.set_level(logging.INFO, "tessera")
    bind(tessera, gelu([2, 3]))
    first = contents(folder)
    assert f"wrote 1 of the 1 compiled kernels of this plan to '{folder}'" in caplog.text
    bind(tessera, gelu([50, 70]))
    assert contents(folder) == first, "the same kernel, for other sizes"
    assert "wrote 0 of the 1 compiled kernels" in caplog.text and "were there" in caplog.text
    bind(tessera, silu_with_bias([2, 7, 5, 3]))
    assert len(contents(folder)) == 6 and first.items() <= contents(folder).items()


def test_equal_groups_of_one_plan_share_their_files(tessera, folder, caplog):
    caplog.set_level(logging.INFO, "tessera")
    model = inferred(
        [("Sigmoid", ["x"], "a", {}), ("Mul", ["a", "x"], "b", {}),
         ("Sigmoid", ["z"], "c", {}), ("Mul", ["z", "c"], "d", {})],
        {"x": (TensorProto.FLOAT, [100]), "z": (TensorProto.FLOAT, [30])},
        {"b": TensorProto.FLOAT, "d": TensorProto.FLOAT})
    assert len(bind(tessera, model).plan().steps) == 2
    assert len(contents(folder)) == 3
    assert "wrote 1 of the 1 compiled kernels" in caplog.text


def test_files_of_others_are_left_as_they_are(tessera, folder, caplog):
    bind(tessera, gelu([2, 3]))
    source, = folder.glob("*.ll")
    source.write_text("my notes")
    bind(tessera, gelu([2, 3]))
    assert source.read_text() == "my notes"
    assert f"'{source.name}' in '{folder}' has other contents" in caplog.text
    assert not list(folder.glob("*.part"))


def test_a_folder_that_cannot_be_written_is_one_warning(tessera, folder, caplog):
    folder.parent.mkdir()
    folder.write_text("a file")
    executor = bind(tessera, gelu([2, 3]))
    executor.run({"x": np.ones([2, 3], np.float32)})
    warnings = [record.message for record in caplog.records]
    assert len(warnings) == 1, warnings
    assert f"not all kernels were written to '{folder}'" in warnings[0]
    assert folder.read_text() == "a file"


def test_other_shapes_and_plans_without_compiled_kernels(tessera, folder):
    bind(tessera, gelu([2, 3]), fuse=False)
    assert contents(folder) == {}
    model = masked_softmax([2, 6, 50])
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[-1].dim_param = "columns"
    executor = bind(tessera, model, shapes={"x": [2, 6, 50], "mask": [1, 50]}, families=False)
    first = contents(folder)
    assert len(first) == 3
    # One column is not reduced: another kernel.
    executor.run({"x": np.ones([2, 6, 1], np.float32), "mask": np.ones([1, 1], bool)})
    assert first.items() < contents(folder).items()


def test_a_plan_from_a_cache_is_written_too(tessera_binary, tmp_path):
    onnx.save(gelu([2, 300]), tmp_path / "gelu.onnx")

    def call(folder):
        run_program(tessera_binary, "bench", "gelu.onnx", "--backends", "jit,reference",
                    "--optimize", "--seconds", "0.01", "--threads", "1", "--pin", "*=jit",
                    cwd=tmp_path, variables={"TESSERA_DUMP_KERNELS": tmp_path / folder})
        return contents(tmp_path / folder)

    first = call("first")
    assert len(first) == 3
    assert call("second") == first
