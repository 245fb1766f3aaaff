"""Provenance of a number besides its recipe and its sources: the version of admiss, and the machine."""

import os
import platform
from functools import cache

from admiss._version import __version__
from admiss.versions import processor


@cache
def _here() -> dict[str, str]:
    machine = f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return {"version": __version__, "digest": "", "machine": machine}


def origin(digest: str = "") -> dict[str, str]:
    """Version, digest of the sources (empty if unknown), and machine of this process."""
    return {**_here(), "digest": digest}
