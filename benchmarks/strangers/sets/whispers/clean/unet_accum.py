import argparse

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--train_batch_size", type=int, default=8)
    parser.add_argument("--num_train_epochs", type=int, default=6)
    parser.add_argument("--learning_rate", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


class TinyUNet(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.down = nn.Conv1d(2, ch, 3, padding=1)
        self.mid = nn.Conv1d(ch, ch, 3, padding=1)
        self.up = nn.Conv1d(2 * ch, 1, 3, padding=1)

    def forward(self, x, t):
        t = t.view(-1, 1, 1).expand(-1, 1, x.shape[-1])
        a = torch.relu(self.down(torch.cat([x, t], 1)))
        b = torch.relu(self.mid(a))
        return self.up(torch.cat([a, b], 1))


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(args.seed)
    g = torch.Generator().manual_seed(1)
    phase = torch.rand(256, 1, 1, generator=g) * 6.28
    x0 = torch.sin(torch.linspace(0, 6.28, 24) + phase)
    noise, t = torch.randn(256, 1, 24, generator=g), torch.rand(256, generator=g)
    loader = DataLoader(TensorDataset(x0, noise, t), args.train_batch_size, shuffle=True)
    model = TinyUNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    global_step = 0
    for epoch in range(args.num_train_epochs):
        train_loss = 0.0
        for x, eps, ts in loader:
            with accelerator.accumulate(model):
                noisy = x * (1 - ts).view(-1, 1, 1) + eps * ts.view(-1, 1, 1)
                loss = nn.functional.mse_loss(model(noisy, ts), eps)
                avg_loss = accelerator.gather(loss.detach().repeat(args.train_batch_size)).mean()
                train_loss += avg_loss.item() / args.gradient_accumulation_steps
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 5.0)
                    global_step += 1
                optimizer.step()
                optimizer.zero_grad()
        steps = len(loader) // args.gradient_accumulation_steps
        accelerator.print(f"epoch {epoch} global_step {global_step} train_loss {train_loss / steps:.4f}")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
