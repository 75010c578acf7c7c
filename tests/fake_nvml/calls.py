"""Every function of NVML that boundby calls. Data; a test holds it to what is really called."""

GIVES = {
    "nvmlDeviceGetUtilizationRates": "gpu_busy_ratio",
    "nvmlDeviceGetClockInfo": "sm_clock_hertz",
    "nvmlDeviceGetMaxClockInfo": "max_sm_clock_hertz",
    "nvmlDeviceGetPowerUsage": "power_watts",
    "nvmlDeviceGetEnforcedPowerLimit": "power_limit_watts",
    "nvmlDeviceGetTemperature": "temperature_celsius",
    "nvmlDeviceGetTemperatureV": "temperature_celsius",
    "nvmlDeviceGetCurrentClocksEventReasons": "clock_event_reasons_count",
    "nvmlDeviceGetCurrentClocksThrottleReasons": "clock_event_reasons_count",
    "nvmlDeviceGetViolationStatus": "power_violation_seconds_total",
    "nvmlDeviceGetFieldValues": "energy_joules_total",
    "nvmlDeviceGetTotalEnergyConsumption": "energy_joules_total",
    "nvmlDeviceGetTotalEccErrors": "ecc_uncorrected_errors_total",
    "nvmlDeviceGetPcieReplayCounter": "pcie_replays_total",
    "nvmlDeviceGetPcieThroughput": "pcie_tx_bytes_per_second",
    "nvmlDeviceGetCurrPcieLinkWidth": "pcie_link_width_count",
    "nvmlDeviceGetCurrPcieLinkGeneration": "pcie_link_generation_count",
    "nvmlDeviceGetMemoryInfo": "memory_used_bytes",
    "nvmlDeviceGetMemoryInfo_v2": "memory_used_bytes",
    "nvmlDeviceGetComputeRunningProcesses_v3": "processes",
    "nvmlDeviceGetComputeRunningProcesses_v2": "processes",
    "nvmlEventSetCreate": "xid_last_count",
    "nvmlDeviceRegisterEvents": "xid_last_count",
    "nvmlEventSetWait_v2": "xid_last_count",
    "nvmlDeviceGetCudaComputeCapability": "",
    "nvmlDeviceGetMigMode": "",
    "nvmlSystemGetDriverVersion": "",
    "nvmlDeviceGetUUID": "",
    "nvmlDeviceGetName": "",
}
"""Each call that a GPU need not have, and a fact that suffers."""

SECOND = {
    "nvmlDeviceGetTemperatureV": "rc.nvmlDeviceGetTemperature=3",
    "nvmlDeviceGetCurrentClocksThrottleReasons": "rc.nvmlDeviceGetCurrentClocksEventReasons=3",
    "nvmlDeviceGetMemoryInfo": "rc.nvmlDeviceGetMemoryInfo_v2=25",
    "nvmlDeviceGetTotalEnergyConsumption": "fieldrc.83=3",
    "nvmlDeviceGetTotalEccErrors": "fieldrc.4=3",
    "nvmlDeviceGetPcieReplayCounter": "fieldrc.94=3",
    "nvmlDeviceGetComputeRunningProcesses_v2": "rc.nvmlDeviceGetComputeRunningProcesses_v3=13",
    "nvmlDeviceGetPcieThroughput": "fieldrc.197=3 fieldrc.198=3",
}
"""What must be lacking for a second-best call to be made at all."""

REQUIRED = (
    "nvmlInitWithFlags",
    "nvmlShutdown",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlEventSetFree",
)
GPM = (
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleFree",
    "nvmlGpmSampleGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmMetricsGet",
)
ALL_CALLS = (*GIVES, *REQUIRED, *GPM)

RICH = "gpus=1 gpm=1 mig.0=1 pids.0=2"
"""A script under which nearly all of them are called."""
