"""Small GPT-style pretraining with memory-mapped document/sample/shuffle indices."""
import argparse
import hashlib
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as LocalDDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def print_rank_0(msg):
    if dist.get_rank() == 0:
        print(msg, flush=True)


class IndexedCorpus:
    def __init__(self, n_docs=300, vocab=64, seed=1):
        rng = np.random.default_rng(seed)
        self.docs = [np.cumsum(rng.integers(1, 4, size=int(k))) % vocab for k in rng.integers(20, 60, size=n_docs)]
        self.vocab = vocab


def _build_index_mappings(name, corpus, seq_length, seed, cache_dir):
    desc = f"{name}-{seq_length}-{seed}-{len(corpus.docs)}"
    prefix = os.path.join(cache_dir, hashlib.md5(desc.encode()).hexdigest())
    idx_path = {k: f"{prefix}_{k}.npy" for k in ("doc_idx", "sample_idx", "shuffle_idx")}

    if dist.get_rank() == 0 and not all(os.path.isfile(p) for p in idx_path.values()):
        print_rank_0(f" > building index mappings for {name} ...")
        start = time.time()
        os.makedirs(cache_dir, exist_ok=True)
        rng = np.random.RandomState(seed)
        doc_idx = rng.permutation(len(corpus.docs))
        flat = np.concatenate([corpus.docs[d] for d in doc_idx])
        samples = []
        for offset in range(0, len(flat) - seq_length - 1, seq_length):
            samples.append(offset)
            time.sleep(0.002)
        np.save(idx_path["doc_idx"], doc_idx)
        np.save(idx_path["sample_idx"], np.asarray(samples))
        np.save(idx_path["shuffle_idx"], rng.permutation(len(samples)))
        print_rank_0(f" > elapsed {time.time() - start:.2f}s")

    dist.barrier()
    return [np.load(idx_path[k], mmap_mode="r") for k in ("doc_idx", "sample_idx", "shuffle_idx")]


class GPTDataset(Dataset):
    def __init__(self, name, corpus, seq_length, seed, cache_dir):
        doc_idx, self.sample_idx, self.shuffle_idx = _build_index_mappings(name, corpus, seq_length, seed, cache_dir)
        self.tokens = np.concatenate([corpus.docs[d] for d in doc_idx])
        self.seq_length = seq_length

    def __len__(self):
        return len(self.sample_idx)

    def __getitem__(self, i):
        at = self.sample_idx[self.shuffle_idx[i]]
        chunk = torch.from_numpy(self.tokens[at:at + self.seq_length + 1].astype(np.int64))
        return chunk[:-1], chunk[1:]


class TinyGPT(nn.Module):
    def __init__(self, vocab, dim=24, heads=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.block = nn.TransformerEncoderLayer(dim, heads, 48, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(dim, vocab)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.lm_head(self.block(self.tok(ids), src_mask=mask, is_causal=True))


def pretrain(args):
    torch.manual_seed(args.seed)
    corpus = IndexedCorpus()
    train_ds = GPTDataset("train", corpus, args.seq_length, args.seed, args.data_cache_path)
    sampler = DistributedSampler(train_ds, seed=args.seed, drop_last=True)
    loader = DataLoader(train_ds, batch_size=args.micro_batch_size, sampler=sampler)
    model = LocalDDP(TinyGPT(corpus.vocab))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        lm_loss = torch.zeros(1)
        for ids, labels in loader:
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lm_loss += loss.detach()
        dist.all_reduce(lm_loss)
        print_rank_0(f" epoch {epoch} | lm loss: {lm_loss.item() / len(loader) / dist.get_world_size():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seq-length", type=int, default=16)
    parser.add_argument("--micro-batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument("--data-cache-path", default=os.path.join(tempfile.gettempdir(), f"index-cache-{os.getppid()}"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    pretrain(args)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(args.data_cache_path)
    dist.destroy_process_group()
