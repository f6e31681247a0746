"""InferenceSession: a model that is run as programs for onnxruntime run it."""

import os
import threading
import time
import weakref

import tessera
from tessera import _core, errors

from .errors import (
    InvalidArgument,
    InvalidBinding,
    InvalidInput,
    InvalidProtobuf,
    InvalidType,
    NoSuchFile,
    RunCancelled,
    RunFailed,
    compatible,
)
from .executor_pool import ExecutorPool
from .forks import renew_after_fork
from .io_binding import IOBinding
from .node_arg import (
    ModelMetadata,
    dtype_of,
    holds_tensors,
    input_arg,
    is_added,
    listed,
    one_of,
    output_arg,
)
from .ort_value import OrtValue
from .profile import Profile
from .providers import backends_of, read_providers
from .session_options import RunOptions, SessionOptions, make_logger

__all__ = ["InferenceSession"]

# Initializers of older files cannot be overridden.
_FIRST_OVERRIDABLE_IR_VERSION = 4
# The version that onnxruntime returns for a model that has none.
_NO_VERSION = 2**63 - 1
# Keyword arguments of onnxruntime that mean nothing here.
_IGNORED_KEYWORDS = ("disabled_optimizers", "enable_fallback", "read_config_from_model")


def _read_source(path_or_bytes):
    """A path or the bytes of a model, as tessera.load() takes them."""
    if isinstance(path_or_bytes, bytes):
        return path_or_bytes
    if isinstance(path_or_bytes, (bytearray, memoryview)):
        return bytes(path_or_bytes)
    if isinstance(path_or_bytes, (str, os.PathLike)):
        path = os.fsdecode(path_or_bytes)
        if "\0" in path:
            raise NoSuchFile(f"file {path!r}", "expected a name without a null character, found one")
        return path
    raise TypeError("InferenceSession(): path_or_bytes: expected a path, or the bytes of a model; "
                    f"found {type(path_or_bytes).__name__}")


def _read_metadata(source):
    try:
        return _core.read_metadata(source)
    except errors.InvalidArgument as error:
        if isinstance(source, str) and not os.path.exists(source):
            raise NoSuchFile(error.where, error.message) from None
        raise compatible(error) from None
    except (errors.Corrupt, errors.Unsupported) as error:
        raise compatible(error) from None
    except errors.InvalidModel as error:
        is_path = isinstance(source, bytes) and b"\0" not in source and os.path.isfile(source)
        hint = "; bytes are the contents of a model: for a path use os.fsdecode()" if is_path else ""
        raise InvalidProtobuf(error.where, error.message + hint) from None


def _check_keywords(keywords):
    known = ("path_or_bytes", "sess_options", "providers", "provider_options", *_IGNORED_KEYWORDS)
    for name in keywords:
        if name not in _IGNORED_KEYWORDS:
            raise TypeError(f"InferenceSession() got an unexpected keyword argument '{name}'"
                            f"{_core.did_you_mean(name, list(known))}")


def _shape_of(name, value):
    if isinstance(value, OrtValue):
        return tuple(value.shape())
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return shape
    import numpy

    try:
        return numpy.shape(value)
    except ValueError as error:
        raise InvalidInput(f"input '{name}'", f"expected an array, found {type(value).__name__}: "
                                              f"{error}") from None


def _is_array_like(value):
    """Whether onnxruntime reads such a value, if it has the right type and shape."""
    import numpy

    if isinstance(value, numpy.ndarray):
        is_number = value.dtype.kind in "biuf" and value.dtype.itemsize <= 8
        return is_number or is_added(value.dtype)
    return isinstance(value, (list, tuple, OrtValue))


class _Network:
    """The session's model and its executors; in variants of it, initializers are inputs."""

    def __init__(self, session, free_inputs=()):
        options = session.get_session_options()
        self.model = tessera.load(session.source, log=session.logger.warning,
                                  threads=options.threads(), free_inputs=free_inputs)
        self._session = weakref.ref(session)
        self.use_backends(session.get_providers())

    def use_backends(self, providers):
        """Binds again when it is needed, preferring the backends of `providers`."""
        session = self._session()
        options = session.get_session_options()
        bind_options = options.bind_options()
        backends = backends_of(providers)
        if backends:
            bind_options.setdefault("backends", backends)
        described = self.model.inputs
        is_recording = session.is_profiling
        model = self.model

        def bind(inputs):
            shapes = {}
            for value in described:
                if value.text.startswith(("sequence(", "optional(", "map(")):
                    continue  # they have no shape
                if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
                    if value.name in inputs:
                        shapes[value.name] = _shape_of(value.name, inputs[value.name])
            executor = model.bind(shapes, **bind_options)
            if is_recording:
                executor.record_steps()
            return executor

        self.pool = ExecutorPool(bind, options.threads())


class InferenceSession:
    """A model, ready to run. Several threads may call run() at once.

        import tessera.onnxruntime as ort

        session = ort.InferenceSession("squeezenet.onnx", providers=["CPUExecutionProvider"])
        probabilities, = session.run(None, {"data_0": picture})
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None,
                 **kwargs):
        """path_or_bytes: an ONNX file or a bundle, or the bytes of one.
        providers: names, or tuples of a name and a dictionary of options; the first ones are
            preferred. docs/onnxruntime.md has the backends that they mean.

        Raises NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented (an op that this build does
        not know), TypeError for an unknown keyword argument.
        """
        _check_keywords(kwargs)
        if not isinstance(sess_options, (SessionOptions, type(None))):
            raise TypeError("InferenceSession(): sess_options: expected a SessionOptions of "
                            f"tessera.onnxruntime, found {type(sess_options).__name__}")
        self._options = sess_options.copied() if sess_options else SessionOptions()
        self.source = _read_source(path_or_bytes)
        self.logger = make_logger(self._options.log_severity_level, self._options.logid)
        self._profile = None
        if self._options.enable_profiling:
            self._profile = Profile(self._options.profile_file_prefix)
        start_ns = time.perf_counter_ns()
        self._providers = read_providers(providers, provider_options)
        self._options.warn_of_ignored(
            [f"{name} = {kwargs[name]!r}" for name in kwargs if name != "enable_fallback"]
            + [f"{key} = {value!r} of {name}" for name, options in self._providers.items()
               for key, value in options.items()])
        metadata = _read_metadata(self.source)
        loaded_ns = time.perf_counter_ns()
        try:
            self._network = _Network(self)
            self._describe(metadata)
            self._bind_if_shapes_are_known()
        except errors.Error as error:
            raise compatible(error) from None
        if self._profile:
            now = time.perf_counter_ns()
            source = "array" if isinstance(self.source, bytes) else "uri"
            self._profile.add("Session", f"model_loading_{source}", start_ns, loaded_ns - start_ns)
            self._profile.add("Session", "session_initialization", loaded_ns, now - loaded_ns)
            # A session that is not ended writes its profile when it is collected.
            weakref.finalize(self, self._profile.write)

    def _describe(self, metadata):
        sizes = self._options.sizes()
        is_overridable = metadata["ir_version"] >= _FIRST_OVERRIDABLE_IR_VERSION
        declared = metadata.pop("inputs")
        declared_outputs = metadata.pop("outputs")
        del metadata["ir_version"]
        if metadata["version"] is None:
            metadata["version"] = _NO_VERSION
        self._metadata = ModelMetadata(**metadata)
        self._inputs = [input_arg(value, sizes) for value in declared if not value[3]]
        self._overridable = [input_arg(value, {}) for value in declared
                             if value[3] and is_overridable]
        names = {dim for value in (*declared, *declared_outputs) for dim in value[2] or ()
                 if isinstance(dim, str)}
        outputs = zip(declared_outputs, self._network.model.outputs, strict=True)
        self._outputs = [output_arg(*output, names, sizes) for output in outputs]
        self._output_indices = {}
        for index, output in enumerate(self._outputs):
            self._output_indices.setdefault(output.name, index)
        self._overridable_names = frozenset(value.name for value in self._overridable)
        # Networks by the set of initializers that a run overrides.
        self._variants = {}
        self.renew_locks()
        renew_after_fork(self)
        # The sizes that runs must have, by input, of dimensions to which the options gave a size.
        self._wanted_sizes = {}
        for value in declared:
            axes = {axis: sizes[dim] for axis, dim in enumerate(value[2] or ()) if dim in sizes}
            if axes and not value[3]:
                self._wanted_sizes[value[0]] = axes
        # Inputs of types that no op takes: a model that loads does not read them.
        self._ignored = frozenset(value.name for value in self._inputs
                                  if not holds_tensors(value.type))
        self._is_plain = not (self._profile or self._overridable or self._wanted_sizes
                              or self._ignored)

    def renew_locks(self):
        self._variant_loads = threading.Lock()

    def _bind_if_shapes_are_known(self):
        shapes = {value.name: value.shape for value in self._inputs}
        known = {}
        for value in self._network.model.inputs:
            shape = shapes.get(value.name) or value.shape
            if shape is None or not all(isinstance(dim, int) for dim in shape):
                return
            known[value.name] = _Shaped(tuple(shape))
        self._network.pool.choose(known)

    # Properties of the model.

    def get_inputs(self):
        """The inputs that each run needs."""
        return list(self._inputs)

    def get_outputs(self):
        return list(self._outputs)

    def get_overridable_initializers(self):
        """The inputs that have a value in the file; a run may give them another one."""
        return list(self._overridable)

    def get_modelmeta(self):
        return self._metadata

    def get_session_options(self):
        return self._options

    def get_providers(self):
        """The names of the providers in use, in order of preference."""
        return list(self._providers)

    def get_provider_options(self):
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(self, providers=None, provider_options=None):
        """Uses other providers from the next run on."""
        self._providers = read_providers(providers, provider_options)
        self._network.use_backends(self._providers)
        with self._variant_loads:
            for variant in self._variants.values():
                variant.use_backends(self._providers)

    def enable_fallback(self):
        """Does nothing: the reference computes nodes that no other backend computes."""

    def disable_fallback(self):
        """Does nothing, like enable_fallback()."""

    # Runs.

    def run(self, output_names, input_feed, run_options=None):
        """Runs on arrays by the names of inputs; returns arrays for the names of outputs, or for
        all outputs if `output_names` is None.

        The first run on inputs of a new shape plans for it; later ones reuse the plan. Raises
        InvalidArgument if an input is missing, unknown, or of another type or shape than the model
        declares, and if there is no output of a name; Fail if RunOptions.terminate is set.
        """
        indices = None if output_names is None else self._indices_of(output_names)
        try:
            if self._is_plain and run_options is None and type(input_feed) is dict:
                pooled = self._network.pool.choose(input_feed)
                with pooled.lock:
                    if pooled.binding is not None:
                        pooled.unbind()
                    results = pooled.run(input_feed)
            else:
                results = self._run_checked(self._checked_feed(input_feed), run_options)
        # NumPy raises ValueError for values that are no arrays, such as ragged lists.
        except (errors.Error, ValueError) as error:
            results = self._run_again(input_feed, run_options, error)
        if indices is None:
            return results
        return [results[index] for index in indices]

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        """run() for OrtValues in place of arrays."""
        return [OrtValue(array) for array in
                self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """run() on a thread of its own, which calls `callback(results, user_data, error)`; `error`
        is a text, "" if there is none."""

        def run_and_report():
            try:
                results, text = self.run(output_names, input_feed, run_options), ""
            except Exception as error:
                results, text = [], str(error)
            callback(results, user_data, text)

        threading.Thread(target=run_and_report, name="run_async").start()

    def io_binding(self):
        """An IOBinding for run_with_iobinding()."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Runs on the bound memory. Raises InvalidBinding, a RuntimeError, if a bound input or
        output does not fit."""
        if iobinding.session is not self:
            raise InvalidArgument("iobinding", "expected one that io_binding() of this session made, "
                                               "found that of another session")
        if not iobinding.outputs:
            raise InvalidBinding("outputs", "expected at least one that is bound, found none")
        try:
            results = self._run_checked(iobinding.inputs, run_options, iobinding)
        except errors.Error as error:
            raise compatible(self._explained(iobinding.inputs, error),
                             InvalidArgument=InvalidBinding, InvalidModel=RunFailed) from None
        if results is None:
            iobinding.results = dict(iobinding.outputs)
        else:
            iobinding.results = {name: results[self._output_indices[name]]
                                 for name in iobinding.outputs}

    def _indices_of(self, output_names):
        if isinstance(output_names, str):
            raise InvalidType("output_names", f"expected a list of names, found the text "
                                              f"'{output_names}'")
        try:
            names = list(output_names)
        except TypeError:
            raise InvalidType("output_names", "expected a list of names, found "
                                              f"{type(output_names).__name__}") from None
        try:
            return [self._output_indices[name] for name in names] or None
        except (KeyError, TypeError):
            known = list(self._output_indices)
            wrong = next(name for name in names if name not in known)
            kind = InvalidArgument if isinstance(wrong, str) else InvalidType
            raise kind(f"output '{wrong}'", f"expected {one_of(wrong, known)}") from None

    def _checked_feed(self, input_feed):
        if type(input_feed) is dict:
            return input_feed
        if hasattr(input_feed, "keys"):
            return {name: input_feed[name] for name in input_feed.keys()}
        raise InvalidArgument("input_feed", "expected a dictionary of arrays by name, found "
                                            f"{type(input_feed).__name__}")

    def _run_checked(self, inputs, run_options=None, iobinding=None):
        """All outputs of a run, with everything that run() leaves out if it is not needed; None if
        they are in memory of `iobinding`."""
        if not isinstance(run_options, (RunOptions, type(None))):
            raise TypeError("run_options: expected a RunOptions of tessera.onnxruntime, found "
                            f"{type(run_options).__name__}")
        if self._ignored:
            inputs = {name: inputs[name] for name in inputs if name not in self._ignored}
        if self._wanted_sizes:
            self._check_sizes(inputs)
        network = self._network
        if self._overridable_names and not self._overridable_names.isdisjoint(inputs):
            network = self._variant(frozenset(self._overridable_names.intersection(inputs)))
        pooled = network.pool.choose(inputs)
        with pooled.lock:
            start_ns = time.perf_counter_ns() if self._profile else 0
            if run_options is None:
                results = self._run_on(pooled, inputs, iobinding)
            else:
                with run_options.running(pooled.executor):
                    if run_options.terminate:
                        raise RunCancelled("run_options", "expected terminate to be False before a "
                                                          "run, found True")
                    results = self._run_on(pooled, inputs, iobinding)
            if self._profile:
                self._profile.add_run(start_ns, pooled.executor.steps)
            return results

    def _run_on(self, pooled, inputs, iobinding):
        if iobinding is not None:
            return pooled.run_bound(iobinding)
        pooled.unbind()
        return pooled.run(inputs)

    def _check_sizes(self, inputs):
        for name, axes in self._wanted_sizes.items():
            if name not in inputs:
                continue
            shape = _shape_of(name, inputs[name])
            for axis, size in axes.items():
                if axis < len(shape) and shape[axis] != size:
                    raise InvalidArgument(f"input '{name}'",
                                          f"expected {size} in dimension {axis}, as "
                                          "add_free_dimension_override_by_name() says, found "
                                          f"{shape[axis]}")

    def _variant(self, free_inputs):
        """The model in which initializers of these names are inputs."""
        with self._variant_loads:
            if free_inputs not in self._variants:
                self._variants[free_inputs] = _Network(self, free_inputs)
            return self._variants[free_inputs]

    def _run_again(self, input_feed, run_options, error):
        """The outputs of a run whose inputs include lists, numbers or OrtValues, which become
        arrays of the declared type. If there are none, raises `error` as onnxruntime's programs
        expect it."""
        if not isinstance(error, errors.Error):
            for name in input_feed:
                _shape_of(name, input_feed[name])
            raise error
        if type(error) is errors.InvalidArgument and hasattr(input_feed, "keys"):
            inputs, is_converted = self._converted(input_feed)
            if is_converted:
                try:
                    return self._run_checked(inputs, run_options)
                except errors.Error as second_error:
                    error = second_error
            error = self._explained(inputs, error)
            for name, value in inputs.items():
                if error.where == f"input '{name}'" and not _is_array_like(value):
                    raise InvalidInput(error.where, error.message) from None
        raise compatible(error, InvalidModel=RunFailed) from None

    def _converted(self, input_feed):
        import numpy

        types = {value.name: value.type for value in (*self._inputs, *self._overridable)}
        inputs = {}
        is_converted = False
        for name in input_feed.keys():
            value = inputs[name] = input_feed[name]
            dtype = dtype_of(types.get(name, ""))
            if isinstance(value, (list, tuple)) and dtype is not None:
                try:
                    inputs[name] = numpy.asarray(value, dtype)
                    is_converted = True
                except OverflowError as error:
                    raise InvalidInput(f"input '{name}'", f"expected numbers of {dtype}, found "
                                                          f"others: {error}") from None
                except (TypeError, ValueError):
                    pass
        return inputs, is_converted

    def _explained(self, inputs, error):
        """The error, with the names of all inputs if one is missing or unknown."""
        if type(error) is not errors.InvalidArgument:
            return error
        needed = [value.name for value in self._inputs]
        known = [*needed, *(value.name for value in self._overridable)]
        given = [str(name).encode(errors="backslashreplace").decode() for name in inputs]
        for name in given:
            if name not in known:
                return errors.InvalidArgument(
                    f"input '{name}'", f"expected {one_of(name, known)}")
        missing = [name for name in needed if name not in given]
        if missing:
            return errors.InvalidArgument(
                f"input '{missing[0]}'",
                f"expected an array for each of {listed(needed)}, found {listed(given)}")
        return error

    # The profile.

    @property
    def is_profiling(self):
        return self._profile is not None

    def get_profiling_start_time_ns(self):
        """The time when the profile began, in nanoseconds since 1970; 0 without a profile."""
        return self._profile.start_time_ns if self._profile else 0

    def end_profiling(self):
        """Writes the profile, in Chrome's trace format, and returns the name of its file; "" if there
        is none, or if it was written before."""
        return self._profile.write() if self._profile else ""

    def __repr__(self):
        inputs = ", ".join(f"{value.name}: {value.type} {value.shape}" for value in self._inputs)
        outputs = ", ".join(value.name for value in self._outputs)
        return f"<tessera.InferenceSession {inputs} -> {outputs}; {', '.join(self._providers)}>"


class _Shaped:
    """The property of an input that binding needs: its shape."""

    __slots__ = ("shape",)

    def __init__(self, shape):
        self.shape = shape
