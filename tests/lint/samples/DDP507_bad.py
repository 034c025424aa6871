class Ema:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.mix = lambda old, new: decay * old + (1 - decay) * new  # <-- DDP507


def refresh(ema):
    ema.decay = 0.9999
