"""How long a file must have been left alone before its stamp is trusted (see strict_stamps)."""

import time

SETTLED_SECONDS = 2.2


def wait_until_settled():
    time.sleep(SETTLED_SECONDS)
