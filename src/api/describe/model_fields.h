// The fields of descriptions of models and backends, with their texts; see described_field.h.
#pragma once

#include "api/describe/described_field.h"
#include "tessera/inspect.h"
#include "tessera/tessera.h"

namespace tessera {

template <>
inline constexpr auto kFields<ValueDescription> = FieldList{
    {.name = "ValueDescription",
     .json_titles = "Value",
     .help = "An input, output or inner value of a model."},
    field("name", "value", &ValueDescription::name, "its name"),
    field("type", &ValueDescription::type,
          "type of its elements, as NumPy calls it: `float32`; `undefined` if not known"),
    field("shape", &ValueDescription::shape,
          "numbers, and names of unknown dimensions; null: not even the rank is known"),
    hidden_field("is_read", &ValueDescription::is_read,
                 "false: nothing reads it, so it may be left out"),
    hidden_field("index_limit", &ValueDescription::index_limit,
                 "number of things to choose from, if it is an integer input that is only used as "
                 "an index; else null"),
    hidden_field("text", &ValueDescription::text, "type and shape: `float32 1x3xHx224`"),
    hidden_field("layout", &ValueDescription::layout,
                 "layout in which an executor accepts or returns it: `row_major`, `csr:400000`",
                 {.python_default = "\"row_major\""}),
};

template <>
inline constexpr auto kFields<NodeDescription> = FieldList{
    {.name = "NodeDescription",
     .json_titles = "Node",
     .help = "A node of a loaded model, after rewriting."},
    field("name", "node", &NodeDescription::name, "its name"),
    field("op", &NodeDescription::op, "its operator: `Conv`"),
    field("domain", &NodeDescription::domain, "domain of the operator; empty: ONNX's own"),
    field("version", "op_version", &NodeDescription::version,
          "number of the operator set that defined this version of the operator"),
    field("inputs", &NodeDescription::inputs,
          "values that it reads; an omitted one has an empty name"),
    field("outputs", &NodeDescription::outputs, "values that it computes"),
    field("flops", "flop_count", &NodeDescription::flops,
          "floating-point operations (a multiply-add is 2); null: shapes are unknown"),
    field("bytes", "moved_bytes", &NodeDescription::bytes,
          "size of what it reads and writes; null: shapes are unknown"),
    field("inference_only", &NodeDescription::inference_only,
          "the pass after which it is correct for inference only; empty: none"),
};

template <>
inline constexpr auto kFields<PassDescription> = FieldList{
    {.name = "PassDescription",
     .json_titles = "Pass",
     .help = "The effect of one rewriting pass when the model was loaded."},
    field("name", "pass", &PassDescription::name, "its name"),
    field("nodes_before", "before_count", &PassDescription::nodes_before, "nodes before it"),
    field("nodes_after", "after_count", &PassDescription::nodes_after, "nodes after it"),
    field("seconds", "pass_us", &PassDescription::seconds, "time that it took"),
    field("changes", &PassDescription::changes,
          "a sentence for each change; empty: nothing changed"),
};

template <>
inline constexpr auto kFields<ModelDescription> = FieldList{
    {.name = "ModelDescription",
     .json_titles = "tessera inspect",
     .help = "A loaded model.",
     .python_base = "ModelText"},
    field("file", "model", &ModelDescription::file, "path of its file"),
    field("ir_version", &ModelDescription::ir_version, "IR version of the ONNX file"),
    field("producer", &ModelDescription::producer, "the program that wrote the file"),
    hidden_field("opsets", &ModelDescription::opsets,
                 "versions of the operator sets that it uses, by domain; an empty domain is ONNX's "
                 "own"),
    ComputedKey{"opsets", "list of OpSet", "the operator sets that it uses"},
    hidden_field("inputs", &ModelDescription::inputs,
                 "its inputs without those that have a value in the file"),
    ComputedKey{"inputs", "list of Input",
                "its inputs without those that have a value in the file"},
    field("outputs", &ModelDescription::outputs, "its outputs"),
    ComputedKey{"weight_count", "count", "constants that a node reads"},
    field("weight_bytes", &ModelDescription::weight_bytes,
          "size of the constants that a node reads"),
    field("flops", "flop_count", &ModelDescription::flops,
          "floating-point operations of a run (a multiply-add is 2); null: shapes are unknown"),
    field("peak_bytes", "peak_value_bytes", &ModelDescription::peak_bytes,
          "largest sum of the inner values that are live at once, if nodes run in order; null: a "
          "size "
          "is unknown"),
    field("nodes", &ModelDescription::nodes,
          "its nodes after rewriting, in the order in which they run; if the model cannot be "
          "loaded, as they "
          "are in the file"),
    field("weights", &ModelDescription::weights, "constants that a node reads",
          {.json_note = "; only with `--weights`"}),
    field("passes", &ModelDescription::passes,
          "the rewriting passes, in the order in which they ran",
          {.json_note = "; only with `--passes`"}),
    hidden_field("fetchable", &ModelDescription::fetchable,
                 "values that bind(fetch=...) can name: outputs of the file's nodes that no pass "
                 "has removed"),
};

template <>
inline constexpr auto kFields<MissingPart> = FieldList{
    {.name = "MissingPart",
     .json_titles = "Missing",
     .help = "Something that a model needs and this build lacks."},
    field("kind", &MissingPart::kind,
          "`version`: of an operator set or of ONNX's format; `operator`; `value_type`: sequence, "
          "optional, map or sparse tensor; `element_type`: of a tensor",
          {.choices = "version, operator, value_type, element_type"}),
    field("name", &MissingPart::name, "its name: `DequantizeLinear`, `sequence`, `float8e4m3fn`"),
    field("domain", &MissingPart::domain, "domain of an operator; empty: ONNX's own"),
    field("reason", &MissingPart::reason,
          "a sentence: `DequantizeLinear of ai.onnx is not in this build`"),
    field("opset", "opset_version", &MissingPart::opset,
          "of an operator: the version of its domain that the model means; null: unknown"),
    field("count", "use_count", &MissingPart::count,
          "nodes, values or attributes that need it; functions count once"),
    field("places", &MissingPart::places, "the first hundred places that need it"),
};

template <>
inline constexpr auto kFields<ModelInspection> = FieldList{
    {.name = "ModelInspection",
     .help = "A model as inspect() reads it, whether this build can load it or not."},
    hidden_field("model", &ModelInspection::model,
                 "the model; if it cannot be loaded, what its file declares"),
    field("missing", &ModelInspection::missing, "everything because of which load() refuses it"),
};

template <>
inline constexpr auto kFields<BackendDescription> = FieldList{
    {.name = "BackendDescription",
     .json_titles = "Backend",
     .help = "A library that can run models."},
    field("name", "backend", &BackendDescription::name, "its name"),
    field("version", &BackendDescription::version,
          "version of its library; empty: it was not opened"),
    field("devices", &BackendDescription::devices, "names of its devices: `cpu`, `mylib:1`"),
    field("layouts", &BackendDescription::layouts, "names of the layouts that it brings"),
    field("aliases", &BackendDescription::aliases, "names that mean the same backend"),
    field("file", &BackendDescription::file, "path of its plug-in; empty: built in, or missing"),
    field("is_usable", &BackendDescription::is_usable, "models can run on it"),
    field("status", &BackendDescription::status, "whether it can be used, and if not, why",
          {.choices = "usable, not built, library missing, refused"}),
    field("reason", &BackendDescription::reason, "why it cannot be used"),
    field("remedy", &BackendDescription::remedy,
          "what to install, or the command that builds it; empty: nothing helps"),
    field("op_count", &BackendDescription::op_count,
          "of the reference: number of operators with a kernel"),
};

}  // namespace tessera
