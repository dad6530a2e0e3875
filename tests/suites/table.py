"""The suites: where each comes from, what is installed for it, which of its tests run, and how."""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """A public test suite at a commit, and how it runs on tensors."""

    name: str
    repository: str  # owner/name on GitHub
    commit: str
    folder: str  # where pytest runs: in the checkout, or in this one if it begins with tests/suites/
    tests: tuple[str, ...]  # files and folders
    plugins: tuple[str, ...]  # of pytest: they put tensors where the suite has arrays
    packages: tuple[str, ...] = ()  # besides wgslice, pytest and hypothesis
    sources: tuple[str, ...] = ()  # folders of the checkout to import from: the library is of that commit too
    options: tuple[str, ...] = ()  # of pytest
    creation: tuple[str, ...] = ()  # beginnings of ids of tests of which making an array is the subject
    submodules: tuple[tuple[str, str, str], ...] = ()  # folder, repository, commit
    environment: tuple[tuple[str, str], ...] = ()


ZARR = "zarr-developers/zarr-python", "d44f9f92ab4f12a8008de2553a7c9988669e3910"
HYPOTHESIS = "_hypothesis_pytestplugin"
ZARR_SUITE = Suite(
    "zarr",
    *ZARR,
    ".",
    ("tests/test_indexing.py", "tests/test_properties.py"),
    (HYPOTHESIS, "pytest_asyncio.plugin", "suites.plugins.zarr"),
    packages=("pytest-asyncio==1.5.0", "zarr"),
    sources=("src",),
    options=("-o", "asyncio_mode=auto"),
    creation=("",),
    environment=(("ZARR_NDBUFFER", "wgslice.zarr.NDBuffer"),),
)

SUITES = (
    Suite(
        "cupy",
        "cupy/cupy",
        "6b6d9563c4f7410cd1866a11b2f71a60dd45a68c",
        "tests/cupy_tests",
        (
            *(
                f"core_tests/test_ndarray{part}.py"
                for part in ("", "_adv_indexing", "_copy_and_view", "_indexing")
            ),
            *(f"creation_tests/test_{part}.py" for part in ("basic", "from_data", "matrix", "ranges")),
            *("indexing_tests", "manipulation_tests", "padding_tests", "misc_tests/test_memory_ranges.py"),
            *(f"lib_tests/test_{part}.py" for part in ("shape_base", "strided_tricks")),
        ),
        ("suites.plugins.cupy",),
        options=("-m", "not slow"),
        creation=("creation_tests/test_basic.py", "creation_tests/test_from_data.py"),
    ),
    Suite(
        "zarr-indexing-kit",
        *ZARR,
        "tests/suites/kit",
        ("test_zarr_indexing.py",),
        (HYPOTHESIS,),
        packages=("zarr-indexing",),
        sources=("packages/zarr-indexing/src",),
        options=("--confcutdir=.",),
    ),
    Suite(
        "zarr-indexing",
        *ZARR,
        "packages/zarr-indexing",
        tuple(f"tests/test_{part}.py" for part in ("lazy_array", "lazy_array_stateful", "reader")),
        (HYPOTHESIS, "suites.plugins.zarr_indexing"),
        packages=("zarr", "zarr-indexing"),
        sources=("packages/zarr-indexing/src",),
    ),
    ZARR_SUITE,
    ZARR_SUITE._replace(
        name="zarr-chunkwise", environment=(*ZARR_SUITE.environment, ("SUITE_CHUNKWISE", "1"))
    ),
    Suite(
        "dask",
        "dask/dask",
        "817e5ffc1208346630b111860571024b0c6ec9bd",
        ".",
        tuple(f"dask/array/tests/test_{part}.py" for part in ("slicing", "rechunk", "reshape", "overlap")),
        ("suites.plugins.dask",),
        packages=("dask[array,distributed]", "pandas"),
        sources=(".",),
    ),
    Suite(
        "xarray",
        "pydata/xarray",
        "b1c1dc549b62bdfc8de0bdded24f56464cf0db1a",
        ".",
        ("xarray/tests/test_duck_array_wrapping.py", "xarray/tests/test_array_api.py"),
        ("suites.plugins.xarray",),
        packages=("xarray",),
        sources=(".",),
    ),
    Suite(
        "ndindex",
        "Quansight-Labs/ndindex",
        "db26ea1658494de6a30d29df5c1fb638c0a982c2",
        "ndindex",
        ("tests",),
        (HYPOTHESIS, "suites.plugins.ndindex"),
        packages=("ndindex==1.10.1", "sympy"),
    ),
    Suite(
        "array-api",
        "data-apis/array-api-tests",
        "55fcc60179efa2680ddd6cd926ddf17b83530e2b",
        ".",
        tuple(
            f"array_api_tests/test_{part}.py"
            for part in (
                *(
                    "manipulation_functions",
                    "creation_functions",
                    "indexing_functions",
                    "data_type_functions",
                ),
                *("inspection_functions", "constants", "array_object", "dlpack", "has_names", "signatures"),
            )
        ),
        (HYPOTHESIS, "pytest_metadata.plugin", "pytest_jsonreport.plugin"),
        packages=("ndindex==1.10.1", "pytest-json-report==1.5.0"),
        sources=(".",),
        options=("--max-examples=50", "--disable-deadline", "--derandomize"),
        creation=("",),
        submodules=(("array-api", "data-apis/array-api", "5f847a3858875c682ae901aa22b0413bf24be9da"),),
        environment=(("ARRAY_API_TESTS_MODULE", "reading_back"),),
    ),
    Suite(
        "einops",
        "arogozhnikov/einops",
        "ccb89f27599f26d7140a1bd2703305309fe3a3bd",
        ".",
        tuple(f"einops/tests/test_{part}.py" for part in ("ops", "packing", "examples", "other", "einsum")),
        ("suites.plugins.einops",),
        packages=("einops",),
        sources=(".",),
        environment=(("EINOPS_TEST_BACKENDS", "numpy"),),
    ),
)
