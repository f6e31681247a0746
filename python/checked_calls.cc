#include "python/checked_calls.h"

#include <structmember.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace nb = nanobind;

namespace tessera::python {
namespace {

// An object of the class CheckedCall. It is written with Python's own interface, because a function
// of nanobind cannot be called with the caller's arguments as they are.
struct CheckedCall {
  PyObject_HEAD vectorcallfunc call;
  PyObject* native;  // the function of nanobind
  vectorcallfunc native_call;
  PyObject* explain;   // (native, arguments, keywords) -> the text of the TypeError
  PyObject* describe;  // native -> inspect.Signature
  // For a constructor: nanobind's function that calls the class.
  vectorcallfunc construct;
};

CheckedCall& of(PyObject* self) { return *reinterpret_cast<CheckedCall*>(self); }

// Whether the current exception is that of nanobind for arguments that fit no overload, or for a
// class that has no constructor. It has no traceback, unlike an exception of the caller's own code.
bool is_rejection() {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return false;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const bool is_of_native_code = traceback == nullptr;
  const nb::object text = nb::steal(PyObject_Str(value));
  PyErr_Restore(type, value, traceback);
  if (!is_of_native_code || !text.is_valid()) return false;
  const char* const letters = PyUnicode_AsUTF8(text.ptr());
  if (letters == nullptr) {
    PyErr_Clear();
    return false;
  }
  const std::string_view message(letters);
  const size_t parenthesis = message.find('(');
  return message.ends_with(": no constructor defined!") ||
         (parenthesis != std::string_view::npos &&
          message.substr(parenthesis).starts_with("(): incompatible function arguments."));
}

// Replaces nanobind's exception by one that says what is wrong. `object` is the first argument of a
// method if `arguments` do not contain it.
void explain(const CheckedCall& self, PyObject* const* arguments, Py_ssize_t count,
             PyObject* keywords, PyObject* object = nullptr) {
  PyErr_Clear();
  try {
    nb::list values;
    if (object != nullptr) values.append(nb::handle(object));
    for (Py_ssize_t index = 0; index < count; ++index) values.append(nb::handle(arguments[index]));
    nb::dict named;
    const Py_ssize_t named_count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t index = 0; index < named_count; ++index) {
      named[nb::handle(PyTuple_GET_ITEM(keywords, index))] = nb::handle(arguments[count + index]);
    }
    const nb::object text = nb::handle(self.explain)(nb::handle(self.native), values, named);
    PyErr_SetObject(PyExc_TypeError, text.ptr());
  } catch (nb::python_error& error) {
    error.restore();
  }
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t flags, PyObject* keywords) {
  const CheckedCall& checked = of(self);
  PyObject* const result = checked.native_call(checked.native, arguments, flags, keywords);
  if (result == nullptr && is_rejection()) {
    explain(checked, arguments, PyVectorcall_NARGS(flags), keywords);
  }
  return result;
}

// Calls a class whose __init__ is a CheckedCall. nanobind's own function does not look for __init__
// as an attribute.
PyObject* construct(PyObject* type, PyObject* const* arguments, size_t flags, PyObject* keywords) {
  const nb::object init = nb::steal(PyObject_GetAttrString(type, "__init__"));
  if (!init.is_valid()) return nullptr;
  const CheckedCall& checked = of(init.ptr());
  PyObject* const result = checked.construct(type, arguments, flags, keywords);
  if (result == nullptr && is_rejection()) {
    explain(checked, arguments, PyVectorcall_NARGS(flags), keywords, type);
  }
  return result;
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"native", "explain", "describe", nullptr};
  PyObject* native = nullptr;
  PyObject* explain = nullptr;
  PyObject* describe = nullptr;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO", const_cast<char**>(names), &native,
                                  &explain, &describe) == 0) {
    return nullptr;
  }
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  CheckedCall& checked = of(self);
  checked.call = &call;
  checked.native = Py_NewRef(native);
  const vectorcallfunc native_call = PyVectorcall_Function(native);
  checked.native_call = native_call == nullptr ? &PyObject_Vectorcall : native_call;
  checked.explain = Py_NewRef(explain);
  checked.describe = Py_NewRef(describe);
  checked.construct = nullptr;
  return self;
}

int visit(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(of(self).native);
  Py_VISIT(of(self).explain);
  Py_VISIT(of(self).describe);
  return 0;
}

int clear_call(PyObject* self) {
  Py_CLEAR(of(self).native);
  Py_CLEAR(of(self).explain);
  Py_CLEAR(of(self).describe);
  return 0;
}

void free(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear_call(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* bind_to(PyObject* self, PyObject* object, PyObject* /*type*/) {
  return object == nullptr || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject* native_attribute(PyObject* self, void* name) {
  return PyObject_GetAttrString(of(self).native, static_cast<const char*>(name));
}

PyObject* signature(PyObject* self, void* /*unused*/) {
  return PyObject_CallOneArg(of(self).describe, of(self).native);
}

// Returns the text without the signature, which nanobind puts before it.
PyObject* documentation(PyObject* self, void* /*unused*/) {
  const nb::object overloads =
      nb::steal(PyObject_GetAttrString(of(self).native, "__nb_signature__"));
  if (!overloads.is_valid()) return nullptr;
  PyObject* const newest = PyTuple_GET_ITEM(overloads.ptr(), PyTuple_GET_SIZE(overloads.ptr()) - 1);
  return Py_NewRef(PyTuple_GET_ITEM(newest, 1));
}

// The module cannot be a property, because the class itself has an attribute of this name.
PyObject* attribute(PyObject* self, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__module__") == 0) {
    return PyObject_GetAttr(of(self).native, name);
  }
  return PyObject_GenericGetAttr(self, name);
}

PyObject* call_text(PyObject* self) {
  const nb::object name = nb::steal(PyObject_GetAttrString(of(self).native, "__qualname__"));
  if (!name.is_valid()) return nullptr;
  return PyUnicode_FromFormat("<function tessera.%S>", name.ptr());
}

// Makes the class call construct().
PyObject* adopt_class(PyObject* self, PyObject* type) {
  if (PyType_Check(type) == 0) {
    PyErr_SetString(PyExc_TypeError, "expected a class");
    return nullptr;
  }
  auto* const constructed = reinterpret_cast<PyTypeObject*>(type);
  const bool is_of_nanobind =
      constructed->tp_vectorcall != nullptr && constructed->tp_vectorcall != &construct;
  if (!is_of_nanobind || of(self).construct != nullptr) {
    PyErr_SetString(PyExc_TypeError, "expected a class of nanobind, and a constructor for it");
    return nullptr;
  }
  if (PyObject_SetAttrString(type, "__init__", self) != 0) return nullptr;
  of(self).construct = std::exchange(constructed->tp_vectorcall, &construct);
  Py_RETURN_NONE;
}

PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CheckedCall, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef kProperties[] = {
    {"__name__", &native_attribute, nullptr, nullptr, const_cast<char*>("__name__")},
    {"__qualname__", &native_attribute, nullptr, nullptr, const_cast<char*>("__qualname__")},
    {"__doc__", &documentation, nullptr, nullptr, nullptr},
    {"__signature__", &signature, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// For pickle and copy: the name under which the module has it.
PyObject* reduce(PyObject* self, PyObject* /*unused*/) {
  return PyObject_GetAttrString(of(self).native, "__qualname__");
}

PyMethodDef kMethods[] = {{"adopt_class", &adopt_class, METH_O, nullptr},
                          {"__reduce__", &reduce, METH_NOARGS, nullptr},
                          {nullptr, nullptr, 0, nullptr}};

PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(&make)},
                        {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                        {Py_tp_descr_get, reinterpret_cast<void*>(&bind_to)},
                        {Py_tp_getattro, reinterpret_cast<void*>(&attribute)},
                        {Py_tp_repr, reinterpret_cast<void*>(&call_text)},
                        {Py_tp_traverse, reinterpret_cast<void*>(&visit)},
                        {Py_tp_clear, reinterpret_cast<void*>(&clear_call)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(&free)},
                        {Py_tp_members, kMembers},
                        {Py_tp_getset, kProperties},
                        {Py_tp_methods, kMethods},
                        {0, nullptr}};

PyType_Spec kSpec = {"tessera._core._CheckedCall", sizeof(CheckedCall), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_METHOD_DESCRIPTOR,
                     kSlots};

}  // namespace

void bind_checked_calls(nb::module_& module) {
  const nb::object type = nb::steal(PyType_FromSpec(&kSpec));
  if (!type.is_valid()) nb::raise_python_error();
  // Private, so that the stub does not list it.
  module.attr("_CheckedCall") = type;
}

}  // namespace tessera::python
