"""EDM-style training of a denoiser on swiss rolls, with accumulation rounds, clipping and weight averages."""
import contextlib
import copy
import json
import sys
import time

import numpy as np
import torch

C = dict(
    dataset_kwargs=dict(class_name="SwissRoll", size=4096),
    network_kwargs=dict(class_name="EDMPrecond", dim=64, sigma_data=0.5),
    loss_kwargs=dict(class_name="EDMLoss", P_mean=-1.2, P_std=1.2, sigma_data=0.5),
    optimizer_kwargs=dict(lr=4e-3, betas=(0.9, 0.999), eps=1e-8),
    batch_size=256, batch_gpu=32, total_kimg=20, kimg_per_tick=5, lr_rampup_kimg=2, ema_halflife_kimg=1,
    max_grad_norm=0.2, seed=0,
)


class SwissRoll(torch.utils.data.Dataset):
    def __init__(self, size):
        g = torch.Generator().manual_seed(1)
        t = 1.5 * np.pi * (1 + 2 * torch.rand(size, generator=g))
        self.x = torch.stack([t * t.cos(), t * t.sin()], 1) / 14 + 0.01 * torch.randn(size, 2, generator=g)
        self.x[::97] *= 6  # a few outliers, as scraped data has

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i]


class InfiniteSampler(torch.utils.data.Sampler):
    def __init__(self, dataset, rank=0, num_replicas=1, seed=0):
        self.dataset, self.rank, self.num_replicas, self.seed = dataset, rank, num_replicas, seed

    def __iter__(self):
        rnd, idx = np.random.RandomState(self.seed), 0
        while True:
            for i in rnd.permutation(len(self.dataset)):
                if idx % self.num_replicas == self.rank:
                    yield int(i)
                idx += 1


class EDMPrecond(torch.nn.Module):
    def __init__(self, dim, sigma_data):
        super().__init__()
        self.sigma_data = sigma_data
        self.inp, self.noise = torch.nn.Linear(2, dim), torch.nn.Linear(1, dim)
        self.mid = torch.nn.Sequential(torch.nn.SiLU(), torch.nn.Linear(dim, dim), torch.nn.SiLU(),
                                       torch.nn.Linear(dim, dim), torch.nn.SiLU(), torch.nn.Linear(dim, 2))

    def forward(self, x, sigma):
        s2, d2 = sigma ** 2, self.sigma_data ** 2
        f = self.mid(self.inp(x / (s2 + d2).sqrt()) + self.noise(sigma.log() / 4))
        return d2 / (s2 + d2) * x + sigma * self.sigma_data / (s2 + d2).sqrt() * f


class EDMLoss:
    def __init__(self, P_mean, P_std, sigma_data):
        self.P_mean, self.P_std, self.sigma_data = P_mean, P_std, sigma_data

    def __call__(self, net, x):
        sigma = (torch.randn(len(x), 1) * self.P_std + self.P_mean).exp()
        weight = (sigma ** 2 + self.sigma_data ** 2) / (sigma * self.sigma_data) ** 2
        return weight * (net(x + sigma * torch.randn_like(x), sigma) - x) ** 2


def construct_class_by_name(class_name, **kwargs):
    return getattr(sys.modules[__name__], class_name)(**kwargs)


@contextlib.contextmanager
def ddp_sync(module, sync):
    if sync:
        yield
    else:
        with module.no_sync():
            yield


def training_loop(dataset_kwargs, network_kwargs, loss_kwargs, optimizer_kwargs, batch_size, batch_gpu, total_kimg,
                  kimg_per_tick, lr_rampup_kimg, ema_halflife_kimg, max_grad_norm, seed):
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    np.random.seed((seed * world + rank) % (1 << 31))
    torch.manual_seed(np.random.randint(1 << 31))
    batch_gpu_total = batch_size // world
    num_accumulation_rounds = batch_gpu_total // batch_gpu
    assert batch_size == batch_gpu * num_accumulation_rounds * world
    dataset = construct_class_by_name(**dataset_kwargs)
    sampler = InfiniteSampler(dataset, rank, world, seed)
    dataset_iterator = iter(torch.utils.data.DataLoader(dataset, batch_gpu, sampler=sampler))
    net = construct_class_by_name(**network_kwargs).train()
    loss_fn = construct_class_by_name(**loss_kwargs)
    optimizer = torch.optim.Adam(net.parameters(), **optimizer_kwargs)
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    ema = copy.deepcopy(net).eval().requires_grad_(False)
    cur_nimg, tick, tick_start, losses, norms = 0, 0, time.time(), [], []
    while cur_nimg < total_kimg * 1000:
        optimizer.zero_grad(set_to_none=True)
        for round_idx in range(num_accumulation_rounds):
            with ddp_sync(ddp, (round_idx == num_accumulation_rounds - 1)):
                loss = loss_fn(net=ddp, x=next(dataset_iterator))
                losses.append(loss.mean().item())
                loss.sum().mul(1.0 / batch_gpu_total).backward()
                norms.append(float(torch.nn.utils.clip_grad_norm_(net.parameters(), max_grad_norm)))
        for group in optimizer.param_groups:
            group["lr"] = optimizer_kwargs["lr"] * min(cur_nimg / max(lr_rampup_kimg * 1000, 1e-8), 1)
        optimizer.step()
        ema_beta = 0.5 ** (batch_size / (ema_halflife_kimg * 1000))
        for p_ema, p_net in zip(ema.parameters(), net.parameters()):
            p_ema.copy_(p_net.detach().lerp(p_ema, ema_beta))
        cur_nimg += batch_size
        if cur_nimg >= (tick + 1) * kimg_per_tick * 1000:
            tick += 1
            mean = torch.tensor([np.mean(losses), np.mean(norms)], dtype=torch.float64)
            torch.distributed.all_reduce(mean)
            mean /= world
            if rank == 0:
                print(json.dumps(dict(tick=tick, kimg=cur_nimg / 1e3, loss=round(mean[0].item(), 4),
                                      grad_norm=round(mean[1].item(), 3), sec=round(time.time() - tick_start, 2))),
                      flush=True)
            losses, norms, tick_start = [], [], time.time()


if __name__ == "__main__":
    torch.distributed.init_process_group("gloo")
    training_loop(**C)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
