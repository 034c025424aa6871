import torch.distributed as dist

from stopper import Plateau
from loop import run

if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(Plateau(patience=3), max_epochs=60)
    dist.barrier()
    dist.destroy_process_group()
