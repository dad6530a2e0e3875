"""Dask's schedulers that tests run on: in this process, in threads, and on a cluster of two processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, Nanny, Scheduler, SpecCluster
from helpers import ADAPTERS

__all__ = ["LIMIT_MIB", "cluster", "kill_the_first", "worker_pids"]

LIMIT_MIB = 640  # of each worker, of which some 300 are Python, Dask and the driver

LOCAL = {"host": "127.0.0.1", "dashboard_address": ":0"}  # any free port


@pytest.fixture(scope="module")  # idle workers take time from other tests
def cluster() -> Iterator[Client]:
    """Two processes of one thread, on an adapter each where there are two to test on."""
    workers = {
        number: {
            "cls": Nanny,
            "options": {
                "host": "127.0.0.1",
                "nthreads": 1,
                "memory_limit": f"{LIMIT_MIB} MiB",
                "env": {"WGSLICE_ADAPTER": ADAPTERS[number % len(ADAPTERS)]},
            },
        }
        for number in range(2)
    }
    with (
        dask.config.set({"logging.distributed": "error"}),
        SpecCluster(workers=workers, scheduler={"cls": Scheduler, "options": LOCAL}) as processes,
        Client(processes, set_as_default=False) as client,
    ):
        yield client


def worker_pids(client: Client) -> list[int]:
    """The processes of a cluster that have a tensor's device."""
    return list(client.run(os.getpid).values())


def kill_the_first(block: Any, marker: str) -> Any:
    """A block as it is; whoever gets the first one dies, without a word."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), 9)
    return block
