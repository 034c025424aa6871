"""PyTorch. Source: its documentation and signatures (2.6 to 2.13)."""

from __future__ import annotations

from collections.abc import Iterator

_COLLECTIVES = """
all_gather                      collective shares=tensor_list@0 gives=tensor@1 group=group@2
all_gather_coalesced            collective shares=output_tensor_lists@0 group=group@2
all_gather_into_tensor          collective shares=output_tensor@0 gives=input_tensor@1 group=group@2
all_gather_object               collective shares=object_list@0 group=group@2
all_reduce                      collective shares=tensor@0 group=group@2 reduce=op@1
all_reduce_coalesced            collective shares=tensors@0 group=group@2
all_to_all                      collective group=group@2 fills=output_tensor_list@0
all_to_all_single               collective group=group@4 fills=output@0 takes=output_split_sizes@2 hands=input_split_sizes@3
barrier                         collective group=group@0
broadcast                       collective shares=tensor@0 group=group@2 root=src@1
broadcast_object_list           collective shares=object_list@0 group=group@2 root=src@1
gather                          collective group=group@3 root=dst@2 of_root=gather_list@1
gather_object                   collective group=group@3 root=dst@2 of_root=object_gather_list@1
monitored_barrier               collective group=group@0
reduce                          collective group=group@3 root=dst@1 collects=tensor@0
reduce_scatter                  collective group=group@3 fills=output@0
reduce_scatter_tensor           collective group=group@3 fills=output@0
scatter                         collective group=group@3 root=src@2 fills=tensor@0 of_root=scatter_list@1 dealt=scatter_list@1
scatter_object_list             collective group=group@3 root=src@2 fills=scatter_object_output_list@0 dealt=scatter_object_input_list@1
new_group                       group ranks=ranks@0
split_group                     group
new_subgroups                   group
new_subgroups_by_enumeration    group
init_device_mesh                group
init_process_group              init backend=backend@0 method=init_method@1 rank=rank@4 size=world_size@3
destroy_process_group           leave group=group@0
get_rank                        rank group=group@0
get_node_local_rank             local_rank
get_world_size                  world group=group@0
get_group_rank                  unknown
get_process_group_ranks         same
is_initialized                  mode
is_available                    mode
is_torchelastic_launched        mode
get_backend                     same
send                            event kind=send peer=dst@1 tensor=tensor@0 tag=tag@3
recv                            event kind=recv peer=src@1 tensor=tensor@0 tag=tag@3
isend                           new type=torch.distributed.Work kind=send gives=tensor@0
irecv                           new type=torch.distributed.Work kind=recv fills=tensor@0
batch_isend_irecv               unknown
"""

_REST = """
torch.*                                             pure
torch.is_tensor                                     tests type=torch.Tensor
torch.distributed.*                                 unknown
torch.distributed.TCPStore                          new type=torch.distributed.TCPStore is_master=is_master@3
torch.distributed.init_device_mesh                  group shape=mesh_shape@1
torch.distributed.device_mesh.init_device_mesh      group shape=mesh_shape@1
torch.distributed.ReduceOp.*                        same
torch.distributed.optim.ZeroRedundancyOptimizer     new type=torch.distributed.optim.ZeroRedundancyOptimizer parameters=params@0
torch.distributed.optim.ZeroRedundancyOptimizer.consolidate_state_dict    collective to=to@0
torch.distributed.optim.ZeroRedundancyOptimizer.step    event kind=step closure=closure@0
torch.distributed.optim.ZeroRedundancyOptimizer.zero_grad    event kind=zero_grad
torch.distributed.optim.ZeroRedundancyOptimizer.load_state_dict    event kind=load_state state=state_dict@0
torch.distributed.optim.ZeroRedundancyOptimizer.state_dict    pure
torch.distributed.nn.functional.all_gather          collective result=same group=group@1
torch.distributed.nn.functional.all_reduce          collective result=same adds=tensor@0 group=group@2
torch.distributed.nn.functional.broadcast           collective result=same group=group@2
torch.distributed.nn.functional.gather              collective group=group@2
torch.distributed.nn.functional.reduce              collective group=group@3
torch.distributed.nn.functional.reduce_scatter      collective group=group@3
torch.distributed.nn.functional.scatter             collective group=group@2
torch.distributed.nn.functional.all_to_all          collective group=group@2
torch.distributed.nn.functional.all_to_all_single   collective group=group@4 takes=output_split_sizes@2 hands=input_split_sizes@3
torch.distributed.nn.all_gather                     collective result=same group=group@1
torch.distributed.nn.all_reduce                     collective result=same adds=tensor@0 group=group@2
torch.distributed.nn.broadcast                      collective result=same group=group@2
torch.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook      collective group=process_group@0
torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook  collective group=process_group@0
torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook  collective group=process_group@0
torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook       collective
torch.distributed.algorithms.join.Join              enters scope=join throws=throw_on_early_termination@2
torch.distributed.algorithms.Join                   enters scope=join throws=throw_on_early_termination@2
torch.distributed.elastic.multiprocessing.errors.record    itself
torch.nn.parallel.DistributedDataParallel           wraps module=module@0
torch.nn.parallel.distributed.DistributedDataParallel      wraps module=module@0
torch.nn.parallel.DistributedDataParallel.no_sync   enters scope=no_sync
torch.nn.parallel.DistributedDataParallel._set_static_graph    event kind=static_graph
torch.nn.parallel.DistributedDataParallel.register_comm_hook   event kind=comm_hook state=state@0 hook=hook@1
torch.distributed.GradBucket.buffer                 local cause=data
torch.distributed.GradBucket.gradients              local cause=data
torch.distributed.GradBucket.index                  same
torch.distributed.GradBucket.is_last                same
torch.distributed.GradBucket.parameters             same
torch.nn.DataParallel                               new type=torch.nn.DataParallel module=module@0
torch.nn.parallel.DataParallel                      new type=torch.nn.DataParallel module=module@0
torch.nn.SyncBatchNorm.convert_sync_batchnorm       itself
torch.compile                                       itself
torch.jit.script                                    itself
torch.nn.Module                                     new type=torch.nn.Module
torch.nn.Module.train                               itself
torch.nn.Module.eval                                itself
torch.nn.Module.to                                  itself
torch.nn.Module.cuda                                itself
torch.nn.Module.cpu                                 itself
torch.nn.Module.half                                itself
torch.nn.Module.float                               itself
torch.nn.Module.double                              itself
torch.nn.Module.bfloat16                            itself
torch.nn.Module.requires_grad_                      event kind=unfreeze on=requires_grad@0 result=itself
torch.nn.Module.apply                               event kind=apply function=fn@0 result=itself
torch.nn.Module.parameters                          pure
torch.nn.Module.reset_parameters                    event kind=reset
torch.nn.Module.named_parameters                    pure
torch.nn.Module.state_dict                          event kind=state result=pure
torch.nn.Dropout                                    event kind=dropout p=p@0 result=pure
torch.nn.Dropout1d                                  event kind=dropout p=p@0 result=pure
torch.nn.Dropout2d                                  event kind=dropout p=p@0 result=pure
torch.nn.Dropout3d                                  event kind=dropout p=p@0 result=pure
torch.nn.AlphaDropout                               event kind=dropout p=p@0 result=pure
torch.nn.functional.dropout                         event kind=dropout p=p@1 result=pure
torch.nn.Module.register_buffer                     event kind=register name=name@0 buffer=tensor@1
torch.nn.Module.register_parameter                  event kind=register name=name@0
torch.nn.Module.register_module                     event kind=register name=name@0
torch.nn.Module.add_module                          event kind=register name=name@0
torch.nn.Module.load_state_dict                     event kind=load_state state=state_dict@0
torch.nn.Sequential                                 new type=torch.nn.Module holds=args runs=each
torch.nn.ModuleList                                 new type=torch.nn.Module holds=list
torch.nn.ModuleDict                                 new type=torch.nn.Module holds=dict
torch.nn.Parameter                                  new type=torch.nn.Parameter
torch.nn.parameter.Parameter                        new type=torch.nn.Parameter
torch.nn.functional.*                               pure
torch.nn.utils.*                                    pure
torch.nn.utils.clip_grad_norm_                      event kind=clip parameters=parameters@0 result=pure
torch.nn.utils.clip_grad_value_                     event kind=clip parameters=parameters@0
torch.nn.utils.clip_grad.clip_grad_norm_            event kind=clip parameters=parameters@0 result=pure
torch.nn.init.*                                     itself
torch.utils.data.DataLoader                         new type=torch.utils.data.DataLoader dataset=dataset@0 batch_size=batch_size@1 shuffle=shuffle@2 sampler=sampler@3 batch_sampler=batch_sampler@4 num_workers=num_workers@5 collate_fn=collate_fn@6 drop_last=drop_last@8 worker_init_fn=worker_init_fn@10 start=multiprocessing_context@11 generator=generator@12 persistent=persistent_workers@
torch.utils.data.dataloader.DataLoader              new type=torch.utils.data.DataLoader dataset=dataset@0 batch_size=batch_size@1 shuffle=shuffle@2 sampler=sampler@3 batch_sampler=batch_sampler@4 num_workers=num_workers@5 collate_fn=collate_fn@6 drop_last=drop_last@8 worker_init_fn=worker_init_fn@10 start=multiprocessing_context@11 generator=generator@12 persistent=persistent_workers@
torch.utils.data.DistributedSampler                 new type=torch.utils.data.DistributedSampler dataset=dataset@0 num_replicas=num_replicas@1 rank=rank@2 shuffle=shuffle@3 seed=seed@4 drop_last=drop_last@5
torch.utils.data.distributed.DistributedSampler     new type=torch.utils.data.DistributedSampler dataset=dataset@0 num_replicas=num_replicas@1 rank=rank@2 shuffle=shuffle@3 seed=seed@4 drop_last=drop_last@5
torch.utils.data.RandomSampler                      new type=torch.utils.data.Sampler dataset=data_source@0 repeats=replacement@1 generator=generator@3
torch.utils.data.WeightedRandomSampler              new type=torch.utils.data.Sampler dataset=weights@0 repeats=replacement@2 generator=generator@3
torch.utils.data.SubsetRandomSampler                new type=torch.utils.data.Sampler dataset=indices@0 generator=generator@1
torch.utils.data.SequentialSampler                  new type=torch.utils.data.Sampler dataset=data_source@0
torch.utils.data.BatchSampler                       new type=torch.utils.data.BatchSampler sampler=sampler@0 batch_size=batch_size@1
torch.utils.data.Subset                             new type=torch.utils.data.Dataset dataset=dataset@0 indices=indices@1
torch.utils.data.TensorDataset                      new type=torch.utils.data.Dataset
torch.utils.data.ConcatDataset                      new type=torch.utils.data.Dataset
torch.utils.data.Dataset                            new type=torch.utils.data.Dataset
torch.utils.data.IterableDataset                    new type=torch.utils.data.IterableDataset
torch.utils.data.random_split                       event kind=split dataset=dataset@0 generator=generator@2 result=chance
torch.utils.data.get_worker_info                    event kind=ask_worker result=own
torch.utils.data._utils.worker.get_worker_info      event kind=ask_worker result=own
torch.utils.data.DistributedSampler.set_epoch       event kind=set_epoch epoch=epoch@0
torch.utils.data.DistributedSampler.rank                     rank
torch.utils.data.distributed.DistributedSampler.rank         rank
torch.utils.data.DistributedSampler.num_replicas             world
torch.utils.data.distributed.DistributedSampler.num_replicas world
torch.optim.*                                       new type=torch.optim.Optimizer parameters=params@0 lr=lr@1
torch.optim.swa_utils.AveragedModel                 event kind=average object=model@0
torch.optim.lr_scheduler.*                          new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0
torch.optim.lr_scheduler.LambdaLR                   new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0 begun=last_epoch@2
torch.optim.lr_scheduler.MultiplicativeLR           new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0 begun=last_epoch@2
torch.optim.lr_scheduler.ExponentialLR              new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0 begun=last_epoch@2
torch.optim.lr_scheduler.StepLR                     new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0 begun=last_epoch@3
torch.optim.lr_scheduler.MultiStepLR                new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0 begun=last_epoch@3
torch.optim.lr_scheduler.CosineAnnealingLR          new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0 begun=last_epoch@3
torch.optim.Optimizer.step                          event kind=step closure=closure@0
torch.optim.Optimizer.zero_grad                     event kind=zero_grad
torch.optim.Optimizer.load_state_dict               event kind=load_state state=state_dict@0
torch.optim.Optimizer.state_dict                    pure
torch.optim.lr_scheduler.ReduceLROnPlateau          new type=torch.optim.lr_scheduler.ReduceLROnPlateau optimizer=optimizer@0
torch.optim.lr_scheduler.ReduceLROnPlateau.step     event kind=schedule metric=metrics@0
torch.optim.lr_scheduler.ReduceLROnPlateau.load_state_dict    event kind=load_state state=state_dict@0
torch.optim.lr_scheduler.LRScheduler.step           event kind=schedule metric=epoch@0
torch.optim.lr_scheduler.LRScheduler.load_state_dict    event kind=load_state state=state_dict@0
torch.amp.GradScaler                                new type=torch.amp.GradScaler
torch.GradScaler                                    new type=torch.amp.GradScaler
torch.cuda.amp.GradScaler                           new type=torch.amp.GradScaler
torch.amp.GradScaler.step                           event kind=step optimizer=optimizer@0
torch.amp.GradScaler.unscale_                       event kind=unscale optimizer=optimizer@0
torch.amp.GradScaler.scale                          pure
torch.amp.GradScaler.update                         same
torch.amp.GradScaler.load_state_dict                event kind=load_state state=state_dict@0
torch.Tensor.backward                               event kind=backward
torch.acos                                          event kind=arccos of=input@0 result=pure
torch.arccos                                        event kind=arccos of=input@0 result=pure
torch.Tensor.item                                   pure
torch.Tensor.detach                                 pure
torch.autograd.backward                             event kind=backward loss=tensors@0
torch.autograd.grad                                 event kind=grad outputs=outputs@0 inputs=inputs@1 result=pure
torch.no_grad                                       enters scope=no_grad
torch.inference_mode                                enters scope=no_grad
torch.set_grad_enabled                              enters scope=grad_mode mode=mode@0
torch.enable_grad                                   enters scope=enable_grad
torch.autocast                                      enters scope=autocast
torch.cuda.amp.autocast                             enters scope=autocast
torch.amp.autocast                                  enters scope=autocast
torch.hub.download_url_to_file                      event kind=write path=dst@1
torch.save                                          event kind=save object=obj@0 path=f@1
torch.load                                          event kind=load path=f@0 map_location=map_location@1 result=new
torch.hub.load_state_dict_from_url                  same
torch.utils.model_zoo.load_url                      same
torch.distributed.checkpoint.save                   collective op=dcp.save
torch.distributed.checkpoint.load                   collective op=dcp.load
torch.distributed.fsdp.fully_shard                  shards module=module@0 mesh=mesh@
torch.distributed.fsdp.FullyShardedDataParallel     spreads module=module@0 group=process_group@1 strategy=sharding_strategy@2 weights=sync_module_states@10 keeps=use_orig_params@
torch.distributed.fsdp.FullyShardedDataParallel.state_dict_type    enters scope=fsdp_state form=state_dict_type@1
torch.distributed.fsdp.FullyShardedDataParallel.set_state_dict_type    forms module=module@0 form=state_dict_type@1
torch.distributed.fsdp.FullyShardedDataParallel.optim_state_dict    collective
torch.distributed.fsdp.FullyShardedDataParallel.full_optim_state_dict    collective
torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel    spreads module=module@0 group=process_group@1 strategy=sharding_strategy@2 weights=sync_module_states@10 keeps=use_orig_params@
torch.distributed.checkpoint.state_dict.StateDictOptions    new type=torch.distributed.checkpoint.state_dict.StateDictOptions whole=full_state_dict@0 spread=broadcast_from_rank0@5
torch.distributed.checkpoint.state_dict.get_model_state_dict        gathers model=model@0 options=options@
torch.distributed.checkpoint.state_dict.get_optimizer_state_dict    gathers model=model@0 options=options@
torch.distributed.checkpoint.state_dict.get_state_dict              gathers model=model@0 options=options@
torch.distributed.checkpoint.state_dict.set_model_state_dict        gathers model=model@0 options=options@ sets=model_state_dict@1
torch.distributed.checkpoint.state_dict.set_optimizer_state_dict    gathers model=model@0 options=options@ sets=optim_state_dict@2
torch.distributed.checkpoint.state_dict.set_state_dict              gathers model=model@0 options=options@ sets=model_state_dict@
torch.manual_seed                                   event kind=seed seed=seed@0
torch.cuda.manual_seed                              event kind=seed_cuda seed=seed@0
torch.cuda.manual_seed_all                          event kind=seed_cuda seed=seed@0
torch.seed                                          event kind=reseed
torch.get_rng_state                                 event kind=get_rng_state result=chance
torch.random.get_rng_state                          event kind=get_rng_state result=chance
torch.random.fork_rng                               enters scope=fork_rng
torch.set_rng_state                                 event kind=set_rng_state state=new_state@0
torch.random.set_rng_state                          event kind=set_rng_state state=new_state@0
torch.cuda.set_rng_state                            event kind=set_rng_state state=new_state@0
torch.cuda.set_rng_state_all                        event kind=set_rng_state state=new_states@0
torch.Generator                                     new type=torch.Generator
torch.Generator.manual_seed                         event kind=seed_generator seed=seed@0 result=itself
torch.rand                                          event kind=draw generator=generator@ result=chance
torch.randn                                         event kind=draw generator=generator@ result=chance
torch.randint                                       event kind=draw generator=generator@ result=chance
torch.randperm                                      event kind=draw generator=generator@ result=chance
torch.normal                                        event kind=draw generator=generator@ result=chance
torch.multinomial                                   event kind=draw generator=generator@ result=chance
torch.bernoulli                                     event kind=draw generator=generator@ result=chance
torch.rand_like                                     event kind=draw result=chance
torch.randn_like                                    event kind=draw result=chance
torch.randint_like                                  event kind=draw result=chance
torch.initial_seed                                  unknown
torch.cuda.is_available                             same
torch.cuda.device_count                             same
torch.cuda.set_device                               event kind=set_device device=device@0
torch.cuda.device                                   event kind=set_device device=device@0
torch.set_default_device                            event kind=set_device device=device@0
torch.cuda.current_device                           local_rank
torch.device                                        event kind=device type=type@0 index=index@1 result=pure
torch.cuda.synchronize                              same
torch.cuda.empty_cache                              event kind=empty_cache
torch.cuda.Event                                    local cause=clock
torch.cuda.memory_allocated                         local cause=machine
torch.cuda.max_memory_allocated                     local cause=machine
torch.cuda.mem_get_info                             local cause=machine
torch.cuda.get_device_properties                    unknown
torch.cuda.get_device_name                          unknown
torch.cuda.get_device_capability                    unknown
torch.multiprocessing.spawn                         spawns target=fn@0 arguments=args@1 processes=nprocs@2 method=start_method@5
torch.multiprocessing.start_processes               spawns target=fn@0 arguments=args@1 processes=nprocs@2 method=start_method@5
torch.multiprocessing.spawn.spawn                   spawns target=fn@0 arguments=args@1 processes=nprocs@2 method=start_method@5
torch.multiprocessing.Process                       new type=multiprocessing.Process target=target@1 arguments=args@3
torch.multiprocessing.cpu_count                     same
torch.multiprocessing.get_context                   new type=multiprocessing.Context
torch.utils.checkpoint.checkpoint                   event kind=checkpoint function=function@0 result=called
torchvision.*                                       pure
torchvision.models.*                                unknown
torchaudio.*                                        pure
"""

_LAYERS = """
    AdaptiveLogSoftmaxWithLoss : in_features@0 n_classes@1 cutoffs@2 div_value@3 head_bias@4
    Bilinear : in1_features@0 in2_features@1 out_features@2 bias@3
    Conv1d Conv2d Conv3d : in_channels@0 out_channels@1 kernel_size@2 groups@6 bias@7
    ConvTranspose1d ConvTranspose2d : in_channels@0 out_channels@1 kernel_size@2 groups@6 bias@7
    ConvTranspose3d : in_channels@0 out_channels@1 kernel_size@2 groups@6 bias@7
    Embedding EmbeddingBag : num_embeddings@0 embedding_dim@1
    GRU : input_size@0 hidden_size@1 num_layers@2 bias@3 bidirectional@6
    GRUCell LSTMCell RNNCell : input_size@0 hidden_size@1 bias@2
    GroupNorm : num_channels@1 affine@3
    LSTM : input_size@0 hidden_size@1 num_layers@2 bias@3 bidirectional@6 proj_size@7
    LayerNorm : normalized_shape@0 elementwise_affine@2 bias@3
    LazyConv1d LazyConv2d LazyConv3d : out_channels@0 kernel_size@1 groups@5 bias@6
    LazyConvTranspose1d LazyConvTranspose2d : out_channels@0 kernel_size@1 groups@5 bias@6
    LazyConvTranspose3d : out_channels@0 kernel_size@1 groups@5 bias@6
    LazyLinear : out_features@0 bias@1
    Linear : in_features@0 out_features@1 bias@2
    MultiheadAttention : embed_dim@0 bias@3 add_bias_kv@4 kdim@6 vdim@7
    PReLU : num_parameters@0
    RMSNorm : normalized_shape@0 elementwise_affine@2
    RNN : input_size@0 hidden_size@1 num_layers@2 bias@4 bidirectional@7
    RNNBase : mode@0 input_size@1 hidden_size@2 num_layers@3 bias@4 bidirectional@7 proj_size@8
    RNNCellBase : input_size@0 hidden_size@1 bias@2 num_chunks@3
    SyncBatchNorm : num_features@0 affine@3 track_running_stats@4
    Transformer : d_model@0 num_encoder_layers@2 num_decoder_layers@3 dim_feedforward@4 bias@12
    TransformerDecoder TransformerEncoder : num_layers@1
    TransformerDecoderLayer TransformerEncoderLayer : d_model@0 dim_feedforward@2 bias@8
"""
"""Modules with parameters of their own : the arguments that decide which these are, and their size.

What else they are given (a device, a stride, a probability) leaves their parameters as they are.
"""
_VIEWS = """
    adjoint as_strided chunk detach diagonal expand expand_as flatten hsplit movedim narrow permute
    ravel reshape reshape_as select slice split split_with_sizes squeeze swapaxes swapdims t
    tensor_split transpose unbind unflatten unfold unsqueeze view view_as view_as_real vsplit
"""
VIEWS = frozenset(_VIEWS.split())
"""What gives the numbers of a tensor another shape: who writes into it writes into the tensor."""
_OF_THE_SHAPE = """
    data_ptr dim element_size get_device is_contiguous is_floating_point ndimension nelement numel
    register_hook size stride storage_offset type untyped_storage
"""
OF_THE_SHAPE = frozenset(_OF_THE_SHAPE.split())
"""What asks a tensor how and where it lies, and not for its numbers."""
_OF_ALL_ELEMENTS = """
    amax amin aminmax bincount count_nonzero cumsum max min nonzero nunique prod slice sorted sum
    unique unique_consecutive
"""
OF_ALL_ELEMENTS = frozenset(_OF_ALL_ELEMENTS.split())
"""What is asked of all elements together, or takes a part of them."""
_KEEPS_ROWS = """
    abs adjoint bfloat16 bool clamp clone contiguous cpu cuda detach double exp flatten float half
    int log log_softmax long moveaxis movedim normalize permute pow ravel relu requires_grad_
    reshape reshape_as round sigmoid softmax sqrt squeeze swapaxes swapdims t tanh to transpose type
    unsqueeze view view_as
"""
KEEPS_ROWS = frozenset(_KEEPS_ROWS.split())
"""What has as many rows as it is given, or as many numbers."""
_MEANS = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy
    ctc_loss gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss
    mean mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss
    poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    triplet_margin_with_distance_loss
"""
MEANS = frozenset(_MEANS.split())
"""What gives the mean over a batch, unless told otherwise: torch.nn's modules, each `…Loss`, too."""
_PRODUCTS = """
    MatMult addmm baddbmm bmm cdist cosine_similarity einsum inner linear matmul mm
"""
PRODUCTS = frozenset(_PRODUCTS.split())
"""What compares each row of one with each of another."""
ORDERINGS = frozenset({"Lt", "LtE", "Gt", "GtE", "lt", "le", "gt", "ge"})
COMPARISONS = ORDERINGS | {"Eq", "NotEq", "eq", "ne"}
"""How an operator's and a method's comparisons are named."""
DIVISIONS = frozenset({"Div", "div", "div_", "divide", "divide_", "true_divide", "true_divide_"})
ASKING = COMPARISONS | {"and", "or", "not"}
"""What a question is put together of."""
WITHOUT_GRAPH = COMPARISONS | frozenset(
    {"argmax", "argmin", "argsort", "bool", "detach", "int", "isfinite", "isnan", "long", "nonzero"}
    | {"bernoulli", "multinomial", "sample"}
)
"""What is computed from numbers that can be learnt, and cannot be learnt from."""
PICKS_ROWS = frozenset({"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive"})
"""What has as many rows as the numbers that it is given say."""
_BATCH_NORMS = """
    BatchNorm1d BatchNorm2d BatchNorm3d : num_features@0 affine@3 track_running_stats@4
    LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d : affine@2 track_running_stats@3
"""


def _layers(table: str, has: str) -> Iterator[str]:
    """A line for each layer; a size is kept under `#` and its name, as nothing else is."""
    for line in table.strip().splitlines():
        names, _, sizes = line.partition(":")
        kept = " ".join(f"#{each.partition('@')[0]}={each}" for each in sizes.split())
        for name in names.split():
            yield f"torch.nn.{name} new type=torch.nn.Module has={has} {kept}"


def _averagers() -> Iterator[str]:
    """What brings together weights that each rank has trained by itself, now and then."""
    home = "torch.distributed.algorithms.model_averaging"
    for module, name in _AVERAGERS:
        yield f"{home}.{module}.{name} new type={home}.{module}.{name}"
        yield f"{home}.{module}.{name}.average_parameters collective shares=params@0"
    yield f"{home}.utils.average_parameters collective shares=params@0 group=process_group@1"


_AVERAGERS = (
    ("averagers", "PeriodicModelAverager"),
    ("hierarchical_model_averager", "HierarchicalModelAverager"),
)
_HOMES = ("torch.distributed.", "torch.distributed.distributed_c10d.")
EFFECTS = "\n".join(
    [f"{home}{line}" for home in _HOMES for line in _COLLECTIVES.strip().splitlines()]
    + [*_layers(_LAYERS, "parameters"), *_layers(_BATCH_NORMS, "batch"), *_averagers(), _REST]
)

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
