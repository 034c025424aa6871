import copy
import functools

import torch as th
import torch.distributed as dist
from torch.nn.parallel.distributed import DistributedDataParallel as DDP

from . import dist_util
from .resample import LossAwareSampler


class TrainLoop:
    def __init__(self, *, model, diffusion, data, batch_size, microbatch, lr, ema_rate, log_interval, steps,
                 schedule_sampler):
        self.model, self.diffusion, self.data = model, diffusion, data
        self.microbatch, self.ema_rate = microbatch, ema_rate
        self.log_interval, self.steps, self.schedule_sampler = log_interval, steps, schedule_sampler
        dist_util.sync_params(model.parameters())
        self.opt = th.optim.AdamW(model.parameters(), lr=lr)
        self.ema_params = copy.deepcopy(list(model.parameters()))
        self.ddp_model = DDP(model, broadcast_buffers=False, find_unused_parameters=False)
        self.global_batch = batch_size * dist.get_world_size()
        self.running = []

    def run_loop(self):
        for step in range(self.steps):
            self.run_step(next(self.data))
            if (step + 1) % self.log_interval == 0:
                self.log_step(step + 1)

    def run_step(self, batch):
        self.forward_backward(batch)
        self.opt.step()
        with th.no_grad():
            for targ, src in zip(self.ema_params, self.model.parameters()):
                targ.mul_(self.ema_rate).add_(src, alpha=1 - self.ema_rate)

    def forward_backward(self, batch):
        self.opt.zero_grad()
        for i in range(0, batch.shape[0], self.microbatch):
            micro = batch[i:i + self.microbatch]
            last_batch = (i + self.microbatch) >= batch.shape[0]
            t, weights = self.schedule_sampler.sample(micro.shape[0])
            compute_losses = functools.partial(self.diffusion.training_losses, self.ddp_model, micro, t)
            if last_batch:
                losses = compute_losses()
                self.backward(t, weights, losses)
            else:
                with self.ddp_model.no_sync():
                    losses = compute_losses()
                    self.backward(t, weights, losses)

    def backward(self, t, weights, losses):
        if isinstance(self.schedule_sampler, LossAwareSampler):
            detached = losses["loss"].detach()
            self.schedule_sampler.update_with_all_losses(t.tolist(), detached.tolist())
        loss = (losses["loss"] * weights).mean() * self.microbatch * dist.get_world_size() / self.global_batch
        self.running.append(losses["loss"].mean().item())
        loss.backward()

    def log_step(self, step):
        mean = th.tensor(sum(self.running) / len(self.running))
        dist.all_reduce(mean)
        self.running.clear()
        if dist.get_rank() == 0:
            print(f"step {step} samples {step * self.global_batch} loss {mean / dist.get_world_size():.4f}", flush=True)
