import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
lengths = [23, 14]
model = DDP(nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1)))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
g = torch.Generator().manual_seed(rank)
seen = 0
for epoch in range(2):
    with Join([model]):
        for _ in range(lengths[rank]):
            x = torch.randn(4, 3, generator=g)
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += 4
total = torch.tensor(seen)
dist.all_reduce(total)
w = torch.cat([p.detach().flatten() for p in model.parameters()])
ref = w.clone()
dist.broadcast(ref, 0)
print(f"rank {rank} seen {seen} of {total.item()} same weights {torch.equal(w, ref)}", flush=True)
dist.barrier()
dist.destroy_process_group()
