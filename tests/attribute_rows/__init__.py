"""The table of uses (row.py says what a row is), a module for each family of ops."""

from attribute_rows import arithmetic, images, layers, movement
from attribute_rows import arithmetic, layers, movement, transformers
from attribute_rows.row import NAMES_BEFORE, Inexpressible, Row, node_of, settings_of

# Each module has FAMILIES: functions that yield rows. All draw from one generator, so the order
# decides the values.
MODULES = (layers, movement, arithmetic, images)
from attribute_rows import arithmetic, layers, movement, signals
from attribute_rows.row import NAMES_BEFORE, Inexpressible, Row, node_of, settings_of

# Each module has FAMILIES: functions that yield rows. Those that draw from row.py's generator share
# it, so the order decides their values; newer modules have their own.
MODULES = (layers, movement, arithmetic, signals)
from attribute_rows import arithmetic, layers, losses, movement
from attribute_rows.row import NAMES_BEFORE, Inexpressible, Row, node_of, settings_of

# Each module has FAMILIES: functions that yield rows. The first three draw from one generator, so
# the order decides the values.
MODULES = (layers, movement, arithmetic, losses)
MODULES = (layers, movement, arithmetic, transformers)

__all__ = ["NAMES_BEFORE", "Inexpressible", "Row", "node_of", "rows_by_op", "settings_of"]


def rows_by_op():
    rows = {}
    for module in MODULES:
        for family in module.FAMILIES:
            for row in family():
                rows.setdefault(row.op, []).append(row)
    return rows
