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
LOADER = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
OPTIMIZERS = re.compile(
    r"^torch\.optim\.(\w+\.)?(Adam|AdamW|SGD|RMSprop|Adagrad|Adadelta|NAdam|RAdam|LBFGS|Rprop)$"
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


# What nn.Module and DistributedDataParallel have themselves (torch 2.13 and older).
_OF_THE_WRAPPER = """
    T_destination add_module append apply batched_grad_copy bfloat16 broadcast_bucket_size
    broadcast_buffers bucket_bytes_cap bucket_bytes_cap_default bucket_bytes_cap_list buffer_hook
    buffers buffers_to_ignore call_super_init children compile cpu cuda ddp_uneven_inputs_config
    delay_all_reduce_named_params device device_ids device_mesh device_type dim double
    dump_patches eval extra_repr find_unused_parameters float forward forward_sync_buffers gather
    get_buffer get_extra_state get_parameter get_submodule gradient_as_bucket_view half init_sync
    ipu is_multi_device_module join join_device join_hook join_process_group load_state_dict
    logger mixed_precision module modules modules_buffers modules_params mtia named_buffers
    named_children named_module_buffers named_modules named_parameters no_sync output_device
    parameters parameters_to_ignore params_to_ignore process_group reducer register_backward_hook
    register_buffer register_comm_hook register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook require_backward_grad_sync
    require_forward_param_sync requires_grad_ scatter set_extra_state set_submodule share_memory
    skip_all_reduce_unused_params state_dict static_graph to to_empty to_kwargs train training
    type use_side_stream_for_tensor_copies will_sync_module_buffers xpu zero_grad
"""
OF_THE_WRAPPER = frozenset(_OF_THE_WRAPPER.split())
