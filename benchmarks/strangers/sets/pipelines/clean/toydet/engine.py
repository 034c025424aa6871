from util import misc as utils
from util.logger import MetricLogger


def train_one_epoch(model, criterion, loader, optimizer, epoch, print_freq):
    model.train()
    criterion.train()
    metric_logger = MetricLogger(delimiter="  ")
    for samples, targets in metric_logger.log_every(loader, print_freq, f"Epoch: [{epoch}]"):
        loss_dict = criterion(model(samples), targets)
        losses = sum(loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        reduced = utils.reduce_dict({k: v.detach() for k, v in loss_dict.items()})
        metric_logger.update(loss=losses.item(), **reduced)
    return {k: round(m.avg, 4) for k, m in metric_logger.meters.items()}
