"""The build step of setuptools that links the modules of the kernels: wheels hold these, not the sources."""

from pathlib import Path
from runpy import run_path
from shutil import rmtree

from setuptools.command.build_py import build_py


class BuildModules(build_py):  # type: ignore[misc]  # setuptools has no types
    """Copies packages, and writes linked modules where the sources of kernels would be."""

    def run(self) -> None:
        """Build; an editable install has the sources themselves, and links them when they are used."""
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "wgslice", "wgsl")
            init = (folder / "__init__.py").read_bytes()
            rmtree(folder)
            run_path(str(Path(__file__).with_name("link.py")))["write"](folder)
            (folder / "__init__.py").write_bytes(init)
