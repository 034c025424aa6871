import argparse

import torch
from pytorch_lightning.lite import LightningLite
from torch.utils.data import DataLoader


class Lite(LightningLite):
    def run(self, args):
        model = torch.nn.Linear(16, 2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        videos = torch.load(args.videos, weights_only=False)
        loader = DataLoader(videos, batch_size=4, shuffle=True, drop_last=True)
        loader = self.setup_dataloaders(loader, move_to_device=False)
        model, optimizer = self.setup(model, optimizer)
        for epoch in range(args.epochs):
            for batch, gotit in loader:
                optimizer.zero_grad()
                loss = model(batch).mean() * float(all(gotit))
                self.backward(loss)
                optimizer.step()
            if self.global_rank == 0:
                self.save(model.state_dict(), f"model_{epoch:03}.pth")
            self.barrier()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--videos")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=5e-4)
    Lite(strategy="ddp", devices="auto", accelerator="gpu").run(parser.parse_args())
