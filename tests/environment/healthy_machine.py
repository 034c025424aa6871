"""The facts of a machine with which nothing is wrong."""

from ddpdoctor.environment.model import (
    Absent,
    Clock,
    Cpus,
    Environment,
    Folder,
    HostName,
    Interface,
    Kernel,
    Limit,
    Limits,
    Memory,
    Python,
    SharedMemory,
    Torch,
)

GIB = 1 << 30
NOTHING = Absent(absent="not here")
UNLIMITED = Limit(soft=None, hard=None)

ENVIRONMENT = Environment(
    python=Python(version="3", implementation="CPython", executable="python", platform="Linux"),
    torch=Torch(
        version="2.13.0+cpu",
        folder="torch",
        cuda=None,
        hip=None,
        backends=("gloo",),
        nccl_built=None,
        nccl_loaded=NOTHING,
        nccl_library=None,
        visible_gpus=0,
    ),
    nccl_packages=(),
    gpus=NOTHING,
    infiniband=(),
    fabric=(),
    topology=NOTHING,
    kernel=Kernel(
        release="6.1.0",
        numa_nodes=1,
        numa_balancing=False,
        ptrace_scope=0,
        lowest_port=1024,
        outgoing_ports=(32768, 60999),
        privileged=False,
    ),
    clock=Clock(synchronised=True, error_seconds=0.01),
    container=NOTHING,
    folder=Folder(
        path="/checkpoints",
        filesystem="ext4",
        remote=False,
        free=100 * GIB,
        replaces=True,
        syncs=True,
        locks=True,
    ),
    cpus=Cpus(count=8, affinity=8, quota=NOTHING),
    memory=Memory(total=16 * GIB, available=8 * GIB, limit=NOTHING),
    shared_memory=SharedMemory(size=8 * GIB, free=8 * GIB),
    limits=Limits(
        open_files=UNLIMITED,
        locked_memory=UNLIMITED,
        processes=UNLIMITED,
        tasks_allowed=NOTHING,
        tasks_used=None,
    ),
    interfaces=(
        Interface(name="eth0", addresses=("192.0.2.7",), up=True, loopback=False),
        Interface(name="eth1", addresses=(), up=False, loopback=False),
        Interface(name="lo", addresses=("127.0.0.1", "::1"), up=True, loopback=True),
    ),
    hostname=HostName(name="node7", addresses=("192.0.2.7",), loopback=False),
    master=NOTHING,
    listeners=(),
    launchers=(),
    context=(),
    variables=(),
    search=NOTHING,
)
