"""Every kernel that a device may choose, against NumPy; what fails is not used there any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from queue import SimpleQueue
from time import perf_counter

from wgslice.doctor.copies import copy_trials
from wgslice.doctor.indexing import index_trials
from wgslice.doctor.trials import Trial, run_trials, with_few_pipelines
from wgslice.doctor.windows import window_trials
from wgslice.errors import named
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.capture import refuse_in_capture
from wgslice.gpu.device import Device, checked_device
from wgslice.gpu.native import refusals
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits

# Of each kernel that are tried. A pipeline takes 50 to 280 ms of a driver's thread. A self-test of 91 takes
# 4.5 to 5.2 s, with nothing kept by the driver 8.3 to 10.1 s on two devices (lavapipe, Mesa 22.3.6, 2 cores
# of an Intel Xeon; Mesa 25.0.7 12.9 to 13.9 s); one of 99 on one device 13.7 to 17.1 s.
MAX_PIPELINES_IN_SOFTWARE = 5
MAX_PIPELINES = 40


@dataclass(frozen=True)
class KernelTest:
    """What became of one kernel.

    Attributes
    ----------
    kernel : str
        Its name.
    trials, wrong : int
        How many dispatches were tried, and how many of them wrote something wrong.
    failure : str
        The first that was wrong, or why the kernel does not compile; empty where all is right.
    """

    kernel: str
    trials: int
    wrong: int
    failure: str

    @property
    def passed(self) -> bool:
        """Whether every trial wrote what NumPy writes, and nothing else."""
        return not self.wrong

    def __str__(self) -> str:
        if self.passed:
            return f"{self.kernel}: right in {self.trials} trials"
        return f"{self.kernel}: WRONG in {self.wrong} of {self.trials} trials; {self.failure}"


@dataclass(frozen=True)
class SelfTest:
    """What became of every kernel that a device may choose. Printed, a line each.

    Attributes
    ----------
    adapter : Adapter
        What the device runs on.
    kernels : tuple of KernelTest
        Each with its name, how many trials were right, and the first that was not.
    seconds : float
        How long it took.
    passed : bool
        Whether every kernel is right.
    failed : tuple of str
        Names of the kernels that are not.
    """

    adapter: Adapter
    kernels: tuple[KernelTest, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every kernel is right."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the kernels that are not right."""
        return tuple(test.kernel for test in self.kernels if not test.passed)

    def __str__(self) -> str:
        right = len(self.kernels) - len(self.failed)
        head = f"{right} of {len(self.kernels)} kernels are right on {self.adapter}, in {self.seconds:.1f} s"
        return "\n".join([head, *(f"  {test}" for test in self.kernels)])


def selftest(
    device: Device | str | None = None, *, progress: Callable[[float, str], None] | None = None
) -> SelfTest:
    """Try every kernel that a device may choose against NumPy, and stop using those that are wrong.

    Each is tried at both sides of every condition under which it is taken, byte by byte and beside what it
    writes. One that fails is written down in `device.limits`: plans that are made from then on take another
    kernel, and say so. Operators that were compiled before plan anew when they are called next.

    Parameters
    ----------
    device : Device or str, optional
        The default device if there is none given.
    progress : callable, optional
        Called after each kernel with the share of kernels that were tried, from 0 to 1, and with its name.

    Returns
    -------
    SelfTest
        `passed`, `failed`, and of each kernel the first trial that was wrong.

    Raises
    ------
    TypeError
        `device` is no device.
    DeviceLostError
        The device is gone.
    OutOfDeviceMemory
        There is no room for some megabytes.
    NoAdapterError
        A default device is needed, and this machine has none.

    Examples
    --------
    >>> import wgslice as wg
    >>> tested = wg.selftest()
    >>> tested.passed, tested.failed
    (True, ())
    """
    with named("selftest"):
        device = checked_device(device)
        refuse_in_capture("kernels are tried")
    start = perf_counter()
    limits = replace(device.limits, disabled=frozenset())
    tests = tuple(run(device, limits, progress or (lambda _, __: None)))
    failed = frozenset(Kernel(test.kernel) for test in tests if not test.passed)
    device.update_limits(lambda current: replace(current, disabled=failed))
    return SelfTest(device.adapter, tests, perf_counter() - start)


def run(device: Device, limits: Limits, progress: Callable[[float, str], None]) -> list[KernelTest]:
    """Run the trials of each kernel: one thread waits for the driver, which compiles, another prepares."""
    most = MAX_PIPELINES_IN_SOFTWARE if device.adapter.software else MAX_PIPELINES
    devices: SimpleQueue[Device] = SimpleQueue()
    for each in devices_for(device):
        devices.put(each)
    with ThreadPoolExecutor(max_workers=devices.qsize()) as threads:
        tests = {
            kernel: threads.submit(outcome, devices, with_few_pipelines(trials, most))
            for trials_of in (window_trials, copy_trials, index_trials)
            for kernel, trials in by_kernel(trials_of(limits), limits).items()
        }
        names = {test: kernel.value for kernel, test in tests.items()}
        for count, test in enumerate(as_completed(names), 1):
            progress(count / len(names), names[test])
    return [tests[kernel].result() for kernel in Kernel if kernel in tests]


def devices_for(device: Device) -> list[Device]:
    """The devices that run trials in parallel: two of a software adapter, since each compiles in one thread.

    One on OpenGL: wgpu aborts the process where a thread waits for another's context for some seconds, and a
    submission that compiles a kernel can take as long.
    """
    adapter = device.adapter
    return [device, Device.request(adapter)] if adapter.software and adapter.backend == "Vulkan" else [device]


def by_kernel(all_trials: Iterable[Trial], limits: Limits) -> dict[Kernel, list[Trial]]:
    """Those trials that a device holds."""
    found: defaultdict[Kernel, list[Trial]] = defaultdict(list)
    for trial in all_trials:
        if trial.fits(limits):
            found[trial.kernel].append(trial)
    return found


def outcome(devices: SimpleQueue[Device], trials: list[Trial]) -> KernelTest:
    """Try a kernel on a device that no other thread uses meanwhile."""
    device = devices.get()
    try:
        wrong = [verdict for verdict in run_trials(device, trials) if verdict]
    except refusals() as error:
        wrong = [f"it does not compile: {' '.join(str(error).split())}"] * len(trials)
    finally:
        devices.put(device)
    return KernelTest(trials[0].kernel.value, len(trials), len(wrong), next(iter(wrong), ""))
