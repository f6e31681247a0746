"""Models of ops that the test plug-in `compiler` compiles (tests/backends/compiler)."""

import small_models
from small_models import node


def save_model(path, slopes, size, also=()):
    """A LeakyRelu for each slope; ops of `also` between them, which make it another model."""
    names = [f"x{at}" for at in range(len(slopes))]
    nodes = []
    for at, slope in enumerate(slopes):
        nodes.append(node("LeakyRelu", [names[at]], f"a{at}", f"leaky{at}", alpha=slope))
        value = f"a{at}"
        for op in also:
            nodes.append(node(op, [value], f"{value}_{op}", f"{op}{at}"))
            value = f"{value}_{op}"
        nodes.append(node("Identity", [value], f"y{at}", f"end{at}"))
    ends = [{f"{end}{at}": [size] for at in range(len(slopes))} for end in "xy"]
    return small_models.save_model(path, nodes, *ends)
