"""Sequence-to-sequence copy-and-sort task with a fairseq-like Trainer that recovers from bad batches."""
import argparse
import logging
import math
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

logger = logging.getLogger("translate")


class LanguagePairDataset:
    """Sequences of symbols and the same in sorted order; a few are much longer than the rest."""

    def __init__(self, n, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        self.pairs = []
        for i in range(n):
            length = int(torch.randint(3, 12, (), generator=g)) if i % 83 != 40 else 20
            src = torch.randint(2, vocab, (length,), generator=g)
            self.pairs.append((src, src.sort().values))
        self.sizes = [len(s) for s, _ in self.pairs]

    def collater(self, indices):
        def pad(rows):
            return nn.utils.rnn.pad_sequence(rows, batch_first=True)
        src, tgt = zip(*(self.pairs[i] for i in indices))
        tgt = pad(tgt)
        return {"src": pad(src), "prev": F.pad(tgt, (1, 0), value=1)[:, :-1], "target": tgt,
                "ntokens": int((tgt > 0).sum())}


def batch_by_size(indices, sizes, max_tokens):
    batches, batch, longest = [], [], 0
    for i in indices:
        longest = max(longest, sizes[i])
        if batch and longest * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch, longest = [], sizes[i]
        batch.append(i)
    return batches + [batch]


class EpochBatchIterator:
    """Frozen batches, shuffled by epoch and dealt to the shards; every shard has as many."""

    def __init__(self, dataset, max_tokens, seed, num_shards, shard_id):
        order = sorted(range(len(dataset.sizes)), key=dataset.sizes.__getitem__)
        self.dataset, self.seed = dataset, seed
        self.frozen_batches = batch_by_size(order, dataset.sizes, max_tokens)
        self.num_shards, self.shard_id = num_shards, shard_id

    def next_epoch_itr(self, epoch):
        g = torch.Generator().manual_seed(self.seed + epoch)
        order = torch.randperm(len(self.frozen_batches), generator=g).tolist()
        whole = len(order) // self.num_shards * self.num_shards
        for k in order[self.shard_id:whole:self.num_shards]:
            yield self.dataset.collater(self.frozen_batches[k])


class TransformerModel(nn.Module):
    def __init__(self, vocab, dim=32, max_positions=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.embed_positions = nn.Embedding(max_positions, dim)
        self.core = nn.Transformer(dim, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out, self.scale = nn.Linear(dim, vocab), math.sqrt(dim)

    def embedding(self, tokens):
        return self.embed(tokens) * self.scale + self.embed_positions(torch.arange(tokens.shape[1]))

    def forward(self, src, prev):
        causal = nn.Transformer.generate_square_subsequent_mask(prev.shape[1])
        return self.out(self.core(self.embedding(src), self.embedding(prev), tgt_mask=causal))


class Trainer:
    def __init__(self, args, model):
        self.args, self._num_updates, self.skipped = args, 0, 0
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.lr, betas=(0.9, 0.98))

    def criterion(self, sample):
        logits = self.model(sample["src"], sample["prev"])
        return F.cross_entropy(logits.transpose(1, 2), sample["target"], ignore_index=0, reduction="sum")

    def _forward(self, sample):
        """The loss, or nothing where a batch cannot be handled."""
        try:
            return self.criterion(sample)
        except (RuntimeError, IndexError) as e:
            logger.warning("| WARNING: %s, skipping batch", str(e).split("\n")[0])
            self.zero_grad()
            self.skipped += 1
            return None

    def zero_grad(self):
        self.optimizer.zero_grad()

    def train_step(self, sample):
        loss = self._forward(sample)
        usable = torch.tensor(float(loss is not None))
        dist.all_reduce(usable, op=dist.ReduceOp.MIN)
        if not usable:
            return None
        (loss / sample["ntokens"]).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip_norm)
        self.optimizer.step()
        self.zero_grad()
        self._num_updates += 1
        return {"loss": loss.item(), "ntokens": sample["ntokens"]}


def save_checkpoint(path, trainer, epoch):
    if dist.get_rank() == 0:
        torch.save({"model": trainer.model.module.state_dict(), "epoch": epoch}, path)
    dist.barrier()


def aggregate_logging_outputs(outputs):
    stats = torch.tensor([sum(o["loss"] for o in outputs), sum(o["ntokens"] for o in outputs)])
    dist.all_reduce(stats)
    return (stats[0] / stats[1] / math.log(2)).item()


def cli_main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--max-epoch", type=int, default=5)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--clip-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-dir", default=tempfile.mkdtemp(prefix="translate_"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(format=f"rank {rank} %(message)s", level=logging.INFO if rank == 0 else logging.WARNING)
    torch.manual_seed(args.seed)
    itr = EpochBatchIterator(LanguagePairDataset(498, 20, 0), args.max_tokens, args.seed, dist.get_world_size(), rank)
    trainer = Trainer(args, TransformerModel(20))
    for epoch in range(1, args.max_epoch + 1):
        outputs = [trainer.train_step(sample) for sample in itr.next_epoch_itr(epoch)]
        save_checkpoint(f"{args.save_dir}/checkpoint_last.pt", trainer, epoch)
        loss = aggregate_logging_outputs([o for o in outputs if o is not None])
        logger.info("| epoch %03d | loss %.3f | num_updates %d | skipped %d", epoch, loss, trainer._num_updates,
                    trainer.skipped)
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    cli_main()
