"""SessionOptions and RunOptions. Both check names and types when an attribute is set."""

import enum
import json
import logging
import operator
import warnings

from tessera._core import did_you_mean, optimizes_by_default

from .errors import NotImplemented

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "RunOptions",
    "SessionOptions",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_ENABLE_ALL measures kernels behind the runs; every other level measures nothing."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Has no meaning here: the steps of a plan run in order, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Has no meaning here: Tessera chooses the order of steps by the memory that it needs."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
_LOGGER = "tessera"
_DEFAULT_SEVERITY = -1
# Entries of the session's configuration with this prefix are options of tessera.Model.bind().
BIND_PREFIX = "tessera."


def set_seed(seed):
    """Has no effect: the ops that draw random numbers take the seeds of their nodes (Dropout in
    training mode), or are not in this build."""
    if not hasattr(seed, "__index__") or not -(2**63) <= operator.index(seed) < 2**63:
        raise TypeError(f"set_seed(): expected a whole number of 64 bits, found {seed!r}")


def set_default_logger_severity(severity):
    """Sets the level of the logger "tessera": 0 (everything) to 4 (fatal errors only)."""
    _check_severity("severity", severity, lowest=0)
    logging.getLogger(_LOGGER).setLevel(_LEVELS[severity])


def set_default_logger_verbosity(verbosity):
    """Does nothing: Tessera's log has no verbosity besides its levels."""


def _check_severity(name, value, lowest=_DEFAULT_SEVERITY):
    if not lowest <= value < len(_LEVELS):
        raise ValueError(f"{name}: expected {lowest} to {len(_LEVELS) - 1}, found {value}")


def make_logger(severity, logid):
    """The logger "tessera", or, for a severity of a session's own, one that passes sufficiently
    severe messages to it."""
    parent = logging.getLogger(_LOGGER)
    if severity == _DEFAULT_SEVERITY:
        return parent
    logger = logging.Logger(f"{_LOGGER}.{logid}" if logid else _LOGGER, _LEVELS[severity])
    logger.parent = parent
    return logger


class _Options:
    """Attributes with the defaults, and so the types, of `_defaults`."""

    _defaults: dict = {}

    def __init__(self):
        self._entries = {}
        for name, value in self._defaults.items():
            super().__setattr__(name, value)

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        if name not in self._defaults:
            raise AttributeError(self._unknown(name))
        super().__setattr__(name, self._checked(name, value))

    def __getattr__(self, name):
        raise AttributeError(self._unknown(name), name=name, obj=self)

    def _unknown(self, name):
        known = [known for known in dir(type(self)) if not known.startswith("_")]
        return (f"{type(self).__name__} has no attribute '{name}'"
                f"{did_you_mean(name, [*self._defaults, *known])}")

    def _checked(self, name, value):
        wanted = type(self._defaults[name])
        location = f"{type(self).__name__}.{name}"
        if wanted is str and hasattr(value, "__fspath__"):
            value = value.__fspath__()
        is_number = hasattr(value, "__index__") and not isinstance(value, bool)
        if issubclass(wanted, enum.Enum) or (wanted is int and is_number):
            try:
                value = wanted(value)
            except (TypeError, ValueError):
                choices = ", ".join(str(choice) for choice in wanted)
                raise TypeError(f"{location}: expected one of {choices}, found {value!r}") from None
        elif wanted is bool and value in (0, 1) and (is_number or isinstance(value, bool)):
            value = bool(value)
        elif type(value) is not wanted:
            raise TypeError(f"{location}: expected {wanted.__name__}, found {value!r}")
        if name == "log_severity_level":
            _check_severity(location, value)
        return value

    def _add_entry(self, key, value):
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"expected a key and a value of type str, found {key!r} and {value!r}")
        self._entries[key] = value

    def _get_entry(self, key):
        if key in self._entries:
            return self._entries[key]
        raise RuntimeError(f"{type(self).__name__} has no entry '{key}'"
                           f"{did_you_mean(str(key), list(self._entries))}")

    def __repr__(self):
        changed = [f"{name}={getattr(self, name)!r}" for name, default in self._defaults.items()
                   if getattr(self, name) != default]
        return f"<{type(self).__name__} {', '.join(changed) or 'with the defaults'}>"


class SessionOptions(_Options):
    """How a session loads, binds and runs its model. docs/onnxruntime.md says what each option
    means here; those that mean nothing cause one warning if they are not the default."""

    _defaults = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": _DEFAULT_SEVERITY,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }
    _without_meaning = (
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "execution_mode",
        "execution_order",
        "inter_op_num_threads",
        "log_verbosity_level",
        "optimized_model_filepath",
        "use_per_session_threads",
    )

    def __init__(self):
        super().__init__()
        self._sizes = {}
        self._denotations = {}

    def add_session_config_entry(self, key, value):
        """Sets an entry of the configuration. "tessera.<keyword>" is an option of
        tessera.Model.bind(), as JSON or as text; all others mean nothing here.

            options.add_session_config_entry("tessera.optimize", "now")
        """
        self._add_entry(key, value)

    def get_session_config_entry(self, key):
        """The value of an entry; raises RuntimeError if there is none."""
        return self._get_entry(key)

    def add_free_dimension_override_by_name(self, name, size):
        """Gives the dimensions of the model's inputs that have this name a size."""
        self._sizes[name] = _checked_size(name, size)

    def add_free_dimension_override_by_denotation(self, denotation, size):
        """Has no meaning here."""
        self._denotations[denotation] = _checked_size(denotation, size)

    def register_custom_ops_library(self, path):
        """Raises NotImplemented: such libraries are written for onnxruntime."""
        raise NotImplemented(
            f"custom op library '{path}'", "its ops are written for onnxruntime; docs/backends.md "
                                           "says how a plug-in of Tessera defines ops")

    def copied(self):
        """A copy of the options, which later changes of these do not affect."""
        copy = SessionOptions()
        copy.__dict__.update({name: dict(value) if isinstance(value, dict) else value
                              for name, value in self.__dict__.items()})
        return copy

    def sizes(self):
        """The sizes that were given to dimensions, by name."""
        return self._sizes

    def warn_of_ignored(self, more=()):
        """One warning for all options that are set and mean nothing here; `more` are others."""
        ignored = [f"{name} = {getattr(self, name)!r}" for name in self._without_meaning
                   if getattr(self, name) != self._defaults[name]]
        ignored += [f"entry '{key}'" for key in self._entries if not key.startswith(BIND_PREFIX)]
        ignored += [f"denotation '{name}'" for name in self._denotations]
        ignored += more
        if ignored:
            warnings.warn(f"options without a meaning in Tessera, which are ignored: "
                          f"{', '.join(ignored)}", stacklevel=3)

    def threads(self):
        """The number of threads of each run; 0 means all cores."""
        return max(0, self.intra_op_num_threads)

    def bind_options(self):
        """The keywords for tessera.Model.bind()."""
        options = {"threads": self.threads(), "most_shapes": 32, "optimize": "off"}
        # Measuring at once would delay the first run by seconds, which no onnxruntime program
        # expects.
        is_measuring = self.graph_optimization_level == GraphOptimizationLevel.ORT_ENABLE_ALL
        if is_measuring and optimizes_by_default():
            options["optimize"] = "behind"
        if self.use_deterministic_compute:
            options["swap"] = False
        for key, value in self._entries.items():
            if not key.startswith(BIND_PREFIX):
                continue
            try:
                options[key[len(BIND_PREFIX):]] = json.loads(value)
            except ValueError:
                options[key[len(BIND_PREFIX):]] = value
        return options


def _checked_size(name, size):
    if hasattr(size, "__index__") and not isinstance(size, bool) and size >= 0:
        return int(size)
    raise ValueError(f"dimension '{name}': expected a size of 0 or more, found {size!r}")


class RunOptions(_Options):
    """How one run, or several, behave. Setting `terminate` ends the runs that use these options,
    also from another thread, and refuses new ones until it is False again."""

    _defaults = {
        "log_severity_level": _DEFAULT_SEVERITY,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    def __init__(self):
        self._running = []
        super().__init__()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "terminate" and self.terminate:
            for executor in list(self._running):
                executor.cancel()

    def add_run_config_entry(self, key, value):
        """Sets an entry of the configuration, which means nothing here."""
        self._add_entry(key, value)
        warnings.warn(f"entry '{key}' of RunOptions has no meaning in Tessera and is ignored",
                      stacklevel=2)

    def get_run_config_entry(self, key):
        """The value of an entry; raises RuntimeError if there is none."""
        return self._get_entry(key)

    def running(self, executor):
        """A context in which `terminate` cancels the executor's run."""
        return _Running(self._running, executor)


class _Running:
    def __init__(self, running, executor):
        self._all = running
        self._executor = executor

    def __enter__(self):
        self._all.append(self._executor)

    def __exit__(self, *error):
        self._all.remove(self._executor)
