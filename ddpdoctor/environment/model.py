"""What `ddpdoctor env` knows: every fact has a value, or says that there is none, or why not.

No string in here can hold a control character or half of a surrogate pair, whatever stood in the
environment: a value can neither paint the terminal nor break the JSON document.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from ddpdoctor.catalog import Finding, Frozen
from ddpdoctor.environment.variables.table import Status

TORCHRUN_PORT = 29500
"""Where torchrun meets unless it is told otherwise."""
OF_A_RANK = 2 * 2 * (8 << 20)
"""Bytes of shared memory that a rank has in use, about: two data-loader workers, each two batches
of 8 MiB ahead."""


def printable(text: str) -> str:
    """`text` with whatever a terminal would not show as a character written as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


Text = Annotated[str, AfterValidator(printable)]

_TRUE = ("y", "yes", "1", "t", "true")


class Unknown(Frozen):
    """A fact that could not be found out."""

    unknown: Text
    """Why."""


class Absent(Frozen):
    """A thing that is known not to be here."""

    absent: Text
    """How we know."""


class Python(Frozen):
    """The interpreter that runs the doctor, and so the user's script if it is the same one."""

    version: Text
    implementation: Text
    executable: Text
    platform: Text
    system: Text = ""
    """The distribution, as /etc/os-release calls it."""


class Torch(Frozen):
    """PyTorch as a child process of this interpreter imported it."""

    version: Text
    folder: Text
    cuda: Text | None
    """The CUDA version it was built with."""
    hip: Text | None
    """The ROCm version it was built with."""
    cudnn: Text | None = None
    debug: bool = False
    """Whether it is a debug build."""
    backends: tuple[Text, ...]
    """Communication backends that are compiled in: gloo, nccl, mpi, ucc."""
    nccl_built: Text | None
    """The NCCL version it was compiled against."""
    nccl_loaded: Text | Absent | Unknown
    """The version that the loaded library itself gives."""
    nccl_library: Text | None
    """Path of that library; None where NCCL is linked into torch."""
    accelerator: Text | None = None
    """What it computes on beside the CPU, as it was built: cuda, xpu, ..."""
    instructions: Text | None = None
    """The vector instructions for which it has kernels on this CPU: AVX2, AVX512, ..."""
    threads: int | None = None
    """Threads that it computes with in this environment: one for each CPU, unless MPI is seen."""
    visible_gpus: int | Unknown
    """GPUs that torch counts under CUDA_VISIBLE_DEVICES."""
    without_peer_access: tuple[tuple[int, int], ...] = ()
    """Pairs of visible GPUs that cannot read each other's memory."""
    cuda_failure: Text | None = None
    """What CUDA says where it does not start; None where it does, or torch was built without."""
    refused: tuple[tuple[Text, Text], ...] = ()
    """Variables whose value torch refused when it was tried, each with torch's words."""
    numpy_failure: Text | None = None
    """What torch says where it cannot use NumPy; None where it can."""


class TorchFailure(Frozen):
    """PyTorch is installed, and importing it fails."""

    version: Text
    error: Text
    because_of: tuple[tuple[Text, Text], ...] = ()
    """Variables, each with its value, without which importing it was seen to work."""


class Gpu(Frozen):
    """One NVIDIA GPU."""

    index: int
    name: Text
    uuid: Text
    memory_mib: int | None
    compute_mode: Text
    mig: Text
    driver: Text
    cuda: Text | None = None
    """The newest CUDA that the driver supports."""
    others: tuple[int, ...] = ()
    """Process ids of those that compute on it already."""
    fabric: Text = ""
    """Where GPUs are joined by NVSwitch: how far the fabric manager is with this one."""
    uncorrected: int = 0
    """ECC errors since the driver was loaded that could not be corrected."""


class DriverFailure(Frozen):
    """There is an NVIDIA GPU, and the driver's own tool cannot say anything of it."""

    error: Text


class Fabric(Frozen):
    """A port of an InfiniBand or RoCE device."""

    device: Text
    port: int
    state: Text
    """As the kernel says it: "4: ACTIVE"."""
    rate: Text
    layer: Text
    """InfiniBand or Ethernet."""
    gids: tuple[int, ...] = ()
    """Indices of its table of addresses that have an entry."""


class Kernel(Frozen):
    """What the kernel's settings mean for ranks and for those who look into them."""

    release: Text
    numa_nodes: int
    numa_balancing: bool | Unknown
    ptrace_scope: int | Absent | Unknown
    """From 1 on, only a process's parent may look into it."""
    lowest_port: int | Unknown
    """The lowest port on which any user may listen."""
    outgoing_ports: tuple[int, int] | Unknown
    """First and last of the ports that outgoing connections are given."""
    privileged: bool
    """Whether this process may listen below the lowest port."""
    gpu_direct: tuple[Text, ...] = ()
    """What could let network cards read GPU memory: nvidia_peermem, nvidia (DMA-BUF)."""


class Clock(Frozen):
    """How far this machine's clock can be trusted."""

    synchronised: bool
    """Whether the kernel counts it as disciplined (adjtimex)."""
    error_seconds: float
    """The kernel's own bound of its error."""


class Folder(Frozen):
    """The folder for checkpoints: what its file system does when it is tried."""

    path: Text
    filesystem: Text
    """Its type, as in /proc/self/mountinfo."""
    remote: bool
    """Whether other machines serve it."""
    chosen: bool = False
    """Whether somebody has named it; else it is where the doctor was started."""
    writable: bool = True
    free: int
    """Bytes."""
    replaces: bool | Unknown
    """Whether os.replace puts a new file in an old one's place."""
    syncs: bool | Unknown
    """Whether fsync of a file and of the folder works."""
    locks: bool | Unknown
    """Whether flock keeps a second process out."""


class Cpus(Frozen):
    """How many CPUs there are, and how many of them this process may use."""

    count: int
    """What os.cpu_count() says."""
    affinity: int | Unknown
    """CPUs in this process's affinity mask."""
    allowed: int | Absent | Unknown = Absent(absent="not looked for")
    """CPUs of the largest control group that can be seen."""
    cores: int | None = None
    """Without what hyper-threading adds; None where the kernel does not tell."""
    sockets: int | None = None
    quota: float | Absent | Unknown
    """CPUs' worth of time that the control group grants."""
    model: Text = ""

    @property
    def usable(self) -> int:
        """CPUs that can really work for this process at a time; at least 1."""
        limits = (limit for limit in (self.affinity, self.quota) if isinstance(limit, int | float))
        return max(1, int(min((self.count, *limits))))


class Memory(Frozen):
    """Bytes of main memory."""

    total: int
    available: int
    limit: int | Absent | Unknown
    """What the control group allows."""
    left: int | Absent | Unknown = Absent(absent="not looked for")
    """What of that its processes have not taken yet."""

    @property
    def free(self) -> int:
        """Bytes that new processes can have."""
        bounds = (self.available, self.limit, self.left)
        return min(bound for bound in bounds if isinstance(bound, int))


class SharedMemory(Frozen):
    """Bytes of the file system that data-loader workers hand tensors through."""

    size: int
    free: int
    writable: bool | Unknown = True
    """Whether the smallest file could be there."""
    tried: int = 1
    """What a rank may have there, or less where there is less."""
    takes_it: bool | Unknown = True
    """Whether a file of so much could be there."""


class Limit(Frozen):
    """A resource limit; None means unlimited."""

    soft: int | None
    hard: int | None


class Limits(Frozen):
    """What this process and its children may use."""

    open_files: Limit
    locked_memory: Limit
    processes: Limit
    tasks_allowed: int | Absent | Unknown
    """Processes and threads that the control group allows (pids.max)."""
    tasks_used: int | None
    """How many of them there are in that group."""
    file_size: Limit = Limit(soft=None, hard=None)
    exempt: bool = False
    """Whether this is the machine's root, whose processes are never too many."""


class Interface(Frozen):
    """A network interface."""

    name: Text
    addresses: tuple[Text, ...]
    up: bool
    loopback: bool
    inner: Literal["", "bridge", "tunnel"] = ""
    """What leads to no other machine by itself: a bridge without a network card, a tunnel."""


class HostName(Frozen):
    """This machine's name and the addresses it resolves to, in the resolver's order."""

    name: Text
    addresses: tuple[Text, ...] | Unknown
    loopback: bool
    """Whether the first address, which gloo takes, is a loopback address."""


Answer = Literal["accepted", "refused", "silence", "no route", "not tried"]
"""What became of a connection, the best first."""


class Master(Frozen):
    """Where MASTER_ADDR and MASTER_PORT point."""

    address: Text
    addresses: tuple[Text, ...] | Unknown
    loopback: bool
    local: bool
    """Whether the address belongs to this machine."""
    answer: Answer = "not tried"
    """What became of a connection to it, where it is another machine."""


class Listener(Frozen):
    """A process that listens on a TCP port of this machine."""

    port: int
    process: Text
    """Name and process id, as far as we may know them."""


class Launcher(Frozen):
    """A launcher that has left its variables, and what they say about this process."""

    name: Literal[
        "torchrun", "srun", "Open MPI", "MVAPICH", "PMI", "jsrun", "accelerate", "deepspeed"
    ]
    rank: int | None
    size: int | None
    local_rank: int | None
    local_size: int | None


class FileSetting(Frozen):
    """A line of a configuration file of NCCL."""

    file: Text
    line: int
    name: Text
    """As NCCL takes it: all that stands before the first `=`, blanks too."""
    value: Text
    """With secrets replaced."""


class SetVariable(Frozen):
    """A variable that bears on distributed training: of the environment, or of NCCL's files."""

    name: Text
    value: Text
    """With secrets replaced."""
    redacted: bool
    status: Status | Literal["unknown"]
    """ "unknown" is in no table of ours."""
    read_by: Text
    file: Text | None = None
    """The file of NCCL that sets it, where the environment does not."""


class Search(Frozen):
    """Which names the installed libraries contain: a name that is absent, nobody reads."""

    libraries: tuple[Text, ...]
    present: tuple[Text, ...]
    absent: tuple[Text, ...]


class Environment(Frozen):
    """The facts."""

    python: Python
    torch: Torch | TorchFailure | Absent | Unknown
    interpreter: Text | Absent | Unknown = Absent(absent="not looked for")
    """Where PYTHON_EXEC leads, with which torchrun starts its ranks."""
    packages: tuple[Text, ...] | Unknown = ()
    """Installed distributions that bear on training, "name version"."""
    compilers: tuple[Text, ...] | Unknown = ()
    """What can build extensions here, "name version"."""
    accelerate: tuple[Text, ...] | Absent | Unknown = Absent(absent="not looked for")
    """The lines of accelerate's default configuration."""
    nccl_packages: tuple[Text, ...] | Unknown
    """Installed nvidia-nccl-* distributions, "name version"."""
    gpus: tuple[Gpu, ...] | DriverFailure | Absent | Unknown
    infiniband: tuple[Text, ...] | Unknown
    """InfiniBand and RoCE devices."""
    fabric: tuple[Fabric, ...] | Unknown
    """Their ports."""
    xids: tuple[Text, ...] | Absent | Unknown = ()
    """What the kernel's log says of faults of GPUs, as the NVIDIA driver numbers them."""
    redirecting: tuple[Text, ...] | Absent | Unknown = ()
    """PCI bridges that send all traffic between devices up to the CPU (ACS source validation)."""
    topology: tuple[Text, ...] | Absent | Unknown
    """How GPUs and network cards are connected: the lines of `nvidia-smi topo -m`."""
    kernel: Kernel | Unknown
    clock: Clock | Unknown
    container: Text | Absent | Unknown
    """What this process is confined by: docker, podman, Kubernetes, ..."""
    folder: Folder | Unknown
    cpus: Cpus | Unknown
    memory: Memory | Unknown
    shared_memory: SharedMemory | Absent | Unknown
    limits: Limits | Unknown
    interfaces: tuple[Interface, ...] | Unknown
    hostname: HostName | Unknown
    master: Master | Absent | Unknown
    listeners: tuple[Listener, ...] | Unknown
    """Who listens on MASTER_PORT and on torchrun's default port."""
    launchers: tuple[Launcher, ...]
    context: tuple[Text, ...]
    """Surroundings that start processes but did not start this one: a SLURM job, Kubernetes."""
    variables: tuple[SetVariable, ...]
    nccl_file: tuple[FileSetting, ...] | Unknown = ()
    """What NCCL's configuration files say, in the order in which it reads them."""
    net_plugins: tuple[Text, ...] | Unknown = ()
    """Libraries by which NCCL could know more networks than its own."""
    search: Search | Absent | Unknown
    unusable_files: tuple[tuple[Text, Text], ...] | Unknown = ()
    """Variables that name a file which this process can neither read nor write, each with why."""
    planned_ranks: int | None = None
    """Ranks of a launch on this machine that is still to come."""

    def variable(self, name: str) -> SetVariable | None:
        """A variable of this name; None if it is not set."""
        return next((one for one in self.variables if one.name == name), None)

    def value(self, name: str) -> str | None:
        """The value of a variable; None if it is not set, or is hidden because it is a secret."""
        variable = self.variable(name)
        return None if variable is None or variable.redacted else variable.value

    def integer(self, name: str) -> int | None:
        """The value of a variable as Python's int() reads it; None if it does not."""
        try:
            return int(self.value(name) or "")
        except ValueError:
            return None

    def is_on(self, name: str) -> bool:
        """Whether c10d takes a variable for true (torch's `getCvarBool`)."""
        return (self.value(name) or "").lower() in _TRUE

    @property
    def lacks_nccl(self) -> bool:
        """Whether the installed torch is known to be built without NCCL."""
        return isinstance(self.torch, Torch) and "nccl" not in self.torch.backends


class EnvironmentReport(Frozen):
    """What `ddpdoctor env` found: the facts, and what is wrong with them."""

    environment: Environment
    findings: tuple[Finding, ...]
