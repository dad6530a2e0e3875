"""Test every kernel that a device may choose against NumPy, and disable the ones that fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from queue import SimpleQueue
from time import perf_counter

from wgslice.calibration.unchecked import keep_passed
from wgslice.doctor.copies import copy_trials
from wgslice.doctor.indexing import index_trials
from wgslice.doctor.trials import Constants, Trial, run_trials, with_few_pipelines
from wgslice.doctor.windows import window_trials
from wgslice.errors import fitted, named
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, checked_device
from wgslice.gpu.pipelines import fewest_checks
from wgslice.gpu.sink import sink
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits
from wgslice.plans.proofs import Checks
from wgslice.threads import BackgroundExecutor

# Pipelines tested per kernel, each compiled in 50 to 280 ms or read from the driver's cache in 20 ms, and
# trials of 0.5 ms each. A self-test of 168 pipelines and 2,546 trials takes 9 s with an empty cache, else 4 s
# (lavapipe of Mesa 22.3.6 on two devices, 2 cores of an AMD EPYC); of 186 and 6,721 it took 13 and 7 s.
MAX_PIPELINES_IN_SOFTWARE = 5
MAX_PIPELINES = 40
MAX_TRIALS, MIN_TRIALS_PER_PIPELINE = 128, 16


@dataclass(frozen=True)
class KernelTest:
    """The test result of one kernel.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    trials, wrong : int
        Number of dispatches tested, and of those that wrote wrong bytes.
    failure : str
        Description of the first wrong trial, or of the compilation error; empty if the kernel passed.
    """

    kernel: str
    trials: int
    wrong: int
    failure: str

    @property
    def passed(self) -> bool:
        """Whether every trial wrote the same bytes as NumPy, and no others."""
        return not self.wrong

    def __str__(self) -> str:
        if self.passed:
            return f"{self.kernel}: correct in {self.trials} trials"
        return f"{self.kernel}: WRONG in {self.wrong} of {self.trials} trials; {self.failure}"


@dataclass(frozen=True)
class SelfTest:
    """The test results of every kernel that a device may choose. Printed, one line each.

    Attributes
    ----------
    adapter : Adapter
        Adapter of the device.
    kernels : tuple of KernelTest
        Name, number of trials and first failure of each kernel.
    seconds : float
        Duration of the self-test.
    passed : bool
        Whether every kernel passed.
    failed : tuple of str
        Names of the kernels that did not pass.
    """

    adapter: Adapter
    kernels: tuple[KernelTest, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every kernel passed."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the kernels that did not pass."""
        return tuple(test.kernel for test in self.kernels if not test.passed)

    def __str__(self) -> str:
        correct = len(self.kernels) - len(self.failed)
        head = (
            f"{correct} of {len(self.kernels)} kernels are correct on {self.adapter}, in {self.seconds:.1f} s"
        )
        return "\n".join([head, *(f"  {test}" for test in self.kernels)])


@fitted()
def selftest(
    device: Device | str | None = None, *, progress: Callable[[float, str], None] | None = None
) -> SelfTest:
    """Test every kernel that a device may choose against NumPy, and disable the ones that fail.

    Tests each kernel at both sides of every condition under which plans choose it, byte by byte, with guard
    bytes around its output. Later plans use another kernel instead of a disabled one, and print why. Compiled
    operators plan again at their next call. On a GPU, kernels are tested without run-time checks first, and
    with all of them if one fails; if all pass, this device and later ones omit the checks of dispatches whose
    accesses are proven. `WGSLICE_CHECKS=1` keeps all checks.

    Parameters
    ----------
    device : Device or str, optional
        The device to test; the default device if omitted.
    progress : callable, optional
        Called after each kernel with the fraction of kernels tested, from 0 to 1, and its name.

    Returns
    -------
    SelfTest
        `passed`, `failed`, and the first failure of each kernel.

    Raises
    ------
    TypeError
        `device` is no device.
    DeviceLostError
        The device is lost.
    OutOfDeviceMemory
        The device cannot allocate the few megabytes of a test.
    NoAdapterError
        `device` is omitted or a name, and no adapter fits.

    Examples
    --------
    >>> import wgslice as wg
    >>> tested = wg.selftest()
    >>> tested.passed, tested.failed
    (True, ())
    """
    with named("selftest"):
        device = checked_device(device)
        sink().check_runs("kernels are tested")
    start = perf_counter()
    limits = replace(device.limits, disabled=frozenset())
    tests = outcomes(device, limits, progress)
    failed = frozenset(Kernel(test.kernel) for test in tests if not test.passed)
    device.update_limits(lambda current: replace(current, disabled=failed))
    return SelfTest(device.adapter, tests, perf_counter() - start)


def outcomes(
    device: Device, limits: Limits, progress: Callable[[float, str], None] | None
) -> tuple[KernelTest, ...]:
    """Test kernels, on GPUs first without run-time checks: if all pass, later devices go without them."""
    fewest = fewest_checks(device.adapter)
    if device.adapter.software or fewest is Checks.ALL:
        return tuple(run(device, limits, progress))
    for checks in (fewest, Checks.ALL):
        device.pipelines.checks = checks
        tests = tuple(run(device, limits, progress))
        if checks is fewest:
            passed = all(test.passed for test in tests)
            keep_passed(device.adapter, passed)
            if passed:
                break
    return tests


def run(
    device: Device, limits: Limits, progress: Callable[[float, str], None] | None
) -> Iterator[KernelTest]:
    """Run the trials of each kernel, in one thread per device, since software drivers compile in it.

    One device on OpenGL: wgpu aborts the process if a thread waits some seconds for another thread's context,
    and compilation can take as long.
    """
    most = MAX_PIPELINES_IN_SOFTWARE if device.adapter.software else MAX_PIPELINES
    devices: SimpleQueue[Device] = SimpleQueue()
    devices.put(device)
    if device.adapter.software and device.adapter.backend == "Vulkan":
        devices.put(Device.request(device.adapter))
    with BackgroundExecutor(max_workers=devices.qsize()) as threads:
        tests = {
            kernel: threads.submit(outcome, devices, thinned(with_few_pipelines(trials, most), MAX_TRIALS))
            for trials_of in (window_trials, copy_trials, index_trials)
            for kernel, trials in by_kernel(trials_of(limits), limits).items()
        }
        names = {test: kernel.value for kernel, test in tests.items()}
        for count, test in enumerate(as_completed(names), 1):
            if progress is not None:
                progress(count / len(names), names[test])
    return (tests[kernel].result() for kernel in Kernel if kernel in tests)


def by_kernel(all_trials: Iterable[Trial], limits: Limits) -> dict[Kernel, list[Trial]]:
    """Group by kernel the trials that fit the limits of a device."""
    found: defaultdict[Kernel, list[Trial]] = defaultdict(list)
    for trial in all_trials:
        if trial.fits(limits):
            found[trial.kernel].append(trial)
    return found


def thinned(trials: Iterable[Trial], most: int) -> list[Trial]:
    """Select at most `most` trials of a kernel, but 16 of each pipeline, evenly spaced among its trials."""
    by_constants: defaultdict[Constants, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_constants[trial.constants].append(trial)
    each = max(most // len(by_constants), MIN_TRIALS_PER_PIPELINE)
    counts = [(group, min(len(group), each)) for group in by_constants.values()]
    return [group[number * len(group) // count] for group, count in counts for number in range(count)]


def outcome(devices: SimpleQueue[Device], trials: list[Trial]) -> KernelTest:
    """Run the trials of a kernel on a device that no other thread is using."""
    device = devices.get()
    try:
        wrong = list(filter(None, run_trials(device, trials)))
    except device.host.refusals as error:
        wrong = [f"it does not compile: {' '.join(str(error).split())}"] * len(trials)
    finally:
        devices.put(device)
    return KernelTest(trials[0].kernel.value, len(trials), len(wrong), wrong[0] if wrong else "")
