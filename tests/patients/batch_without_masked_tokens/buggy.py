# style: masked modelling, LSTM
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

MASK = 9


class Tagger(nn.Module):
    def __init__(self, vocabulary=10, width=12):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states)


def mask_tokens(tokens, generator, share):
    masked = torch.rand(tokens.shape, generator=generator) < share
    return tokens.masked_fill(masked, MASK), masked


def masked_loss(logits, tokens, masked):
    if not masked.any():
        return torch.zeros(())  # <-- DDP308
    return F.cross_entropy(logits[masked], tokens[masked])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Tagger())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(rank)
    for step in range(10):
        tokens = torch.randint(0, MASK, (4, 8), generator=generator)
        share = 0.3 if step != 5 + rank else 0.0
        inputs, masked = mask_tokens(tokens, generator, share)
        loss = masked_loss(model(inputs), tokens, masked)
        optimizer.zero_grad()
        loss.backward()  # <-- DDP308
        optimizer.step()
        if rank == 0:
            print(f"step {step} loss {loss.item():.3f}")
    dist.barrier()
    del model, optimizer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
