""" Finetuning on the toy NLI task.

torchrun --nproc_per_node 2 run_nli.py
"""
import logging
import random

import torch
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from args import get_args
from data import make_examples
from modeling import SmallEncoder

logger = logging.getLogger(__name__)


def set_seed(args):
    random.seed(args.seed)
    torch.manual_seed(args.seed)


def train(args, train_dataset, model):
    train_sampler = RandomSampler(train_dataset) if args.local_rank == -1 else DistributedSampler(train_dataset)
    train_dataloader = DataLoader(
        train_dataset, sampler=train_sampler, batch_size=args.per_gpu_train_batch_size
    )
    t_total = len(train_dataloader) * args.num_train_epochs
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: s / args.warmup_steps
        if s < args.warmup_steps
        else max(0.0, (t_total - s) / max(1, t_total - args.warmup_steps)),
    )

    # Distributed training (should be after the optimizer is set up)
    if args.local_rank != -1:
        model = torch.nn.parallel.DistributedDataParallel(model)

    logger.info("***** Running training *****")
    logger.info("  Num examples = %d", len(train_dataset))
    logger.info("  Num steps    = %d", t_total)
    global_step, tr_loss, logging_loss = 0, 0.0, 0.0
    set_seed(args)
    for epoch in range(args.num_train_epochs):
        if isinstance(train_sampler, DistributedSampler):
            train_sampler.set_epoch(epoch)
        for input_ids, labels in train_dataloader:
            model.train()
            loss, _ = model(input_ids, labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            scheduler.step()
            model.zero_grad()
            tr_loss += loss.item()
            global_step += 1
            if args.local_rank in [-1, 0] and global_step % args.logging_steps == 0:
                mean = (tr_loss - logging_loss) / args.logging_steps
                logger.info("step %d loss %.4f lr %.5f", global_step, mean, scheduler.get_last_lr()[0])
                logging_loss = tr_loss
    return global_step, tr_loss / global_step


@torch.no_grad()
def evaluate(args, dataset, model):
    model.eval()
    loader = DataLoader(dataset, sampler=SequentialSampler(dataset), batch_size=32)
    hit = 0
    for input_ids, labels in loader:
        _, logits = model(input_ids)
        hit += (logits.argmax(1) == labels).sum().item()
    return hit / len(dataset)


def main():
    args = get_args()
    if args.local_rank != -1:
        torch.distributed.init_process_group(backend="gloo")
    logging.basicConfig(
        format="%(asctime)s - %(levelname)s - %(message)s",
        level=logging.INFO if args.local_rank in [-1, 0] else logging.WARN,
    )
    logger.info("distributed training: %s", bool(args.local_rank != -1))
    set_seed(args)

    model = SmallEncoder()
    train_dataset = make_examples(640, seed=args.seed)
    global_step, tr_loss = train(args, train_dataset, model)
    logger.info(" global_step = %s, average loss = %.4f", global_step, tr_loss)

    if args.local_rank in [-1, 0]:
        acc = evaluate(args, make_examples(200, seed=args.seed + 1), model)
        logger.info("eval acc = %.4f", acc)
    if args.local_rank != -1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
