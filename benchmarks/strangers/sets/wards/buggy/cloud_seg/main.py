"""torchrun --nproc_per_node 2 main.py"""
import torch.distributed as dist

from callbacks import Keeper, Printer
from dist_utils import main_process, setup
from trainer import Trainer

if __name__ == "__main__":
    setup()
    trainer = Trainer([Printer(), Keeper("val", patience=3)])
    last = trainer.fit()
    dist.barrier()
    if main_process():
        print(f"ended after epoch {last}", flush=True)
    dist.destroy_process_group()
