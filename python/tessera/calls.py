"""Checked calls: the compiled functions and methods get signatures that inspect.signature() knows,
and a call with wrong arguments is answered by one line that names the wrong one.

nanobind keeps the signature of a function as text, which signature_of() parses when somebody asks.
It answers a wrong call with the list of everything that it would accept; explain() finds out which
argument is wrong.
"""

import ast
import collections.abc
import functools
import importlib
import inspect
import os
import re
import types
from typing import TypeVar

from . import _core

_Function = TypeVar("_Function", bound=collections.abc.Callable)

# Longer values are cut in messages.
_MAX_LETTERS = 60
_MAX_INT = 2**31 - 1


def signature_of(native) -> inspect.Signature:
    """The signature of a function or method of nanobind; of overloads, that of the last one."""
    text, _, defaults = native.__nb_signature__[-1]
    # nanobind writes the number of a default value in place of the value, with a = before it if the
    # value is the text of an expression.
    marked = re.sub(r"\\(=?)(\d+)", r"_default\2", text)
    # The setter of a property has no name.
    definition = ast.parse(f"{marked.replace('def (', 'def _(', 1)}: ...").body[0]
    arguments = definition.args
    kinds = inspect.Parameter
    parameters = []

    def add(argument, kind, default=None):
        parameters.append(inspect.Parameter(
            argument.arg, kind, default=_default_of(default, defaults),
            annotation=_annotation(argument.annotation)))

    positional = arguments.posonlyargs + arguments.args
    missing = [None] * (len(positional) - len(arguments.defaults))
    for index, (argument, default) in enumerate(
            zip(positional, missing + arguments.defaults, strict=True)):
        is_only = index < len(arguments.posonlyargs)
        add(argument, kinds.POSITIONAL_ONLY if is_only else kinds.POSITIONAL_OR_KEYWORD, default)
    if arguments.vararg:
        add(arguments.vararg, kinds.VAR_POSITIONAL)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        add(argument, kinds.KEYWORD_ONLY, default)
    if arguments.kwarg:
        add(arguments.kwarg, kinds.VAR_KEYWORD)
    return inspect.Signature(parameters, return_annotation=_annotation(definition.returns))


def _annotation(node):
    return inspect.Signature.empty if node is None else ast.unparse(node)


def _default_of(node, defaults):
    if node is None:
        return inspect.Parameter.empty
    if isinstance(node, ast.Name) and node.id.startswith("_default"):
        return defaults[int(node.id.removeprefix("_default"))]
    return ast.literal_eval(node)


def explain(native, arguments, keywords) -> str:
    """Why nanobind refused a call; `arguments` of a method begin with the object."""
    return explain_call(_name_of(native), signature_of(native), arguments, keywords)


def explain_call(name: str, signature: inspect.Signature, arguments, keywords) -> str:
    """The text of a TypeError for a call that does not fit `signature`."""
    known = [parameter.name for parameter in signature.parameters.values()
             if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
             and parameter.name != "self"]
    accepts_any = any(parameter.kind == parameter.VAR_KEYWORD
                      for parameter in signature.parameters.values())
    for keyword in keywords:
        if keyword not in known and not accepts_any:
            likely = _core.did_you_mean(keyword, known) if _is_unicode(keyword) else ""
            return f"{name}() got an unexpected keyword argument {keyword!r}{likely}"
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        return f"{name}(): {error}"
    for argument, value in bound.arguments.items():
        annotation = signature.parameters[argument].annotation
        kind = signature.parameters[argument].kind
        if argument == "self" or kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD):
            continue
        expected = _unmet(value, annotation)
        if expected:
            return f"{name}(): {argument}: expected {expected}, found {_shown(value)}"
    for argument, value in bound.arguments.items():
        if isinstance(value, int) and value < 0:
            return f"{name}(): {argument}: expected an int of at least 0, found {value}"
    owner = getattr(_core, name.partition(".")[0], None) if "." in name else None
    if owner and arguments and not isinstance(arguments[0], owner):
        return f"{name}(): self: expected {owner.__name__}, found {_shown(arguments[0])}"
    found = ", ".join(f"{argument} {_shown(value)}" for argument, value in bound.arguments.items()
                      if argument != "self")
    return f"{name}(): these arguments are not accepted together: {found}"


def _name_of(native) -> str:
    """The name as the caller wrote it: "load", "Executor.run", "Pin"."""
    name = native.__qualname__.removesuffix(".__init__")
    return "load" if name == "load_bytes" else name


def _shown(value) -> str:
    """Type and value, in a few words."""
    try:
        text = repr(value)
    except Exception:
        text = ""
    if not text or len(text) > _MAX_LETTERS or "\n" in text or isinstance(value, type):
        return type(value).__name__
    return text if value is None else f"{type(value).__name__} {text}"


def _unmet(value, annotation) -> str:
    """The type that `value` should have; "" if it fits the annotation, or if that is unknown."""
    if annotation is inspect.Parameter.empty:
        return ""
    if not _fits(value, ast.parse(annotation, mode="eval").body):
        return annotation
    numbers = value if isinstance(value, list | tuple) else [value]
    if any(isinstance(number, int) and abs(number) > _MAX_INT for number in numbers):
        return "a smaller int"
    texts = value if isinstance(value, list | tuple | set | frozenset) else [value]
    if any(isinstance(text, str) and not _is_unicode(text) for text in texts):
        return "text that is Unicode"
    return ""


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(value, node) -> bool:
    if isinstance(node, ast.BinOp):
        return _fits(value, node.left) or _fits(value, node.right)
    if isinstance(node, ast.Constant):
        return node.value is not None or value is None
    if isinstance(node, ast.Subscript):
        return _fits_elements(value, node)
    type_ = _type_of(ast.unparse(node))
    if type_ is None:
        return True
    if type_ is float:
        return hasattr(value, "__float__") or hasattr(value, "__index__")
    if type_ is int:
        return hasattr(value, "__index__")
    return isinstance(value, type_)


def _fits_elements(value, node) -> bool:
    """_fits() for "Sequence[int]" and the like."""
    container = _type_of(ast.unparse(node.value))
    if container is None:
        return True
    if not isinstance(value, container) or isinstance(value, str | bytes):
        return False
    if container is collections.abc.Callable:
        return True
    if issubclass(container, collections.abc.Mapping):
        key, element = node.slice.elts
        return all(_fits(name, key) and _fits(each, element) for name, each in value.items())
    if container is tuple:
        elements = node.slice.elts
        if isinstance(elements[-1], ast.Constant) and elements[-1].value is ...:
            return all(_fits(each, elements[0]) for each in value)
        return len(value) == len(elements) and all(map(_fits, value, elements))
    return all(_fits(each, node.slice) for each in value)


def _type_of(name: str):
    """The class that an annotation names; None if values of any class may fit."""
    if name in ("bool", "bytes", "dict", "float", "int", "list", "set", "str", "tuple"):
        return getattr(importlib.import_module("builtins"), name)
    if name == "None":
        return types.NoneType
    if name == "os.PathLike":
        return os.PathLike
    if name.startswith("collections.abc."):
        return getattr(collections.abc, name.rpartition(".")[2])
    return getattr(_core, name.rpartition(".")[2], None) if "numpy" not in name else None


# Classes that cannot be called, and the functions that make their objects.
_MAKERS = {
    "DeviceArray": "to_device(), new_array() and from_dlpack() make one",
    "Executor": "Model.bind() makes one",
    "Model": "tessera.load() makes one",
    "SparseArray": "csr_array() and row_sparse_array() make one",
}


def _explain_maker(name, arguments, keywords) -> str:
    return f"{name}() cannot be called; {_MAKERS[name]}"


class _ClassSignature:
    """The signature of a class of nanobind, which has none of its own."""

    def __get__(self, instance, owner):
        signature = inspect.signature(owner.__init__)
        return inspect.Signature(list(signature.parameters.values())[1:])


def check_calls(module) -> None:
    """Replaces the functions of a compiled module, and the methods of its classes."""
    for name, value in list(vars(module).items()):
        if type(value).__name__ == "nb_func":
            setattr(module, name, _checked(value))
        elif type(value).__name__.startswith("nb_type"):
            _check_class(value)


def _checked(native):
    return _core._CheckedCall(native, explain, signature_of)


def _check_class(type_) -> None:
    if isinstance(vars(type_).get("__init__"), _core._CheckedCall):
        return  # importlib.reload()
    for name, value in list(vars(type_).items()):
        if isinstance(value, property) and value.fset is not None:
            setter = functools.partial(_explain_setter, f"{type_.__name__}.{name}")
            setattr(type_, name, property(
                value.fget, _core._CheckedCall(value.fset, setter, signature_of),
                doc=value.__doc__))
        elif type(value).__name__ != "nb_method":
            continue
        elif name == "__init__":
            _checked(value).adopt_class(type_)
        elif not hasattr(object, name):
            setattr(type_, name, _checked(value))
    if type_.__name__ in _MAKERS:
        _core._CheckedCall(type_.__name__, _explain_maker, _no_signature).adopt_class(type_)
    type_.__signature__ = _ClassSignature()


def _no_signature(name) -> inspect.Signature:
    return inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])


def _explain_setter(name, native, arguments, keywords) -> str:
    annotation = list(signature_of(native).parameters.values())[1].annotation
    value = arguments[1]
    return f"{name}: expected {_unmet(value, annotation) or annotation}, found {_shown(value)}"


def suggests_keywords(function: _Function) -> _Function:
    """A decorator for functions in Python: an unknown keyword raises a TypeError as in compiled
    functions, which names the likely keyword."""

    @functools.wraps(function)
    def checked(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            # An error of the call itself has no frame of the function.
            if error.__traceback__.tb_next is not None:
                raise
            text = explain_call(function.__name__, inspect.signature(function), arguments, keywords)
        raise TypeError(text)

    return checked
