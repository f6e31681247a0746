"""Two models whose weights have equal XXH3 digests: neither gets the stored artifacts of the other.

XXH3 multiplies the halves of (data ^ secret) and adds the data to the neighbouring lane. If one
half is 0, only the sum of the other half counts: exchanging the two values of `weights()` does not
change the 128-bit digest that is seeded with the digest of "float32 64x64".
src/backend/packs_test.cc shows this."""

import numpy as np
from settled import wait_until_settled
from small_models import node, save_model

SIDE = 64


def weights(first, second):
    values = np.zeros(SIDE * SIDE, np.float32)
    values.view(np.uint32)[[0, 16]] = 0xBFF266E0, 0xA5FB9954
    values[[1, 17]] = first, second
    return values.reshape(SIDE, SIDE)


def write_model(path, weight):
    return save_model(path, [node("MatMul", "x w", "y")], {"x": [SIDE, SIDE]}, {"y": [SIDE, SIDE]},
                      {"w": weight})


def test_a_model_gets_no_packs_of_weights_that_collide(call, work, tmp_path, needs_a_library):
    x = np.eye(SIDE, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    both = [weights(1, 2), weights(2, 1)]
    models = [write_model(tmp_path / f"{index}.onnx", weight) for index, weight in enumerate(both)]
    wait_until_settled()
    for _ in ("packs and index are stored", "they are used"):
        for model, weight in zip(models, both, strict=True):
            _, _, errors = call("run", model, "--optimize", "--threads", "1", "--input",
                                f"x={tmp_path / 'x.npy'}", "--output", "out")
            np.testing.assert_allclose(np.load(work / "out" / "output_0.npy"), weight, rtol=1e-5)
