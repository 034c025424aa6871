import copy
import functools

import torch as th
import torch.distributed as dist
from torch.nn.parallel.distributed import DistributedDataParallel as DDP
from torch.optim import AdamW


class TrainLoop:
    def __init__(self, *, model, diffusion, data, batch_size, microbatch, lr, ema_rate,
                 log_interval, num_steps, weight_decay=0.0, lr_anneal_steps=0):
        self.model = model
        self.diffusion = diffusion
        self.data = data
        self.batch_size = batch_size
        self.microbatch = microbatch if microbatch > 0 else batch_size
        self.lr = lr
        self.ema_rate = ema_rate
        self.log_interval = log_interval
        self.num_steps = num_steps
        self.lr_anneal_steps = lr_anneal_steps
        self.step = 0
        self.global_batch = self.batch_size * dist.get_world_size()

        self._sync_params()
        self.opt = AdamW(self.model.parameters(), lr=self.lr, weight_decay=weight_decay)
        self.ema_params = copy.deepcopy(list(self.model.parameters()))
        self.ddp_model = DDP(self.model, broadcast_buffers=False, find_unused_parameters=False)
        self.log = {}

    def _sync_params(self):
        for p in self.model.parameters():
            with th.no_grad():
                dist.broadcast(p, 0)

    def run_loop(self):
        while self.step < self.num_steps:
            self.run_step(next(self.data))
            if self.step % self.log_interval == 0:
                self.dump_log()
            self.step += 1
        dist.barrier()

    def run_step(self, batch):
        self.forward_backward(batch)
        self.opt.step()
        self._update_ema()
        self._anneal_lr()

    def forward_backward(self, batch):
        self.opt.zero_grad()
        n_micro = batch.shape[0] // self.microbatch
        for i in range(0, batch.shape[0], self.microbatch):
            micro = batch[i:i + self.microbatch]
            last_batch = (i + self.microbatch) >= batch.shape[0]
            t = th.randint(0, self.diffusion.num_timesteps, (micro.shape[0],))

            compute_losses = functools.partial(
                self.diffusion.training_losses,
                self.ddp_model.module,
                micro,
                t,
            )
            if last_batch:
                losses = compute_losses()
            else:
                with self.ddp_model.no_sync():
                    losses = compute_losses()

            loss = losses["loss"].mean() / n_micro
            self.log.setdefault("loss", []).append(losses["mse"].mean().item())
            loss.backward()

    def _update_ema(self):
        with th.no_grad():
            for e, p in zip(self.ema_params, self.model.parameters()):
                e.mul_(self.ema_rate).add_(p, alpha=1 - self.ema_rate)

    def _anneal_lr(self):
        if not self.lr_anneal_steps:
            return
        frac_done = self.step / self.lr_anneal_steps
        for group in self.opt.param_groups:
            group["lr"] = self.lr * (1 - frac_done)

    def dump_log(self):
        vals = self.log.pop("loss", [0.0])
        mean = th.tensor([sum(vals) / len(vals)])
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            samples = (self.step + 1) * self.global_batch
            print(f"step {self.step} samples {samples} loss {mean.item() / dist.get_world_size():.4f}", flush=True)
