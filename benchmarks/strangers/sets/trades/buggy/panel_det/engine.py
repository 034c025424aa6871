import math
import sys

import torch
import torch.nn.functional as F

import misc as utils


def iou_cxcywh(a, b):
    ax1, ay1, ax2, ay2 = a[:, 0] - a[:, 2] / 2, a[:, 1] - a[:, 3] / 2, a[:, 0] + a[:, 2] / 2, a[:, 1] + a[:, 3] / 2
    bx1, by1, bx2, by2 = b[:, 0] - b[:, 2] / 2, b[:, 1] - b[:, 3] / 2, b[:, 0] + b[:, 2] / 2, b[:, 1] + b[:, 3] / 2
    iw = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp(min=0)
    ih = (torch.minimum(ay2, by2) - torch.maximum(ay1, by1)).clamp(min=0)
    inter = iw * ih
    return inter / ((ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - inter).clamp(min=1e-6)


def train_one_epoch(model, data_loader, optimizer, epoch, max_norm=1.0):
    model.train()
    metric_logger = utils.MetricLogger()
    for tiles, boxes in metric_logger.log_every(data_loader, 10, f"Epoch: [{epoch}]"):
        loss = F.smooth_l1_loss(model(tiles), boxes, beta=0.1)
        if not math.isfinite(loss.item()):
            print(f"Loss is {loss.item()}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        metric_logger.update(n=len(tiles), loss=loss.item())
    metric_logger.synchronize_between_processes()
    return {k: meter.global_avg for k, meter in metric_logger.meters.items()}


@torch.no_grad()
def evaluate(model, data_loader):
    model.eval()
    metric_logger = utils.MetricLogger()
    for tiles, boxes in metric_logger.log_every(data_loader, 10, "Test:"):
        pred = model(tiles)
        metric_logger.update(
            n=len(tiles),
            loss=F.smooth_l1_loss(pred, boxes, beta=0.1).item(),
            iou=iou_cxcywh(pred, boxes).mean().item(),
        )
    return metric_logger
