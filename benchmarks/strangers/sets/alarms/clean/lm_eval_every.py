"""Causal toy LM with accelerate, no Trainer: evaluation in the middle of the epoch."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm

cfg = dict(epochs=2, lr=1e-3, eval_steps=6, batch=8, vocab=40, width=32)


class TinyLM(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


def lm_loss(logits, ids):
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def token_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    start = torch.randint(0, cfg["vocab"], (n, 1), generator=g)
    return TensorDataset((start + torch.arange(12)) % cfg["vocab"])


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    losses = []
    for (ids,) in loader:
        loss = lm_loss(model(ids), ids)
        losses.append(accelerator.gather_for_metrics(loss.repeat(ids.shape[0])))
    model.train()
    return torch.cat(losses).mean().item()


def main():
    accelerator = Accelerator(cpu=True)
    model = TinyLM(cfg["vocab"], cfg["width"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    train = DataLoader(token_data(160, 0), batch_size=cfg["batch"], shuffle=True)
    dev = DataLoader(token_data(40, 1), batch_size=cfg["batch"])
    model, optimizer, train, dev = accelerator.prepare(model, optimizer, train, dev)

    total = cfg["epochs"] * len(train)
    progress_bar = tqdm(range(total), disable=not accelerator.is_main_process, mininterval=5)
    completed = 0
    for epoch in range(cfg["epochs"]):
        for (ids,) in train:
            loss = lm_loss(model(ids), ids)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            completed += 1
            if completed % cfg["eval_steps"] == 0:
                dev_loss = evaluate(accelerator, model, dev)
                accelerator.print(f"step {completed} dev loss {dev_loss:.4f}")
    accelerator.wait_for_everyone()
    accelerator.print("done")
    model, optimizer = accelerator.free_memory(model, optimizer)
    accelerator.end_training()


if __name__ == "__main__":
    main()
