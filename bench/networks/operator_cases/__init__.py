"""The cases of bench/operators.py: uses of every op on a small and a large input. case.py says
what a case is; the other modules have the families."""

from networks.operator_cases import elements, fused, layers, learned, movement

MODULES = (elements, movement, layers, learned, fused)


def all_cases():
    return [case for module in MODULES for family in module.FAMILIES for case in family()]
