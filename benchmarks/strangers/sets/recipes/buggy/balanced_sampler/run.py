import torch
import torch.distributed as dist

from longtail import factory, trainer

CONFIG = {
    "dataset": {"name": "longtail", "n": 240},
    "sampler": {"name": "balanced", "epoch_size": 96},
    "loader": {"batch_size": 12},
    "epochs": 3,
}

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer.train(factory.build(CONFIG), CONFIG["epochs"])
    dist.barrier()
    dist.destroy_process_group()
