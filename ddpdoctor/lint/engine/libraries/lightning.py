"""PyTorch Lightning and Fabric. Source: their documentation (2.x; of LightningLite: 1.9)."""

_FABRIC = """
Fabric                          new type=lightning.Fabric devices=devices@2 nodes=num_nodes@3
fabric.Fabric                   new type=lightning.Fabric devices=devices@2 nodes=num_nodes@3
lite.LightningLite              new type=lightning.Lite devices=devices@2 nodes=num_nodes@3
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
global_rank                                 rank
local_rank                                  local_rank
trainer                                     part type=lightning.Trainer
all_gather                                  collective op=all_gather result=same
"""
_MODELS = (
    "LightningModule.",
    *(f"core.{each}LightningModule." for each in ("", "module.", "lightning.")),
)
_TRAINER = """
Trainer                                     new type=lightning.Trainer
trainer.Trainer                             new type=lightning.Trainer
trainer.trainer.Trainer                     new type=lightning.Trainer
trainer.seed_everything                     event kind=seed_all seed=seed@0
"""
# Of Fabric, and of LightningLite that came before it.
_METHODS = """
setup                       prepares
setup_module                prepares
setup_dataloaders           prepares
setup_optimizers            prepares
barrier                     collective op=barrier
broadcast                   collective op=broadcast result=same
all_gather                  collective op=all_gather result=same
all_reduce                  collective op=all_reduce result=same
backward                    event kind=backward loss=tensor@0
clip_gradients              event kind=clip
no_backward_sync            enters scope=no_sync enabled=enabled@1
autocast                    enters scope=autocast
rank_zero_first             enters scope=main_first
load                        event kind=load path=path@0 result=same
is_global_zero              main
global_rank                 rank
local_rank                  local_rank
node_rank                   node_rank
world_size                  world
device                      local_rank
launch                      same
print                       same
seed_everything             event kind=seed_all seed=seed@0
"""
_HOMES = ("lightning.", "lightning.pytorch.", "pytorch_lightning.", "lightning_fabric.")
EFFECTS = "\n".join(
    [
        f"{home}{line}"
        for homes, lines in (
            (_HOMES, _FABRIC + _RANK_ZERO + _TRAINER),
            (tuple(home + model for home in _HOMES for model in _MODELS), _MODEL),
            (("lightning.Fabric.", "lightning.Lite."), _METHODS),
        )
        for home in homes
        for line in lines.split("\n")
        if line
    ]
    + [
        """
lightning.Fabric.save                       collective op=save
lightning.Lite.save                         event kind=save_on_main object=content@0 path=filepath@1
lightning.Trainer.global_rank               rank
lightning.Trainer.local_rank                local_rank
lightning.Trainer.node_rank                 node_rank
lightning.Trainer.world_size                world
lightning.Trainer.is_global_zero            main
lightning.Trainer.save_checkpoint           collective op=save
lightning.Trainer.strategy                  part type=lightning.Strategy
lightning.Strategy.barrier                  collective op=barrier
lightning.Strategy.broadcast                collective op=broadcast result=same
lightning.Strategy.reduce                   collective op=reduce result=same
lightning_utilities.core.rank_zero.rank_zero_only    calls_on_main
"""
    ]
)
