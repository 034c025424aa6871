import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("nccl")
    local_rank = dist.get_rank() % torch.cuda.device_count()
    device = torch.device(type="cuda", index=local_rank)
    model = DDP(torch.nn.Linear(2, 2).to(device))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        dist.barrier()
    model(torch.rand(2, 2, device=device)).sum().backward()


main()
