"""The table of uses (row.py says what a row is), a module for each family of ops."""

from attribute_rows import arithmetic, images, layers, losses, movement, signals, transformers
from attribute_rows.row import NAMES_BEFORE, Inexpressible, Row, node_of, settings_of

# Each module has FAMILIES: functions that yield rows. The first three draw from one generator, so
# the order decides their values; the others have generators of their own.
MODULES = (layers, movement, arithmetic, images, losses, signals, transformers)

__all__ = ["NAMES_BEFORE", "Inexpressible", "Row", "node_of", "rows_by_op", "settings_of"]


def rows_by_op():
    rows = {}
    for module in MODULES:
        for family in module.FAMILIES:
            for row in family():
                rows.setdefault(row.op, []).append(row)
    return rows
