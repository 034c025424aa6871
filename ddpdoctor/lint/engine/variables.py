"""Environment variables that have no effect: nobody reads them, or nobody reads them any more."""

from __future__ import annotations

_TIMEOUT = "init_process_group(timeout=timedelta(...)); new_group() needs it too"

PHANTOM = {
    "NCCL_TIMEOUT": _TIMEOUT,
    "NCCL_COMM_TIMEOUT": _TIMEOUT,
    "NCCL_SOCKET_TIMEOUT": _TIMEOUT,
    "NCCL_CONNECT_TIMEOUT": _TIMEOUT,
    "TORCH_NCCL_TIMEOUT": _TIMEOUT,
    "TORCH_NCCL_TIMEOUT_MS": _TIMEOUT,
    "TORCH_NCCL_TIMEOUT_SEC": _TIMEOUT,
    "TORCH_DISTRIBUTED_TIMEOUT": _TIMEOUT,
    "TORCH_DIST_TIMEOUT": _TIMEOUT,
    "DDP_TIMEOUT": _TIMEOUT,
    "DIST_TIMEOUT": _TIMEOUT,
    "GLOO_TIMEOUT": _TIMEOUT,
    "GLOO_TIMEOUT_SECONDS": _TIMEOUT,
    "TORCHELASTIC_AGENT_EXIT_BARRIER_TIMEOUT": "drop it",
    "GLOO_SOCKET_FAMILY": "drop it: gloo takes the family of the address it is given",
    "NCCL_P2P_DISABLED": "the name is NCCL_P2P_DISABLE",
    "NCCL_SOCKET_IFACE": "the name is NCCL_SOCKET_IFNAME",
}
"""Name -> what to do instead; searched for in torch 2.13 and NCCL 2.29.7, and absent."""

RENAMED = {
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "TORCH_NCCL_ENABLE_TIMING",
    "NCCL_IB_GDR_LEVEL": "NCCL_NET_GDR_LEVEL",
    "NCCL_RINGS": "",
    "NCCL_SINGLE_RING_THRESHOLD": "",
    "NCCL_LL_THRESHOLD": "",
    "NCCL_TREE_THRESHOLD": "",
    "NCCL_IB_CUDA_SUPPORT": "",
    "TORCH_NCCL_ABORT_IN_DESTROY_PG": "",
    "ENABLE_NCCL_HEALTH_CHECK": "",
}
"""Old or removed name -> the name of today, "" if there is none."""
