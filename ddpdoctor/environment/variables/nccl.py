"""NCCL's variables, as NCCL 2.29 has them; each name stands in the library that torch 2.13 pins."""

from __future__ import annotations

from ddpdoctor.environment.variables.table import Status, Variable, rows

_SUBSYSTEMS = (
    *("INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL", "PROXY"),
    *("NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "ALL"),
)

# Settings of the site: NVIDIA's documentation lets them stay.
_SITE_NUMBERS = """
    NSOCKS_PERTHREAD SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC
    SOCKET_POLL_TIMEOUT_MSEC SOCKET_MIN_TASKSIZE SOCKET_INLINE SOCKET_RCVBUF SOCKET_SNDBUF
    IB_GID_INDEX IB_ROCE_VERSION_NUM IB_FIFO_TC IB_RETURN_ASYNC_EVENTS
    IB_PKEY IB_USE_INLINE IB_AR_THRESHOLD IB_ECE_ENABLE IB_MERGE_NICS IB_MERGE_VFS
    IB_DATA_DIRECT IB_MAX_DEVS_PER_NIC IB_DEVICE_PCI_ORDER IB_WARN_RAIL_LOCAL
    OOB_NET_ENABLE IGNORE_CPU_AFFINITY COLLNET_ENABLE CTA_POLICY NET_FORCE_MERGE
    SET_THREAD_NAME WARN_ENABLE_DEBUG_INFO NVTX_DISABLE
"""
_SITE_TEXTS = """
    IB_HCA IB_ADDR_FAMILY IB_ADDR_RANGE NET NET_PLUGIN TUNER_PLUGIN PROFILER_PLUGIN ENV_PLUGIN
    GIN_PLUGIN CONF_FILE DEBUG_TIMESTAMP_FORMAT DEBUG_TIMESTAMP_LEVELS NETDEVS_POLICY
    TOPO_DUMP_FILE_RANK GRAPH_DUMP_FILE_RANK HOSTID PROXY_CPUSET RAS_ADDR NO_CACHE MNNVL_UUID
    MNNVL_CLIQUE_ID THREAD_THRESHOLDS
"""
# Of NCCL's own tuning and tests; its documentation has none of them.
_UNDOCUMENTED = """
    ALLGATHERV_ENABLE ALLOC_P2P_NET_LL_BUFFERS CHECK_MODE CHUNK_SIZE COLLNET_NODE_THRESHOLD
    CONNECT_ROUND_MAX_PEERS DISABLE_MEM_MANAGER ENABLE_VERSION_CHECK GDAKI_USE_RELIABLE_DB
    GDRCOPY_FIFO_ENABLE GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GIN_ERROR_QUERY_SEC
    GIN_GDAKI_NIC_HANDLER GIN_GDAKI_QP_DEPTH GIN_NCONNECTIONS GIN_NCONTEXTS
    GIN_PLUGIN_REF_COUNT GIN_PROXY_QUEUE_SIZE GIN_TYPE GRAPH_HELPER_DISABLE
    GROUP_CUDA_STREAM IB_MQP_RETRY_ALL IB_MQP_RETRY_CNT IB_MQP_RETRY_SLEEP_MSEC
    IB_PREPOST_RECEIVE_WORK_REQUESTS IB_RECEIVER_SIDE_MATCHING_SCHEME
    IB_RESILIENCY_PORT_FAILOVER IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS
    IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY IB_ROUTABLE_FLID_GID_INDEX IGNORE_DISABLED_P2P
    L1_SHARED_MEMORY_CARVEOUT LEGACY_CUDA_REGISTER LL128_C2C LSA_TEAM_SIZE MEM_SYNC_DOMAIN
    MNNVL_RAIL_PER_HOST MNNVL_SCATTER_NETS_ENABLE MULTI_SEGMENT_REGISTER NET_DISABLE_INTRA
    NET_FORCE_FLUSH NET_GDR_C2C NET_MERGE_LEVEL NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD
    NET_PLUGIN_REF_COUNT NUM_RMA_CTX NVB_PRECONNECT NVLINK_UTIL_CENTRIC_SCHED_ENABLE
    NVLSTREE_MAX_CHUNKSIZE P2P_EPOCH_ENABLE P2P_LL_THRESHOLD P2P_PER_CHANNEL_NET_BW
    P2P_SCHEDULE_GROUP_SIZE PROGRESS_APPENDOP_FREQ PROXY_APPEND_BATCH_SIZE PROXY_DUMP_SIGNAL
    PXN_C2C REPORT_CONNECT_PROGRESS RMA_PROXY_DUMP_SIGNAL RMA_PROXY_QUEUE_SIZE
    SET_CPU_STACK_SIZE SET_STACK_SIZE SHM_LOCALITY SHM_MEMCPY_MODE SYM_CE_THRESHOLD SYM_CTAS
    SYM_GIN_KERNELS_ENABLE SYM_KERNEL SYM_NOWIN_ENABLE UID_STAGGER_RATE
    UID_STAGGER_THRESHOLD UNPACK_DOUBLE_NCHANNELS WIN_STRIDE CREATE_THREAD_CONTEXT
    GIN_COUNTER_POOL_SIZE GIN_EXCLUSIVE_CONTEXTS GIN_SIGNAL_POOL_SIZE
"""
# Not NCCL's: container images, compilers and NCCL's own example plugins have these.
_BUILD_TEXTS = "VERSION HOME ROOT LIBRARY INCLUDE_DIR LIB_DIR PROFILE_EVENT_MASK"
# NVIDIA: "should not be used in production nor retained in scripts".
_DEBUG_NUMBERS = """
    P2P_DISABLE P2P_DIRECT_DISABLE SHM_DISABLE BUFFSIZE MIN_NRINGS MAX_NRINGS CHECK_POINTERS
    IB_DISABLE IB_QPS_PER_CONNECTION IB_SPLIT_DATA_ON_QPS
    IB_PCI_RELAXED_ORDERING IB_ADAPTIVE_ROUTING CUMEM_ENABLE CUMEM_HOST_ENABLE NET_GDR_READ
    NET_SHARED_BUFFERS NET_SHARED_COMMS NVB_DISABLE PXN_DISABLE P2P_PXN_LEVEL RUNTIME_CONNECT
    GRAPH_REGISTER LOCAL_REGISTER DMABUF_ENABLE COMM_BLOCKING
    NVLS_ENABLE MNNVL_ENABLE RAS_ENABLE RAS_TIMEOUT_FACTOR LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL
    GRAPH_MIXING_SUPPORT NCHANNELS_PER_NET_PEER MIN_P2P_NCHANNELS MAX_P2P_NCHANNELS LL_BUFFSIZE
    LL128_BUFFSIZE LL128_NTHREADS P2P_USE_CUDA_MEMCPY P2P_READ_ENABLE SHM_USE_CUDA_MEMCPY
    GDRCOPY_ENABLE GDR_FLUSH_DISABLE NVLS_NCHANNELS NVLS_CHUNKSIZE SINGLE_PROC_MEM_REG_ENABLE
    WIN_ENABLE GIN_ENABLE PAT_ENABLE COMM_SPLIT_SHARE_RESOURCES COMM_SHRINK_SHARE_RESOURCES
    WORK_FIFO_BYTES WORK_ARGS_BYTES P2P_NET_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_NVL_CHUNKSIZE
"""

_ALGORITHMS = ("Ring", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")

_BOUNDS = "NCCL keeps to its bounds instead, and says so at INFO alone"
# Where NCCL documents or enforces bounds: name, status, least, most, what becomes of the rest.
_BOUNDED: tuple[tuple[str, Status, int, int | None, str], ...] = (
    ("NCCL_CROSS_NIC", "known", 0, 2, "NCCL documents 0, 1 and 2 alone"),
    ("NCCL_IB_SL", "known", -1, 15, "InfiniBand has the service levels 0 to 15"),
    ("NCCL_IB_TC", "known", -1, 255, "NCCL keeps eight bits of it"),
    ("NCCL_MIN_NCHANNELS", "debug", 0, 64, _BOUNDS),
    ("NCCL_MAX_NCHANNELS", "debug", 1, None, _BOUNDS),
    ("NCCL_NTHREADS", "debug", 0, 512, _BOUNDS),
    ("NCCL_CGA_CLUSTER_SIZE", "debug", 0, 8, _BOUNDS),
    ("NCCL_MIN_CTAS", "debug", 1, 64, _BOUNDS),
    ("NCCL_MAX_CTAS", "debug", 1, None, _BOUNDS),
)


def _per_collective(choices: tuple[str, ...]) -> str:
    """The grammar of NCCL's parseList: "ring,tree;allreduce:tree", with ^ before a list."""
    names = rf"\^?,*(?:{'|'.join(choices)})(?:,+(?:{'|'.join(choices)}))*,*"
    of = "(?:broadcast|reduce|allgather|reducescatter|allreduce):"
    return rf"(?i:(?:;*(?:{of})?{names}(?:;+{of}{names})*;*)?)"


VARIABLES: tuple[Variable, ...] = (
    Variable(
        "NCCL_DEBUG",
        "NCCL",
        "choice",
        "debug",
        choices=("VERSION", "WARN", "INFO", "ABORT", "TRACE"),
        misread="NCCL then prints nothing",
        note="INFO and TRACE write a lot of log",
    ),
    Variable(
        "NCCL_DEBUG_SUBSYS",
        "NCCL",
        "choices",
        choices=(*_SUBSYSTEMS, *("^" + name for name in _SUBSYSTEMS)),
        misread="NCCL ignores what it does not know",
    ),
    Variable(
        "NCCL_SOCKET_IFNAME",
        "NCCL",
        "interface prefixes",
        note="prefixes, unless = comes first; gloo does not read it",
    ),
    Variable("NCCL_OOB_NET_IFNAME", "NCCL", "interface prefixes"),
    Variable(
        "NCCL_SOCKET_FAMILY",
        "NCCL",
        "choice",
        choices=("AF_INET", "AF_INET6"),
        misread="NCCL ignores it",
    ),
    Variable(
        "NCCL_IB_TIMEOUT",
        "NCCL",
        "c int",
        default="20",
        note="4.096 µs times 2 to this power: not the timeout of collectives",
        least=1,
        most=31,
        beyond="InfiniBand waits without limit for a lost answer: a dead link hangs the job",
    ),
    Variable(
        "NCCL_IB_RETRY_CNT",
        "NCCL",
        "c int",
        default="7",
        least=0,
        most=7,
        beyond="InfiniBand keeps three bits of it",
    ),
    Variable(
        "NCCL_SOCKET_NTHREADS",
        "NCCL",
        "c int",
        least=1,
        most=16,
        beyond="NCCL keeps to its bounds instead",
    ),
    *(
        Variable(name, "NCCL", "c int", status, least=least, most=most, beyond=beyond)
        for name, status, least, most, beyond in _BOUNDED
    ),
    Variable(
        "NCCL_COMM_ID",
        "NCCL",
        "pattern",
        pattern=r"(?:\[[^\]]+\]|[^:\[\]]+):[0-9]+|.?",
        expected="HOST:PORT",
        misread="NCCL stops with: Invalid NCCL_COMM_ID",
        fatal=True,
        note="communicators then meet there, and not by PyTorch's store",
    ),
    Variable("NCCL_DEBUG_FILE", "NCCL", "log file", misread="NCCL then writes to standard output"),
    *(
        Variable(name, "NCCL", "log file", misread="NCCL says so, and writes none")
        for name in ("NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE")
    ),
    Variable(
        "NCCL_TOPO_FILE",
        "NCCL",
        "input file",
        misread="NCCL finds the topology out by itself, and says so at INFO alone",
    ),
    Variable(
        "NCCL_GRAPH_FILE",
        "NCCL",
        "input file",
        misread="NCCL stops with: Could not open XML graph file",
        fatal=True,
    ),
    *(
        Variable(
            name,
            "NCCL",
            "pattern",
            "debug",
            pattern="(?:LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|SYS|[0-9].*)?",
            expected="LOC, NVL, PIX, PXB, PHB or SYS, in capitals",
            misread="NCCL ignores it, and says nothing",
        )
        for name in ("NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL")
    ),
    *(
        Variable(
            name,
            "NCCL",
            "pattern",
            "debug",
            pattern=_per_collective(choices),
            expected=f"some of {', '.join(choices)}, with ^ before them for all others",
            misread="NCCL, from 2.24 on, refuses to start: Unrecognized element token",
            fatal=True,
        )
        for name, choices in (("NCCL_ALGO", _ALGORITHMS), ("NCCL_PROTO", _PROTOCOLS))
    ),
    Variable("NCCL_LAUNCH_MODE", "NCCL", status="debug"),
    *rows("NCCL", "c int", _SITE_NUMBERS, prefix="NCCL_"),
    *rows("NCCL", "text", _SITE_TEXTS, prefix="NCCL_"),
    *rows("NCCL", "c int", _DEBUG_NUMBERS, prefix="NCCL_", status="debug"),
    *rows("NCCL", "text", _UNDOCUMENTED, prefix="NCCL_"),
    *rows("build tools", "text", _BUILD_TEXTS, prefix="NCCL_"),
    *(
        Variable(name, "nothing", status="removed", note=note, instead=instead)
        for name, note, instead in (
            ("NCCL_RINGS", "NCCL 2.3 dropped it", ""),
            ("NCCL_SINGLE_RING_THRESHOLD", "NCCL 2.3 dropped it", ""),
            ("NCCL_LL_THRESHOLD", "NCCL 2.5 dropped it", "NCCL_PROTO"),
            ("NCCL_TREE_THRESHOLD", "NCCL 2.5 dropped it", "NCCL_ALGO"),
            ("NCCL_IB_CUDA_SUPPORT", "NCCL 2.4 dropped it", "NCCL_NET_GDR_LEVEL"),
            ("NCCL_CHECKS_DISABLE", "NCCL dropped it", "NCCL_CHECK_POINTERS"),
            ("NCCL_IB_GDR_LEVEL", "NCCL renamed it", "NCCL_NET_GDR_LEVEL"),
        )
    ),
    *(
        Variable(name, "nothing", status="phantom", instead=instead)
        for name, instead in (
            ("NCCL_SOCKET_TIMEOUT", "NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC"),
            ("NCCL_CONNECT_TIMEOUT", "NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC"),
            ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
            ("NCCL_SOCKET_IFACE", "NCCL_SOCKET_IFNAME"),
        )
    ),
)
