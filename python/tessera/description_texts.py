"""How large descriptions present themselves: base classes of those in descriptions.py."""

import collections

from .plan_table import plan_table
from .plain_data import PlainData


class ModelText(PlainData):
    """The repr() of ModelDescription."""

    def __repr__(self) -> str:
        values = ", ".join(f"{value.name}: {value.text}" for value in self.inputs[:6])
        more = f" and {len(self.inputs) - 6} more" if len(self.inputs) > 6 else ""
        return (f"<tessera.ModelDescription '{self.file}', {len(self.nodes)} nodes, "
                f"{self.weight_bytes / 1e6:.1f} MB of weights;\n inputs {values}{more};\n "
                "dataclasses.asdict() has everything, `nodes` and `passes` are lists>")


class PlanText(PlainData):
    """The repr() and summary() of PlanDescription, and its table in notebooks."""

    def summary(self) -> str:
        """Steps by backend, and memory, in one line."""
        counts = collections.Counter(step.backend for step in self.steps)
        backends = ", ".join(f"{backend} {count}" for backend, count in counts.most_common())
        text = (f"{len(self.steps)} steps ({backends or 'none'}), arena "
                f"{self.arena_bytes / 1e6:.1f} MB, packs {self.pack_bytes / 1e6:.1f} MB")
        if self.placement:
            text += f", predicted {1e3 * self.placement.predicted_seconds:.3f} ms"
        return text

    def __repr__(self) -> str:
        return (f"<tessera.PlanDescription {self.summary()};\n {len(self.candidates)} candidates, "
                f"{len(self.conversions)} conversions;\n dataclasses.asdict() has everything, "
                "`steps` and `candidates` are lists>")

    def _repr_html_(self) -> str:
        return plan_table(self)
