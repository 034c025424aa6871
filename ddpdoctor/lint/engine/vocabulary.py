"""The names of the field: what counts as a collective, a rank, a wrapper, a sampler."""

from __future__ import annotations

import re

DISTRIBUTED = ("torch.distributed.", "torch.distributed.distributed_c10d.")
_NN = ("torch.distributed.nn.", "torch.distributed.nn.functional.")

# Name of a collective -> position of its `group` parameter.
COLLECTIVES = {
    "all_gather": 2,
    "all_gather_coalesced": 2,
    "all_gather_into_tensor": 2,
    "all_gather_object": 2,
    "all_reduce": 2,
    "all_reduce_coalesced": 2,
    "all_to_all": 2,
    "all_to_all_single": 4,
    "barrier": 0,
    "broadcast": 2,
    "broadcast_object_list": 2,
    "gather": 3,
    "gather_object": 3,
    "monitored_barrier": 0,
    "reduce": 3,
    "reduce_scatter": 3,
    "reduce_scatter_tensor": 3,
    "scatter": 3,
    "scatter_object_list": 3,
}
GROUP_MAKERS = frozenset(
    {"new_group", "split_group", "new_subgroups", "new_subgroups_by_enumeration"}
)
DDP = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    }
)
SAMPLER = frozenset(
    {
        "torch.utils.data.DistributedSampler",
        "torch.utils.data.distributed.DistributedSampler",
    }
)

# Collectives that other libraries give as functions.
_ELSEWHERE = frozenset(
    {
        "accelerate.utils.wait_for_everyone",
        "accelerate.utils.gather",
        "accelerate.utils.gather_object",
        "accelerate.utils.broadcast",
        "accelerate.utils.broadcast_object_list",
        "accelerate.utils.reduce",
        "detectron2.utils.comm.synchronize",
        "detectron2.utils.comm.all_gather",
        "detectron2.utils.comm.gather",
        "detectron2.utils.comm.shared_random_seed",
        "mmengine.dist.barrier",
        "mmengine.dist.all_reduce",
        "mmengine.dist.all_gather",
        "mmengine.dist.broadcast",
        "mmengine.dist.collect_results",
    }
)
_OF_ACCELERATOR = frozenset(
    {"wait_for_everyone", "gather", "gather_for_metrics", "reduce", "pad_across_processes"}
)
_OF_FABRIC = frozenset({"barrier", "broadcast", "all_gather", "all_reduce"})

RANK_VARIABLES = frozenset(
    {
        "RANK",
        "LOCAL_RANK",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMI_RANK",
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK",
    }
)
GLOBAL_RANK_VARIABLES = frozenset(
    {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"}
)
RANK_NAME = re.compile(
    r"^_?(local|global|world|my|this|dist|ddp|process|proc|worker|node|gpu)?_?rank(_?id)?$", re.I
)
MAIN_NAME = re.compile(
    r"^_?is_?(\w+_)?(main|master|primary|chief)(_?(process|proc|rank|node|worker|gpu))?$"
    r"|^_?is_(\w+_)?(rank_?(zero|0)|(global|local|world)_zero|zero_rank|rank_?zero_process)$"
    r"|^_?(main|master|primary|chief)_?(process|proc|rank)$|^_?rank_?(zero|0)$|^_?is_?rank_?0$",
    re.I,
)
RANK_CALL = re.compile(r"^get_(local_|global_|world_|node_local_|dist_)?rank$")
# Conditions that every rank answers alike: is there a group, how many are we.
UNIFORM_NAME = re.compile(
    r"distributed|is_initialized|is_available|world_?size|num_(processes|gpus|replicas)|nproc"
    r"|use_?ddp|^ddp$|is_ddp|multi_?gpu|n_?gpus?$|dist_?(initialized|available)|use_dist|is_dist",
    re.I,
)


def collective(name: str) -> str:
    """The short name of the collective that a resolved dotted name calls, "" if it calls none."""
    head, _, last = name.rpartition(".")
    if last in COLLECTIVES and f"{head}." in DISTRIBUTED + _NN:
        return last
    if name in _ELSEWHERE or (last == "wait_for_everyone" and head):
        return last
    owner = head.rpartition(".")[2].lower()
    if last in _OF_ACCELERATOR and owner in ("accelerator", "_accelerator"):
        return last
    if last in _OF_FABRIC and owner in ("fabric", "_fabric"):
        return last
    if last in ("barrier", "broadcast") and head.endswith("trainer.strategy"):
        return last
    return ""


def is_wrapper(name: str) -> bool:
    """Whether this resolved name is DistributedDataParallel."""
    return name in DDP
