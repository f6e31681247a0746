"""The backends of backends/catalog.json, best first."""

import json
import pathlib

_ENTRIES = json.loads(
    (pathlib.Path(__file__).resolve().parent.parent / "backends" / "catalog.json").read_text()
)["backends"]

BACKENDS = tuple(entry["name"] for entry in _ENTRIES)
# Used without being named.
DEFAULTS = tuple(entry["name"] for entry in _ENTRIES if not entry.get("only_if_named"))
PLUGINS = tuple(entry["name"] for entry in _ENTRIES if entry["kind"] == "plug-in")
