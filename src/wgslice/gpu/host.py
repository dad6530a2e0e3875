"""The host of WebGPU: wgpu-py with wgpu-native, or in a browser `navigator.gpu`.

Whatever depends on the host is one of these functions, or a method of the handles that `protocols` types:
adapters, devices, kinds of handles, errors by kind, bind groups, copies, mappings and waits. Another host is
another module with these names, chosen here by the platform.
"""

import sys

if sys.platform == "emscripten":
    from wgslice.gpu.browser import *  # noqa: F403 -- all that a host offers
else:
    from wgslice.gpu.native import *  # noqa: F403 -- all that a host offers
