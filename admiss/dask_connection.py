"""A client of Dask, of a running scheduler or of a local cluster.

A client of Dask that finds no scheduler waits, logs tracebacks, and waits again when it is deleted. Here the address is
read, its host is asked for a connection, and what answers is asked who it is, each with a sentence if that fails.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import distributed
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.core import rpc
from distributed.security import Security

from admiss.atomic_write import EngineError

PROTOCOLS = ("tcp", "tls", "ws", "wss")


@contextlib.contextmanager
def connection(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A client of a scheduler, or of a local cluster of so many workers that lives as long."""
    with contextlib.ExitStack() as stack:
        # Dask keeps recent messages, events and transitions, and in a local cluster those of the scheduler are here.
        stack.enter_context(dask.config.set({"distributed.admin.low-level-log-length": 100}))
        address: Any = scheduler
        if scheduler is None:
            local = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
            quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
            address = distributed.LocalCluster(**local, **quiet)
            stack.callback(_close, address)
        else:
            check_scheduler(scheduler)
        client = distributed.Client(address, set_as_default=False)
        # The loss of the scheduler is reported in one sentence instead of a log.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        yield stack.enter_context(client)


def _close(cluster: Any) -> None:
    with contextlib.suppress(Exception):  # a worker that is still starting; it ends with this process
        cluster.close()


def check_scheduler(address: str, seconds_to_connect: float = 10.0) -> None:
    """Raise ``EngineError`` unless a scheduler answers at an address."""
    host, port = _host_and_port(address)
    try:
        socket.create_connection((host, port), timeout=seconds_to_connect).close()
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise _missing(address, reason) from None
    seconds = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect", "30s"))
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # another service that answers something else
    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook has a loop in this one
            identity = thread.submit(asyncio.run, _identity(address, seconds)).result()
    except TimeoutError:
        raise _missing(address, f"no answer after {seconds:g} s") from None
    except MemoryError:  # the first bytes of another protocol, read as a length
        identity = None
    except Exception as error:
        raise _missing(address, " ".join(f"{type(error).__name__} {error}".split()).rstrip(".")) from None
    finally:
        logger.setLevel(level)
    if not isinstance(identity, dict) or identity.get("type") != "Scheduler":
        raise _missing(address, "something else answers")


def _host_and_port(address: str) -> tuple[str, int]:
    try:
        protocol, location = parse_address(address)
        host, port = parse_host_port(location)
    except ValueError:
        protocol = host = ""
        port = None
    if protocol not in PROTOCOLS or not host or not isinstance(port, int) or not 0 < port < 2**16:
        raise EngineError(
            f"{address!r} is not the address of a Dask scheduler: it has the form tcp://HOST:PORT, which the scheduler "
            f"prints when it starts."
        )
    return host, port


async def _identity(address: str, seconds: float) -> Any:
    arguments = Security().get_connection_args("client")
    async with asyncio.timeout(seconds), rpc(address, connection_args=arguments) as scheduler:
        return await scheduler.identity()


def _missing(address: str, reason: str) -> EngineError:
    return EngineError(f"There is no Dask scheduler at {address} ({reason}): check the address, and that it runs.")
