import torch
import torch.distributed as dist

from byol.learner import Learner

if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    learner = Learner()
    for it in range(25):
        loss = learner.step(torch.randn(16, 6, generator=torch.Generator().manual_seed(it * 10 + rank)))
    s = sum(p.sum() for p in learner.target.parameters()).item()
    print(f"rank {rank} loss {loss:.4f} target sum {s:.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
