"""Descriptions of models, plans and backends: plain data, with the names of tessera/descriptions.h.

They compare by value, and `dataclasses.asdict` converts them to dictionaries that can be written
as JSON. repr() is short: it counts the elements of long lists and cuts long texts. The unit of a
time is in its name: `_ns` or `seconds`.

Printed by `print_descriptions` from src/api/describe/description_fields.h; a test compares them.
"""

from .description_texts import ModelText, PlanText
from .plain_data import PlainData, plain_data

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


@plain_data
class ValueDescription(PlainData):
    """An input, output or inner value of a model."""

    name: str  # its name
    type: str  # type of its elements, as NumPy calls it: `float32`; `undefined` if not known
    # numbers, and names of unknown dimensions; None: not even the rank is known
    shape: tuple[int | str, ...] | None
    is_read: bool  # false: nothing reads it, so it may be left out
    # number of things to choose from, if it is an integer input that is only used as an index; else
    # None
    index_limit: int | None
    text: str  # type and shape: `float32 1x3xHx224`
    # layout in which an executor accepts or returns it: `row_major`, `csr:400000`
    layout: str = "row_major"


@plain_data
class NodeDescription(PlainData):
    """A node of a loaded model, after rewriting."""

    name: str  # its name
    op: str  # its operator: `Conv`
    domain: str  # domain of the operator; empty: ONNX's own
    version: int  # number of the operator set that defined this version of the operator
    inputs: list[ValueDescription]  # values that it reads; an omitted one has an empty name
    outputs: list[ValueDescription]  # values that it computes
    flops: int | None  # floating-point operations (a multiply-add is 2); None: shapes are unknown
    bytes: int | None  # size of what it reads and writes; None: shapes are unknown
    inference_only: str  # the pass after which it is correct for inference only; empty: none


@plain_data
class PassDescription(PlainData):
    """The effect of one rewriting pass when the model was loaded."""

    name: str  # its name
    nodes_before: int  # nodes before it
    nodes_after: int  # nodes after it
    seconds: float  # time that it took
    changes: list[str]  # a sentence for each change; empty: nothing changed


@plain_data
class ModelDescription(ModelText):
    """A loaded model."""

    file: str  # path of its file
    ir_version: int  # IR version of the ONNX file
    producer: str  # the program that wrote the file
    # versions of the operator sets that it uses, by domain; an empty domain is ONNX's own
    opsets: dict[str, int]
    inputs: list[ValueDescription]  # its inputs without those that have a value in the file
    outputs: list[ValueDescription]  # its outputs
    weights: list[ValueDescription]  # constants that a node reads
    # its nodes after rewriting, in the order in which they run; if the model cannot be loaded, as
    # they are in the file
    nodes: list[NodeDescription]
    passes: list[PassDescription]  # the rewriting passes, in the order in which they ran
    # values that bind(fetch=...) can name: outputs of the file's nodes that no pass has removed
    fetchable: list[str]
    weight_bytes: int  # size of the constants that a node reads
    # floating-point operations of a run (a multiply-add is 2); None: shapes are unknown
    flops: int | None
    # largest sum of the inner values that are live at once, if nodes run in order; None: a size is
    # unknown
    peak_bytes: int | None


@plain_data
class MissingPart(PlainData):
    """Something that a model needs and this build lacks."""

    # `version`: of an operator set or of ONNX's format; `operator`; `value_type`: sequence,
    # optional, map or sparse tensor; `element_type`: of a tensor
    kind: str
    name: str  # its name: `DequantizeLinear`, `sequence`, `float8e4m3fn`
    domain: str  # domain of an operator; empty: ONNX's own
    reason: str  # a sentence: `DequantizeLinear of ai.onnx is not in this build`
    # of an operator: the version of its domain that the model means; None: unknown
    opset: int | None
    count: int  # nodes, values or attributes that need it; functions count once
    places: list[str]  # the first hundred places that need it


@plain_data
class ModelInspection(PlainData):
    """A model as inspect() reads it, whether this build can load it or not."""

    model: ModelDescription  # the model; if it cannot be loaded, what its file declares
    missing: list[MissingPart]  # everything because of which load() refuses it


@plain_data
class StepRecord(PlainData):
    """One step of the plan in the newest recorded run. After a step with nested graphs come the steps of these."""

    node: str  # name of the step, as in PlanStep
    op: str  # its operators: `Conv+Relu`
    backend: str  # the backend that ran it; empty: Tessera itself
    algorithm: str  # how the backend computed it
    start_ns: int  # its start, since the run began
    # its time; of a step of a device: until the host, which enqueued it and waited, knew that it
    # was done
    duration_ns: int
    # of a step of a device: the part of `duration_ns` that the host took to enqueue it; else 0
    enqueue_ns: int
    device: str  # the device that ran it: `cpu`
    flops: int  # floating-point operations (a multiply-add is 2)
    bytes: int  # size of what it read and wrote, as stored
    graph: str  # of a step of a nested graph, where that is, as in PlanStep; else empty
    runs: int  # runs of a step of a nested graph; times, operations and bytes are those of all


@plain_data
class StageRecord(PlainData):
    """One stage of load() or bind()."""

    name: str  # its name: `load`, `propose`, `place`, `build`, `pack`, `plan` and others
    start_ns: int  # its start, since load() or bind() began
    duration_ns: int  # its time
    bytes: int  # size of the packs that it made


@plain_data
class PlanPort(PlainData):
    """A value that a step or a candidate reads or writes, in the layout in which it does so."""

    value: str  # its name
    type: str  # type and shape: `float32 1x64x56x56`
    layout: str  # its layout in memory: `nchw16c`
    device: str  # device of the layout: `cpu`
    pack: str  # id of the pack that is read instead of the value; empty: none
    is_constant: bool  # it is a constant
    capacity: int | None = None  # of a sparse layout: elements or rows that it stores at most
    density: float | None = None  # `capacity` as a share of all elements or rows


@plain_data
class CompileDescription(PlainData):
    """The kernels that a backend has compiled in this process, for all models and executors."""

    backend: str  # the backend that compiled
    kernels: int  # groups for which a kernel was built; several may share one code
    unique: int  # different codes among them
    compiled: int  # codes that the compiler made, here or in the process that measures
    loaded_from_store: int  # codes that another process had compiled
    compile_seconds: float  # time of the compiler


@plain_data
class BackendRefusal(PlainData):
    """The reason why a backend does not run a node."""

    backend: str  # the backend that refused
    node: str  # the node that was refused
    reason: str  # why it refused


@plain_data
class PlanStep(PlainData):
    """A kernel for a node or a group, a conversion, a copy, or a view, which does nothing."""

    name: str  # name of the node; of a group, the last node; of a conversion or copy, the value
    # of a step of a nested graph, where that is: `node 'choice' (If), then_branch`; else empty
    graph: str
    # its operators, or what it is: `Conv`, `Conv+Relu`, `convert`, `convert+copy` (to another
    # device), `copy`
    op: str
    backend: str  # the backend that runs it; empty: Tessera itself
    algorithm: str  # how the backend computes it
    threads: int  # threads that it runs on
    nodes: list[str]  # all nodes that it computes
    inputs: list[PlanPort]  # values that it reads
    outputs: list[PlanPort]  # values that it writes
    flops: int  # floating-point operations (a multiply-add is 2)
    bytes: int  # size of what it reads and writes, as stored; 0 for a view, which does nothing
    workspace_bytes: int  # scratch memory of its kernel, in the arena
    is_in_place: bool  # an output lies in the memory of an input
    # the dimensions for which its kernel was built, such as `x[1]`; `all`; empty if it runs with
    # other sizes
    built_for: str
    predicted_seconds: float | None  # the price that the choice used; None without prices
    # what `bytes` would be if a kernel computed each of its nodes; None unless it computes two or
    # more nodes, without views
    unfused_bytes: int | None
    # the sum of the cheapest measured candidates that compute its nodes in smaller groups; None if
    # `unfused_bytes` is None, and if not enough were measured
    unfused_seconds: float | None
    refusals: list[BackendRefusal]  # refusals of its nodes by other backends


@plain_data
class MeasuredTime(PlainData):
    """A measured time. 19 of 20 other processes would measure a time between `low` and `high`."""

    seconds: float  # the lower quartile of the rounds
    low: float  # lower end of the interval, in seconds
    high: float  # upper end of the interval, in seconds
    rounds: int  # rounds in which it was measured; 0: it was scaled from the time for other shapes


@plain_data
class CandidateDescription(PlainData):
    """A candidate: one way to compute a node or a group, with its price and verdict."""

    nodes: list[str]  # all nodes that it computes; compare prices only if these are equal
    op: str  # its operators: `Conv+Relu`
    backend: str  # the backend that offers it
    algorithm: str  # how the backend computes it
    threads: int  # threads that it runs on
    inputs: list[PlanPort]  # values that it reads
    outputs: list[PlanPort]  # values that it writes
    # what measuring and checking it found: `fine`, `refused`, `not measured`, `not built`
    verdict: str
    refusal: str  # why it may not be used; empty: it may be used
    time: MeasuredTime | None  # measured time; None: it was not measured, or it may not be used
    has_cold_weights: bool  # `time` is with weights that are not in the processor's caches
    price_seconds: float  # the price that the choice used: `time`, or an estimate
    error: float  # measured error, relative to the magnitude of what was summed
    tolerance: float  # maximum of `error` that is allowed
    build_seconds: float  # time to build its kernel
    workspace_bytes: int  # scratch memory of its kernel, in the arena
    pack_bytes: int  # size of its packed weights
    library_bytes: int  # memory that its library keeps internally
    is_chosen: bool  # the plan has it
    # increase of the optimal price if this candidate is forced; infinity: no placement can use it;
    # None: not computed (bind(margin_search_seconds=...))
    behind_seconds: float | None
    # increase of the optimal price if this candidate is forbidden; 0 if it is not in the optimal
    # placement; infinity: every placement needs it; None: not computed
    ahead_seconds: float | None


@plain_data
class ConversionDescription(PlainData):
    """A conversion from one layout to another, with its price for tensors of about `bytes`."""

    backend: str  # the backend that converts; empty: Tessera itself
    source: str  # layout that it reads
    target: str  # layout that it writes
    type: str  # type of the elements: `float32`
    bytes: int  # approximate size of the tensor
    time: MeasuredTime  # measured time, which is its price
    refusal: str  # why it could not be measured


@plain_data
class TuningQuote(PlainData):
    """The time that measuring is expected to take, and its expected gain."""

    is_known: bool  # a cache has the fastest plan, so nothing has to be measured
    candidates: int  # candidates that will be measured
    seconds: float  # time that measuring takes, at most tune_budget_seconds
    run_seconds: float  # time of a run of the plan without measurements, by estimates
    # the least share of a run that is likely to be saved, by what other models saved; None: fewer
    # than three models were tuned on this machine
    gain_low: float | None
    # the greatest share of a run that is likely to be saved; None as `gain_low`
    gain_high: float | None
    # runs that save as much time as measuring takes; None: not known, or nothing is saved
    runs: int | None


@plain_data
class TuningDescription(PlainData):
    """The measurements of bind()."""

    measured: int  # candidates and conversions that were measured
    known: int  # candidates and conversions that had been measured before, or occur twice
    refused: int  # how many of the measured ones were refused
    reused: int  # prices of this graph that were known before measuring
    reused_seconds: float  # minimum time that measuring those took
    offered: int  # number of all candidates; those that cannot win are not measured
    is_stopped: bool  # measuring ended early
    # measuring ended early because the time budget was spent (tune_budget_seconds)
    is_out_of_time: bool
    seconds: float  # total time
    peak_bytes: int  # sum of the peak resident memory of this process and of the measuring process
    phases: dict[str, float]  # seconds by activity: `build`, `check`, `time`, `race` and others
    notes: list[str]  # remarks, a sentence each
    # what was expected before; None: nothing was measured, or the graph takes so little time that
    # measuring it is over at once
    quote: TuningQuote | None
    # share of a run that the fastest plan saves, compared with the plan without measurements; None:
    # the two were not compared
    gain: float | None


@plain_data
class ContenderDescription(PlainData):
    """A placement that was run as a whole, in turns with others."""

    name: str  # `kind`, `backend` and `round` in words: `in order`, `mylib alone, round 2`
    seconds: float  # time of a run
    low: float  # lower end of its 95 % confidence interval, in seconds
    high: float  # upper end of the interval, in seconds
    # how it was found: `chosen`, the cheapest by the prices before whole plans ran; `known`, the
    # plan of an earlier tuning; `solved`, the cheapest by the prices from those runs; `greedy`, by
    # the same prices, but node by node; `alone`, the cheapest that uses other backends only where
    # `backend` has no kernel; `unsplit`, the same in its largest groups; `in order`, without
    # prices, as if nothing were measured
    kind: str
    backend: str  # the backend of `alone` and `unsplit`; empty for other kinds
    round: int  # 1, or the later round of runs whose prices it was found by


@plain_data
class TuneProgress(PlainData):
    """The progress of bind()."""

    what: str  # what is being done: `Conv+Relu mylib:winograd`; empty if there is nothing to name
    done: int  # finished items of `total`, in this phase
    total: int  # items that are known so far; 0: not known
    best_seconds: float  # the best time of the group that is measured; 0: none so far
    seconds_left: float | None  # estimated remaining time of the phase; None: not known
    # name of the phase: `measuring candidates`, `comparing whole plans`, `choosing a plan` and
    # others
    phase: str
    seconds_allowed: float | None  # maximum time of the phase; None: no limit
    can_stop: bool  # bind() is measuring; the callback can end that by returning False
    may_grow: bool  # results may increase `total`, and thereby `seconds_left`
    quote: TuningQuote | None  # what is expected, when starting to measure; None in other phases
    # the contender that runs, without its times, when comparing whole plans; None in other phases
    contender: ContenderDescription | None


@plain_data
class PlacementDescription(PlainData):
    """The quality of the chosen placement. Prices only count kernels and conversions."""

    # price of the chosen placement, the sum of the prices of its steps, without build time
    predicted_seconds: float
    isolated_seconds: float | None  # the same sum with the times of kernels that run alone
    measured_seconds: float | None  # time of a run of the plan; None: none was timed
    # time to build the chosen kernels one after the other, as far as it was measured
    build_seconds: float
    # no placement has a lower price. The price is the time of a run; with optimize_for=`N-runs` it
    # includes the Nth part of the time to build the kernels
    lower_bound_seconds: float
    is_proven_optimal: bool  # the solver found a placement that has the price `lower_bound_seconds`
    gap: float  # relative distance of the price from `lower_bound_seconds`: 0.02
    solve_seconds: float  # time of the solver
    # whole plans that were run against each other, the fastest first; empty: none was run
    contenders: list[ContenderDescription]


@plain_data
class MemoryBlock(PlainData):
    """A block of memory in the arena: a value and those that share its memory, or a workspace."""

    name: str  # name of the value, or of the step that has the workspace
    text: str  # type, shape and layout: `float32 1x64x56x56, nchw16c`; empty for a workspace
    lower: int  # index of the first step that uses it
    upper: int  # index after that of the last step that uses it
    bytes: int  # size, as its layout stores it
    offset: int  # position in the arena, in bytes
    is_workspace: bool  # it is the workspace of a step


@plain_data
class DeviceMemoryDescription(PlainData):
    """The memory that a plan needs on a device with memory of its own."""

    device: str  # name of the device: `mylib:1`
    arena_bytes: int  # size of the arena, which holds inner values and workspaces
    lower_bound_bytes: int  # largest sum of what is live at once
    is_proven_smallest: bool  # no smaller arena holds these values
    weight_bytes: int  # size of the constants that its steps read, packed or not


@plain_data
class MemoryDescription(PlainData):
    """The positions of inner values and workspaces in the arena, and the memory of the plan."""

    arena_bytes: int  # size of the arena, which holds inner values and workspaces
    lower_bound_bytes: int  # largest sum of what is live at once, in this order of steps
    is_proven_smallest: bool  # no offsets for these steps give a smaller arena
    naive_bytes: int  # size of the arena if no values and workspaces shared memory
    padding_bytes: int  # the part of `naive_bytes` that is padding
    weight_bytes: int  # size of the constants that steps read, packed or not
    # size of the outputs, as far as it is known; their memory belongs to the caller of each run
    output_bytes: int
    library_bytes: int  # memory that libraries keep internally
    total_bytes: int  # sum of arena, weights, outputs and libraries, which a memory budget limits
    # what the plan needs on devices, which is no part of the other figures
    devices: list[DeviceMemoryDescription]
    blocks: list[MemoryBlock]  # the blocks of the arena, by first step


@plain_data
class PlanDescription(PlanText):
    """The steps that an executor runs, in order; with costs, all candidates and conversions."""

    steps: list[PlanStep]  # its steps, in the order in which they run
    # the steps of nested graphs (If, Loop, Scan), whose plans are their own; sizes that only a run
    # knows are planned in the first one
    nested_steps: list[PlanStep]
    candidates: list[CandidateDescription]  # all candidates; empty without costs
    # all conversions with their prices; empty without costs
    conversions: list[ConversionDescription]
    placement: PlacementDescription | None  # the quality of the choice; None without costs
    tuning: TuningDescription  # what was measured
    arena_bytes: int  # size of the arena, which holds inner values and workspaces
    pack_bytes: int  # size of the packed weights that this plan reads
    library_bytes: int  # memory that libraries keep internally
    memory: MemoryDescription  # the contents of the arena, and the memory of the plan


@plain_data
class ShapePlanDescription(PlainData):
    """An executor's plan for one set of input shapes."""

    shapes: dict[str, list[int]]  # shapes of the inputs whose shape is read, by name
    arena_bytes: int  # size of the arena that this plan needs
    pack_bytes: int  # size of its packed weights, which it shares with other plans
    kernels: int  # number of its kernels
    reused_kernels: int  # kernels that another plan had built
    loaded_kernels: int  # kernels that an earlier process had built and stored
    seconds: float  # time to make the plan; 0 for the plan of bind()


@plain_data
class ShapesDescription(PlainData):
    """The sets of input shapes for which an executor has plans."""

    plans: list[ShapePlanDescription]  # its plans, the most recently used first
    arena_bytes: int  # size of the shared arena: the maximum that a plan ever needed


@plain_data
class HeldCacheDescription(PlainData):
    """Something that a process keeps in memory for later binds, up to its bounds."""

    name: str  # its name: `plans`, `costs`, `blobs`
    count: int  # number of entries now, in this process
    max_count: int  # maximum number of entries; 0: no bound
    bytes: int  # size of the entries; 0: not counted
    max_bytes: int  # maximum size of the entries; 0: no bound


@plain_data
class HeldMemoryDescription(PlainData):
    """The memory that an executor keeps, and the caches that its process keeps for all."""

    plan_count: int  # number of plans, for different shapes
    max_plan_count: int  # maximum number of plans (most_shapes)
    arena_bytes: int  # size of the arena that the plans share
    scratch_bytes: int  # temporary memory of reference kernels, kept for later runs
    library_bytes: int  # memory that libraries keep for kernels of the plans
    pack_bytes: int  # size of the packed weights of the model, which its executors share
    caches: list[HeldCacheDescription]  # what the process keeps for all models on these backends


@plain_data
class BackendDescription(PlainData):
    """A library that can run models."""

    name: str  # its name
    version: str  # version of its library; empty: it was not opened
    devices: list[str]  # names of its devices: `cpu`, `mylib:1`
    layouts: list[str]  # names of the layouts that it brings
    aliases: list[str]  # names that mean the same backend
    file: str  # path of its plug-in; empty: built in, or missing
    is_usable: bool  # models can run on it
    # whether it can be used, and if not, why: `usable`, `not built`, `library missing`, `refused`
    status: str
    reason: str  # why it cannot be used
    remedy: str  # what to install, or the command that builds it; empty: nothing helps
    op_count: int  # of the reference: number of operators with a kernel


@plain_data
class CacheTypeReport(PlainData):
    """The results that a bind loaded from caches or measured, for one library or for the plan."""

    type: str  # a backend's name, or `plan`
    loaded: int  # prices or plans that were loaded
    measured: int  # prices or plans that were measured
    seconds_saved: float  # time that it took to find out what was loaded
    # who made what was loaded: `found here` (by this process), `found by this user`, `found by
    # somebody else` (kernels are checked before their results count); empty: nothing was loaded
    origin: str


@plain_data
class CacheReport(PlainData):
    """The use of caches by a bind with optimize."""

    fingerprint: str  # 40 hexadecimal digits; empty without optimize
    ingredients: dict[str, str]  # ingredients of the fingerprint, by name
    # ingredients of the plan's key, by name: shapes, options and others; the file has many plans
    entry_ingredients: dict[str, str]
    is_hit: bool  # a cache has the plan, and nothing has to be measured
    file: str  # the file that was found; empty: none
    # which libraries have changed since the plan was found; the plan runs while they are measured
    change: str
    reason: str  # why it is not a hit
    saved: str  # the file that was written; empty: none
    not_saved: str  # why nothing was written
    types: list[CacheTypeReport]  # one report for each library, and one for the plan
