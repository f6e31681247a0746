"""Locks in a process that was forked: a thread of the parent may have held them, and does not exist
in the new process."""

import os
import weakref

__all__ = ["renew_after_fork"]

_owners = weakref.WeakSet()


def renew_after_fork(owner):
    """Calls `owner.renew_locks()` in each process that is forked while `owner` exists."""
    _owners.add(owner)


def _renew():
    for owner in list(_owners):
        owner.renew_locks()


os.register_at_fork(after_in_child=_renew)
