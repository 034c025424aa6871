"""PyTorch's own knobs: c10d, ProcessGroupNCCL, the flight recorder, gloo, the allocator."""

from __future__ import annotations

from ddpdoctor.environment.variables.table import NCCL_GROUP, Kind, Variable, described, rows

_LEVELS = ("INFO", "WARNING", "ERROR", "FATAL", "0", "1", "2", "3")
_INIT_DIES = "init_process_group hangs or aborts, on gloo too"

_SWITCHES = """
    ENABLE_MONITORING: whether a second thread ends the process where the watchdog is stuck
    DUMP_ON_TIMEOUT: whether the flight recorder is written out after a timeout
    PROPAGATE_ERROR: whether a rank tells the others that it failed
    RETHROW_CUDA_ERRORS: whether the watchdog raises what CUDA told it
    HIGH_PRIORITY: whether collectives run on streams that come first
    BCAST_UNIQUEID: whether ranks learn by a broadcast where NCCL meets
    LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN: whether C++ frames are told where the watchdog ends it
    CUDA_EVENT_CACHE: whether CUDA's events are kept for the next collectives
    SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING: whether it warns of messages that wait for others
    USE_TENSOR_REGISTER_ALLOCATOR_HOOK: whether NCCL is told of all memory that is allocated
"""
_NUMBERS = """
    WAIT_TIMEOUT_DUMP_MILSEC: how long a rank waits for its dump to be written before it ends
    RANKS_PER_ROOT: how many ranks one of them collects when NCCL meets
    COORD_CHECK_MILSEC: how often it looks whether another rank has had a timeout
    NONBLOCKING_TIMEOUT: how long it waits for a communicator that is made without waiting
"""


def _legacy(name: str, new: str, kind: Kind, misread: str = "") -> Variable:
    # Those without a word of their own are read where the NCCL group is made.
    reader = "PyTorch" if misread or kind == "text" else NCCL_GROUP
    note = f"the old name of {new}"
    return Variable(name, reader, kind, "legacy", instead=new, misread=misread, note=note)


VARIABLES: tuple[Variable, ...] = (
    Variable(
        "TORCH_DISTRIBUTED_DEBUG",
        "PyTorch",
        "choice",
        "debug",
        default="OFF",
        choices=("OFF", "INFO", "DETAIL"),
        misread="`import torch.distributed` raises ValueError",
        fatal=True,
        note="DETAIL checks every collective before it runs",
    ),
    Variable(
        "TORCH_CPP_LOG_LEVEL",
        "PyTorch",
        "choice",
        default="WARNING",
        choices=_LEVELS,
        misread="PyTorch says so and keeps its default",
        note="which messages of its C++ code are printed",
    ),
    Variable(
        "TORCH_SHOW_CPP_STACKTRACES",
        "PyTorch",
        "choice",
        default="0",
        choices=("0", "1"),
        misread="PyTorch warns and ignores it",
        note="whether errors tell where in C++ they came from",
    ),
    Variable(
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        NCCL_GROUP,
        "c10d int",
        default="3",
        note="0: ranks wait for ever for one that has failed",
        least=0,
        most=3,
        beyond="no such way of handling errors is known to PyTorch",
    ),
    Variable(
        "TORCH_NCCL_BLOCKING_WAIT",
        NCCL_GROUP,
        "c10d bool",
        "debug",
        default="0",
        note="wait() blocks the host, and no watchdog thread is started",
    ),
    Variable(
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
        NCCL_GROUP,
        "c10d int",
        note="for the watchdog thread itself, not the timeout of collectives",
    ),
    Variable(
        "TORCH_NCCL_DESYNC_DEBUG",
        NCCL_GROUP,
        "c10d bool",
        "debug",
        default="0",
        note="tells after a timeout which rank is behind",
    ),
    Variable(
        "TORCH_NCCL_NAN_CHECK",
        NCCL_GROUP,
        "c10d bool",
        "debug",
        default="0",
        note="every collective's input is checked for NaN first",
    ),
    Variable(
        "TORCH_NCCL_ENABLE_TIMING",
        NCCL_GROUP,
        "c10d bool",
        default="0",
        note="whether it knows when each collective began",
    ),
    *described(NCCL_GROUP, "c10d bool", _SWITCHES, prefix="TORCH_NCCL_"),
    *rows(NCCL_GROUP, "text", "USE_COMM_NONBLOCKING", prefix="TORCH_NCCL_"),
    Variable(
        "TORCH_NCCL_AVOID_RECORD_STREAMS",
        NCCL_GROUP,
        "c10d bool",
        "obsolete",
        note="keeps tensors alive itself until a collective is done",
    ),
    Variable(
        "TORCH_NCCL_EXTRA_DUMP_ON_EXEC",
        NCCL_GROUP,
        "choice",
        default="0",
        choices=("0", "1", "N", "Y", "NO", "YES", "F", "T", "FALSE", "TRUE"),
        misread="nothing says so until the dump is needed, and then there is none",
        note="whether the flight recorder is written out after an error, too",
    ),
    *described(NCCL_GROUP, "c10d int", _NUMBERS, prefix="TORCH_NCCL_"),
    *rows(NCCL_GROUP, "text", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"),
    Variable(
        "TORCH_FR_BUFFER_SIZE",
        "PyTorch",
        "c10d int",
        default="2000",
        misread=_INIT_DIES,
        note="how many collectives the flight recorder keeps; 0 switches it off",
    ),
    Variable(
        "TORCH_FR_CPP_STACK",
        "PyTorch",
        "c10d bool",
        default="0",
        misread=_INIT_DIES,
        note="whether the flight recorder keeps C++ frames, too",
    ),
    Variable(
        "TORCH_FR_DUMP_TEMP_FILE",
        "PyTorch",
        "output file",
        misread="the flight recorder's dump is lost when it is needed",
        note="where the flight recorder is written out to",
    ),
    *rows("PyTorch", "text", "TORCH_FR_DUMP_DYNAMIC_FILE_NAME"),
    *rows("PyTorch", "text", "TORCH_INCLUDE_STACK_TRACE TORCH_INCLUDE_ONLY_ACTIVE"),
    _legacy("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "c10d int"),
    _legacy("NCCL_BLOCKING_WAIT", "TORCH_NCCL_BLOCKING_WAIT", "c10d bool"),
    _legacy("NCCL_DESYNC_DEBUG", "TORCH_NCCL_DESYNC_DEBUG", "c10d bool"),
    _legacy("NCCL_ENABLE_TIMING", "TORCH_NCCL_ENABLE_TIMING", "c10d bool"),
    _legacy(
        "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        "c10d bool",
    ),
    _legacy("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", "c10d int", _INIT_DIES),
    _legacy("TORCH_NCCL_TRACE_CPP_STACK", "TORCH_FR_CPP_STACK", "c10d bool", _INIT_DIES),
    _legacy("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE", "text"),
    _legacy("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "text"),
    _legacy("PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "text"),
    *(
        Variable(name, "nothing", status="removed", note="PyTorch no longer reads it")
        for name in ("TORCH_NCCL_ABORT_IN_DESTROY_PG", "ENABLE_NCCL_HEALTH_CHECK")
    ),
    Variable(
        "GLOO_SOCKET_IFNAME",
        "gloo",
        "interfaces",
        note="where its ranks talk; exact names; without it gloo resolves the host name",
    ),
    Variable("TP_SOCKET_IFNAME", "torch.distributed.rpc", note="where its processes talk"),
    Variable(
        "TORCH_GLOO_LAZY_INIT",
        "PyTorch",
        "c10d bool",
        default="0",
        note="gloo connects ranks when they first talk, not all at once",
    ),
    Variable(
        "GLOO_DEVICE_TRANSPORT",
        "gloo",
        "exact choice",
        choices=("TCP", "TCP_TLS", "UV", "IBVERBS"),
        misread="init_process_group raises: unsupported gloo device",
        note="by what gloo's ranks talk",
        fatal=True,
    ),
    *rows("gloo", "text", "GLOO_LOG_LEVEL GLOO_DISABLE_CONNECTION_RETRIES"),
    *rows("gloo", "text", "GLOO_ENABLE_STORE_V2_API GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER"),
    *rows("gloo", "text", "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT"),
    *rows("gloo", "text", "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE"),
    *rows("gloo", "text", "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_PATH"),
    Variable(
        "GLOO_SOCKET_FAMILY", "nothing", status="phantom", instead="GLOO_SOCKET_IFNAME=interface"
    ),
    *rows("PyTorch", "text", "TORCH_DISTRIBUTED_USE_TORCHCOMMS"),
    *rows("PyTorch", "text", "TORCH_DISTRIBUTED_COMPILE_ON_ONE_RANK"),
    *rows("PyTorch", "text", "PYTORCH_DDP_USE_SIDE_STREAM DDP_SET_LAST_BUCKET_CAP"),
    *rows("PyTorch", "text", "DDP_DISABLE_COMM_MEM"),
    Variable("PYTORCH_ALLOC_CONF", "PyTorch", note="how memory of GPUs is split and kept"),
    *rows("PyTorch", "text", "PYTORCH_NVML_BASED_CUDA_CHECK FR_TRACE_VERBOSE_OUTPUT"),
    *rows("PyTorch", "text", "TORCH_SYMMMEM_NBLOCKS TORCH_SYMMMEM_IMPLICIT_POOL"),
    *rows("PyTorch", "text", "TORCH_SYMM_MEM_ENABLE_NATIVE_ASYNC_TP"),
    *rows("PyTorch", "text", "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"),
    *rows("PyTorch", "text", "NVSHMEM_LIB_DIR ROCSHMEM_LIB_DIR MKL_SERVICE_FORCE_INTEL"),
    *rows("PyTorch", "text", "DCP_DISABLE_AUTOMATIC_GC DCP_DISABLE_MANUAL_GC DCP_USE_PREFIX_STORE"),
    Variable(
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "PyTorch",
        "c int",
        "debug",
        default="0",
        note="every tensor is allocated by the driver: training is far slower",
        slow=True,
    ),
)
