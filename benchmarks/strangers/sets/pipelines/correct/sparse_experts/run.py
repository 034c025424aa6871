import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from moe.layers import SwitchNet
from moe.stats import Load

if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(SwitchNet(experts=4), find_unused_parameters=True)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    load = Load(4)
    for it in range(20):
        g = torch.Generator().manual_seed(it)
        x = torch.randn(6, 8, generator=g) + (2.0 if rank else -2.0)
        out, picks = model(x)
        load.update(picks)
        loss = (out - x.mean(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    line = load.summary()
    if rank == 0:
        print(line, f"loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
