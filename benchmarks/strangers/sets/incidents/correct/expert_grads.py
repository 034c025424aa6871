import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


class SwitchLayer(nn.Module):
    def __init__(self, dim, n_experts):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n_experts))

    def forward(self, x):
        prob, idx = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            sel = (idx == e).nonzero().squeeze(1)
            if len(sel) == 0:
                continue
            out = out.index_add(0, sel, expert(x[sel]) * prob[sel, None])
        return out


def reduce_gradients(params):
    grads = []
    for p in params:
        grads.append(p.grad if p.grad is not None else torch.zeros_like(p))
    flat = torch.cat([g.reshape(-1) for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    offset = 0
    for p, g in zip(params, grads):
        p.grad = flat[offset:offset + g.numel()].view_as(g).clone()
        offset += g.numel()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=30)
    ap.add_argument("--experts", type=int, default=6)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), SwitchLayer(16, args.experts), nn.Linear(16, 3))
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.Adam(params, lr=3e-3)
    gen = torch.Generator().manual_seed(rank)
    for step in range(args.steps):
        n = int(torch.randint(2, 9, (1,), generator=gen))
        x = torch.randn(n, 8, generator=gen)
        y = x[:, :3].argmax(1)
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        reduce_gradients(params)
        opt.step()
        if rank == 0 and step % 10 == 0:
            used = sum(e.weight.grad.abs().sum().item() > 0 for e in model[1].experts)
            print(f"step {step} loss {loss.item():.3f} experts used {used}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
