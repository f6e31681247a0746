"""Random equations of Einsum give NumPy's results, whether a product computes them or the
reference."""

import string

import numpy as np
import pytest
from small_models import model_of, node

EQUATIONS = 40  # a seed


def random_case(random) -> tuple[str, list]:
    """An equation and operands for it: up to three, with dots, repeated letters, axes of length 1
    that are repeated, and results with and without an arrow."""
    lengths = {letter: int(random.integers(1, 6)) for letter in "abcdeXY"}
    dotted = [int(random.integers(1, 4)) for _ in range(2)]
    has_dots = random.random() < 0.3
    terms, operands = [], []
    for _ in range(random.choice([1, 2, 2, 2, 3])):
        letters = list(random.choice(list(lengths), random.integers(0 if has_dots else 1, 5)))
        if random.random() < 0.8:
            letters = list(dict.fromkeys(letters))
        dims = [1 if random.random() < 0.1 and letters.count(letter) == 1 else lengths[letter]
                for letter in letters]  # fmt: skip
        term = "".join(letters)
        if has_dots:
            place = int(random.integers(0, len(letters) + 1))
            term = term[:place] + "..." + term[place:]
            dims[place:place] = dotted[int(random.integers(0, 3)) :]
        terms.append(term)
        operands.append(random.normal(0, 1, dims).astype(np.float32))
    used = sorted({letter for term in terms for letter in term if letter in string.ascii_letters})
    equation = ",".join(terms)
    if random.random() < 0.8:
        kept = [letter for letter in used if random.random() < 0.6]
        result = "".join(random.permutation(kept)) if kept else ""
        equation += " -> " + ("..." if has_dots else "") + result
    return equation, operands


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_fixed", [True, False])
def test_random_equations(tessera, seed, is_fixed):
    random = np.random.default_rng(seed)
    for _ in range(EQUATIONS):
        equation, operands = random_case(random)
        expected = np.einsum(equation, *[operand.astype(np.float64) for operand in operands])
        names = [f"x{index}" for index in range(len(operands))]
        dims = [list(x.shape) if is_fixed else [f"{name}_{axis}" for axis in range(x.ndim)]
                for name, x in zip(names, operands, strict=True)]  # fmt: skip
        model = model_of([node("Einsum", names, "y", equation=equation)],
                         dict(zip(names, dims, strict=True)), "y", opset=13)
        shapes = {name: x.shape for name, x in zip(names, operands, strict=True)}
        executor = tessera.load(model.SerializeToString()).bind(shapes)
        (found,) = executor.run(dict(zip(names, operands, strict=True)))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4, err_msg=equation)
        assert found.shape == np.shape(expected), equation


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk->ik,", "expected letters and at most one '...', found 'ik,'"),
        ("ij,jk->iz", "expected letters of the inputs in the result, found 'z'"),
        ("ij->ik", "expected as many terms as inputs, 2, found 1"),
        ("ij,jk->i1", "expected letters and at most one '...'"),
        ("ijk,jk->i", "each of the 2 axes of input 0, found 'ijk'"),
        ("", "expected as many terms as inputs, 2, found 1"),
    ],
)
def test_says_what_is_wrong(tessera, equation, message):
    model = model_of([node("Einsum", "a b", "y", "sum", equation=equation)],
                     {"a": [3, 3], "b": [3, 3]}, "y", opset=13)
    with pytest.raises(tessera.InvalidModel) as caught:
        tessera.load(model.SerializeToString())
    assert "node 'sum' (Einsum)" in str(caught.value)
    assert message in str(caught.value)
