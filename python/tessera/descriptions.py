"""What models, plans and backends say about themselves: plain data, named as in tessera/tessera.h.

They compare by value, print all that they hold, and `dataclasses.asdict` makes dictionaries of them
that fit into JSON. Times are in nanoseconds.
"""

from dataclasses import dataclass

__all__ = [
    "BackendDescription",
    "BackendRefusal",
    "CacheReport",
    "CacheTypeReport",
    "ModelDescription",
    "NodeDescription",
    "PassDescription",
    "PlanDescription",
    "PlanPort",
    "PlanStep",
    "StageRecord",
    "StepRecord",
    "ValueDescription",
]


@dataclass(frozen=True)
class ValueDescription:
    """An input, output or inner value of a model."""

    name: str
    type: str  # "float32", as NumPy calls it; "undefined" where it is not known
    shape: tuple[int | str, ...] | None  # text names an unknown dimension; None: rank unknown
    is_read: bool  # false: nothing reads it, so it need not be fed
    index_limit: int | None  # of integers that only index: the number of things to choose from
    text: str  # "float32 1x3xHx224"
    layout: str = "row_major"  # in which an executor takes or gives it


@dataclass(frozen=True)
class NodeDescription:
    """A node of a loaded model, after rewriting."""

    name: str
    op: str
    domain: str
    version: int
    inputs: list[ValueDescription]  # an omitted one has an empty name
    outputs: list[ValueDescription]
    flops: int | None  # a multiply-add is 2; None while shapes are unknown
    bytes: int | None  # read and written; None while shapes are unknown
    inference_only: str  # the pass that made it right for inference only, else ""


@dataclass(frozen=True)
class PassDescription:
    """What one rewriting pass did when the model was loaded."""

    name: str
    nodes_before: int
    nodes_after: int
    seconds: float
    changes: list[str]  # one sentence a change


@dataclass(frozen=True)
class ModelDescription:
    """A loaded model."""

    file: str
    ir_version: int
    producer: str
    opsets: dict[str, int]  # by domain; "" is ONNX's own
    inputs: list[ValueDescription]  # without those that have a value in the file
    outputs: list[ValueDescription]
    weights: list[ValueDescription]  # constants that a node reads
    nodes: list[NodeDescription]  # in the order in which they run
    passes: list[PassDescription]
    fetchable: list[str]  # values that bind(fetch=...) can name
    weight_bytes: int
    flops: int | None
    peak_bytes: int | None  # of inner values alive at once, when run in order


@dataclass(frozen=True)
class StepRecord:
    """What one step of the plan did during the newest recorded run."""

    node: str
    op: str
    backend: str
    algorithm: str
    start_ns: int  # since the run began
    duration_ns: int
    flops: int
    bytes: int


@dataclass(frozen=True)
class StageRecord:
    """One thing that load() or bind() did."""

    name: str
    start_ns: int  # since load() or bind() began
    duration_ns: int
    bytes: int  # of packs


@dataclass(frozen=True)
class PlanPort:
    """A value as a step reads or makes it."""

    value: str
    type: str  # "float32 1x64x56x56"
    layout: str  # "nchw16c"
    device: str  # that the layout is on: "cpu"
    pack: str  # id of the pack that is read instead; "" for none
    is_constant: bool
    capacity: int | None = None  # of a sparse layout: the most elements or rows that it stores
    density: float | None = None  # which part of all that is


@dataclass(frozen=True)
class BackendRefusal:
    """Why a backend does not run a node."""

    backend: str
    node: str
    reason: str


@dataclass(frozen=True)
class PlanStep:
    """A kernel for a node or a group, or a conversion between layouts."""

    name: str  # of the node; of a group's last node; of a conversion's value
    op: str  # "Conv+Relu", "convert", "convert+copy" (to another device), "copy"
    backend: str
    algorithm: str
    threads: int
    nodes: list[str]  # all that it covers
    inputs: list[PlanPort]
    outputs: list[PlanPort]
    flops: int
    bytes: int  # read and written, as stored
    workspace_bytes: int
    is_in_place: bool
    predicted_seconds: float | None  # what the choice reckons with; None without costs
    refusals: list[BackendRefusal]  # of the other backends, for its nodes


@dataclass(frozen=True)
class MeasuredTime:
    """A time, and between what it lies in another process, 19 times of 20."""

    seconds: float  # the lower quartile of the rounds
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class CandidateDescription:
    """One way to compute a node or a group, with what is known of it."""

    nodes: list[str]  # all that it covers
    op: str  # "Conv+Relu"
    backend: str
    algorithm: str
    threads: int
    inputs: list[PlanPort]
    outputs: list[PlanPort]
    verdict: str  # "fine", "refused", "not built", "not measured"
    refusal: str  # why it may not be used; "": it may
    time: MeasuredTime | None  # of what may be used and was measured
    has_cold_weights: bool  # whether `time` is with weights evicted from the caches
    price_seconds: float  # what the choice reckons with: `time`, or a guess
    error: float  # found, relative to the magnitude of what was summed
    tolerance: float  # what it may be
    build_seconds: float
    workspace_bytes: int
    pack_bytes: int  # of its packed weights
    library_bytes: int  # that its library keeps to itself
    is_chosen: bool
    # By how much the cheapest choice with it is dearer than the cheapest of all; None: not found
    # out (bind(margin_search_seconds=...)), infinity: there is no choice with it.
    behind_seconds: float | None
    # By how much the cheapest choice without it is dearer; 0 for what the cheapest does not have.
    ahead_seconds: float | None


@dataclass(frozen=True)
class ConversionDescription:
    """One step from a layout to another, with its price for tensors of about `bytes`."""

    backend: str
    source: str
    target: str
    type: str  # "float32"
    bytes: int
    time: MeasuredTime
    refusal: str  # why it could not be measured


@dataclass(frozen=True)
class TuningDescription:
    """What was measured when binding."""

    measured: int  # candidates and conversions
    known: int  # that had been measured before, or stand in the graph twice
    refused: int  # of those measured
    reused: int  # prices of this graph that were known when measuring began
    reused_seconds: float  # that measuring those took, at least
    offered: int  # candidates in all: those that could not win are not measured
    is_stopped: bool
    is_out_of_time: bool  # tune_budget_seconds were spent
    seconds: float
    peak_bytes: int  # the most that this process and the one that measured had resident
    phases: dict[str, float]  # seconds by what was done: "build", "check", "time" and others
    notes: list[str]  # what was odd, a sentence each


@dataclass(frozen=True)
class TuneProgress:
    """How far binding has come."""

    what: str  # "Conv+Relu mylib:winograd"; "" where there is nothing to name
    done: int  # of `total`, in this phase
    total: int  # as far as is known now; 0: not known
    best_seconds: float  # of the group of nodes that is measured; 0: none so far
    seconds_left: float | None  # that the phase still takes, an estimate; None: not known
    phase: str  # "measuring candidates", "comparing whole plans", "choosing a plan" and others
    seconds_allowed: float | None  # that the phase may take at most, by a budget; None: no limit
    can_stop: bool  # whether measuring goes on, which ends early where the callback gives False
    may_grow: bool  # whether what is found may add to `total`, and so to seconds_left


@dataclass(frozen=True)
class ContenderDescription:
    """A choice of candidates that was run as a whole, in turns with others."""

    # How it was chosen. "chosen": the cheapest by prices before whole plans ran; "known": the plan of
    # an earlier tuning; "solved": the cheapest by the prices that those runs gave; "greedy": the same
    # prices, node by node; "in order": what is chosen without prices; "mylib alone": the cheapest
    # with the kernels of one backend, and others only where it has none. "..., round 2": by the
    # prices of a later round of runs.
    name: str
    seconds: float  # of a run
    low: float  # its interval of 95 %
    high: float


@dataclass(frozen=True)
class PlacementDescription:
    """How good the choice by price is. A price is of kernels and conversions alone."""

    predicted_seconds: float  # the price of what was chosen
    isolated_seconds: float | None  # by what each kernel took alone, before it ran amid the others
    measured_seconds: float | None  # of a run of it; None: none was timed when binding
    build_seconds: float  # what building the chosen kernels takes, as far as that was measured
    # no choice has a lower price: time of a run and, with optimize_for="N-runs", the Nth part of
    # what its kernels take to build
    lower_bound_seconds: float
    is_proven_optimal: bool  # the solver found a choice whose price is that bound
    gap: float  # the part by which the choice's price is above the bound: 0.02
    solve_seconds: float  # that the solver took
    contenders: list[ContenderDescription]  # the fastest first; empty: no run-off was held


@dataclass(frozen=True)
class MemoryBlock:
    """Memory of its own in the arena: a value with those that share its memory, or a workspace."""

    name: str  # the value's, or the step's whose workspace it is
    text: str  # "float32 1x64x56x56, nchw16c"; "" for a workspace
    lower: int  # the first step of the plan that uses it
    upper: int  # one past the last
    bytes: int  # as its layout stores it
    offset: int  # in the arena
    is_workspace: bool


@dataclass(frozen=True)
class MemoryDescription:
    """How inner values and workspaces lie in the arena, and what else a plan takes."""

    arena_bytes: int
    lower_bound_bytes: int  # live at once, at most, in this order of steps
    is_proven_smallest: bool  # no offsets for these steps give a smaller arena
    naive_bytes: int  # if each value and workspace had memory of its own
    padding_bytes: int  # of those, what layouts store beside the elements
    weight_bytes: int  # of the constants that the steps read, packed or not
    output_bytes: int  # of outputs, as far as their sizes are known
    library_bytes: int  # that libraries keep to themselves
    total_bytes: int  # of arena, weights, outputs and libraries: what memory_budget_bytes limits
    blocks: list[MemoryBlock]  # by first step


@dataclass(frozen=True)
class PlanDescription:
    """The steps that an executor runs, in order; with costs, everything that was offered."""

    steps: list[PlanStep]
    candidates: list[CandidateDescription]
    conversions: list[ConversionDescription]
    placement: PlacementDescription | None  # None without costs
    tuning: TuningDescription
    arena_bytes: int  # inner values and workspaces
    pack_bytes: int  # packed weights that this plan reads
    library_bytes: int  # that libraries keep to themselves
    memory: MemoryDescription


@dataclass(frozen=True)
class ShapePlanDescription:
    """An executor's plan for one set of input shapes."""

    shapes: dict[str, list[int]]  # by input, of all whose shape is read
    arena_bytes: int  # that it needs
    pack_bytes: int  # of packed weights, shared with the others
    kernels: int
    reused_kernels: int  # of these, that another plan had built
    loaded_kernels: int  # of these, that an earlier process had built and stored
    seconds: float  # that planning took; 0 for the one of bind()


@dataclass(frozen=True)
class ShapesDescription:
    """The sets of input shapes that an executor has plans for."""

    plans: list[ShapePlanDescription]  # the one of the newest run first, then by last use
    arena_bytes: int  # that they share: as much as one of them ever needed


@dataclass(frozen=True)
class BackendDescription:
    """A library that can run models."""

    name: str
    version: str  # "" where it has not been opened
    devices: list[str]
    layouts: list[str]  # that it brings
    aliases: list[str]
    file: str  # "" for what is built in or missing
    is_usable: bool
    status: str  # "usable", "not built", "library missing", "refused"
    reason: str  # why it is not usable
    remedy: str  # what to install, or which command builds it; "" where nothing helps
    op_count: int  # of the reference: ops with a kernel


@dataclass(frozen=True)
class CacheTypeReport:
    """What a bind had from caches and what it found out itself, of one library or of the plan."""

    type: str  # a backend's name, or "plan"
    loaded: int  # prices, or plans
    measured: int  # the same
    seconds_saved: float  # that it took to find out what was loaded
    origin: str  # of that: "found here", "found by this user", "found by somebody else"; "": nothing


@dataclass(frozen=True)
class CacheReport:
    """What a bind with optimize had from caches."""

    fingerprint: str  # 40 hexadecimal digits; "" where it was bound without optimize
    ingredients: dict[str, str]  # of it, by name
    entry_ingredients: dict[str, str]  # of the plan, one of many in the file: shapes, options, ...
    is_hit: bool  # the plan was known, and nothing was measured
    file: str  # that was loaded; "": none
    change: str  # what of the libraries is another since the plan was found; they compete behind it
    reason: str  # why it is no hit
    saved: str  # where what was found out went; "": nowhere
    not_saved: str  # why not
    types: list[CacheTypeReport]
