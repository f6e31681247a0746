"""The interpreter ends while daemon threads load, bind and run: no crash, no hang, no complaint."""

import os
import pathlib
import sys
import textwrap

import pytest
from programs import run_program

# Of onnxruntime_programs.py.
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "onnxruntime_interface"
WORK = {
    "run": "session.run(None, {'x': rows(1 + next(turns) % 3)})",
    "load": "ort.InferenceSession(content).run(None, {'x': rows(2)})",
    "measure": "tessera.load(content).bind({'x': (2, 4)}, optimize=True, retune=True)",
    "log": "tessera.load(contradicting, log=print)",
}


@pytest.mark.parametrize("work", WORK)
def test_threads_at_work_do_not_disturb_the_end(tessera, work, tmp_path):
    program = textwrap.dedent(f"""\
        import itertools, sys, threading, time
        from onnx import TensorProto, helper
        import tessera
        import tessera.onnxruntime as ort
        from onnxruntime_programs import classifier, rows

        content = classifier().SerializeToString()
        model = classifier()
        model.graph.value_info.append(
            helper.make_tensor_value_info("product", TensorProto.FLOAT, ["batch", 7]))
        contradicting = model.SerializeToString()
        session = ort.InferenceSession(content)
        session.run(None, {{"x": rows(1)}})
        turns = itertools.count()
        sys.stdout = open("/dev/null", "w")

        def repeat():
            while True:
                {WORK[work]}

        for _ in range(3):
            threading.Thread(target=repeat, daemon=True).start()
        time.sleep(0.2)
        """)
    for _ in range(3):
        result = run_program(sys.executable, "-c", program, cwd=tmp_path,
                             variables={"PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path])})
        assert result.stderr == ""
