"""The messages of failures that torch, a launcher or the operating system spells out.

What stands beside each is what the message does not say: whose mistake it is, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from ddpdoctor.catalog import Certainty


@dataclass(frozen=True, slots=True)
class Message:
    """A message, and what it means."""

    pattern: str
    """Sought in "Type: message"."""
    code: str
    title: str
    cause: str
    """May quote {ranks}, and what the pattern captured: {0}, {1}, or by name."""
    cure: str
    """May quote what the pattern captured."""
    frames: str = ""
    """A path or function that must be among the frames."""
    on_some: bool = False
    """Only where other ranks did not raise it."""
    in_causes: bool = False
    """Also where the exception that ended the rank was only raised from such a one."""
    of_victims: bool = False
    """Those who raise it suffer from what another rank did."""
    names_culprits: bool = False
    """What the pattern captures are the numbers of the ranks to blame."""
    of_the_reader: bool = False
    """What a loader's worker raises is told where the loader is read, not at the worker's line."""
    of_the_wrap: bool = False
    """What to change is said to DDP where the model is wrapped."""
    of_the_loader: bool = False
    """What to change is said to the loader that is trained on, where it is built."""
    of_the_end: bool = False
    """Where the ranks had destroyed their process group, that is what it means."""
    certainty: Certainty = "proven"
    """Of what it means: where the message does not say it, it is concluded."""
    restarted: bool = False
    """Only where the launcher had started the ranks before."""


OLD_ADDRESSES = (
    "they try to reach those of the attempt before: torchrun keeps one store for all attempts, and "
    "gloo reads the old addresses there."
)
MEETS_OLD_ADDRESSES = Message(
    r"Gloo connectFullMesh failed",
    "DDP400",
    "restart-meets-old-addresses",
    f"torchrun has started the ranks again, and {OLD_ADDRESSES}",
    "Give each attempt a store of its own: TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 torchrun ... "
    "(and mend what ended the attempt before).",
    restarted=True,
)
"""Told too where the ranks only wait, and raise nothing."""

MESSAGES = (
    Message(
        r"trying to initialize the default process group twice",
        "DDP102",
        "double-init",
        "init_process_group is called a second time while the first group is still there.",
        "Let one place own the process group: ask dist.is_initialized() before joining.",
    ),
    Message(
        r"environment variable (RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT) expected|"
        r"KeyError: '(RANK|WORLD_SIZE|LOCAL_RANK)'",
        "DDP103",
        "launched-without-launcher",
        "the script joins a process group, but no launcher has set the ranks' variables.",
        "Start it with torchrun --standalone --nproc-per-node=N.",
    ),
    Message(
        r"EADDRINUSE|[Aa]ddress already in use",
        "DDP104",
        "port-in-use",
        "the port of the rendezvous is taken: by another job, or by another rank that also hosts.",
        "Use torchrun --standalone, which picks a free port, and let rank 0 alone host the store.",
    ),
    MEETS_OLD_ADDRESSES,
    Message(
        r"keys: /torch\.rendezvous\.\S+/MASTER_ADDR",
        "DDP100",
        "address-not-told-again",
        "this torchrun came to a job whose ranks had been started before, and was not told where "
        "they meet: the first host of all tells it once, while attempts share its store.",
        "Set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun on all hosts.",
    ),
    Message(
        r"(?P<joined>\d+)/(?P<wanted>\d+) clients joined",
        "DDP105",
        "wrong-world-size",
        "{joined} of {wanted} ranks have joined: fewer processes were started than the world size "
        "says.",
        "Take the world size from the launcher, not from a constant or an old variable.",
    ),
    Message(
        r"Unable to find address for: \S+|Unable to find interface|[Nn]o socket interface found",
        "DDP107",
        "wrong-interface",
        "the interface that GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names is not on this machine.",
        "Name an interface that `ip -br addr` lists, or unset the variable.",
    ),
    Message(
        r"before the\s+current process has finished its bootstrapping phase",
        "DDP113",
        "unguarded-spawn",
        "the children import the script and start children themselves: mp.spawn is not guarded.",
        'Put what starts processes under `if __name__ == "__main__":`.',
    ),
    Message(
        r"No backend type associated with device type (?P<device>\w+)",
        "DDP116",
        "backend-device-mismatch",
        "a {device} tensor is given to a group whose backend has no {device} collectives.",
        'Join with a backend for each device: init_process_group("cpu:gloo,cuda:nccl").',
    ),
    Message(
        r"Distributed package doesn't have NCCL built in|"
        r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",
        "DDP116",
        "backend-device-mismatch",
        "the group is to use NCCL, and here is no GPU, or a torch without NCCL.",
        "Choose the backend by what is there: 'nccl' if torch.cuda.is_available() else 'gloo'.",
    ),
    Message(
        r"device_ids and output_device arguments only work with single-device|"
        r"device_ids can only be None or contain a single element|"
        r"module's parameters and device_ids|must have its parameters and buffers on device cuda",
        "DDP116",
        "backend-device-mismatch",
        "DDP is told of a GPU by device_ids, and the module's parameters are not on it.",
        "Pass device_ids only where the module is on that GPU; leave it out on CPU.",
    ),
    Message(
        r"Numpy is not available",
        "DDP400",
        "objects-without-numpy",
        "torch turns the objects that it sends between ranks into NumPy arrays, and cannot use "
        "NumPy here.",
        "pip install numpy, into the environment that the ranks are started from.",
        frames=r"distributed_c10d",
    ),
    Message(
        r"[Cc]an'?(t|not) pickle|Can't get local object",
        "DDP117",
        "unpicklable-spawn-arguments",
        "an argument of the spawned function cannot be pickled for the child.",
        "Hand over module-level functions and plain data; open files and build lambdas in the "
        "child.",
    ),
    Message(
        r"element 0 of tensors does not require grad and does not have a grad_fn",
        "DDP308",
        "no-loss-on-one-rank",
        "{ranks} had no loss that depends on the model, and so no gradients to reduce.",
        "Return out.sum() * 0 where there is nothing to learn from, and normalise over all ranks.",
        on_some=True,
    ),
    Message(
        r"DDP expects same model across all ranks|"
        r"appears not to match (sizes|strides) of the same param in process",
        "DDP310",
        "different-models",
        "the ranks built different models: their parameters differ in number or size.",
        "Build the model from the same configuration on every rank.",
    ),
    Message(
        r"mark a variable ready only once|marked as ready twice",
        "DDP311",
        "marked-ready-twice",
        "a parameter got its gradient twice in one backward: reentrant checkpointing, a parameter "
        "shared between wrapped parts, or several calls of a wrapper that looks for unused ones.",
        "Pass use_reentrant=False to checkpoint, or static_graph=True to DDP; call the wrapper "
        "once before each backward.",
        of_the_wrap=True,
    ),
    Message(
        r"Encountered gradient which is undefined, but still allreduced",
        "DDP311",
        "marked-ready-twice",
        "the reducer was given a gradient that it had taken for unused: where it looks for unused "
        "ones each forward begins the search anew, and one backward went through several of them.",
        "Make one call of the wrapper of all that one backward goes through (loop inside forward), "
        "or go backward after each.",
        of_the_wrap=True,
        certainty="evidence",
    ),
    Message(
        r"training graph has changed in this iteration",
        "DDP317",
        "static-graph-changed",
        "static_graph=True promises a graph that never changes, and it changed.",
        "Use find_unused_parameters=True instead, or keep the graph the same at every step.",
        of_the_wrap=True,
    ),
    Message(
        r"'DistributedDataParallel' object has no attribute '(?P<name>\w+)'",
        "DDP318",
        "wrapper-attribute",
        "`{name}` belongs to the model inside, and DistributedDataParallel does not hand it on.",
        "Ask model.module.{name}; call forward through the wrapper.",
    ),
    Message(
        r"invalid device ordinal",
        "DDP106",
        "devices-not-bound",
        "a rank chose a GPU that this machine does not have, often by its global rank.",
        "Call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group.",
    ),
    Message(
        r"Duplicate GPU detected",
        "DDP106",
        "devices-not-bound",
        "two ranks use the same GPU.",
        "Call torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) before init_process_group.",
    ),
    Message(
        r"client socket has (?:timed out|failed to connect)|No route to host|"
        r"failed to connect to [\w.:\[\]-]+ .*after|TCPStore.* timed out",
        "DDP108",
        "unreachable-peer",
        "the rendezvous on the master node could not be reached.",
        "Check MASTER_ADDR, and that no firewall stands between the nodes.",
    ),
    Message(
        r"unrecognized arguments:.*--local[-_]rank",
        "DDP112",
        "local-rank-argument",
        "a launcher passed --local-rank, which the script does not take.",
        "Start it with torchrun, and read LOCAL_RANK from the environment.",
    ),
    Message(
        r"required: .*--local[-_]rank",
        "DDP112",
        "local-rank-argument",
        "the script demands --local-rank, which torchrun does not pass.",
        "Read LOCAL_RANK from the environment.",
    ),
    Message(
        r"Tensors must be CUDA and dense",
        "DDP116",
        "backend-device-mismatch",
        "a collective was given tensors on a device that the group's backend does not serve.",
        "Choose the backend by device: init_process_group('cpu:gloo,cuda:nccl').",
    ),
    Message(
        r"Cannot re-initialize CUDA in forked subprocess",
        "DDP100",
        "cuda-in-forked-process",
        "a process that had used CUDA was forked, and its child uses CUDA too.",
        "Touch no GPU before the ranks are started, or start them by spawn.",
    ),
    Message(
        r"Default process group has not been initialized|"
        r"torch\.distributed is not yet initialized",
        "DDP100",
        "group-not-initialised",
        "torch.distributed is used before init_process_group, or after destroy_process_group.",
        "Initialise the process group first.",
        of_the_end=True,
    ),
    Message(
        r"Detected mismatch between collectives on ranks[\s\S]*\bOp type: ",
        "DDP402",
        "collective-order-mismatch",
        "the ranks called different collectives, as TORCH_DISTRIBUTED_DEBUG=DETAIL has found.",
        "Call the same collectives in the same order on every rank.",
    ),
    Message(
        r"ValueError: Global rank (\d+) is not part of group",
        "DDP403",
        "root-outside-its-group",
        "rank {0} was named as the root, or the peer, in a group of {ranks} that it is not in: src "
        "and dst count the ranks of the whole job.",
        "Count within the group: group_src=0 (group_dst=0), or src=dist.get_global_rank(group, 0).",
    ),
    Message(
        r"Detected mismatch between collectives on ranks|op\.preamble\.length <= op\.nbytes",
        "DDP403",
        "collective-shape-mismatch",
        "the ranks called a collective with different sizes, or different collectives.",
        "Agree on the sizes first, or pad.",
    ),
    Message(
        r"failed finding central directory|PytorchStreamReader failed reading|"
        r"unexpected EOF, expected \d+ more bytes",
        "DDP500",
        "unreadable-checkpoint",
        "the checkpoint is not whole: it was read while it was written, or its writer was killed.",
        "Write to a temporary file, os.replace it, and let the other ranks wait for the outcome.",
    ),
    Message(
        r"No space left on device",
        "DDP511",
        "failed-save-unshared",
        "the disk was full while a file was written.",
        "Free space, keep the last k checkpoints only, and share the outcome with all ranks.",
        frames=r"torch/serialization\.py|save",
    ),
    Message(
        r"killed by signal: Bus error|insufficient shared memory|out of shared memory|"
        r"unable to (?:mmap|write to file|allocate shared memory).*torch_",
        "DDP604",
        "shared-memory-exhausted",
        "the data loaders' workers have filled /dev/shm.",
        "Give the container more of it (docker run --shm-size=8g), or use fewer workers.",
        in_causes=True,
        of_the_reader=True,
    ),
    Message(
        r"Expected more than 1 value per channel when training, got input size torch\.Size\(\[1,",
        "DDP400",
        "batch-of-one",
        "{ranks} trained on a batch of one sample, and a batch norm needs two to have a variance. "
        "A set that fills the batches of one process may leave one sample over on each rank.",
        "Leave the rest of an epoch out in training: DataLoader(..., drop_last=True).",
        of_the_loader=True,
    ),
    Message(
        r"received 0 items of ancdata|[Tt]oo many open files",
        "DDP600",
        "too-many-open-files",
        "the process ran out of file descriptors.",
        "Raise ulimit -n, or torch.multiprocessing.set_sharing_strategy('file_system').",
    ),
    Message(
        r"Failed to init uv loop",
        "DDP600",
        "no-event-loop",
        "the store got no event loop: this process has no file descriptor, or no memory, left.",
        "Raise ulimit -n; look at the memory that is left.",
    ),
    Message(
        r"CUDA out of memory|CUDA error: out of memory|Cuda failure 'out of memory'|"
        r"not enough memory: you tried to allocate",
        "DDP600",
        "out-of-memory",
        "a rank ran out of memory.",
        "Use a smaller batch per rank; if only one rank fails, look at what it alone holds.",
    ),
    Message(
        r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) (?:is killed by signal: (\w+)|exited)",
        "DDP600",
        "worker-died",
        "a data-loader worker died; SIGKILL that nobody sent is the kernel out of memory.",
        "Look at dmesg, use fewer workers, and num_workers=0 to see the worker's own exception.",
    ),
    Message(
        r"Skipping the `training_step` by returning None in distributed training is not supported",
        "DDP307",
        "rank-local-skip",
        "training_step gave no loss on {ranks}, and the backward pass, which the ranks make "
        "together, cannot be skipped by one.",
        "Return a loss on every rank, such as one times zero, or decide with an all_reduce whether "
        "to skip.",
    ),
    Message(
        r"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|NCCL error in:",
        "DDP100",
        "nccl-failed",
        "NCCL failed below PyTorch: the network, the driver or a device.",
        "Run again with NCCL_DEBUG=WARN, which names what failed; see ddpdoctor env.",
    ),
    Message(
        r"Ranks? ([\d, ]+) failed to pass monitoredBarrier",
        "DDP400",
        "missing-call",
        "rank {0} did not come to the monitored barrier of the others in time.",
        "Look at what it did instead: an exception, a loop that ended early, or a call under a "
        "condition.",
        of_victims=True,
        names_culprits=True,
    ),
    Message(
        r"Connection (?:closed|reset) by peer|(?<!\[Errno 32\] )Broken pipe|Socket closed|"
        r"remote process exited|NCCL communicator was aborted|[Ff]ailed to recv, got 0 bytes",
        "DDP400",
        "peer-left",
        "these ranks lost the connection to a rank that had left, and nothing tells why it did.",
        "Look at the rank that does not say this: it exited, was killed, or its words are lost.",
        of_victims=True,
    ),
)
