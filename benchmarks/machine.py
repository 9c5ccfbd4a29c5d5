"""What a benchmark ran on."""

import os
import platform
from pathlib import Path
from typing import Any

CPU_INFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, Any]:
    """Name the machine.

    RETURNS (dict[str, Any]): Platform, processor, cores that may be used, Python.
    """
    cpu = platform.processor()
    if CPU_INFO.is_file():
        lines = CPU_INFO.read_text("utf8").splitlines()
        models = [line for line in lines if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {
        "platform": platform.platform(),
        "cpu": cpu or "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
    }


def machine_line() -> str:
    """Name the machine in a line, to print above a table."""
    machine = describe_machine()
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['platform']}, "
        f"Python {machine['python']}"
    )
