"""Compile SPIR-V with the one GPU driver that the environment names, and print its compiler's statistics.

`python -m bench.compilers.worker FOLDER` compiles each FOLDER/NAME.spv, whose entry point is the word before
the first `-` of NAME, and prints JSON: the device, and each module's statistics. Needs the package `vulkan`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import vulkan as vk

from bench.compilers.listing import listing_statistics, panvk_statistics

STATISTICS = "VK_KHR_pipeline_executable_properties"
ROBUSTNESS = "VK_EXT_robustness2"
BINDINGS = [vk.VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, *[vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER] * 4]
NUMBERS = {
    vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: "u64",
    vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: "i64",
    vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR: "f64",
    vk.VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: "b32",
}


class Compiler:
    """A driver's device, which compiles and never runs."""

    def __init__(self) -> None:
        # vulkan keeps no nested structure alive: each is held by a name until the call
        about = vk.VkApplicationInfo(pApplicationName="compile", apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self.instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=about), None)
        found = [gpu for gpu in vk.vkEnumeratePhysicalDevices(self.instance) if not is_cpu(gpu)]
        if not found:
            raise SystemExit("no device but the CPU's")
        properties = vk.vkGetPhysicalDeviceProperties(found[0])
        version = properties.driverVersion  # as Mesa counts, like Vulkan's own
        parts = vk.VK_VERSION_MAJOR(version), vk.VK_VERSION_MINOR(version), vk.VK_VERSION_PATCH(version)
        self.name = f"{properties.deviceName.strip()}, Mesa {'.'.join(map(str, parts))}"
        has = {each.extensionName for each in vk.vkEnumerateDeviceExtensionProperties(found[0], None)}
        if STATISTICS not in has:
            raise SystemExit(f"{self.name} says nothing of its pipelines")
        self.device = make_device(found[0], robust=ROBUSTNESS in has)
        bindings = [
            vk.VkDescriptorSetLayoutBinding(
                binding=number,
                descriptorType=kind,
                descriptorCount=1,
                stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT,
            )
            for number, kind in enumerate(BINDINGS)
        ]
        described = vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings)
        layout = vk.vkCreateDescriptorSetLayout(self.device, described, None)
        pipeline_layout = vk.VkPipelineLayoutCreateInfo(setLayoutCount=1, pSetLayouts=[layout])
        self.layout = vk.vkCreatePipelineLayout(self.device, pipeline_layout, None)

    def statistics(self, path: Path) -> dict[str, Any]:
        """Return the compiler's statistics of a module."""
        code = path.read_bytes()
        described = vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        module = vk.vkCreateShaderModule(self.device, described, None)
        entry = path.stem.partition("-")[0]
        stage = vk.VkPipelineShaderStageCreateInfo(
            stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=module, pName=entry
        )
        flags = vk.VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
        flags |= vk.VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR
        pipeline_info = vk.VkComputePipelineCreateInfo(flags=flags, stage=stage, layout=self.layout)
        with stderr_lines() as said:
            pipeline = vk.vkCreateComputePipelines(self.device, None, 1, [pipeline_info], None)[0]
        get = vk.vkGetDeviceProcAddr(self.device, "vkGetPipelineExecutableStatisticsKHR")
        answer = get(self.device, vk.VkPipelineExecutableInfoKHR(pipeline=pipeline, executableIndex=0))
        found = {text_of(each.name): getattr(each.value, NUMBERS[each.format]) for each in answer}
        return {**found, **panvk_statistics(said), **self.assembly(pipeline)}

    def assembly(self, pipeline: Any) -> dict[str, Any]:
        """Return statistics from the assembly."""
        get = vk.ffi.cast(
            "VkResult(*)(VkDevice, const VkPipelineExecutableInfoKHR*, uint32_t*,"
            " VkPipelineExecutableInternalRepresentationKHR*)",
            vk._vulkan.lib.vkGetDeviceProcAddr(
                self.device, b"vkGetPipelineExecutableInternalRepresentationsKHR"
            ),
        )
        info = vk.VkPipelineExecutableInfoKHR(pipeline=pipeline, executableIndex=0)
        count = vk.ffi.new("uint32_t*")
        get(self.device, vk.ffi.addressof(info), count, vk.ffi.NULL)
        shown = vk.ffi.new("VkPipelineExecutableInternalRepresentationKHR[]", count[0])
        for each in shown:
            each.sType = vk.VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR
        get(self.device, vk.ffi.addressof(info), count, shown)
        texts = [vk.ffi.new("char[]", max(each.dataSize, 1)) for each in shown]
        for each, text in zip(shown, texts, strict=True):
            each.pData = text
        get(self.device, vk.ffi.addressof(info), count, shown)
        (listing,) = [
            text_of(text)
            for each, text in zip(shown, texts, strict=True)
            if text_of(each.name).lower().endswith("assembly")
        ]
        return listing_statistics(listing)


def is_cpu(gpu: Any) -> bool:
    """Whether a device is a software adapter."""
    return bool(vk.vkGetPhysicalDeviceProperties(gpu).deviceType == vk.VK_PHYSICAL_DEVICE_TYPE_CPU)


def make_device(gpu: Any, *, robust: bool) -> Any:
    """Make a device as wgpu does: with robust accesses, by the second extension if present."""
    chain = vk.VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR(pipelineExecutableInfo=True)
    extensions = [STATISTICS]
    if robust:
        extensions.append(ROBUSTNESS)
        chain = vk.VkPhysicalDeviceRobustness2FeaturesEXT(pNext=chain, robustBufferAccess2=True)
    queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1, pQueuePriorities=[1.0])
    features = vk.VkPhysicalDeviceFeatures(robustBufferAccess=True)
    described = vk.VkDeviceCreateInfo(
        pNext=chain,
        queueCreateInfoCount=1,
        pQueueCreateInfos=[queue],
        enabledExtensionCount=len(extensions),
        ppEnabledExtensionNames=extensions,
        pEnabledFeatures=features,
    )
    return vk.vkCreateDevice(gpu, described, None)


@contextmanager
def stderr_lines() -> Iterator[list[str]]:
    """Capture the output of the driver, not of Python, on stderr."""
    lines: list[str] = []
    with tempfile.TemporaryFile() as said:
        before = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(before, 2)
            os.close(before)
            said.seek(0)
            lines += said.read().decode(errors="replace").splitlines()


def text_of(value: Any) -> str:
    """Decode a C string, unless the binding has done so."""
    return value if isinstance(value, str) else str(vk.ffi.string(value).decode())


def main() -> None:
    """Compile a folder."""
    compiler = Compiler()
    found = {path.stem: compiler.statistics(path) for path in sorted(Path(sys.argv[1]).glob("*.spv"))}
    print(json.dumps({"device": compiler.name, "statistics": found}))


if __name__ == "__main__":
    main()
