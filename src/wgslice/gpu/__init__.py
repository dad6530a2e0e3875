"""Modules that hold wgpu objects: adapters, devices, callers' handles, pipelines, transfers, recording."""
