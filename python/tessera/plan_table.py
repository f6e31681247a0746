"""The table of a plan's steps that notebooks show."""

import html

# A notebook takes long to show more.
_MAX_ROWS = 300
_MAX_REFUSALS = 3

_COLUMNS = ("step", "op", "backend", "algorithm", "inputs", "outputs", "predicted µs",
            "refused by")


def plan_table(plan) -> str:
    """HTML of a PlanDescription. Names come from the model's file, so everything is escaped."""
    rows = [_row("th", _COLUMNS)]
    rows += [_row("td", _cells(step)) for step in plan.steps[:_MAX_ROWS]]
    left = len(plan.steps) - _MAX_ROWS
    end = f"<p>and {left} more steps: <code>plan.steps[{_MAX_ROWS}:]</code></p>" if left > 0 else ""
    return f"<p>{html.escape(plan.summary())}</p><table>{''.join(rows)}</table>{end}"


def _row(tag, cells) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _cells(step):
    predicted = "" if step.predicted_seconds is None else f"{1e6 * step.predicted_seconds:.1f}"
    refusals = [f"{each.backend}: {each.reason}" for each in step.refusals]
    if len(refusals) > _MAX_REFUSALS:
        refusals[_MAX_REFUSALS:] = [f"and {len(refusals) - _MAX_REFUSALS} more"]
    return (step.name, step.op, step.backend, step.algorithm, _ports(step.inputs),
            _ports(step.outputs), predicted, "; ".join(refusals))


def _ports(ports) -> str:
    return ", ".join(f"{port.type} {port.layout}" for port in ports if not port.is_constant)
