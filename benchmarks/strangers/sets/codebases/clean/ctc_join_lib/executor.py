import logging
from contextlib import nullcontext

import torch
import torch.distributed as dist


class Executor:
    def __init__(self):
        self.step = 0

    def train(self, model, optimizer, loader, configs):
        """Train one epoch; ranks that run out of batches early shadow the others (DDP join)."""
        model.train()
        total = torch.zeros(2)
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model_context = model.join
        else:
            model_context = nullcontext
        with model_context():
            for batch_idx, batch in enumerate(loader):
                loss = self.batch_forward_backward(model, batch, configs)
                if (batch_idx + 1) % configs["accum_grad"] == 0:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), configs["grad_clip"])
                    optimizer.step()
                    optimizer.zero_grad()
                    self.step += 1
                total += torch.tensor([loss, 1.0])
                if batch_idx % configs["log_interval"] == 0:
                    self.log_per_step(batch_idx, total)
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    def batch_forward_backward(self, model, batch, configs):
        loss = model(batch["feats"], batch["feats_lengths"], batch["target"], batch["target_lengths"])
        (loss / configs["accum_grad"]).backward()
        return loss.item()

    def log_per_step(self, batch_idx, total):
        mean = (total[0] / total[1]).item()
        logging.info("TRAIN | batch %d | loss %.4f", batch_idx, mean)


def average(value):
    value = value.clone()
    dist.all_reduce(value)
    return value.item() / dist.get_world_size()
