import logging

import torch
import torch.distributed as dist
import torch.nn.functional as F


class Executor:
    def __init__(self):
        self.step = 0

    def train(self, model, optimizer, scheduler, data_loader, configs):
        """Train one epoch"""
        model.train()
        for batch_idx, (feats, feats_lengths, target, target_lengths) in enumerate(data_loader):
            logp = model(feats)
            loss = F.ctc_loss(
                logp.transpose(0, 1), target, feats_lengths, target_lengths,
                reduction="mean", zero_infinity=True,
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), configs["grad_clip"])
            optimizer.step()
            scheduler.step()
            self.step += 1
            if batch_idx % configs["log_interval"] == 0:
                logging.info(
                    "TRAIN batch %d shape %s loss %.3f lr %.5f",
                    batch_idx, tuple(feats.shape), loss.item(), scheduler.get_last_lr()[0],
                )

    @torch.no_grad()
    def cv(self, model, data_loader):
        model.eval()
        total = torch.zeros(2)
        for feats, feats_lengths, target, target_lengths in data_loader:
            logp = model(feats)
            loss = F.ctc_loss(
                logp.transpose(0, 1), target, feats_lengths, target_lengths,
                reduction="sum", zero_infinity=True,
            )
            total += torch.tensor([loss.item(), target_lengths.sum().item()])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()
