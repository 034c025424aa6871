"""Rendezvous, launchers, devices and threads."""

from __future__ import annotations

import signal

from ddpdoctor.environment.variables.table import Status, Variable, rows

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

VARIABLES: tuple[Variable, ...] = (
    Variable("MASTER_ADDR", "env:// rendezvous", "host", note="torchrun overwrites it"),
    Variable("MASTER_PORT", "env:// rendezvous", "port", note="torchrun overwrites it"),
    Variable("RANK", "env:// rendezvous", "python int"),
    Variable("WORLD_SIZE", "env:// rendezvous", "python int"),
    Variable("LOCAL_RANK", "PyTorch", "python int"),
    *rows("training scripts", "python int", "LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE"),
    *rows("training scripts", "python int", "ROLE_RANK ROLE_WORLD_SIZE"),
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
    Variable("USE_LIBUV", "env:// rendezvous", "exactly 1", default="1"),
    Variable("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "torchrun", "exactly 1", default="0"),
    Variable("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "torchrun", "python int", default="30"),
    Variable("TORCH_ELASTIC_WORKER_IDENTICAL", "torchrun", "exactly 1", default="0"),
    *rows("torchrun", "exactly 1", "TORCHELASTIC_ENABLE_FILE_TIMER"),
    *rows("torchrun", "text", "TORCHELASTIC_TIMER_FILE TORCHELASTIC_HEALTH_CHECK_PORT"),
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
        fatal=True,
        ordinary_name=True,
    ),
    # The defaults of torchrun's options: PET_ and the option's longest name.
    *rows("torchrun", "text", "RDZV_BACKEND RDZV_ENDPOINT RDZV_ID", prefix="PET_"),
    *rows("torchrun", "text", "START_METHOD EVENT_LOG_HANDLER ROLE LOG_DIR", prefix="PET_"),
    *rows("torchrun", "text", "DUPLICATE_STDOUT_FILTERS DUPLICATE_STDERR_FILTERS", prefix="PET_"),
    *rows("torchrun", "text", "MASTER_ADDR LOCAL_ADDR", prefix="PET_"),
    Variable("PET_NODE_RANK", "torchrun", "python int", default="0"),
    Variable("PET_MASTER_PORT", "torchrun", "port", default="29500"),
    Variable("PET_NNODES", "torchrun", "node count", misread=_REFUSED, fatal=True),
    *(
        Variable(
            f"PET_{name}",
            "torchrun",
            "python int",
            default=default,
            least=0,
            misread=_REFUSED,
            fatal=True,
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
    *rows("torchrun", "zero or one", "STANDALONE MODULE NO_PYTHON RUN_PATH", prefix="PET_"),
    *rows("torchrun", "zero or one", "VIRTUAL_LOCAL_RANK", prefix="PET_"),
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
        note="torchrun sets 1 if it is unset and there is more than one rank",
    ),
    Variable("MKL_NUM_THREADS", "MKL", "threads"),
    Variable("CUDA_VISIBLE_DEVICES", "CUDA", "devices"),
    Variable(
        "CUDA_DEVICE_ORDER",
        "CUDA",
        "choice",
        choices=("FASTEST_FIRST", "PCI_BUS_ID"),
        default="FASTEST_FIRST",
        misread="CUDA ignores it",
    ),
    Variable(
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA",
        "c int",
        default="8",
        least=1,
        most=32,
        beyond="CUDA documents 1 to 32 alone",
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
