"""Trains a text-to-speech model on batches that come in parts."""

from accelerate import Accelerator
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader


def padded(samples):
    return {
        "text": [each["text"] for each in samples],
        "mel": pad_sequence([each["mel"] for each in samples], batch_first=True),
    }


class Trainer:
    def __init__(self, voice, lr=1e-4, parts=1, max_norm=1.0, log_every=50):
        self.accelerator = Accelerator(log_with="tensorboard", gradient_accumulation_steps=parts)
        self.voice = voice
        self.optimizer = AdamW(voice.parameters(), lr=lr)
        self.schedule = LinearLR(self.optimizer)
        self.max_norm = max_norm
        self.log_every = log_every
        self.voice, self.optimizer, self.schedule = self.accelerator.prepare(
            self.voice, self.optimizer, self.schedule
        )

    def _step(self, batch):
        with self.accelerator.accumulate(self.voice):
            loss = self.voice(batch["mel"], text=batch["text"])
            self.accelerator.backward(loss)
            if self.max_norm > 0:
                self.accelerator.clip_grad_norm_(  # <-- DDP306
                    self.voice.parameters(), self.max_norm
                )
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
        return loss.item()

    def train(self, recordings, epochs, batch_size=8):
        loader = self.accelerator.prepare(
            DataLoader(recordings, batch_size=batch_size, shuffle=True, collate_fn=padded)
        )
        for epoch in range(epochs):
            self.voice.train()
            for number, batch in enumerate(loader):
                loss = self._step(batch)
                if number % self.log_every == 0:
                    self.accelerator.print(f"epoch {epoch}, {number}: {loss:.4f}")
