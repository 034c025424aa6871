import torch
import torch.distributed as dist

from reid.engine import Engine
from reid.options import Options

if __name__ == "__main__":
    dist.init_process_group("gloo")
    Engine(Options()).run()
    dist.barrier()
    dist.destroy_process_group()
