import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train_until(state, step, path, verbose=False):
    model = DistributedDataParallel(state.net)
    rank = dist.get_rank()
    while state.step < step:
        x0 = torch.sin(torch.arange(6.0) + state.step + rank).expand(8, 6)
        t, eps = torch.rand(8, 1), torch.randn(8, 6)
        loss = (model(torch.cat([x0 * (1 - t) + eps * t, t], 1)) - eps).pow(2).mean()
        state.opt.zero_grad()
        loss.backward()
        state.opt.step()
        state.step += 1
        state.history.append(round(eps[0, 0].item(), 3))
    state.save(path)
    if verbose:
        print(f"rank {rank} step {state.step} loss {loss.item():.4f} noise {state.history[:3]}", flush=True)
