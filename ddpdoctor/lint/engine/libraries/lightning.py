"""PyTorch Lightning and Fabric. Source: their documentation (2.x)."""

_FABRIC = """
Fabric                          new type=lightning.Fabric devices=devices@2 nodes=num_nodes@3
fabric.Fabric                   new type=lightning.Fabric devices=devices@2 nodes=num_nodes@3
"""
_RANK_ZERO = """
utilities.rank_zero_only                    calls_on_main
utilities.rank_zero.rank_zero_only          calls_on_main
utilities.rank_zero_info                    same
utilities.rank_zero_warn                    same
utilities.distributed.rank_zero_only        calls_on_main
seed_everything                             event kind=seed_all seed=seed@0
fabric.utilities.rank_zero_only             calls_on_main
"""
# What a model of Lightning's and its trainer know of the rank they are on.
_MODEL = """
LightningModule.global_rank                 rank
LightningModule.local_rank                  local_rank
LightningModule.trainer                     part type=lightning.Trainer
Trainer                                     new type=lightning.Trainer
"""
_HOMES = ("lightning.", "lightning.pytorch.", "pytorch_lightning.", "lightning_fabric.")
EFFECTS = "\n".join(
    [
        f"{home}{line}"
        for home in _HOMES
        for line in (_FABRIC + _RANK_ZERO + _MODEL).split("\n")
        if line
    ]
    + [
        """
lightning.Fabric.setup                      prepares
lightning.Fabric.setup_module               prepares
lightning.Fabric.setup_dataloaders          prepares
lightning.Fabric.setup_optimizers           prepares
lightning.Fabric.barrier                    collective op=barrier
lightning.Fabric.broadcast                  collective op=broadcast result=same
lightning.Fabric.all_gather                 collective op=all_gather result=same
lightning.Fabric.all_reduce                 collective op=all_reduce result=same
lightning.Fabric.backward                   event kind=backward loss=tensor@0
lightning.Fabric.clip_gradients             event kind=clip
lightning.Fabric.no_backward_sync           enters scope=no_sync enabled=enabled@1
lightning.Fabric.autocast                   enters scope=autocast
lightning.Fabric.rank_zero_first            enters scope=main_first
lightning.Fabric.save                       collective op=save
lightning.Fabric.load                       event kind=load path=path@0 result=same
lightning.Fabric.is_global_zero             main
lightning.Fabric.global_rank                rank
lightning.Fabric.local_rank                 local_rank
lightning.Fabric.node_rank                  node_rank
lightning.Fabric.world_size                 world
lightning.Fabric.device                     local_rank
lightning.Fabric.launch                     same
lightning.Fabric.print                      same
lightning.Fabric.seed_everything            event kind=seed_all seed=seed@0
lightning.Trainer.global_rank               rank
lightning.Trainer.local_rank                local_rank
lightning.Trainer.node_rank                 node_rank
lightning.Trainer.world_size                world
lightning.Trainer.is_global_zero            main
lightning_utilities.core.rank_zero.rank_zero_only    calls_on_main
"""
    ]
)
