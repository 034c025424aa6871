import torch
import torch.distributed as dist
from parts.setting import WIDTH
from shelf import NETS
from torch.nn.parallel import DistributedDataParallel

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(NETS.take({"kind": "Small", "width": WIDTH}))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    noise = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(9):
        model(torch.randn(4, WIDTH, generator=noise)).mean().backward()
        steps.step()
        steps.zero_grad()
    model.shrink()  # <-- DDP318
    dist.destroy_process_group()
