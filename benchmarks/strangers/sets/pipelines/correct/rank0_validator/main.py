import torch
import torch.distributed as dist

from vt.solver import Solver

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(9)
    Solver(epochs=3).solve()
    dist.barrier()
    dist.destroy_process_group()
