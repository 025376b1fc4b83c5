"""Machine of a run: GPU through NVML, process and system through psutil. No subprocess."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    import torch

MIB = 2**20


class ProcessHealth:
    """Resources of the process, for heartbeats. It never calls the GPU driver, which may hang."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._looked = False

    def look(self) -> dict[str, float]:
        """Memory, threads, children, open files, and CPU use since the previous call."""
        process = self._process
        with process.oneshot():
            sample = {
                "proc_cpu_percent": process.cpu_percent(),
                "proc_mem_rss_mb": process.memory_info().rss / MIB,
                "proc_threads": process.num_threads(),
            }
        if hasattr(process, "num_fds"):
            sample["proc_fds"] = process.num_fds()
        if not self._looked:
            self._looked = True
            del sample["proc_cpu_percent"]
        return sample

    def look_at_all(self) -> dict[str, float]:
        """With its children: workers of back-ends, makers of videos, a dashboard."""
        children = self._process.children(recursive=True)
        return {**self.look(), "proc_children": len(children)}


class Monitor:
    """Takes samples and keeps the last ones. Values that this machine does not have are missing,
    not zero."""

    def __init__(self, gpu: Gpu | None, window: int = 100) -> None:
        """window: samples over which the GPU's use is averaged."""
        self._gpu = gpu
        self._process = ProcessHealth()
        self._last: dict[str, float] = {}
        self._utils: deque[float] = deque(maxlen=window)
        self._looked = False

    def look(self) -> None:
        """Takes a sample."""
        sample = self._process.look()
        sample["system_cpu_percent"] = psutil.cpu_percent()
        sample["system_mem_percent"] = psutil.virtual_memory().percent
        if self._gpu is not None:
            sample |= self._gpu.look()
        if "gpu_util_last" in sample:
            self._utils.append(sample["gpu_util_last"])
        if self._utils:
            sample["gpu_util_mean_window"] = sum(self._utils) / len(self._utils)
            sample["gpu_util_max_window"] = max(self._utils)
        if not self._looked:
            # CPU use since the previous sample.
            self._looked = True
            del sample["system_cpu_percent"]
        self._last = sample

    def fields(self) -> dict[str, float]:
        """The last sample, for the metrics row."""
        return self._last

    def gpu_fields(self) -> dict[str, float]:
        """GPU fields of the last sample."""
        return {name: value for name, value in self._last.items() if name.startswith("gpu_")}

    def close(self) -> None:
        """Shuts NVML down."""
        if self._gpu is not None:
            self._gpu.close()


class Gpu:
    """One GPU as NVML sees it."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def look(self) -> dict[str, float]:
        """Current values from NVML; unsupported ones are left out."""
        nvml, handle = self._nvml, self._handle
        asked: dict[str, Callable[[], Any]] = {
            "gpu_util_last": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "gpu_mem_used_mb": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used / MIB,
            "gpu_mem_total_mb": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total / MIB,
            "gpu_power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "gpu_temperature_c": lambda: nvml.nvmlDeviceGetTemperature(
                handle, nvml.NVML_TEMPERATURE_GPU
            ),
        }
        sample = {}
        for name, ask in asked.items():
            try:
                sample[name] = float(ask())
            except nvml.NVMLError:
                continue
        return sample

    def close(self) -> None:
        """Shuts NVML down."""
        self._nvml.nvmlShutdown()


def find_gpu(device: torch.device) -> tuple[Gpu | None, str]:
    """The GPU of a run, or why it cannot be monitored. Found by its UUID: the numbers of NVML
    and of CUDA_VISIBLE_DEVICES differ."""
    if device.type != "cuda":
        return None, ""
    import pynvml
    import torch

    try:
        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        handle = pynvml.nvmlDeviceGetHandleByUUID(
            uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        )
    except pynvml.NVMLError as error:
        return None, f"NVML does not answer ({error}): gpu_* fields stay null"
    return Gpu(pynvml, handle), ""
