"""transformers, DeepSpeed, TorchMetrics, ignite, timm, detectron2, mmengine, fairscale, ...

Source: their documentation and signatures.
"""

_SCHEDULES = """
constant_schedule constant_schedule_with_warmup linear_schedule_with_warmup
cosine_schedule_with_warmup cosine_with_hard_restarts_schedule_with_warmup
cosine_with_min_lr_schedule_with_warmup cosine_with_min_lr_schedule_with_warmup_lr_rate
polynomial_decay_schedule_with_warmup inverse_sqrt_schedule wsd_schedule adafactor_schedule
"""
_SCHEDULE = "new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@0"
_PLATEAU = "new type=torch.optim.lr_scheduler.ReduceLROnPlateau optimizer=optimizer@0"
_HOMES = ("transformers", "transformers.optimization")

_OCP = ("ocpmodels", "fairchem.core")
_OF_OCP = """
setup                                                   init
cleanup                                                 leave
initialized                                             mode
get_rank                                                rank
get_world_size                                          world
is_master                                               main
synchronize                                             collective
broadcast                                               collective shares=tensor@0
all_reduce                                              collective result=same
all_gather                                              collective result=same
gather_objects                                          collective
"""
_REST = """
configargparse.ArgumentParser                           new type=argparse.ArgumentParser
configargparse.ArgParser                                new type=argparse.ArgumentParser
configargparse.get_argument_parser                      new type=argparse.ArgumentParser
gdown.download                                          event kind=write path=output@1 result=pure
wget.download                                           event kind=write path=out@1 result=pure
fsspec.open                                             event kind=open path=urlpath@0 mode=mode@1 result=file type=fsspec.core.OpenFile
fire.Fire                                               runs
jsonargparse.CLI                                        runs
jsonargparse.cli.CLI                                    runs
jsonargparse.auto_cli                                   runs
jsonargparse.capture_parser                             pure
typer.run                                               runs
tyro.cli                                                runs
tyro.extras.overridable_config_cli                      same
tyro.extras.subcommand_cli_from_dict                    same
defopt.run                                              runs
omegaconf.OmegaConf.load                                pure
omegaconf.OmegaConf.create                              pure
omegaconf.OmegaConf.merge                               pure
omegaconf.OmegaConf.to_container                        pure
omegaconf.OmegaConf.from_dotlist                        pure
omegaconf.OmegaConf.from_cli                            same
filelock.FileLock                                       enters scope=lock
filelock.SoftFileLock                                   enters scope=lock
fasteners.InterProcessLock                              enters scope=lock
portalocker.Lock                                        enters scope=lock
sklearn.model_selection.train_test_split                event kind=split_numpy dataset=arrays@0 generator=random_state@ shuffle=shuffle@ result=chance_numpy
transformers.set_seed                                   event kind=seed_all seed=seed@0
transformers.trainer_utils.set_seed                     event kind=seed_all seed=seed@0
transformers.get_scheduler                              new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@1
transformers.optimization.get_scheduler                 new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@1
peft.PeftModel.from_pretrained                          event kind=read path=model_id@1 result=pure
diffusers.optimization.get_scheduler                    new type=torch.optim.lr_scheduler.LRScheduler optimizer=optimizer@1
deepspeed.init_distributed                              init
deepspeed.initialize                                    event kind=engine
deepspeed.comm.barrier                                  collective group=group@0
deepspeed.comm.all_reduce                               collective shares=tensor@0 group=group@2
deepspeed.comm.broadcast                                collective shares=tensor@0 group=group@2
deepspeed.comm.all_gather                               collective shares=tensor_list@0 group=group@2
deepspeed.comm.get_rank                                 rank
deepspeed.comm.get_world_size                           world
deepspeed.comm.get_local_rank                           local_rank
monai.utils.optional_import                             imports module=module@0 name=name@3
monai.utils.module.optional_import                      imports module=module@0 name=name@3
torchmetrics.*                                          new type=torchmetrics.Metric
torchmetrics.functional.*                               pure
torchmetrics.utilities.*                                pure
torchmetrics.Metric.compute                             event kind=compute result=same
ignite.distributed.get_rank                             rank
ignite.distributed.get_local_rank                       local_rank
ignite.distributed.get_node_rank                        node_rank
ignite.distributed.get_world_size                       world
ignite.distributed.barrier                              collective
ignite.distributed.all_reduce                           collective result=same
ignite.distributed.all_gather                           collective result=same
ignite.distributed.broadcast                            collective result=same
ignite.distributed.new_group                            group
ignite.distributed.one_rank_only                        calls_on_main
ignite.distributed.one_rank_first                       enters scope=main_first
ignite.distributed.device                               local_rank
timm.utils.distribute_bn                                collective
timm.utils.reduce_tensor                                collective result=same
timm.utils.ModelEma                                     event kind=average object=model@0
timm.utils.ModelEmaV2                                   event kind=average object=model@0
timm.utils.ModelEmaV3                                   event kind=average object=model@0
timm.utils.NativeScaler                                 new type=timm.utils.NativeScaler
timm.utils.NativeScaler.__call__                        event kind=backward loss=loss@0 optimizer=optimizer@1 due=need_update@6 then=step
timm.utils.ApexScaler                                   new type=timm.utils.ApexScaler
timm.utils.ApexScaler.__call__                          event kind=backward loss=loss@0 optimizer=optimizer@1 due=need_update@6 then=step
timm.utils.unwrap_model                                 event kind=unwrap model=model@0 result=unwrap
timm.utils.is_primary                                   main
timm.utils.is_global_primary                            main
timm.utils.is_local_primary                             local_main
timm.utils.random_seed                                  event kind=seed_all seed=seed@0 offset=rank@1
timm.utils.init_distributed_device                      init
detectron2.utils.comm.synchronize                       collective
detectron2.utils.comm.all_gather                        collective result=same
detectron2.utils.comm.gather                            collective
detectron2.utils.comm.reduce_dict                       collective
detectron2.utils.comm.shared_random_seed                collective result=same
detectron2.utils.comm.get_rank                          rank
detectron2.utils.comm.get_local_rank                    local_rank
detectron2.utils.comm.get_world_size                    world
detectron2.utils.comm.is_main_process                   main
mmengine.dist.barrier                                   collective
mmengine.dist.all_reduce                                collective shares=data@0
mmengine.dist.all_gather                                collective result=same
mmengine.dist.broadcast                                 collective shares=data@0
mmengine.dist.collect_results                           collective
mmengine.dist.get_rank                                  rank
mmengine.dist.get_local_rank                            local_rank
mmengine.dist.get_world_size                            world
mmengine.dist.is_main_process                           main
mmengine.dist.master_only                               calls_on_main
mmcv.runner.get_dist_info                               unknown
mmcv.runner.master_only                                 calls_on_main
apex.parallel.DistributedDataParallel                   wraps module=module@0 only=gradients has=disable_allreduce,enable_allreduce,delay_allreduce,needs_refresh
apex.parallel.distributed.DistributedDataParallel       wraps module=module@0 only=gradients has=disable_allreduce,enable_allreduce,delay_allreduce,needs_refresh
apex.parallel.convert_syncbn_model                      itself
horovod.torch.rank                                      rank
horovod.torch.local_rank                                local_rank
horovod.torch.size                                      world
horovod.torch.allreduce                                 collective result=same
horovod.torch.allgather                                 collective result=same
horovod.torch.broadcast                                 collective result=same
horovod.torch.broadcast_parameters                      collective
horovod.torch.broadcast_optimizer_state                 collective
mpi4py.MPI.COMM_WORLD.Get_rank                          rank
mpi4py.MPI.COMM_WORLD.Get_size                          world
mpi4py.MPI.COMM_WORLD.rank                              rank read=attribute
mpi4py.MPI.COMM_WORLD.size                              world read=attribute
mpi4py.MPI.COMM_WORLD.Barrier                           collective op=mpi.barrier
mpi4py.MPI.COMM_WORLD.barrier                           collective op=mpi.barrier
mpi4py.MPI.COMM_WORLD.bcast                             collective op=mpi.bcast result=same
mpi4py.MPI.COMM_WORLD.allgather                         collective op=mpi.allgather result=same
mpi4py.MPI.COMM_WORLD.allreduce                         collective op=mpi.allreduce result=same
mpi4py.MPI.COMM_WORLD.gather                            collective op=mpi.gather
mpi4py.MPI.COMM_WORLD.reduce                            collective op=mpi.reduce
"""
EFFECTS = "\n".join(
    [f"{home}.get_{name} {_SCHEDULE}" for home in _HOMES for name in _SCHEDULES.split()]
    + [f"{home}.get_reduce_on_plateau_schedule {_PLATEAU}" for home in _HOMES]
    + [f"{home}.common.distutils.{each}" for home in _OCP for each in _OF_OCP.splitlines() if each]
    + [_REST]
)
