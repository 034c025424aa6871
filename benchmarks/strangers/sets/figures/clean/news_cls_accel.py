import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def get_linear_schedule(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        return max(0.0, (num_training_steps - step) / max(1, num_training_steps - num_warmup_steps))

    return LambdaLR(optimizer, lr_lambda)


def headlines(n=640, vocab=300, length=12, n_topics=4):
    g = torch.Generator().manual_seed(0)
    topic = torch.randint(0, n_topics, (n,), generator=g)
    tokens = torch.randint(0, vocab, (n, length), generator=g)
    topical = torch.rand(n, length, generator=g) < 0.4
    tokens[topical] = (tokens % (vocab // n_topics) + topic[:, None] * (vocab // n_topics))[topical]
    return TensorDataset(tokens, topic)


class TopicModel(nn.Module):
    def __init__(self, vocab=300, dim=32, n_topics=4):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim)
        self.fc = nn.Linear(dim, n_topics)

    def forward(self, tokens):
        return self.fc(self.emb(tokens))


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--num_train_epochs", type=int, default=3)
    p.add_argument("--per_device_train_batch_size", type=int, default=16)
    p.add_argument("--learning_rate", type=float, default=1e-2)
    p.add_argument("--num_warmup_steps", type=int, default=6)
    p.add_argument("--seed", type=int, default=42)
    return p.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True)
    set_seed(args.seed)
    loader = DataLoader(headlines(), batch_size=args.per_device_train_batch_size, shuffle=True)
    model = TopicModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    num_update_steps_per_epoch = len(loader)
    max_train_steps = args.num_train_epochs * num_update_steps_per_epoch
    lr_scheduler = get_linear_schedule(
        optimizer, args.num_warmup_steps * accelerator.num_processes, max_train_steps * accelerator.num_processes)
    lr_scheduler = accelerator.prepare(lr_scheduler)

    completed = 0
    for epoch in range(args.num_train_epochs):
        model.train()
        for tokens, topic in loader:
            loss = nn.functional.cross_entropy(model(tokens), topic)
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            completed += 1
            if completed % 10 == 0:
                accelerator.print(f"step {completed}/{max_train_steps} loss {loss.item():.4f}")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), "topic.pt")
    accelerator.end_training()


if __name__ == "__main__":
    main()
