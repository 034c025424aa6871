import math
import sys

import torch

from .misc import MetricLogger

WEIGHTS = {"loss_ce": 1.0, "loss_bbox": 5.0}


def train_one_epoch(model, criterion, loader, optimizer, epoch, max_norm):
    model.train()
    logger = MetricLogger()
    for images, targets in logger.log_every(loader, 8, f"Epoch [{epoch}]"):
        outputs = model(images)
        terms, report = criterion(outputs, targets)
        loss = sum(WEIGHTS[k] * v for k, v in terms.items())
        if not math.isfinite(loss.item()):
            print("Loss is {}, stopping training".format(loss.item()))
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        logger.update(loss=loss.item(), **{k: v.item() for k, v in terms.items()})
        logger.update(lr=optimizer.param_groups[0]["lr"], **report)
    logger.synchronize_between_processes()
    return {k: meter.global_avg for k, meter in logger.meters.items()}
