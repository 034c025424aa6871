import numpy as np
import torch as th
import torch.distributed as dist


def create_named_schedule_sampler(name, diffusion):
    if name == "uniform":
        return UniformSampler(diffusion)
    if name == "loss-second-moment":
        return LossSecondMomentResampler(diffusion)
    raise NotImplementedError(f"unknown schedule sampler: {name}")


class ScheduleSampler:
    def sample(self, batch_size):
        w = self.weights()
        p = w / np.sum(w)
        indices = th.multinomial(th.from_numpy(p), batch_size, replacement=True)
        return indices, th.from_numpy(1 / (len(p) * p[indices.numpy()])).float()


class UniformSampler(ScheduleSampler):
    def __init__(self, diffusion):
        self._weights = np.ones([diffusion.num_timesteps])

    def weights(self):
        return self._weights


class LossAwareSampler(ScheduleSampler):
    def update_with_local_losses(self, local_ts, local_losses):
        """Call on each rank with its own batch of time steps and their losses."""
        world = dist.get_world_size()
        ts, losses = ([th.zeros_like(v) for _ in range(world)] for v in (local_ts, local_losses))
        dist.all_gather(ts, local_ts)
        dist.all_gather(losses, local_losses)
        self.update_with_all_losses(th.cat(ts).tolist(), th.cat(losses).tolist())


class LossSecondMomentResampler(LossAwareSampler):
    def __init__(self, diffusion, history_per_term=4, uniform_prob=0.001):
        self.diffusion, self.history_per_term, self.uniform_prob = diffusion, history_per_term, uniform_prob
        self._loss_history = np.zeros([diffusion.num_timesteps, history_per_term], dtype=np.float64)
        self._loss_counts = np.zeros([diffusion.num_timesteps], dtype=np.int64)

    def weights(self):
        if not (self._loss_counts == self.history_per_term).all():
            return np.ones([self.diffusion.num_timesteps], dtype=np.float64)
        weights = np.sqrt(np.mean(self._loss_history ** 2, axis=-1))
        weights /= np.sum(weights)
        return weights * (1 - self.uniform_prob) + self.uniform_prob / len(weights)

    def update_with_all_losses(self, ts, losses):
        """Reweight; deterministic, so that replicas that hear the same losses stay equal."""
        for t, loss in zip(ts, losses):
            if self._loss_counts[t] == self.history_per_term:
                self._loss_history[t, :-1] = self._loss_history[t, 1:]
                self._loss_history[t, -1] = loss
            else:
                self._loss_history[t, self._loss_counts[t]] = loss
                self._loss_counts[t] += 1
