"""onnxruntime's execution providers as backends of Tessera."""

import warnings

__all__ = ["get_all_providers", "get_available_providers", "get_device"]

CPU = "CPUExecutionProvider"
# Providers that Tessera has a backend for.
_BACKENDS = {"DnnlExecutionProvider": "onednn", "OpenVINOExecutionProvider": "openvino"}


def _usable_backends():
    """The backends of the processor that can be used, best first."""
    import tessera

    return [backend.name for backend in tessera.backends()
            if backend.is_usable and "cpu" in backend.devices]


def get_all_providers():
    """The names of the providers that Tessera has a backend for, best first."""
    return [*_BACKENDS, CPU]


def get_available_providers():
    """The names of the providers whose backend can be used on this machine, best first."""
    usable = _usable_backends()
    return [name for name, backend in _BACKENDS.items() if backend in usable] + [CPU]


def get_device():
    """The device on which sessions run."""
    return "CPU"


def _named(entry):
    """The name and options of an entry of a list of providers."""
    if isinstance(entry, str):
        return entry, {}
    if (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
            and isinstance(entry[1], dict)):
        return entry
    raise ValueError(f"providers: expected names, or tuples of a name and a dictionary of options; "
                     f"found {entry!r}")


def read_providers(providers, options):
    """The options of each wanted provider that is available, by name and in order, with that of the
    processor at the end. One warning names those that are not available.

    Raises ValueError if the lists are wrong.
    """
    if isinstance(providers, str):
        providers = [providers]
    wanted = [_named(entry) for entry in providers or ()]
    if options is not None:
        options = [options] if isinstance(options, dict) else list(options)
        if len(options) != len(wanted):
            raise ValueError(f"provider_options: expected one dictionary for each of the "
                             f"{len(wanted)} providers, found {len(options)}")
        wanted = [(name, given or own)
                  for (name, own), given in zip(wanted, options, strict=True)]
    others = [name for name, _ in wanted if name != CPU]
    available = get_available_providers() if others else [CPU]
    missing = [name for name in others if name not in available]
    if missing:
        warnings.warn(f"providers: {', '.join(dict.fromkeys(missing))}: not available; available "
                      f"are {', '.join(available)}, and the next one in the list is used",
                      stacklevel=3)
    found = {}
    for name, given in wanted:
        if name in available:
            found.setdefault(name, {str(key): str(value) for key, value in given.items()})
    found.setdefault(CPU, {})
    return found


def backends_of(providers):
    """Backends in the order of `providers`; () means the usual ones."""
    preferred = []
    for name in providers:
        if name == CPU:
            break
        preferred.append(_BACKENDS[name])
    if not preferred:
        return ()
    return preferred + [name for name in _usable_backends() if name not in preferred]
