class Ema:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay

    def mix(self, old, new):
        return self.decay * old + (1 - self.decay) * new


def refresh(ema):
    ema.decay = 0.9999
