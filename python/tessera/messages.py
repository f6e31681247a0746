"""Messages of level DEBUG for the logger "tessera": the actions of load() and bind(). The compiled
part reports warnings and information itself, through the callables that load() passes to it.

    logging.basicConfig(level=logging.DEBUG)
"""

import logging

_logger = logging.getLogger("tessera")


def tell_loaded(model) -> None:
    """Called by load() with a new model."""
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    described = model.describe()
    _logger.debug(
        "load: '%s': %d nodes, %d MB of weights; %s", described.file, len(described.nodes),
        described.weight_bytes >> 20, _stages(model.stages))
    for each in described.passes:
        if each.changes:
            _logger.debug("load: pass %s: %d changes, %d nodes -> %d", each.name,
                          len(each.changes), each.nodes_before, each.nodes_after)


def tell_bound(executor) -> None:
    """Called by Model.bind() with a new executor."""
    if not _logger.isEnabledFor(logging.DEBUG):
        return
    if not executor.has_shapes:
        _logger.debug("bind: %r; the first run plans for the shapes of its inputs", executor)
        return
    _logger.debug("bind: %r; %s", executor, _stages(executor.stages))
    report = executor.cache_report()
    if not report.fingerprint:
        _logger.debug("cache: not asked, because bind() does not measure (optimize)")
    elif report.is_hit:
        _logger.debug("cache: hit: the plan is in '%s'", report.file)
    else:
        _logger.debug("cache: no hit: %s", report.reason or "no cache has this plan")
    if report.saved:
        _logger.debug("cache: saved in '%s'", report.saved)
    elif report.not_saved:
        _logger.debug("cache: not saved: %s", report.not_saved)
    plan = executor.plan()
    _tell_tuning(plan)
    _logger.debug("plan: %s", plan.summary())


def _tell_tuning(plan) -> None:
    tuning = plan.tuning
    if tuning.measured or tuning.reused:
        _logger.debug(
            "tune: %d of %d candidates measured in %.1f s, %d refused, %d prices known before%s",
            tuning.measured, tuning.offered, tuning.seconds, tuning.refused, tuning.reused,
            "; stopped" if tuning.is_stopped else "")
    for note in tuning.notes:
        _logger.debug("tune: %s", note)
    for candidate in plan.candidates:
        if candidate.time is not None:
            _logger.debug(
                "tune: %s%s %s %s: %.1f us", "* " if candidate.is_chosen else "  ", candidate.op,
                candidate.backend, candidate.algorithm, 1e6 * candidate.time.seconds)
    if plan.placement and plan.placement.contenders:
        _logger.debug("tune: whole plans, the fastest wins: %s", ", ".join(
            f"{each.name} {1e3 * each.seconds:.3f} ms" for each in plan.placement.contenders))


def _stages(stages) -> str:
    return ", ".join(f"{stage.name} {stage.duration_ns / 1e6:.1f} ms" for stage in stages)
