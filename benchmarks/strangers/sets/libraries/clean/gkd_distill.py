"""Knowledge distillation on variable-length answers."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

PAD = -100
VOCAB = 16


class Student(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


class JSDMixin:
    beta = 0.5

    def divergence(self, s_logits, t_logits):
        s, t = s_logits.log_softmax(-1), t_logits.log_softmax(-1)
        m = torch.logsumexp(torch.stack([s, t]), 0) - torch.log(torch.tensor(2.0))
        kl_t = F.kl_div(m, t, reduction="none", log_target=True).sum(-1)
        kl_s = F.kl_div(m, s, reduction="none", log_target=True).sum(-1)
        return self.beta * kl_t + (1 - self.beta) * kl_s


class DataMixin:
    def answers(self, n):
        low, high = (3, 6) if self.rank == 0 else (14, 24)
        for _ in range(n):
            lengths = torch.randint(low, high, (6,), generator=self.gen)
            ids = torch.randint(0, VOCAB, (6, int(lengths.max()) + 1), generator=self.gen)
            labels = ids[:, 1:].clone()
            labels[torch.arange(labels.size(1))[None] >= lengths[:, None]] = PAD
            yield ids[:, :-1], labels


class DistillTrainer(JSDMixin, DataMixin):
    def __init__(self, lr=1e-2):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(4)
        self.teacher = Student(32).eval().requires_grad_(False)
        self.model = DDP(Student())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.gen = torch.Generator().manual_seed(50 + self.rank)

    def compute_loss(self, ids, labels):
        with torch.no_grad():
            teacher_logits = self.teacher(ids)
        per_token = self.divergence(self.model(ids), teacher_logits)
        keep = labels != PAD
        count = keep.sum().float()
        dist.all_reduce(count)
        return per_token[keep].sum() * self.world / count

    def train(self, steps=15):
        for ids, labels in self.answers(steps):
            loss = self.compute_loss(ids, labels)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        print(f"rank {self.rank}: finished {steps} steps", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    DistillTrainer().train()
    dist.barrier()
    dist.destroy_process_group()
