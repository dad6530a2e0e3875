"""Whatever holds a wgpu object: adapters, devices, handles of callers, pipelines, transfers, recording."""
