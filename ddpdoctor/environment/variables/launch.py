"""Rendezvous, launchers, devices and threads."""

from __future__ import annotations

import signal

from ddpdoctor.environment.variables.table import Kind, Status, Variable, described, rows

_TIMEOUT = "pass timeout= to init_process_group, and to new_group"
_SET_BY_TORCHRUN = "torchrun sets it for its ranks"

_REFUSED = "torchrun ends with an error before it starts a rank"
_INT = r"\s*[+-]?[0-9]+\s*"
_COUNT = r"\s*[+]?0*[1-9][0-9]*\s*"
_DEVICES = "cpu|gpu|xpu|hpu|npu|mlu|musa|privateuseone"
_STREAMS = r"[0-3]|([0-9]:[0-3],)*[0-9]:[0-3]"  # elastic/multiprocessing/api.py, Std.from_str
_SIGNAL = "|".join(sorted(one.name for one in signal.Signals))
_SIGNALS = rf"\s*(?:{_SIGNAL})\s*(?:,\s*(?:{_SIGNAL})\s*)*"
_OF_SIGNALS: tuple[tuple[str, Status], ...] = (
    ("TORCHELASTIC_SIGNALS_TO_HANDLE", "launcher"),
    ("PET_SIGNALS_TO_HANDLE", "known"),
)


def _option(name: str) -> str:
    return f"--{name.lower().replace('_', '-')}, where the command line does not say"


_SWITCHES: tuple[tuple[str, str, Kind, str, str], ...] = (
    ("USE_LIBUV", "env:// rendezvous", "exactly 1", "1", "by what the store's host serves it"),
    (
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
        *("torchrun", "exactly 1", "0", "gives the ranks a store of their own"),
    ),
    (
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
        *("torchrun", "python int", "30", "seconds from SIGTERM to SIGKILL"),
    ),
    (
        "TORCH_ELASTIC_WORKER_IDENTICAL",
        *("torchrun", "exactly 1", "0", "lets ranks change places when they begin again"),
    ),
    (
        "TORCHELASTIC_ENABLE_FILE_TIMER",
        *("torchrun", "exactly 1", "0", "lets it end ranks whose own deadlines pass"),
    ),
)
_RENDEZVOUS: tuple[tuple[str, Kind, str], ...] = (
    ("MASTER_ADDR", "host", "where rank 0 hosts the store"),
    ("MASTER_PORT", "port", "on which port"),
    ("RANK", "python int", "which rank this one is"),
    ("WORLD_SIZE", "python int", "of how many"),
)
_OF_TORCHRUN = """
    LOCAL_WORLD_SIZE: how many ranks a machine has
    GROUP_RANK: which torchrun of the job has started this one
    GROUP_WORLD_SIZE: of how many
    ROLE_RANK: which rank of its role this one is
    ROLE_WORLD_SIZE: of how many
"""

VARIABLES: tuple[Variable, ...] = (
    *(
        Variable(name, "env:// rendezvous", kind, note=f"{what}; torchrun overwrites it")
        for name, kind, what in _RENDEZVOUS
    ),
    Variable("LOCAL_RANK", "PyTorch", "python int", note="which rank of its machine this one is"),
    *described("training scripts", "python int", _OF_TORCHRUN),
    Variable("ROLE_NAME", "training scripts"),
    Variable(
        "TORCHELASTIC_USE_AGENT_STORE",
        "env:// rendezvous",
        status="launcher",
        note="True makes every rank a client of a store that somebody else must host",
    ),
    *(
        Variable(f"TORCHELASTIC_{name}", "PyTorch", status="launcher", note=_SET_BY_TORCHRUN)
        for name in ("RUN_ID", "RESTART_COUNT", "MAX_RESTARTS", "ERROR_FILE")
    ),
    *(
        Variable(
            name,
            "torchrun",
            "pattern",
            status,
            pattern=_SIGNALS,
            expected="names of signals with commas between, as SIGTERM,SIGUSR1",
            misread="torchrun warns, and such a signal is not passed on to the ranks",
            note="which signals it passes on to its ranks",
        )
        for name, status in _OF_SIGNALS
    ),
    Variable(
        "TORCH_DIST_INIT_BARRIER",
        "PyTorch",
        "python int",
        default="0",
        note="1 adds a barrier after init_process_group and new_group",
    ),
    *(
        Variable(name, reader, kind, default=default, note=what)
        for name, reader, kind, default, what in _SWITCHES
    ),
    Variable(
        "TORCHELASTIC_HEALTH_CHECK_PORT",
        "torchrun",
        "pattern",
        pattern=_INT,
        expected="a port",
        misread="torchrun answers no health checks, and says so at INFO alone",
        note="where it answers health checks",
    ),
    *rows("torchrun", "text", "TORCHELASTIC_TIMER_FILE"),
    *rows(
        "torchrun", "text", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE TORCHELASTIC_ETCD_BINARY_PATH"
    ),
    *rows("torchrun", "text", "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"),
    *rows("torchrun", "text", "TORCH_WORKER_SERVER_SOCKET"),
    Variable(
        "PYTHON_EXEC", "torchrun", note="torchrun runs this as the interpreter", ordinary_name=True
    ),
    Variable(
        "LOGLEVEL",
        "torchrun",
        "choice",
        choices=("CRITICAL", "FATAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"),
        default="WARNING",
        misread="torchrun stops with ValueError: Unknown level",
        note="what it logs",
        fatal=True,
        ordinary_name=True,
    ),
    # The defaults of torchrun's options: PET_ and the option's longest name.
    *rows("torchrun", "text", "RDZV_BACKEND RDZV_ENDPOINT RDZV_ID", prefix="PET_"),
    *rows("torchrun", "text", "START_METHOD EVENT_LOG_HANDLER ROLE LOG_DIR", prefix="PET_"),
    *rows("torchrun", "text", "DUPLICATE_STDOUT_FILTERS DUPLICATE_STDERR_FILTERS", prefix="PET_"),
    *rows("torchrun", "text", "MASTER_ADDR LOCAL_ADDR", prefix="PET_"),
    Variable("PET_NODE_RANK", "torchrun", "python int", default="0", note=_option("NODE_RANK")),
    Variable("PET_MASTER_PORT", "torchrun", "port", default="29500", note=_option("MASTER_PORT")),
    Variable(
        "PET_NNODES",
        "torchrun",
        "node count",
        misread=_REFUSED,
        fatal=True,
        note=_option("NNODES"),
    ),
    *(
        Variable(
            f"PET_{name}",
            "torchrun",
            "python int",
            default=default,
            least=0,
            misread=_REFUSED,
            fatal=True,
            note=_option(name),
        )
        for name, default in (("MAX_RESTARTS", "0"), ("SHUTDOWN_TIMEOUT", "30"))
    ),
    *(
        Variable(
            f"PET_{name}",
            "torchrun",
            "pattern",
            pattern=pattern,
            expected=expected,
            misread=_REFUSED,
            fatal=True,
            note=_option(name),
        )
        for name, pattern, expected in (
            ("NPROC_PER_NODE", rf"{_COUNT}|auto|{_DEVICES}", "a positive number, auto, cpu or gpu"),
            (
                "MONITOR_INTERVAL",
                r"\s*[+]?(?=[0-9.]*[1-9])([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*",
                "seconds, more than 0",
            ),
            *((name, _STREAMS, "0, 1, 2, 3 or RANK:0 to RANK:3") for name in ("TEE", "REDIRECTS")),
            ("RDZV_CONF", r"([^=,]+=[^,]+(,[^=,]+=[^,]+)*)?", "NAME=VALUE,NAME=VALUE"),
            ("LOCAL_RANKS_FILTER", rf"({_INT}(,{_INT})*)?", "numbers, with commas between"),
        )
    ),
    *(
        Variable(f"PET_{name}", "torchrun", "zero or one", note=_option(name))
        for name in ("STANDALONE", "MODULE", "NO_PYTHON", "RUN_PATH", "VIRTUAL_LOCAL_RANK")
    ),
    Variable("PET_NPROC", "nothing", status="phantom", instead="PET_NPROC_PER_NODE"),
    # What other launchers tell their ranks; PyTorch itself reads none of it.
    *(
        Variable(name, "nothing in PyTorch", status="launcher")
        for name in (
            *("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"),
            *("SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
            *("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_STEP_TASKS_PER_NODE"),
            *("SLURM_JOB_NODELIST", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_CPUS_PER_TASK"),
            *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
            *("OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK"),
            *("MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
            *("MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "JSM_NAMESPACE_RANK"),
            *("JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"),
            "KUBERNETES_SERVICE_HOST",
        )
    ),
    Variable(
        "OMP_NUM_THREADS",
        "OpenMP",
        "threads",
        note="threads of each rank; torchrun sets 1 where it is unset, for more than one rank",
    ),
    Variable(
        "MKL_NUM_THREADS",
        "MKL",
        "threads",
        note="threads of each rank; torch with MKL takes it before OMP_NUM_THREADS",
    ),
    Variable("CUDA_VISIBLE_DEVICES", "CUDA", "devices", note="which GPUs are there, in what order"),
    Variable(
        "CUDA_DEVICE_ORDER",
        "CUDA",
        "choice",
        choices=("FASTEST_FIRST", "PCI_BUS_ID"),
        default="FASTEST_FIRST",
        misread="CUDA ignores it",
        note="how it numbers GPUs; nvidia-smi goes by PCI_BUS_ID",
    ),
    Variable(
        "CUDA_MODULE_LOADING",
        "CUDA",
        "choice",
        choices=("DEFAULT", "LAZY", "EAGER"),
        default="LAZY",
        misread="CUDA documents no such value",
        note="whether kernels are loaded when they are first needed",
    ),
    Variable(
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA",
        "c int",
        default="8",
        least=1,
        most=32,
        beyond="CUDA documents 1 to 32 alone",
        note="how many queues of work a GPU has",
    ),
    *(
        Variable(name, "the dynamic linker", ordinary_name=True)
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD")
    ),
    Variable(
        "CUBLAS_WORKSPACE_CONFIG",
        "cuBLAS",
        "pattern",
        pattern=".*:[0-9]+:[0-9]+.*",
        expected=":4096:8 or :16:8, with which its results repeat",
        misread="PyTorch cannot parse it, and takes a workspace of its own size",
        note="the memory that it works in",
    ),
    Variable("PYTHONHASHSEED", "Python"),
    Variable(
        "CUDA_LAUNCH_BLOCKING",
        "CUDA",
        "c int",
        "debug",
        default="0",
        note="every kernel is waited for: training is slower, and overlap is gone",
        slow=True,
    ),
    # Names that neither torchrun nor a library reads. Some scripts do.
    *(
        Variable(name, "nothing in PyTorch", status="script", instead=instead)
        for name, instead in (
            ("NPROC_PER_NODE", "torchrun --nproc-per-node, or PET_NPROC_PER_NODE"),
            ("NNODES", "torchrun --nnodes, or PET_NNODES"),
            ("NODE_RANK", "torchrun --node-rank, or PET_NODE_RANK"),
            ("MASTER_ADDRESS", "MASTER_ADDR"),
            ("DDP_TIMEOUT", _TIMEOUT),
            ("DIST_TIMEOUT", _TIMEOUT),
        )
    ),
    *(
        Variable(name, "nothing", status="phantom", instead=_TIMEOUT)
        for name in (
            *("TORCH_NCCL_TIMEOUT", "TORCH_NCCL_TIMEOUT_MS", "TORCH_NCCL_TIMEOUT_SEC"),
            *("TORCH_DISTRIBUTED_TIMEOUT", "TORCH_DIST_TIMEOUT"),
            *("NCCL_TIMEOUT", "NCCL_COMM_TIMEOUT", "GLOO_TIMEOUT", "GLOO_TIMEOUT_SECONDS"),
        )
    ),
    Variable(
        "TORCHELASTIC_AGENT_EXIT_BARRIER_TIMEOUT",
        "nothing",
        status="phantom",
        instead="exit_barrier_timeout of a LocalElasticAgent of your own",
    ),
)
