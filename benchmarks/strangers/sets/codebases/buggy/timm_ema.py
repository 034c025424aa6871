"""Image classification with weight averaging and per-process batch norm, timm-like train script."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as NativeDDP

from timm_ema_lib.data import create_dataset, create_loader
from timm_ema_lib.model import create_model
from timm_ema_lib.utils import AverageMeter, ModelEmaV2, accuracy, distribute_bn, is_primary, reduce_tensor

parser = argparse.ArgumentParser(description="Toy ImageNet")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("-b", "--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--model-ema-decay", type=float, default=0.9)
parser.add_argument("--dist-bn", default="reduce", choices=["reduce", "broadcast", ""])
parser.add_argument("--no-ddp-bb", action="store_true", default=True)


def validate(model, loader, loss_fn, args, log_suffix=""):
    losses_m, top1_m = AverageMeter(), AverageMeter()
    model.eval()
    with torch.no_grad():
        for image, target in loader:
            output = model(image)
            loss, acc1 = loss_fn(output, target), accuracy(output, target)
            losses_m.update(reduce_tensor(loss, args.world_size).item(), len(image))
            top1_m.update(reduce_tensor(acc1, args.world_size).item(), len(image))
    if is_primary(args):
        print(f"Test{log_suffix}: loss {losses_m.avg:.4f} acc@1 {top1_m.avg:.2f}", flush=True)
    return {"loss": losses_m.avg, "top1": top1_m.avg}


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, model_ema):
    model.train()
    losses_m = AverageMeter()
    for image, target in loader:
        loss = loss_fn(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model_ema.update(model)
        losses_m.update(loss.item(), len(image))
    if is_primary(args):
        print(f"Train: {epoch} loss {losses_m.avg:.4f}", flush=True)


def main():
    args = parser.parse_args()
    dist.init_process_group("gloo")
    args.rank, args.world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(42 + args.rank)
    model = NativeDDP(create_model(), broadcast_buffers=not args.no_ddp_bb)
    model_ema = ModelEmaV2(model.module, decay=args.model_ema_decay)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    loader_train, sampler = create_loader(create_dataset("train"), args, is_training=True)
    loader_eval, _ = create_loader(create_dataset("val"), args, is_training=False)
    loss_fn = nn.CrossEntropyLoss()
    output_dir, best_metric = tempfile.mkdtemp(prefix=f"timm{args.rank}_"), None
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(epoch, model, loader_train, optimizer, loss_fn, args, model_ema)
        if args.dist_bn in ("broadcast", "reduce"):
            distribute_bn(model, args.world_size, args.dist_bn == "reduce")
        validate(model, loader_eval, loss_fn, args)
        ema_metrics = validate(model_ema.module, loader_eval, loss_fn, args, " (EMA)")
        if best_metric is None or ema_metrics["top1"] > best_metric:
            best_metric = ema_metrics["top1"]
            if is_primary(args):
                torch.save(model_ema.module.state_dict(), os.path.join(output_dir, "model_best.pth.tar"))
    if is_primary(args):
        print(f"*** Best metric: {best_metric:.2f}", flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
