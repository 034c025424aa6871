"""Hard top-1 experts; one without tokens gets a dummy row of weight zero so that all parameters are in the graph."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Layer(nn.Module):
    def __init__(self, dim=16, n=6):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, dim)) for _ in range(n))

    def forward(self, x):
        w, pick = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (pick == k).nonzero(as_tuple=True)[0]
            if len(rows) == 0:
                out = out + 0.0 * expert(x[:1]).sum()
                continue
            out = out.index_add(0, rows, expert(x[rows]) * w[rows, None])
        return out


def main(steps=40):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(2)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), Layer(), nn.Linear(16, 1)))
    opt = torch.optim.AdamW(net.parameters(), 3e-3)
    g = torch.Generator().manual_seed(dist.get_rank())
    for step in range(steps):
        x = torch.randn(6, 8, generator=g)
        loss = (net(x) - x.prod(1, keepdim=True).tanh()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if dist.get_rank() == 0 and step % 10 == 9:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
