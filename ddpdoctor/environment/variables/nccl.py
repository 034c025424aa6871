"""NCCL's variables, as NCCL 2.29 has them; each name stands in the library that torch 2.13 pins."""

from __future__ import annotations

from ddpdoctor.environment.variables.table import Status, Variable, described, rows

_SUBSYSTEMS = (
    *("INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL", "PROXY"),
    *("NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS", "ALL"),
)

# Settings of the site: NVIDIA's documentation lets them stay.
_SITE_NUMBERS = """
    SOCKET_RETRY_CNT: how often a connection is tried again, 34 times by default
    SOCKET_RETRY_SLEEP_MSEC: how much longer each try waits than the last, 100 ms by default
    SOCKET_POLL_TIMEOUT_MSEC: how long it waits for a socket in one go
    IB_GID_INDEX: which of a RoCE port's addresses is taken; chosen by itself since 2.21
    IB_ROCE_VERSION_NUM: which RoCE version the address that is chosen must have, 2 by default
    IB_FIFO_TC: the traffic class of its control messages
    IB_RETURN_ASYNC_EVENTS: 1, the default, ends the communicator where the device has a fault
    IB_PKEY: the index of the partition key
    IB_USE_INLINE: sends small control messages inside their request
    IB_AR_THRESHOLD: from how many bytes on messages may take several ways
    IB_ECE_ENABLE: lets the two ends agree on enhanced connections
    IB_MERGE_NICS: takes the ports of a card for one device, as it does by default
    IB_MERGE_VFS: takes the virtual functions of a card for one device
    IB_DATA_DIRECT: lets cards that can reach GPU memory by a way of its own
    OOB_NET_ENABLE: lets ranks meet over the fast network in place of sockets
    IGNORE_CPU_AFFINITY: 1 binds its threads by the GPU's place alone, whatever the process may use
    COLLNET_ENABLE: lets switches reduce (SHARP), where its plugin is there
    CTA_POLICY: whether speed or free multiprocessors come first
    SET_THREAD_NAME: gives its threads names that tools show
    NVTX_DISABLE: leaves out the marks for profilers
"""
_SITE_NUMBERS_OF_NO_DOCUMENT = """
    SOCKET_MIN_TASKSIZE SOCKET_INLINE SOCKET_RCVBUF SOCKET_SNDBUF IB_MAX_DEVS_PER_NIC
    IB_DEVICE_PCI_ORDER IB_WARN_RAIL_LOCAL NET_FORCE_MERGE WARN_ENABLE_DEBUG_INFO
"""
_SITE_TEXTS = """
    IB_HCA: which InfiniBand and RoCE devices and ports it takes
    IB_ADDR_FAMILY: whether a RoCE port's address is IPv4 or IPv6
    IB_ADDR_RANGE: in which network that address must lie
    NET: over which network ranks talk: IB, Socket, or a plugin's
"""
_OTHER_SITE_TEXTS = """
    NET_PLUGIN TUNER_PLUGIN PROFILER_PLUGIN ENV_PLUGIN
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
    P2P_DISABLE: 1 keeps GPUs from reading each other's memory: data takes the way by main memory
    P2P_DIRECT_DISABLE: 1 forbids that within one process alone
    SHM_DISABLE: 1 sends data between ranks of one machine through the network
    BUFFSIZE: bytes between two GPUs, 4 MiB by default
    MIN_NRINGS: the old name of NCCL_MIN_NCHANNELS
    MAX_NRINGS: the old name of NCCL_MAX_NCHANNELS
    CHECK_POINTERS: 1 checks every pointer of every call first, which takes time
    IB_DISABLE: 1 keeps it off InfiniBand and RoCE: TCP sockets are much slower
    IB_QPS_PER_CONNECTION: queue pairs between two ranks, 1 by default
    IB_SPLIT_DATA_ON_QPS: whether each message is split over them
    IB_PCI_RELAXED_ORDERING: 2, the default, uses it where it is there
    IB_ADAPTIVE_ROUTING: lets the network choose the way, as InfiniBand does by default
    CUMEM_ENABLE: whether GPU memory comes from CUDA's virtual memory functions
    CUMEM_HOST_ENABLE: whether shared memory of the host comes from them
    NET_GDR_READ: whether network cards read GPU memory when they send
    NET_SHARED_BUFFERS: whether messages between pairs of ranks share buffers
    NET_SHARED_COMMS: whether they share connections
    NVB_DISABLE: 1 forbids the way over another GPU's NVLink
    PXN_DISABLE: 1 forbids the way over the network card of another GPU
    P2P_PXN_LEVEL: when messages between pairs of ranks take that way
    RUNTIME_CONNECT: 0 connects all ranks at once, not when they first talk
    GRAPH_REGISTER: whether buffers of captured CUDA graphs are registered
    LOCAL_REGISTER: whether buffers that the program registers are used so
    DMABUF_ENABLE: whether network cards may reach GPU memory by DMA-BUF
    COMM_BLOCKING: whether its calls wait
    NVLS_ENABLE: whether NVLink switches reduce; 2, the default, where they can
    MNNVL_ENABLE: whether NVLink between machines is used; 2, the default, where it is there
    RAS_ENABLE: 0 leaves out the thread that watches over communicators
    RAS_TIMEOUT_FACTOR: makes all waiting of that thread longer
    LAUNCH_ORDER_IMPLICIT: keeps the order of calls on one device between communicators
    LAUNCH_RACE_FATAL: whether calls from several threads at once are an error
    GRAPH_MIXING_SUPPORT: 0 forbids calls beside captured CUDA graphs
    NCHANNELS_PER_NET_PEER: channels for messages to a rank on another machine
    SINGLE_PROC_MEM_REG_ENABLE: whether one process registers the buffers of its GPUs together
    WIN_ENABLE: whether windows of symmetric memory can be registered
"""
_DEBUG_NUMBERS_OF_NO_DOCUMENT = """
    MIN_P2P_NCHANNELS MAX_P2P_NCHANNELS LL_BUFFSIZE LL128_BUFFSIZE LL128_NTHREADS
    P2P_USE_CUDA_MEMCPY P2P_READ_ENABLE SHM_USE_CUDA_MEMCPY
    GDRCOPY_ENABLE GDR_FLUSH_DISABLE NVLS_NCHANNELS NVLS_CHUNKSIZE
    GIN_ENABLE PAT_ENABLE COMM_SPLIT_SHARE_RESOURCES COMM_SHRINK_SHARE_RESOURCES
    WORK_FIFO_BYTES WORK_ARGS_BYTES P2P_NET_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_NVL_CHUNKSIZE
"""

_ALGORITHMS = ("Ring", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")

_BOUNDS = "NCCL keeps to its bounds instead, and says so at INFO alone"
_SOCKETS = "NCCL opens 64 sockets to a peer at most, and warns"
# Where NCCL documents or enforces bounds: name, status, what it does, least, most, what becomes of
# the rest.
_BOUNDED: tuple[tuple[str, Status, str, int, int | None, str], ...] = (
    (
        "NCCL_CROSS_NIC",
        "known",
        "whether a ring may change from one network card to another between machines",
        *(0, 2, "NCCL documents 0, 1 and 2 alone"),
    ),
    (
        "NCCL_NSOCKS_PERTHREAD",
        "known",
        "how many sockets each of its network threads has to a peer",
        *(1, 64, _SOCKETS),
    ),
    (
        "NCCL_IB_SL",
        "known",
        "the InfiniBand service level",
        *(-1, 15, "InfiniBand has the service levels 0 to 15"),
    ),
    (
        "NCCL_IB_TC",
        "known",
        "the InfiniBand traffic class",
        *(-1, 255, "NCCL keeps eight bits of it"),
    ),
    ("NCCL_MIN_NCHANNELS", "debug", "how many channels it uses at least", 0, 64, _BOUNDS),
    ("NCCL_MAX_NCHANNELS", "debug", "how many channels it uses at most", 1, None, _BOUNDS),
    ("NCCL_NTHREADS", "debug", "threads of a block on the GPU", 0, 512, _BOUNDS),
    ("NCCL_CGA_CLUSTER_SIZE", "debug", "blocks of a cluster on the GPU", 0, 8, _BOUNDS),
    ("NCCL_MIN_CTAS", "debug", "blocks that it uses at least", 1, 64, _BOUNDS),
    ("NCCL_MAX_CTAS", "debug", "blocks that it uses at most", 1, None, _BOUNDS),
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
        note="which parts of it write at NCCL_DEBUG=INFO",
    ),
    Variable(
        "NCCL_SOCKET_IFNAME",
        "NCCL",
        "interface prefixes",
        note="where its sockets go; prefixes, unless = comes first; gloo does not read it",
    ),
    Variable(
        "NCCL_OOB_NET_IFNAME",
        "NCCL",
        "interface prefixes",
        note="on which devices of the fast network ranks meet",
    ),
    Variable(
        "NCCL_SOCKET_FAMILY",
        "NCCL",
        "choice",
        choices=("AF_INET", "AF_INET6"),
        misread="NCCL ignores it",
        note="whether its sockets are IPv4 or IPv6",
    ),
    Variable(
        "NCCL_IB_TIMEOUT",
        "NCCL",
        "c int",
        default="20",
        note="InfiniBand waits 4.096 µs times 2 to this power: no timeout of collectives",
        least=1,
        most=31,
        beyond="InfiniBand waits without limit for a lost answer: a dead link hangs the job",
    ),
    Variable(
        "NCCL_IB_RETRY_CNT",
        "NCCL",
        "c int",
        default="7",
        note="how often InfiniBand sends again what was not answered",
        least=0,
        most=7,
        beyond="InfiniBand keeps three bits of it",
    ),
    Variable(
        "NCCL_SOCKET_NTHREADS",
        "NCCL",
        "c int",
        note="threads that serve the sockets to each peer",
        least=1,
        most=16,
        beyond="NCCL keeps to its bounds instead",
    ),
    *(
        Variable(name, "NCCL", "c int", status, note=what, least=least, most=most, beyond=beyond)
        for name, status, what, least, most, beyond in _BOUNDED
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
    Variable(
        "NCCL_DEBUG_FILE",
        "NCCL",
        "log file",
        misread="NCCL then writes to standard output",
        note="where its log goes; %h and %p become host and process",
    ),
    *(
        Variable(name, "NCCL", "log file", misread="NCCL says so, and writes none", note=what)
        for name, what in (
            ("NCCL_TOPO_DUMP_FILE", "where it writes the topology that it found"),
            ("NCCL_GRAPH_DUMP_FILE", "where it writes the ways that it chose"),
        )
    ),
    Variable(
        "NCCL_TOPO_FILE",
        "NCCL",
        "input file",
        misread="NCCL finds the topology out by itself, and says so at INFO alone",
        note="the topology that it takes for the machine's",
    ),
    Variable(
        "NCCL_GRAPH_FILE",
        "NCCL",
        "input file",
        misread="NCCL stops with: Could not open XML graph file",
        note="the ways that it takes, in place of those that it would choose",
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
            note=f"how far apart {what}",
        )
        for name, what in (
            ("NCCL_P2P_LEVEL", "GPUs may be that read each other's memory"),
            ("NCCL_NET_GDR_LEVEL", "a GPU and a network card may be that reads its memory"),
        )
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
            note=f"which {what} it may choose from",
        )
        for name, choices, what in (
            ("NCCL_ALGO", _ALGORITHMS, "algorithms"),
            ("NCCL_PROTO", _PROTOCOLS, "protocols"),
        )
    ),
    Variable(
        "NCCL_LAUNCH_MODE",
        "NCCL",
        status="debug",
        note="how one process with several GPUs starts its kernels",
    ),
    *described("NCCL", "c int", _SITE_NUMBERS, prefix="NCCL_"),
    *rows("NCCL", "c int", _SITE_NUMBERS_OF_NO_DOCUMENT, prefix="NCCL_"),
    *described("NCCL", "text", _SITE_TEXTS, prefix="NCCL_"),
    *rows("NCCL", "text", _OTHER_SITE_TEXTS, prefix="NCCL_"),
    *described("NCCL", "c int", _DEBUG_NUMBERS, prefix="NCCL_", status="debug"),
    *rows("NCCL", "c int", _DEBUG_NUMBERS_OF_NO_DOCUMENT, prefix="NCCL_", status="debug"),
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
