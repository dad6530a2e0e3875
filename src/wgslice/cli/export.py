"""`wgslice export SHAPE DTYPE KEY -o FOLDER`: save a slice as a program for any WebGPU host."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

import wgslice as wg
from wgslice.cli.slice import parse_key
from wgslice.dialects.basic import basic_index
from wgslice.gpu.adapter import Adapter
from wgslice.plans.profiles import Limits
from wgslice.programs.parameters import Parameter
from wgslice.programs.program import captured_program


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("shape", metavar="SHAPE", help="sizes of the input, such as 480,640,4")
    parser.add_argument("dtype", metavar="DTYPE", help="dtype of its elements, such as uint8")
    parser.add_argument("key", metavar="KEY", help='a NumPy index, such as "100:200, ::-1"')
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", type=Path, required=True, help="folder of the program"
    )
    parser.add_argument("--adapter", metavar="NAME", help="plan for this adapter; else for any device")


def export(arguments: Namespace, adapter: Adapter) -> None:
    """Save the program, planned for any WebGPU device, or for a named adapter."""
    shape = parse_shape(arguments.shape)
    selection = basic_index(shape, parse_key(arguments.key))
    descs = {
        "input": wg.TensorDesc(arguments.dtype, shape),
        "output": wg.TensorDesc(arguments.dtype, selection.shape or (1,)),
    }
    device = wg.Device.request(adapter)
    if arguments.adapter is None:
        device.update_limits(lambda _: Limits())

    def copied(input: wg.Tensor, output: wg.Tensor) -> None:
        output[...] = input[selection]

    parameters = [Parameter.described(device, name, desc) for name, desc in descs.items()]
    program = captured_program("slice", parameters, copied)
    program.save(arguments.output)
    print(program)


def parse_shape(text: str) -> tuple[int, ...]:
    """Parse sizes such as 480,640,4."""
    sizes = [size.strip() for size in text.strip("() ").rstrip(",").split(",")]
    if not all(re.fullmatch("[0-9]+", size) for size in sizes):
        raise ValueError(f"SHAPE {text!r}: must be integers, such as 480,640,4")
    return tuple(map(int, sizes))
