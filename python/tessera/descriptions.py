"""Descriptions of models, plans and backends: plain data, with the names of tessera/descriptions.h.

They compare by value, and `dataclasses.asdict` converts them to dictionaries that can be written
as JSON. repr() is short: it counts the elements of long lists and cuts long texts. The unit of a
time is in its name: `_ns` or `seconds`.
"""

import collections
from dataclasses import dataclass

from .plan_table import plan_table
from .short_repr import ShortRepr

__all__ = [
    "BackendDescription",
    "BackendRefusal",
    "CacheReport",
    "CacheTypeReport",
    "CandidateDescription",
    "CompileDescription",
    "ContenderDescription",
    "ConversionDescription",
    "DeviceMemoryDescription",
    "HeldCacheDescription",
    "HeldMemoryDescription",
    "MeasuredTime",
    "MemoryBlock",
    "MemoryDescription",
    "MissingPart",
    "ModelDescription",
    "ModelInspection",
    "NodeDescription",
    "PassDescription",
    "PlacementDescription",
    "PlanDescription",
    "PlanPort",
    "PlanStep",
    "ShapePlanDescription",
    "ShapesDescription",
    "StageRecord",
    "StepRecord",
    "TuneProgress",
    "TuningDescription",
    "TuningQuote",
    "ValueDescription",
]


@dataclass(frozen=True, repr=False)
class ValueDescription(ShortRepr):
    """An input, output or inner value of a model."""

    name: str
    type: str  # "float32", NumPy's name; "undefined" if not known
    shape: tuple[int | str, ...] | None  # text names an unknown dimension; None: rank unknown
    is_read: bool  # false: nothing reads it, so it may be left out
    index_limit: int | None  # of inputs only used as an index: number of choices
    text: str  # "float32 1x3xHx224"
    layout: str = "row_major"  # in which an executor accepts or returns it


@dataclass(frozen=True, repr=False)
class NodeDescription(ShortRepr):
    """A node of a loaded model, after rewriting."""

    name: str
    op: str
    domain: str
    version: int
    inputs: list[ValueDescription]  # an omitted one has an empty name
    outputs: list[ValueDescription]
    flops: int | None  # a multiply-add is 2; None while shapes are unknown
    bytes: int | None  # read and written; None while shapes are unknown
    inference_only: str  # the pass after which it is correct for inference only, or ""


@dataclass(frozen=True, repr=False)
class PassDescription(ShortRepr):
    """The effect of one rewriting pass when the model was loaded."""

    name: str
    nodes_before: int
    nodes_after: int
    seconds: float
    changes: list[str]  # a sentence for each change


@dataclass(frozen=True, repr=False)
class ModelDescription(ShortRepr):
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
    peak_bytes: int | None  # largest sum of live inner values, if nodes run in order

    def __repr__(self) -> str:
        values = ", ".join(f"{value.name}: {value.text}" for value in self.inputs[:6])
        more = f" and {len(self.inputs) - 6} more" if len(self.inputs) > 6 else ""
        return (f"<tessera.ModelDescription '{self.file}', {len(self.nodes)} nodes, "
                f"{self.weight_bytes / 1e6:.1f} MB of weights;\n inputs {values}{more};\n "
                "dataclasses.asdict() has everything, `nodes` and `passes` are lists>")


@dataclass(frozen=True, repr=False)
class MissingPart(ShortRepr):
    """Something that a model needs and this build lacks."""

    kind: str  # "version", "operator", "value_type" or "element_type"
    name: str  # "DequantizeLinear", "sequence", "float8e4m3fn"
    domain: str  # of an operator; "" is ONNX's own
    reason: str  # "DequantizeLinear of ai.onnx is not in this build"
    count: int  # of the nodes, values or attributes that need it
    places: list[str]  # the first of these


@dataclass(frozen=True, repr=False)
class ModelInspection(ShortRepr):
    """What inspect() tells of a model, whether this build can load it or not."""

    model: ModelDescription  # if it cannot be loaded, what its file declares
    missing: list[MissingPart]  # everything because of which load() refuses it


@dataclass(frozen=True, repr=False)
class StepRecord(ShortRepr):
    """One step of the plan in the newest recorded run."""

    node: str
    op: str
    backend: str
    algorithm: str
    start_ns: int  # since the run began
    duration_ns: int
    enqueue_ns: int  # of a step of a device: until the host had enqueued it; else 0
    device: str  # that did it: "cpu"
    flops: int
    bytes: int


@dataclass(frozen=True, repr=False)
class StageRecord(ShortRepr):
    """One stage of load() or bind()."""

    name: str
    start_ns: int  # since load() or bind() began
    duration_ns: int
    bytes: int  # of packs


@dataclass(frozen=True, repr=False)
class PlanPort(ShortRepr):
    """A value that a step reads or writes, in the layout in which it does so."""

    value: str
    type: str  # "float32 1x64x56x56"
    layout: str  # "nchw16c"
    device: str  # of the layout: "cpu"
    pack: str  # id of the pack that is read instead of the value; "": none
    is_constant: bool
    capacity: int | None = None  # of a sparse layout: maximum of elements or rows
    density: float | None = None  # capacity as a share of all elements or rows


@dataclass(frozen=True, repr=False)
class CompileDescription(ShortRepr):
    """What a backend has compiled in this process, for all models and executors."""

    backend: str
    kernels: int  # of groups; several may share one code
    unique: int  # different codes among them
    compiled: int  # codes that the compiler made, here or in the process that measures
    loaded_from_store: int  # codes that another process had compiled
    compile_seconds: float


@dataclass(frozen=True, repr=False)
class BackendRefusal(ShortRepr):
    """Why a backend does not run a node."""

    backend: str
    node: str
    reason: str


@dataclass(frozen=True, repr=False)
class PlanStep(ShortRepr):
    """A kernel for a node or a group, or a conversion between layouts."""

    name: str  # of the node; of a group's last node; of a conversion's value
    op: str  # "Conv+Relu", "convert", "convert+copy" (to another device), "copy"
    backend: str
    algorithm: str
    threads: int
    nodes: list[str]  # all nodes that it computes
    inputs: list[PlanPort]
    outputs: list[PlanPort]
    flops: int
    bytes: int  # read and written, as stored
    workspace_bytes: int
    is_in_place: bool
    predicted_seconds: float | None  # the price that the choice used; None without costs
    # Of a kernel that computes two or more nodes (views do not count): what `bytes` would be if a
    # kernel computed each of them; else None.
    unfused_bytes: int | None
    # Of such a kernel: the sum of the cheapest measured candidates that compute its nodes in
    # smaller groups; None if not enough were measured when binding.
    unfused_seconds: float | None
    refusals: list[BackendRefusal]  # by the other backends, for its nodes


@dataclass(frozen=True, repr=False)
class MeasuredTime(ShortRepr):
    """A measured time. 19 of 20 other processes would measure a time between `low` and `high`."""

    seconds: float  # the lower quartile of the rounds
    low: float
    high: float
    rounds: int


@dataclass(frozen=True, repr=False)
class CandidateDescription(ShortRepr):
    """A candidate: one way to compute a node or a group, with its price and verdict."""

    nodes: list[str]  # all nodes that it computes
    op: str  # "Conv+Relu"
    backend: str
    algorithm: str
    threads: int
    inputs: list[PlanPort]
    outputs: list[PlanPort]
    verdict: str  # "fine", "refused", "not built", "not measured"
    refusal: str  # why it may not be used; "": it may be used
    time: MeasuredTime | None  # if it may be used and was measured
    has_cold_weights: bool  # whether `time` is with weights evicted from the caches
    price_seconds: float  # used by the choice: `time`, or an estimate
    error: float  # measured, relative to the magnitude of what was summed
    tolerance: float  # maximum of `error`
    build_seconds: float
    workspace_bytes: int
    pack_bytes: int  # of its packed weights
    library_bytes: int  # memory that its library keeps
    is_chosen: bool
    # The increase of the optimal price if this candidate is forced; infinity: no placement can use
    # it; None: not computed (bind(margin_search_seconds=...)).
    behind_seconds: float | None
    # The increase of the optimal price if it is forbidden; 0 if it is not in the optimal placement.
    ahead_seconds: float | None


@dataclass(frozen=True, repr=False)
class ConversionDescription(ShortRepr):
    """A conversion from one layout to another, with its price for tensors of about `bytes`."""

    backend: str
    source: str
    target: str
    type: str  # "float32"
    bytes: int
    time: MeasuredTime
    refusal: str  # why it could not be measured


@dataclass(frozen=True, repr=False)
class TuningQuote(ShortRepr):
    """What measuring is expected to take and to gain, from what is known before."""

    is_known: bool  # a cache has the fastest plan, so nothing has to be measured
    candidates: int  # that will be measured
    seconds: float  # that measuring takes, at most tune_budget_seconds
    run_seconds: float  # of a run of the plan without measurements, by estimates
    # The share of a run that is likely to be saved, by what other models saved on this machine.
    # None: fewer than three were measured.
    gain_low: float | None
    gain_high: float | None
    runs: int | None  # that save as much time as measuring takes; None: not known, or nothing saved


@dataclass(frozen=True, repr=False)
class TuningDescription(ShortRepr):
    """The measurements of bind()."""

    measured: int  # candidates and conversions
    known: int  # those that had been measured before, or occur twice
    refused: int  # how many of the measured ones were refused
    reused: int  # prices of this graph that were known before measuring
    reused_seconds: float  # minimum time that measuring those took
    offered: int  # all candidates; those that cannot win are not measured
    is_stopped: bool
    is_out_of_time: bool  # tune_budget_seconds ran out
    seconds: float
    peak_bytes: int  # peak resident memory of this and the measuring process
    phases: dict[str, float]  # seconds by activity: "build", "check", "time" and others
    notes: list[str]  # remarks, a sentence each
    quote: TuningQuote | None  # what was expected before; None: nothing or hardly anything to do
    gain: float | None  # share of a run saved, compared with the plan without measurements


@dataclass(frozen=True, repr=False)
class TuneProgress(ShortRepr):
    """The progress of bind()."""

    what: str  # "Conv+Relu mylib:winograd"; "" if there is nothing to name
    done: int  # finished items of `total`, in this phase
    total: int  # items that are known so far; 0: not known
    best_seconds: float  # of the group that is measured; 0: none so far
    seconds_left: float | None  # estimated remaining time of the phase; None: not known
    phase: str  # "measuring candidates", "comparing whole plans", "choosing a plan" and others
    seconds_allowed: float | None  # maximum time of the phase; None: no limit
    can_stop: bool  # bind() is measuring; the callback can end that by returning False
    may_grow: bool  # results may increase `total`, and thereby seconds_left
    quote: TuningQuote | None  # when starting to measure; None in other phases


@dataclass(frozen=True, repr=False)
class ContenderDescription(ShortRepr):
    """A placement that was run as a whole, in turns with others."""

    # How it was found. "chosen": the cheapest by the prices before whole plans ran; "known": the
    # plan of an earlier tuning; "solved": the cheapest by the prices from those runs; "greedy": by
    # the same prices, but node by node; "in order": without prices, as if nothing were
    # measured; "mylib alone": the cheapest that uses other backends only where this one has no
    # kernel; "mylib unsplit": the same in its largest groups. "..., round 2": by the prices of a
    # later round of runs.
    name: str
    seconds: float  # of a run
    low: float  # its 95 % confidence interval
    high: float


@dataclass(frozen=True, repr=False)
class PlacementDescription(ShortRepr):
    """The quality of the chosen placement. Prices only count kernels and conversions."""

    predicted_seconds: float  # price of the chosen placement, without build time
    isolated_seconds: float | None  # price by the times of kernels that run alone
    measured_seconds: float | None  # of a run; None: none was timed when binding
    build_seconds: float  # of the chosen kernels, as far as it was measured
    # No placement has a lower price. The price is the time of a run; with optimize_for="N-runs"
    # plus the Nth part of the time to build its kernels.
    lower_bound_seconds: float
    is_proven_optimal: bool  # the solver found a placement with that price
    gap: float  # relative distance of the price from the bound: 0.02
    solve_seconds: float  # of the solver
    contenders: list[ContenderDescription]  # the fastest first; empty: none was run


@dataclass(frozen=True, repr=False)
class MemoryBlock(ShortRepr):
    """A block of memory in the arena: a value and those that share its memory, or a workspace."""

    name: str  # of the value, or of the step that has the workspace
    text: str  # "float32 1x64x56x56, nchw16c"; "" for a workspace
    lower: int  # index of the first step that uses it
    upper: int  # index after that of the last step that uses it
    bytes: int  # as its layout stores it
    offset: int  # in the arena
    is_workspace: bool


@dataclass(frozen=True, repr=False)
class DeviceMemoryDescription(ShortRepr):
    """The memory that a plan needs on a device with memory of its own."""

    device: str
    arena_bytes: int
    lower_bound_bytes: int
    is_proven_smallest: bool
    weight_bytes: int  # of the constants that its steps read


@dataclass(frozen=True, repr=False)
class MemoryDescription(ShortRepr):
    """The positions of inner values and workspaces in the arena, and the memory of the plan."""

    arena_bytes: int
    lower_bound_bytes: int  # largest sum of live blocks in this order of steps
    is_proven_smallest: bool  # no offsets for these steps give a smaller arena
    naive_bytes: int  # if no values and workspaces shared memory
    padding_bytes: int  # the part of naive_bytes that is padding
    weight_bytes: int  # of the constants that the steps read, packed or not
    output_bytes: int  # of outputs, as far as their sizes are known
    library_bytes: int  # memory that libraries keep
    total_bytes: int  # the sum that memory_budget_bytes limits
    devices: list[DeviceMemoryDescription]  # no part of the other figures
    blocks: list[MemoryBlock]  # by first step


@dataclass(frozen=True, repr=False)
class PlanDescription(ShortRepr):
    """The steps that an executor runs, in order; with costs, all candidates and conversions."""

    steps: list[PlanStep]
    candidates: list[CandidateDescription]
    conversions: list[ConversionDescription]
    placement: PlacementDescription | None  # None without costs
    tuning: TuningDescription
    arena_bytes: int  # inner values and workspaces
    pack_bytes: int  # packed weights that this plan reads
    library_bytes: int  # memory that libraries keep
    memory: MemoryDescription

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


@dataclass(frozen=True, repr=False)
class ShapePlanDescription(ShortRepr):
    """An executor's plan for one set of input shapes."""

    shapes: dict[str, list[int]]  # of the inputs whose shape is read
    arena_bytes: int  # needed by this plan
    pack_bytes: int  # packed weights, shared with other plans
    kernels: int
    reused_kernels: int  # those that another plan had built
    loaded_kernels: int  # those that an earlier process had built and stored
    seconds: float  # planning time; 0 for the plan of bind()


@dataclass(frozen=True, repr=False)
class ShapesDescription(ShortRepr):
    """The sets of input shapes for which an executor has plans."""

    plans: list[ShapePlanDescription]  # most recently used first
    arena_bytes: int  # of the shared arena: the maximum that a plan ever needed


@dataclass(frozen=True, repr=False)
class HeldCacheDescription(ShortRepr):
    """Something that a process keeps in memory for later binds, up to its bounds."""

    name: str  # "plans"
    count: int  # entries now
    max_count: int  # 0: no bound
    bytes: int  # of them; 0: not counted
    max_bytes: int  # 0: no bound


@dataclass(frozen=True, repr=False)
class HeldMemoryDescription(ShortRepr):
    """What an executor keeps in memory, and what is kept for all."""

    plan_count: int  # for different shapes
    max_plan_count: int  # most_shapes
    arena_bytes: int  # of the arena that the plans share
    scratch_bytes: int  # temporary memory of reference kernels, kept for later runs
    library_bytes: int  # memory that libraries keep for kernels of the plans
    pack_bytes: int  # packed weights of the model, which its executors share
    caches: list[HeldCacheDescription]  # of the process


@dataclass(frozen=True, repr=False)
class BackendDescription(ShortRepr):
    """A library that can run models."""

    name: str
    version: str  # "" if it has not been opened
    devices: list[str]
    layouts: list[str]  # layouts of its own
    aliases: list[str]
    file: str  # "" if it is built in or missing
    is_usable: bool
    status: str  # "usable", "not built", "library missing", "refused"
    reason: str  # why it is not usable
    remedy: str  # what to install, or the command that builds it; "" if nothing helps
    op_count: int  # for the reference: number of ops with a kernel


@dataclass(frozen=True, repr=False)
class CacheTypeReport(ShortRepr):
    """What a bind loaded from caches and measured itself, for one library or for the plan."""

    type: str  # a backend's name, or "plan"
    loaded: int  # prices, or plans
    measured: int  # the same
    seconds_saved: float  # time that it once took to find out what was loaded
    origin: str  # who made what was loaded: "found here", "found by this user", ...; "": nothing


@dataclass(frozen=True, repr=False)
class CacheReport(ShortRepr):
    """What a bind with optimize loaded from caches."""

    fingerprint: str  # 40 hexadecimal digits; "" without optimize
    ingredients: dict[str, str]  # of the fingerprint, by name
    entry_ingredients: dict[str, str]  # of the plan, one of many in the file: shapes, options, ...
    is_hit: bool  # the plan was known, and nothing was measured
    file: str  # the file that was loaded; "": none
    change: str  # libraries that changed since the plan was found; measured in the background
    reason: str  # why it is not a hit
    saved: str  # the file that was written; "": none
    not_saved: str  # why nothing was written
    types: list[CacheTypeReport]
